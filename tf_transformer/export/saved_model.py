"""A SavedModel with tokenizer and decoding inside."""

import dataclasses
import json
import os
import re
from pathlib import Path

import tensorflow as tf
from tensorflow.core.protobuf.saved_model_pb2 import SavedModel

from tf_transformer.config import DecodingConfig
from tf_transformer.errors import InputError
from tf_transformer.export.model_card import card
from tf_transformer.export.warm_up import write_requests
from tf_transformer.runs.descriptions import LANGUAGES, OF_EXPORT
from tf_transformer.runs.weights import RunOrRuns, count_of, load_runs
from tf_transformer.storage.atomic import written_whole
from tf_transformer.tokenizers import PAD
from tf_transformer.translation.results import Languages
from tf_transformer.translation.translator import Translator
from tf_transformer.translation.word_alignment import word_alignment

TEXT_OPS = {"SentencepieceOp", "SentencepieceTokenizeOp", "SentencepieceDetokenizeOp"}
"""The ops of tensorflow-text that an export needs; TensorFlow Serving's images have them."""


def export(
    run_dir: RunOrRuns,
    output: str | Path,
    decoding: DecodingConfig | None = None,
    dtype: str = "float32",
) -> Path:
    """Export the best checkpoint of a run as a SavedModel, or several runs as an ensemble.

    The export is written beside its place, then renamed.

    It searches as `decoding` says, by default as the run does, with beam search. Loading it needs only tensorflow and
    tensorflow_text. With `decoding.jit_compile` it needs XLA as well, which TensorFlow Serving must be told to use.
    With `dtype` "bfloat16" it is half as large, and faster on CPUs that compute in bfloat16. Softmax, layer norm and
    search stay in float32, but translations are not quite the same. Beside it are requests for a server to warm up
    with, the configuration with its metrics, and a README.md.

    These signatures take `text` (string, [B]). They give `is_truncated` (boolean, [B]: whether the sentence had more
    than `decoding.max_source_length` tokens, and was cut), and besides:

    - `serving_default`: `translation` (string, [B]), `score` (float32, [B]: summed log-probability);
    - `translate_n_best`: `translations` (string, [B, n], where n is the beam size, or 1 with sampling), `scores`
      (float32, [B, n]: log-probability divided by the length penalty), the best first;
    - `translate_with_attention`: `translation`, `source_tokens` (string, [B, S]), `target_tokens` (string, [B, T]),
      `attention` (float32, [B, T, S]: the mean of the heads of `decoding.attention_layer`), `alignment` (string, [B]:
      which words belong together, such as "0-0 1-2", the source first);
    - `attention`: `translation`, `source_tokens`, `target_tokens`, `read_tokens` (string, [B, R]), and `encoder`,
      `decoder` and `cross` (float32, [B, layers, heads, rows, columns]: see `AllAttention`).

    With a beam of 2 or more, `search_steps` takes `text` and `prefix_ids` (string, [B]: the numbers of target tokens
    to begin with, with spaces between them). It gives `translation`, and for each step `target_ids`, `target_tokens`
    [B, T] and the most probable next tokens, `next_ids`, `next_tokens` and `next_log_probabilities` [B, T, N]; and the
    candidates of the search, `considered_tokens`, `parents`, `places`, `log_probabilities` and `scores` [B, steps, C]:
    see `SearchSteps` and `Considered`. Without XLA, there is also `translate_with_terms`. It gives what
    `translate_n_best` gives, and takes `terms` as well (string, [B]: what the translations must contain, several terms
    with tabs between them). If a translation cannot, it is empty, with a score of -inf.

    `score` takes `source` and `target` (string, [B]) and gives `log_probability` (float32, [B]: summed),
    `token_log_probabilities` (float32, [B, T]), `tokens` (int32, [B]: the number in the target, including the end
    token) and `is_truncated`. `count_tokens` takes `text` and gives `tokens` (int32, [B]: the number in the source).

    If the model has several languages, `serving_default` translates between those of `decoding`. The other signatures
    for translations and scores also take `source_language` and `target_language` (string, [B]), so that a batch may
    have many directions. So does `translate_to`, which only such a model has, and which gives what `serving_default`
    gives.

    Raises:
        InputError: the output exists; the run directory is not ours or has no checkpoint; the model has several
            languages, but `decoding` names none.
    """
    output = Path(output)
    if output.exists():
        raise InputError(f"{output} exists: give another --output, such as the next version number, or remove it")
    loaded = load_runs(run_dir, dtype)
    run = loaded.runs[0]
    decoding = decoding or run.config.decoding
    decoding.check_directed(run.languages)
    description = run.description | {"checkpoint": loaded.checkpoints[0], "dtype": dtype}
    if len(loaded.runs) > 1:
        description |= {"checkpoint": None, "parameters": count_of(loaded.model)}
        description["ensemble"] = [
            {"run": each.path.name, "checkpoint": checkpoint}
            for each, checkpoint in zip(loaded.runs, loaded.checkpoints, strict=True)
        ]
    description["config"] = run.config.as_dict() | {"decoding": dataclasses.asdict(decoding)}
    try:
        with written_whole(output) as beside:
            translator = Translator(loaded.model, loaded.source_tokenizer, loaded.target_tokenizer, decoding)
            signatures = save(translator, beside)
            inputs = {name: takes for name, (takes, _) in signatures.items()}
            known = {name: getattr(decoding, name) for name in LANGUAGES} | {"prefix_ids": "", "terms": ""}
            write_requests(beside, inputs, translator.source_tokenizer, known)
            (beside / OF_EXPORT).write_text(json.dumps(description, indent=1) + "\n", "utf-8")
            readme = card(output.name, description, OF_EXPORT.as_posix(), signatures)
            (beside / "README.md").write_text(readme, "utf-8")
    except tf.errors.OpError as error:
        raise InputError(f"cannot write {output}: {_reason(error.message)}") from None
    return output


def _reason(message: str) -> str:
    """Return what the system says of a file that cannot be written: TensorFlow puts internals before and after it."""
    return re.sub(r"\s*\[Op:\w+\]$", "", message).rpartition("; ")[2]


def save(translator: Translator, path: Path) -> dict[str, tuple[list[str], list[str]]]:
    """Write a translator as a SavedModel, and check that every runtime can run its graph.

    Returns:
        The names of the inputs and of the outputs of each signature.
    """
    n = translator.decoding.hypotheses
    text, source, target = (tf.TensorSpec([None], tf.string, name=name) for name in ("text", "source", "target"))
    prefix, terms = (tf.TensorSpec([None], tf.string, name=name) for name in ("prefix_ids", "terms"))
    is_of_several = bool(translator.source_tokenizer.languages)
    pair = [tf.TensorSpec([None], tf.string, name=name) for name in LANGUAGES] if is_of_several else []

    def named(languages: tuple[tf.Tensor, ...]) -> Languages | None:
        return Languages(*languages) if languages else None

    def translated(text: tf.Tensor, languages: Languages | None) -> dict[str, tf.Tensor]:
        found = translator.translate(text, languages)
        return {"translation": found.texts, "score": found.scores, "is_truncated": found.is_truncated}

    @tf.function(input_signature=[text], autograph=False)
    def serving_default(text: tf.Tensor) -> dict[str, tf.Tensor]:
        return translated(text, None)

    @tf.function(input_signature=[text, *pair], autograph=False)
    def translate_to(text: tf.Tensor, *languages: tf.Tensor) -> dict[str, tf.Tensor]:
        return translated(text, named(languages))

    @tf.function(input_signature=[text, *pair], autograph=False)
    def translate_n_best(text: tf.Tensor, *languages: tf.Tensor) -> dict[str, tf.Tensor]:
        found = translator.translate_n_best(text, n, languages=named(languages))
        return {"translations": found.texts, "scores": found.scores, "is_truncated": found.is_truncated}

    @tf.function(input_signature=[text, terms, *pair], autograph=False)
    def translate_with_terms(text: tf.Tensor, terms: tf.Tensor, *languages: tf.Tensor) -> dict[str, tf.Tensor]:
        found = translator.translate_n_best(text, n, languages=named(languages), terms=terms)
        return {"translations": found.texts, "scores": found.scores, "is_truncated": found.is_truncated}

    @tf.function(input_signature=[text, *pair], autograph=False)
    def translate_with_attention(text: tf.Tensor, *languages: tf.Tensor) -> dict[str, tf.Tensor]:
        found = translator.translate_with_attention(text, named(languages))._asdict()
        found.pop("scores")
        links = word_alignment(found["source_tokens"], found["target_tokens"], found["attention"])
        return {"translation": found.pop("texts"), "alignment": links, **found}

    @tf.function(input_signature=[text, *pair], autograph=False)
    def attention(text: tf.Tensor, *languages: tf.Tensor) -> dict[str, tf.Tensor]:
        found = translator.translate_with_all_attention(text, named(languages))._asdict()
        return {"translation": found.pop("texts"), **found}

    @tf.function(input_signature=[text, prefix, *pair], autograph=False)
    def search_steps(text: tf.Tensor, prefix_ids: tf.Tensor, *languages: tf.Tensor) -> dict[str, tf.Tensor]:
        # A word that is no number must not fail a batch that a server made of several requests.
        words = tf.strings.split(prefix_ids)
        numbers = tf.where(tf.strings.regex_full_match(words.flat_values, "[0-9]{1,9}"), words.flat_values, "-1")
        given = words.with_flat_values(tf.strings.to_number(numbers, tf.int32)).to_tensor(PAD)
        found = translator.translate_with_steps(text, given, named(languages))._asdict()
        considered = found.pop("considered")._asdict()
        considered.pop("tokens")
        return {"translation": found.pop("texts"), **found, **considered}

    @tf.function(input_signature=[source, target, *pair], autograph=False)
    def score(source: tf.Tensor, target: tf.Tensor, *languages: tf.Tensor) -> dict[str, tf.Tensor]:
        found = translator.score(source, target, named(languages))._asdict()
        return {"log_probability": found.pop("log_probabilities"), "tokens": found.pop("lengths"), **found}

    @tf.function(input_signature=[text], autograph=False)
    def count_tokens(text: tf.Tensor) -> dict[str, tf.Tensor]:
        return {"tokens": translator.count(text)}

    functions = [serving_default, translate_n_best, translate_with_attention, attention, score, count_tokens]
    if n > 1:
        functions.append(search_steps)
    if n > 1 and not translator.decoding.jit_compile:
        functions.append(translate_with_terms)
    if is_of_several:
        functions.append(translate_to)
    module = tf.Module()
    # Only the variables: Keras's own attributes do not belong in what a server loads.
    module.variables_of_model = [variable.value for variable in translator.model.weights]
    module.tokenizers = [translator.source_tokenizer, translator.target_tokenizer]
    signatures = {function.__name__: function for function in functions}
    tf.saved_model.save(module, os.fspath(path), signatures=signatures)
    foreign = {op for op in foreign_ops(path) if not (translator.decoding.jit_compile and op.startswith("Xla"))}
    if foreign:
        raise RuntimeError(f"the exported graph has ops that not every runtime has: {', '.join(sorted(foreign))}")
    concrete = {name: function.get_concrete_function() for name, function in signatures.items()}
    return {
        name: ([spec.name for spec in function.structured_input_signature[0]], list(function.structured_outputs))
        for name, function in concrete.items()
    }


def foreign_ops(path: Path) -> set[str]:
    """Return the ops of a SavedModel that neither TensorFlow nor tensorflow-text registers, or that need XLA."""
    saved = SavedModel.FromString((path / "saved_model.pb").read_bytes())
    graphs = [meta_graph.graph_def for meta_graph in saved.meta_graphs]
    functions = [function for graph in graphs for function in graph.library.function]
    nodes = [node for graph in graphs for node in graph.node] + [n for f in functions for n in f.node_def]
    ops = {node.op for node in nodes} - {function.signature.name for function in functions} - TEXT_OPS
    return {op for op in ops if op.startswith("Xla") or not hasattr(tf.raw_ops, op)}

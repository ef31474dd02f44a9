"""A SavedModel with tokenizer and decoding inside."""

import dataclasses
import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import tensorflow as tf
from tensorflow.core.protobuf.saved_model_pb2 import SavedModel

from tf_transformer.config import DecodingConfig
from tf_transformer.errors import InputError
from tf_transformer.export.model_card import card
from tf_transformer.export.warm_up import write_requests
from tf_transformer.runs.descriptions import LANGUAGES, OF_EXPORT
from tf_transformer.runs.signatures import (
    ALL_ATTENTION,
    COUNT,
    DEFAULT,
    N_BEST,
    SCORE,
    STEPS,
    TRANSLATE_TO,
    WITH_ATTENTION,
    WITH_TERMS,
    Signature,
    signatures_of,
)
from tf_transformer.runs.weights import RunOrRuns, count_of, load_runs
from tf_transformer.storage.atomic import atomic_write, refuse_existing
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

    `runs.signatures` lists its signatures. If the model has several languages, `serving_default` translates between
    those of `decoding`. The other signatures for translations and scores take the names of the languages too, so that
    a batch may have many directions.

    Raises:
        InputError: the output exists; the run directory is not ours or has no checkpoint; the model has several
            languages, but `decoding` names none.
    """
    output = Path(output)
    refuse_existing(output)
    with atomic_write(output) as beside:
        save_runs(run_dir, beside, output.name, decoding, dtype)
    return output


def save_runs(run_dir: RunOrRuns, path: Path, name: str, decoding: DecodingConfig | None, dtype: str) -> None:
    """Write the best checkpoint of a run, or an ensemble, to a new folder; its README.md calls the folder `name`."""
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
        translator = Translator(loaded.model, loaded.source_tokenizer, loaded.target_tokenizer, decoding)
        signatures = save(translator, path)
        known = {name: getattr(decoding, name) for name in LANGUAGES} | {"prefix_ids": "", "terms": ""}
        write_requests(path, signatures, translator.source_tokenizer, known)
    except tf.errors.OpError as error:
        raise InputError(f"cannot write {path.with_name(name)}: {_reason(error.message)}") from None
    (path / OF_EXPORT).write_text(json.dumps(description, indent=1) + "\n", "utf-8")
    (path / "README.md").write_text(card(name, description, OF_EXPORT.as_posix(), signatures), "utf-8")


def _reason(message: str) -> str:
    """Return what the system says of a file that cannot be written: TensorFlow puts internals before and after it."""
    return re.sub(r"\s*\[Op:\w+\]$", "", message).rpartition("; ")[2]


def save(translator: Translator, path: Path) -> dict[str, Signature]:
    """Write a translator as a SavedModel, check that every runtime can run its graph, and return its signatures."""

    def named(languages: tuple[tf.Tensor, ...]) -> Languages | None:
        return Languages(*languages) if languages else None

    def translate(text: tf.Tensor, *languages: tf.Tensor) -> dict[str, tf.Tensor]:
        found = translator.translate(text, named(languages))
        return {"translation": found.texts, "score": found.scores, "is_truncated": found.is_truncated}

    def translate_with_terms(text: tf.Tensor, terms: Any, *languages: tf.Tensor) -> dict[str, tf.Tensor]:
        n = translator.decoding.hypotheses
        found = translator.translate_n_best(text, n, languages=named(languages), terms=terms)
        return {"translations": found.texts, "scores": found.scores, "is_truncated": found.is_truncated}

    def translate_n_best(text: tf.Tensor, *languages: tf.Tensor) -> dict[str, tf.Tensor]:
        return translate_with_terms(text, (), *languages)

    def translate_with_attention(text: tf.Tensor, *languages: tf.Tensor) -> dict[str, tf.Tensor]:
        found = translator.translate_with_attention(text, named(languages))._asdict()
        found.pop("scores")
        links = word_alignment(found["source_tokens"], found["target_tokens"], found["attention"])
        return {"translation": found.pop("texts"), "alignment": links, **found}

    def attention(text: tf.Tensor, *languages: tf.Tensor) -> dict[str, tf.Tensor]:
        found = translator.translate_with_all_attention(text, named(languages))._asdict()
        return {"translation": found.pop("texts"), **found}

    def search_steps(text: tf.Tensor, prefix_ids: tf.Tensor, *languages: tf.Tensor) -> dict[str, tf.Tensor]:
        # A word that is no number must not fail a batch that a server made of several requests.
        words = tf.strings.split(prefix_ids)
        numbers = tf.where(tf.strings.regex_full_match(words.flat_values, "[0-9]{1,9}"), words.flat_values, "-1")
        given = words.with_flat_values(tf.strings.to_number(numbers, tf.int32)).to_tensor(PAD)
        found = translator.translate_with_steps(text, given, named(languages))._asdict()
        considered = found.pop("considered")._asdict()
        considered.pop("tokens")
        return {"translation": found.pop("texts"), **found, **considered}

    def score(source: tf.Tensor, target: tf.Tensor, *languages: tf.Tensor) -> dict[str, tf.Tensor]:
        found = translator.score(source, target, named(languages))._asdict()
        return {"log_probability": found.pop("log_probabilities"), "tokens": found.pop("lengths"), **found}

    def count_tokens(text: tf.Tensor) -> dict[str, tf.Tensor]:
        return {"tokens": translator.count(text)}

    functions: dict[str, Callable[..., dict[str, tf.Tensor]]] = {
        DEFAULT: translate,
        TRANSLATE_TO: translate,
        N_BEST: translate_n_best,
        WITH_TERMS: translate_with_terms,
        WITH_ATTENTION: translate_with_attention,
        ALL_ATTENTION: attention,
        STEPS: search_steps,
        SCORE: score,
        COUNT: count_tokens,
    }
    signatures = signatures_of(translator.decoding, bool(translator.source_tokenizer.languages))
    made = {
        name: tf.function(
            functions[name],
            input_signature=[tf.TensorSpec([None], tf.string, name=name) for name in signature.takes],
            autograph=False,
        )
        for name, signature in signatures.items()
    }
    module = tf.Module()
    # Only the variables: Keras's own attributes do not belong in what a server loads.
    module.variables_of_model = [variable.value for variable in translator.model.weights]
    module.tokenizers = [translator.source_tokenizer, translator.target_tokenizer]
    # Nobody differentiates an export; tracing the gradients of our own functions takes an eighth of the time.
    options = tf.saved_model.SaveOptions(experimental_custom_gradients=False)
    tf.saved_model.save(module, os.fspath(path), signatures=made, options=options)
    foreign = {op for op in foreign_ops(path) if not (translator.decoding.jit_compile and op.startswith("Xla"))}
    if foreign:
        raise RuntimeError(f"the exported graph has ops that not every runtime has: {', '.join(sorted(foreign))}")
    return signatures


def foreign_ops(path: Path) -> set[str]:
    """Return the ops of a SavedModel that neither TensorFlow nor tensorflow-text registers, or that need XLA."""
    saved = SavedModel.FromString((path / "saved_model.pb").read_bytes())
    graphs = [meta_graph.graph_def for meta_graph in saved.meta_graphs]
    functions = [function for graph in graphs for function in graph.library.function]
    nodes = [node for graph in graphs for node in graph.node] + [n for f in functions for n in f.node_def]
    ops = {node.op for node in nodes} - {function.signature.name for function in functions} - TEXT_OPS
    return {op for op in ops if op.startswith("Xla") or not hasattr(tf.raw_ops, op)}

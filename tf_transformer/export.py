"""A SavedModel with tokenizer and decoding inside, and what loads it back."""

import dataclasses
import json
import os
import shutil
from pathlib import Path
from typing import Any

import tensorflow as tf
from tensorflow.core.protobuf.saved_model_pb2 import SavedModel

from tf_transformer import checkpoints
from tf_transformer.config import DecodingConfig
from tf_transformer.errors import InputError
from tf_transformer.run_directory import RunDirectory, read_description
from tf_transformer.translator import Translator, decoded, sentences_fit

DESCRIPTION = Path("assets.extra", "tf_transformer.json")
TEXT_OPS = {"SentencepieceOp", "SentencepieceTokenizeOp", "SentencepieceDetokenizeOp"}
"""The ops of tensorflow-text that an export needs; TensorFlow Serving's images have them."""


def export(run_dir: str | Path, output: str | Path, decoding: DecodingConfig | None = None) -> Path:
    """Export the best checkpoint of a run as a SavedModel; it is written beside its place, then renamed.

    It searches as `decoding` says, by default as the run does: beam search.

    Its signature `serving_default` maps `text` (string, [B]) to `translation` (string, [B]) and `score` (float32,
    [B]: summed log-probability); `translate_n_best` maps it to `translations` (string, [B, n], n the beam size) and
    `scores` (float32, [B, n]: log-probability divided by the length penalty), the best first. Loading it needs
    tensorflow and tensorflow_text alone.

    Raises:
        InputError: the output exists; the run directory is not ours or has no checkpoint.
    """
    output = Path(output)
    if output.exists():
        raise InputError(f"{output} exists: give another --output, such as the next version number, or remove it")
    run = RunDirectory(run_dir)
    description = run.description | {"checkpoint": checkpoints.state_of(run.best_checkpoint())}
    if decoding is not None:
        description["config"] = description["config"] | {"decoding": dataclasses.asdict(decoding)}
    beside = output.parent / f".{output.name}.{os.getpid()}"
    shutil.rmtree(beside, ignore_errors=True)  # of a killed process of the same number, as in a container
    try:
        save(Translator.load(run_dir, decoding), beside)
        (beside / DESCRIPTION).parent.mkdir()
        (beside / DESCRIPTION).write_text(json.dumps(description, indent=1) + "\n", "utf-8")
        beside.rename(output)
    except tf.errors.OpError as error:
        raise InputError(f"cannot write {output}: {error.message}") from None
    finally:
        shutil.rmtree(beside, ignore_errors=True)
    return output


def save(translator: Translator, path: Path) -> None:
    """Write a translator as a SavedModel, and check that every runtime can run its graph."""

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="text")])
    def serving_default(text: tf.Tensor) -> dict[str, tf.Tensor]:
        translation, score = translator.translate(text)
        return {"translation": translation, "score": score}

    n = 1 if translator.decoding.temperature else translator.decoding.beam_size

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="text")])
    def translate_n_best(text: tf.Tensor) -> dict[str, tf.Tensor]:
        translations, scores = translator.translate_n_best(text, n)
        return {"translations": translations, "scores": scores}

    signatures = {"serving_default": serving_default, "translate_n_best": translate_n_best}
    module = tf.Module()
    # The variables alone: Keras's own attributes have no place in what a server loads.
    module.variables_of_model = [variable.value for variable in translator.model.weights]
    module.tokenizers = [translator.source_tokenizer, translator.target_tokenizer]
    tf.saved_model.save(module, os.fspath(path), signatures=signatures)
    if foreign := foreign_ops(path):
        raise RuntimeError(f"the exported graph has ops that not every runtime has: {', '.join(sorted(foreign))}")


def foreign_ops(path: Path) -> set[str]:
    """Return the ops of a SavedModel that neither TensorFlow nor tensorflow-text registers, or that need XLA."""
    saved = SavedModel.FromString((path / "saved_model.pb").read_bytes())
    graphs = [meta_graph.graph_def for meta_graph in saved.meta_graphs]
    functions = [function for graph in graphs for function in graph.library.function]
    nodes = [node for graph in graphs for node in graph.node] + [n for f in functions for n in f.node_def]
    ops = {node.op for node in nodes} - {function.signature.name for function in functions} - TEXT_OPS
    return {op for op in ops if op.startswith("Xla") or not hasattr(tf.raw_ops, op)}


class ExportedTranslator:
    """A SavedModel that `export` wrote.

    Raises:
        InputError: not a SavedModel of ours.
    """

    def __init__(self, path: str | Path):
        self.path = Path(path)
        self.description = describe(self.path)
        try:
            self._model = tf.saved_model.load(os.fspath(path))
            self._translate = self._model.signatures["serving_default"]
            self._n_best = self._model.signatures["translate_n_best"]
        except (OSError, ValueError, KeyError, tf.errors.OpError) as error:
            raise InputError(f"{path} is damaged: {error}") from None

    def translate_strings(self, sentences: list[str]) -> list[str]:
        """Translate Python strings."""
        with sentences_fit():
            return decoded(self._translate(text=tf.constant(sentences, tf.string))["translation"])

    def n_best_strings(self, sentences: list[str], n: int) -> list[list[tuple[str, float]]]:
        """Translate Python strings in n ways each: the translations with their scores, the best first.

        Raises:
            InputError: more than the beam size of the export.
        """
        with sentences_fit():
            found = self._n_best(text=tf.constant(sentences, tf.string))
        if n > (width := found["scores"].shape[1]):
            raise InputError(f"{self.path} was exported to give {width} translations at most. Received: {n}")
        rows = zip(decoded(found["translations"]), found["scores"].numpy().tolist(), strict=True)
        return [list(zip(texts[:n], scores[:n], strict=True)) for texts, scores in rows]


def is_export(path: str | Path) -> bool:
    """Say whether a folder is a SavedModel."""
    return (Path(path) / "saved_model.pb").exists()


def describe(path: Path) -> dict[str, Any]:
    """Return what was written beside a SavedModel of ours: config, data, versions, metrics."""
    return read_description(path / DESCRIPTION, "SavedModel of ours", path)

"""An export for LiteRT in memory, with the same signatures as an exported SavedModel."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import tensorflow as tf
from tensorflow.core.protobuf.meta_graph_pb2 import SignatureDef
from tensorflow.python.eager.cancellation import CancellationManager

from tf_transformer.runs.descriptions import LANGUAGES
from tf_transformer.runs.signatures import (
    COUNT,
    DEFAULT,
    N_BEST,
    SCORE,
    TRANSLATE_TO,
    WITH_ATTENTION,
    Output,
    Signature,
    signatures_of,
)
from tf_transformer.serving.jobs import Arrays
from tf_transformer.serving.signatures import Signatures
from tf_transformer.serving.tensors import Columns
from tf_transformer.text.alignment import pharaoh

if TYPE_CHECKING:
    from tf_transformer.litert import Translator
    from tf_transformer.litert.model import Check
    from tf_transformer.litert.translator import NBest


def load(path: Path, batch_tokens: int) -> Signatures:
    """Return the signatures of an export for LiteRT, which computes so many tokens at once at most.

    Raises:
        InputError: the export is damaged, or the extra litert is not installed.
    """
    from tf_transformer.litert import Translator

    translator = Translator.load(path, batch_tokens=batch_tokens)
    functions = Functions(translator)
    signatures = signatures_of(translator.decoding, bool(translator.source.languages), is_litert=True)
    sizes = {"n": translator.decoding.beam_size}
    return Signatures(path, {name: _definition(each, sizes) for name, each in signatures.items()}, functions)


def _definition(signature: Signature, sizes: dict[str, int]) -> SignatureDef:
    """Return the definition of a signature; `sizes` are those of axes that have the same one for all sentences."""
    definition = SignatureDef(method_name="tensorflow/serving/predict")
    inputs = {name: Output("string", "B", "") for name in signature.takes}
    for place, tensors in ((definition.inputs, inputs), (definition.outputs, signature.gives)):
        for name, tensor in tensors.items():
            shape = [sizes.get(axis) for axis in tensor.shape.split()]
            place[name].name = f"{name}:0"
            place[name].dtype = tf.as_dtype(tensor.dtype).as_datatype_enum
            place[name].tensor_shape.CopyFrom(tf.TensorShape(shape).as_proto())
    return definition


class Functions:
    """The functions of the signatures, which use a translator of `tf_transformer.litert`."""

    def __init__(self, translator: "Translator"):
        self._translator = translator

    def __call__(self, signature: str, columns: Columns, cancellation: CancellationManager) -> Arrays:
        """Call a signature with the strings of its inputs. Between two steps it looks whether that was cancelled."""

        def check() -> None:
            if cancellation.is_cancelled:
                raise tf.errors.CancelledError(None, None, "nobody waits for the answer")

        function: Callable[[Columns, Check], Arrays] = {
            DEFAULT: self._translate,
            TRANSLATE_TO: self._translate,
            N_BEST: self._n_best,
            WITH_ATTENTION: self._attention,
            SCORE: self._score,
            COUNT: self._count,
        }[signature]
        return function(columns, check)

    def _translate(self, columns: Columns, check: "Check") -> Arrays:
        found = self._found(columns, 1, check)
        return {
            "translation": _strings([each.texts[0] for each in found]),
            "score": np.array([each.log_probabilities[0] for each in found], np.float32),
            "is_truncated": _cut(found),
        }

    def _n_best(self, columns: Columns, check: "Check") -> Arrays:
        n = self._translator.decoding.beam_size
        found = self._found(columns, n, check)
        return {
            "translations": _strings([text for each in found for text in each.texts]).reshape(-1, n),
            "scores": np.array([each.scores for each in found], np.float32).reshape(-1, n),
            "is_truncated": _cut(found),
        }

    def _attention(self, columns: Columns, check: "Check") -> Arrays:
        found = self._found(columns, 1, check)
        aligned = self._translator.aligned(found, check)
        return {
            "translation": _strings([each.texts[0] for each in found]),
            "alignment": _strings([pharaoh(each.links()) for each in aligned]),
            "source_tokens": _filled([[piece.encode() for piece in each.source_tokens] for each in aligned], b""),
            "target_tokens": _filled([[piece.encode() for piece in each.target_tokens] for each in aligned], b""),
            "attention": _filled([each.attention for each in aligned], np.float32(0)),
            "is_truncated": _cut(found),
        }

    def _score(self, columns: Columns, check: "Check") -> Arrays:
        pairs = list(zip(_texts(columns["source"]), _texts(columns["target"]), strict=True))
        scores, cut = self._translator.score(pairs, self._directions(columns), check)
        return {
            "log_probability": np.array([sum(row) for row in scores], np.float32),
            "token_log_probabilities": _filled(scores, np.float32(0)),
            "tokens": np.array([len(row) for row in scores], np.int32),
            "is_truncated": np.array(cut, bool),
        }

    def _count(self, columns: Columns, _: "Check") -> Arrays:
        return {"tokens": np.array(self._translator.count_tokens(_texts(columns["text"])), np.int32)}

    def _found(self, columns: Columns, n: int, check: "Check") -> "list[NBest]":
        return self._translator.search(_texts(columns["text"]), n, self._directions(columns), check)

    def _directions(self, columns: Columns) -> list[tuple[str, str]] | None:
        if not set(LANGUAGES) <= columns.keys():
            return None
        return list(zip(*(_texts(columns[name]) for name in LANGUAGES), strict=True))


def _texts(column: list[bytes]) -> list[str]:
    """Return strings; invalid UTF-8 is read as U+FFFD, as in a SavedModel."""
    return [text.decode("utf-8", "replace") for text in column]


def _cut(found: "list[NBest]") -> np.ndarray:
    return np.array([each.source.is_cut for each in found], bool)


def _strings(texts: list[str]) -> np.ndarray:
    return np.array([text.encode() for text in texts], object)


def _filled(rows: Sequence[Any], nothing: Any) -> np.ndarray:
    """Return rows or matrices of different sizes as one padded array."""
    arrays = [np.array(row, object if isinstance(nothing, bytes) else np.float32) for row in rows]
    widths = [max(sizes) for sizes in zip(*(array.shape for array in arrays), strict=True)] if arrays else [0]
    filled = np.full((len(arrays), *widths), nothing, arrays[0].dtype if arrays else object)
    for place, array in zip(filled, arrays, strict=True):
        place[tuple(map(slice, array.shape))] = array
    return filled

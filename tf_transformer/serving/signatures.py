"""The signatures of a model, and the functions behind them."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
from google.protobuf.json_format import MessageToDict
from tensorflow.core.framework.types_pb2 import DT_STRING, DataType
from tensorflow.core.protobuf.meta_graph_pb2 import SignatureDef, TensorInfo

from tf_transformer.errors import InputError
from tf_transformer.runs.descriptions import LANGUAGES
from tf_transformer.runs.signatures import COUNT
from tf_transformer.serving.batching import Arrays, Sentence
from tf_transformer.serving.tensors import Columns


class Signatures:
    """The signatures of a model, which many threads may call.

    Args:
        path: the path of the model, for errors.
        definitions: the definitions, by name, of signatures that take strings [B] and return tensors [B, ...].
        function: calls the signature of a name with the strings [B] of each input, and returns an array [B, ...] for
            each output. Many threads may call it.

    Raises:
        InputError: there is no signature, or one takes something other than strings [B].
    """

    def __init__(
        self,
        path: Path,
        definitions: Mapping[str, SignatureDef],
        function: Callable[[str, Columns], Arrays],
    ):
        self.definitions = definitions
        self._function = function
        self.inputs = {name: _inputs(path, name, definition) for name, definition in definitions.items()}
        if not self.inputs:
            raise InputError(f"{path} has no signature to call")
        self.outputs = {name: tuple(sorted(definition.outputs)) for name, definition in definitions.items()}
        self.regular = frozenset(
            name
            for name, definition in definitions.items()
            if all(_has_width(output) for output in definition.outputs.values())
        )
        """The signatures whose outputs have the same width for all sentences."""
        self.has_count = self._is_count()
        """Whether `count` counts tokens."""

    @property
    def metadata(self) -> dict[str, Any]:
        """The signatures as TensorFlow Serving's REST API shows them."""
        shown = {
            name: MessageToDict(definition, preserving_proto_field_name=True, always_print_fields_with_no_presence=True)
            for name, definition in self.definitions.items()
        }
        return {"signature_def": {"signature_def": shown}}

    def call(self, signature: str, sentences: Sequence[Sentence]) -> Arrays:
        """Call a signature with sentences [B], and return an array [B, ...] for each of its outputs."""
        columns = {name: [sentence[i] for sentence in sentences] for i, name in enumerate(self.inputs[signature])}
        return self._function(signature, columns)

    def count(self, signature: str, sentences: Sequence[Sentence]) -> list[int]:
        """Return the number of tokens of sentences [B] for a signature, or of bytes if the model cannot count tokens.

        All inputs of a sentence count together, except those that name languages.
        """
        places = [i for i, name in enumerate(self.inputs[signature]) if name not in LANGUAGES]
        texts = [(sentence[i],) for sentence in sentences for i in places]
        if not self.has_count:
            counts = np.array([len(text) for (text,) in texts], int)
        else:
            (counts,) = self.call(COUNT, texts).values()
        return counts.reshape(len(sentences), len(places)).sum(axis=1).tolist()

    def _is_count(self) -> bool:
        outputs = list(self.definitions[COUNT].outputs.values()) if COUNT in self.definitions else []
        is_number = [tf.as_dtype(output.dtype).is_integer and _rank(output) == 1 for output in outputs]
        return is_number == [True] and self.inputs[COUNT] == ("text",)


def _rank(tensor: TensorInfo) -> int | None:
    return None if tensor.tensor_shape.unknown_rank else len(tensor.tensor_shape.dim)


def _has_width(tensor: TensorInfo) -> bool:
    """Say whether the shape of a tensor is known, except for its first axis."""
    return bool(_rank(tensor)) and all(dimension.size >= 0 for dimension in tensor.tensor_shape.dim[1:])


def _inputs(path: Path, signature: str, definition: SignatureDef) -> tuple[str, ...]:
    for name, tensor in definition.inputs.items():
        if tensor.dtype != DT_STRING or _rank(tensor) != 1:
            sizes = [dimension.size for dimension in tensor.tensor_shape.dim]
            kind = DataType.Name(tensor.dtype)
            raise InputError(
                f"the inputs of {path} must be strings of shape [batch]. Received: signature {signature}, input "
                f"{name}, {kind} of shape {sizes}"
            )
    return tuple(sorted(definition.inputs))

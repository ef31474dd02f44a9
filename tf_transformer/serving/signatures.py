"""The signatures of a model, and the functions behind them."""

import contextlib
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
from google.protobuf.json_format import MessageToDict
from tensorflow.core.framework.types_pb2 import DT_STRING, DataType
from tensorflow.core.protobuf.meta_graph_pb2 import SignatureDef, TensorInfo
from tensorflow.python.eager.cancellation import CancellationManager

from tf_transformer.errors import InputError
from tf_transformer.runs.signatures import COUNT
from tf_transformer.serving.jobs import Arrays, Sentence
from tf_transformer.serving.tensors import Columns

CHUNK = 65_536
"""How many bytes of text are counted at once."""


class Signatures:
    """The signatures of a model, which many threads may call.

    Args:
        path: the path of the model, for errors.
        definitions: the definitions, by name, of signatures that take strings [B] and return tensors [B, ...].
        function: calls the signature of a name with the strings [B] of each input, and returns an array [B, ...] for
            each output. Many threads may call it. A call ends between two steps of its search once the manager that it
            is given is told to cancel it.

    Raises:
        InputError: there is no signature, or one takes something other than strings [B].
    """

    def __init__(
        self,
        path: Path,
        definitions: Mapping[str, SignatureDef],
        function: Callable[[str, Columns, CancellationManager], Arrays],
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
        self._turn = threading.Lock()
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

    def call(
        self, signature: str, sentences: Sequence[Sentence], cancellation: CancellationManager | None = None
    ) -> Arrays:
        """Call a signature with sentences [B], and return an array [B, ...] for each of its outputs.

        Raises:
            CancelledError: it was told so.
        """
        columns = {name: [sentence[i] for sentence in sentences] for i, name in enumerate(self.inputs[signature])}
        return self._function(signature, columns, cancellation or CancellationManager())

    def count(self, texts: Sequence[bytes]) -> list[int]:
        """Return the number of source tokens of each text, or of bytes if the model cannot count tokens."""
        if not self.has_count:
            return [len(text) for text in texts]
        ends = np.cumsum([len(text) + 1 for text in texts], dtype=int)
        chunks = np.split(np.array(texts, object), np.flatnonzero(np.diff(ends // CHUNK)) + 1)
        # Long texts take turns, a chunk after the other, so that there is always a processor for a short one.
        with self._turn if len(chunks) > 1 else contextlib.nullcontext():
            counts = [next(iter(self.call(COUNT, [(text,) for text in chunk]).values())) for chunk in chunks]
        return np.concatenate(counts).tolist()

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

"""Sentences in the protocol buffers of TensorFlow."""

from collections.abc import Mapping

from tensorflow.core.framework.tensor_pb2 import TensorProto
from tensorflow.core.framework.types_pb2 import DT_STRING, DataType

from tf_transformer.serving.limits import Refused

Columns = Mapping[str, list[bytes]]
"""For each input of a signature the sentences, [B]; as many for each."""


def columns_of(tensors: Mapping[str, TensorProto], inputs: tuple[str, ...]) -> Columns:
    """Return the sentences of a request.

    Args:
        tensors: those of the request.
        inputs: the names that there must be.

    Raises:
        Refused: other names; not strings [B]; different numbers of them.
    """
    check_names(tensors.keys(), inputs)
    columns = {}
    for name, tensor in tensors.items():
        sizes = [dimension.size for dimension in tensor.tensor_shape.dim]
        if tensor.dtype != DT_STRING or len(sizes) != 1:
            kind = DataType.Name(tensor.dtype) if tensor.dtype in DataType.values() else tensor.dtype
            raise Refused(400, f"input {name!r} must be strings of shape [batch]. Received: {kind} of shape {sizes}")
        # The shape may claim anything.
        if len(tensor.string_val) != sizes[0]:
            raise Refused(400, f"input {name!r} has {len(tensor.string_val)} strings, and says shape {sizes}")
        columns[name] = list(tensor.string_val)
    return columns


def check_names(received: object, inputs: tuple[str, ...]) -> None:
    """Raise Refused where a request has other inputs than the signature."""
    names = sorted(map(str, received))  # type: ignore[call-overload]
    if names != sorted(inputs):
        raise Refused(400, f"the signature takes {', '.join(inputs)}. Received: {', '.join(names) or 'nothing'}"[:500])

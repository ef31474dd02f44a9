"""Sentences in the protocol buffers of TensorFlow."""

from collections.abc import Mapping

import tensorflow as tf
from tensorflow.core.framework.tensor_pb2 import TensorProto
from tensorflow.core.framework.types_pb2 import DT_STRING, DataType

from tf_transformer.serving.limits import Limits, Refused

Columns = Mapping[str, list[bytes]]
"""For each input of a signature, its sentences [B]. All inputs have the same number of sentences."""


def columns_of(tensors: Mapping[str, TensorProto], inputs: tuple[str, ...], limits: Limits) -> Columns:
    """Return the sentences of a request.

    Args:
        tensors: the tensors of the request.
        inputs: the names that the tensors must have.
        limits: the limits of a request.

    Raises:
        Refused: there are other names, tensors that are not strings [B], too many sentences or too many bytes.
    """
    check_names(tensors.keys(), inputs)
    columns = {}
    for name, tensor in tensors.items():
        sizes = [dimension.size for dimension in tensor.tensor_shape.dim]
        if tensor.dtype != DT_STRING or len(sizes) != 1 or sizes[0] < 0:
            kind = DataType.Name(tensor.dtype) if tensor.dtype in DataType.values() else tensor.dtype
            raise Refused(400, f"input {name!r} must be strings of shape [batch]. Received: {kind} of shape {sizes}")
        # Check before reading: the shape may claim any size, and reading fills up what is left out.
        check_size(sizes[0], limits.max_sentences)
        _check_bytes(name, tensor, sizes[0], limits.max_body)
        try:
            columns[name] = tf.io.parse_tensor(tensor.SerializeToString(), tf.string).numpy().tolist()
        except tf.errors.OpError:
            raise Refused(400, f"the content of input {name!r} is not that of {sizes[0]} strings") from None
    return columns


def check_size(size: int, most: int) -> None:
    """Raise Refused if a request has too many sentences."""
    if size > most:
        raise Refused(400, f"a request may have at most {most} sentences. Received: {size}")


def _check_bytes(name: str, tensor: TensorProto, size: int, most: int) -> None:
    """Raise Refused if the strings, of which the last stands for all that are left out, are too large for a body."""
    given = tensor.string_val
    if given and (received := sum(map(len, given)) + (size - len(given)) * len(given[-1])) > most:
        raise Refused(400, f"input {name!r} may have at most {most} bytes. Received: {received}")


def check_names(received: object, inputs: tuple[str, ...]) -> None:
    """Raise Refused if a request has other inputs than the signature."""
    names = sorted(map(str, received))  # type: ignore[call-overload]
    if names != sorted(inputs):
        raise Refused(400, f"the signature takes {', '.join(inputs)}. Received: {', '.join(names) or 'nothing'}"[:500])

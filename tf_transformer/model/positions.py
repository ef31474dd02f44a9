"""Positional encoding (paper 3.5)."""

import math
from typing import Any

from keras import ops


def positional_encoding(length: Any, depth: int, start: Any = 0) -> Any:
    """Sinusoidal positions (paper 3.5): sine at even, cosine at odd places of the last axis.

    Args:
        length: number of positions, T; may be a scalar tensor.
        depth: width of the model, D; even.
        start: the first position; may be a scalar tensor.

    Returns:
        [T, D], float32.

    Raises:
        ValueError: an odd depth.
    """
    if depth % 2:
        raise ValueError(f"depth must be even: it holds pairs of sine and cosine. Received: {depth=}")
    positions = ops.cast(ops.arange(length) + start, "float32")
    rates = ops.exp(ops.arange(0, depth, 2, dtype="float32") * (-math.log(10_000) / depth))
    angles = ops.expand_dims(positions, 1) * rates
    return ops.reshape(ops.stack([ops.sin(angles), ops.cos(angles)], axis=-1), (-1, depth))

"""Positional encoding (paper 3.5)."""

import math
from typing import Any, NamedTuple

from keras import ops


class Sinusoids(NamedTuple):
    """How sines and cosines encode positions."""

    alternate: bool
    """whether sines and cosines alternate, as in the paper, or all sines come before all cosines"""
    endpoint: bool
    """whether the rates go from 1 down to 1 / 10,000 itself; in the paper, the last one is above it"""
    first: int
    """the position of the first token"""


KINDS = {
    "sinusoidal": Sinusoids(alternate=True, endpoint=False, first=0),
    # MarianMTModel in transformers, and with it the models that are published as OPUS-MT there.
    "opus": Sinusoids(alternate=False, endpoint=False, first=0),
    # Marian itself.
    "marian": Sinusoids(alternate=False, endpoint=True, first=0),
    # M2M100 and NLLB, which come from fairseq, where position 1 is that of padding.
    "m2m100": Sinusoids(alternate=False, endpoint=True, first=2),
}


def positional_encoding(length: Any, depth: int, start: Any = 0, kind: str = "sinusoidal") -> Any:
    """Sinusoidal positions (paper 3.5): sine at even, cosine at odd places of the last axis.

    Args:
        length: number of positions, T; may be a scalar tensor.
        depth: width of the model, D; even.
        start: the first position; may be a scalar tensor.
        kind: "sinusoidal" (the paper), or the order and the rates that other models have: "opus", "marian", "m2m100".

    Returns:
        [T, D], float32.

    Raises:
        ValueError: an odd depth; an unknown kind.
    """
    if depth % 2:
        raise ValueError(f"depth must be even: it holds pairs of sine and cosine. Received: {depth=}")
    if kind not in KINDS:
        raise ValueError(f"kind must be one of {', '.join(KINDS)}. Received: {kind=}")
    alternate, endpoint, first = KINDS[kind]
    positions = ops.cast(ops.arange(first, length + first) + start, "float32")
    steps = max(depth // 2 - endpoint, 1)
    rates = ops.exp(ops.arange(0, depth // 2, dtype="float32") * (-math.log(10_000) / steps))
    angles = ops.expand_dims(positions, 1) * rates
    sines = [ops.sin(angles), ops.cos(angles)]
    if alternate:
        return ops.reshape(ops.stack(sines, axis=-1), (-1, depth))
    return ops.concatenate(sines, axis=-1)

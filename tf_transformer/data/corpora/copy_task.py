"""The Annotated Transformer's first example, copying a random sequence, here as text with one word per symbol."""

import functools
import random

from tf_transformer.errors import unknown

SYMBOLS = "abcdefghijk"
"""11 symbols"""
LENGTH = 10
SIZES = {"train": 20_000, "val": 500, "test": 1_000}


def pairs(split: str, seed: int = 0) -> list[tuple[str, str]]:
    """Return the pairs of a split. No sequence occurs in two splits or twice in one."""
    if split not in SIZES:
        raise unknown("split", split, SIZES)
    start = 0
    for name, size in SIZES.items():
        if name == split:
            break
        start += size
    return [(sequence, sequence) for sequence in _sequences(seed)[start : start + SIZES[split]]]


@functools.cache
def _sequences(seed: int) -> list[str]:
    """Return the sequences of all splits, each once."""
    draw = random.Random(seed)
    sequences: dict[str, None] = {}
    while len(sequences) < sum(SIZES.values()):
        sequences[" ".join(draw.choice(SYMBOLS) for _ in range(LENGTH))] = None
    return list(sequences)

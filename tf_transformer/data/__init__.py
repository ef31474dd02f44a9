"""From text to batches: sources, encoding, batches."""

from tf_transformer.data.batches import NO_PAIR, Batches
from tf_transformer.data.encode import TokenPairs, cut_by_chance, encode
from tf_transformer.data.sources import Pairs, absolute, read, validation_split

__all__ = [
    "NO_PAIR",
    "Batches",
    "Pairs",
    "TokenPairs",
    "absolute",
    "cut_by_chance",
    "encode",
    "read",
    "validation_split",
]

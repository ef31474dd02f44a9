"""From text to batches: sources, encoding, batches."""

from tf_transformer.data.batches import NO_PAIR, Batches
from tf_transformer.data.encode import TokenPairs, encode
from tf_transformer.data.sources import Pairs, absolute, read, validation_split

__all__ = ["NO_PAIR", "Batches", "Pairs", "TokenPairs", "absolute", "encode", "read", "validation_split"]

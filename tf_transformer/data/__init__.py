"""From text to batches: sources, encoding, batches."""

from tf_transformer.data.batches import Batches
from tf_transformer.data.encode import TokenPairs, encode
from tf_transformer.data.sources import Pairs, read, validation_split

__all__ = ["Batches", "Pairs", "TokenPairs", "encode", "read", "validation_split"]

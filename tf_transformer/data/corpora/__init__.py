"""Parallel text, wherever it lies: one class for each kind of corpus."""

from tf_transformer.data.corpora.languages import Direction, direction_of
from tf_transformer.data.corpora.opening import (
    absolute,
    check_training_splits,
    directions,
    open_corpus,
    read,
    training_data,
    validation_data,
    validation_split,
)

__all__ = [
    "Direction",
    "absolute",
    "check_training_splits",
    "direction_of",
    "directions",
    "open_corpus",
    "read",
    "training_data",
    "validation_data",
    "validation_split",
]

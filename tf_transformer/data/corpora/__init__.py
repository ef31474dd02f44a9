"""Parallel text, wherever it lies: one class for each kind of corpus."""

from tf_transformer.data.corpora.opening import (
    absolute,
    check_training_splits,
    open_corpus,
    read,
    validation_data,
    validation_split,
)

__all__ = ["absolute", "check_training_splits", "open_corpus", "read", "validation_data", "validation_split"]

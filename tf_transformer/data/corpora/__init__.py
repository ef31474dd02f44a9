"""Parallel text from several sources, with one class for each kind of corpus."""

from tf_transformer.data.corpora.languages import Direction, direction_of, without_direction
from tf_transformer.data.corpora.opening import (
    MANIFEST,
    STANDARD_INPUT,
    absolute,
    check_training_splits,
    directions,
    is_drawn,
    is_prepared,
    open_corpus,
    paths_of,
    read,
    renamed,
    text_files,
    training_data,
    validation_data,
    validation_split,
    why_empty,
)

__all__ = [
    "MANIFEST",
    "STANDARD_INPUT",
    "Direction",
    "absolute",
    "check_training_splits",
    "direction_of",
    "directions",
    "is_drawn",
    "is_prepared",
    "open_corpus",
    "paths_of",
    "read",
    "renamed",
    "text_files",
    "training_data",
    "validation_data",
    "validation_split",
    "why_empty",
    "without_direction",
]

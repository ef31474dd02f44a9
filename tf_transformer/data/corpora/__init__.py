"""Parallel text from several sources, with one class for each kind of corpus."""

from tf_transformer.data.corpora.columns import column_languages
from tf_transformer.data.corpora.files import ENDINGS
from tf_transformer.data.corpora.languages import Direction, check_codes, direction_of, without_direction
from tf_transformer.data.corpora.opening import (
    MANIFEST,
    STANDARD_INPUT,
    absolute,
    check_scores,
    check_training_splits,
    directions,
    has_columns,
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
    "ENDINGS",
    "MANIFEST",
    "STANDARD_INPUT",
    "Direction",
    "absolute",
    "check_codes",
    "check_scores",
    "check_training_splits",
    "column_languages",
    "direction_of",
    "directions",
    "has_columns",
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

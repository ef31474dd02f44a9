"""The direction in which a corpus is read."""

import dataclasses
import re
from pathlib import Path

from tf_transformer.config import DataConfig
from tf_transformer.errors import InputError

Direction = tuple[str, str]
"""The languages of source and target."""
SUFFIX = re.compile(r"(.+):([^:/\\-]+)-([^:/\\-]+)")
"""A corpus with its direction after it, such as `corpus:en-de`."""


def without_direction(corpus: str) -> tuple[str, Direction | None]:
    """Return the name of a corpus without the direction after it, and the direction, or None as for most corpora."""
    found = SUFFIX.fullmatch(corpus)
    if found is None or found[1] == "tfds" or Path(corpus).exists():
        return corpus, None
    return found[1], (found[2], found[3])


def directed(data: DataConfig) -> DataConfig:
    """Return the same data, with the direction after the name of the corpus, if there is one, as source and target."""
    if data.corpus is None:
        return data
    name, direction = without_direction(data.corpus)
    source, target = direction or (data.source, data.target)
    return dataclasses.replace(data, corpus=name, source=source, target=target)


def direction_of(data: DataConfig) -> Direction | None:
    """Return the direction in which a corpus is read, or None if the languages are not named."""
    data = directed(data)
    return (data.source, data.target) if data.source and data.target else None


def languages_of(data: DataConfig) -> Direction:
    """Return the languages of source and target.

    Raises:
        InputError: the languages are not given, or are the same.
    """
    if not (data.source and data.target):
        raise InputError(f"--data {data.corpus} needs the languages: give --source and --target, such as en and de")
    if data.source == data.target:
        raise InputError(f"--source and --target must differ. Received: {data.source} twice")
    return data.source, data.target

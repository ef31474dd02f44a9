"""Opening whatever `--data` names, and what training asks of it."""

import dataclasses
import os
from pathlib import Path
from typing import Any, Protocol

from tf_transformer.config import DataConfig
from tf_transformer.data.corpora.built_in import BuiltIn
from tf_transformer.data.corpora.folder import Folder
from tf_transformer.data.corpora.languages import Direction, directed, direction_of, without_direction
from tf_transformer.data.corpora.tfds import Tfds
from tf_transformer.data.corpora.tsv import Tsv
from tf_transformer.data.pairs import Pairs
from tf_transformer.errors import InputError, unknown

KINDS = (BuiltIn, Tfds, Tsv, Folder)
"""The kinds of corpora; the first that takes a name opens it. Each has `takes(name)`, and is a `Corpus`."""
VALIDATION_NAMES = ("val", "valid", "validation", "dev")


class Corpus(Protocol):
    """Parallel text in splits."""

    forms: tuple[str, ...]
    """how such a corpus is named, for errors"""
    is_path: bool
    """whether its name is a path"""
    needs_tensorflow: bool
    """whether asking for its splits imports TensorFlow, which takes seconds"""

    def splits(self) -> tuple[str, ...]:
        """Return the names of the splits that it has in both languages."""

    def check(self, split: str) -> None:
        """Raise InputError where it has no such split, as far as can be told without reading it."""

    def read(self, split: str) -> Pairs:
        """Return the pairs of a split.

        Raises:
            InputError: what is missing or malformed, with file and line where there are such.
        """


def open_corpus(data: DataConfig) -> Corpus:
    """Return the corpus that `data` names.

    Raises:
        InputError: there is none.
    """
    data = directed(data)
    name = data.corpus
    if name is None:
        raise InputError("no data: name a folder, a .tsv file, tfds:NAME, toy or copy with --data")
    for kind in KINDS:
        if kind.takes(name):
            return kind(data)
    if Path(name).exists():
        raise InputError(f"--data {name}: a file must be a .tsv or .tsv.gz of source TAB target")
    if "/" in name or "." in name:
        raise InputError(f"--data {name}: there is no such folder, and no such .tsv or .tsv.gz file")
    raise unknown("dataset", name, [form for kind in KINDS for form in kind.forms])


def read(data: DataConfig, split: str) -> Pairs:
    """Read a split of the corpus that `data` names.

    Raises:
        InputError: what is missing, malformed or empty, with file and line where there are such.
    """
    pairs = open_corpus(data).read(split)
    if not pairs.sources:
        raise InputError(f"{data.corpus}: there is no pair in split {split!r}")
    return pairs


def check_training_splits(data: DataConfig) -> None:
    """Raise InputError where the corpora have not the splits to train and validate on, as `Corpus.check` can tell."""
    directions(data)
    for one in training_data(data):
        open_corpus(one).check(data.train_split)
    for held_out in validation_data(data).values():
        corpus = open_corpus(held_out)
        if not corpus.needs_tensorflow:
            corpus.check(validation_split(held_out))


def training_data(data: DataConfig) -> list[DataConfig]:
    """Return for each of the corpora the same, with that one alone."""
    return [dataclasses.replace(data, corpus=name) for name in (data.corpus, *data.extra_corpora)]


def directions(data: DataConfig) -> list[Direction | None]:
    """Return the direction of each corpus; None of those that do not name it, where there is but one.

    Raises:
        InputError: corpora of several directions, and one that does not name its own.
    """
    corpora = training_data(data)
    found = [direction_of(corpus) for corpus in corpora]
    if None in found and len(set(found)) > 1:
        raise InputError(
            "corpora of several directions must each be named with its own, such as --data corpus:en-de --data "
            f"corpus:en-fr. Received: {corpora[found.index(None)].corpus}"
        )
    return found


def validation_data(data: DataConfig) -> dict[int, DataConfig]:
    """Return the same, with the corpora that validation splits are in, by the numbers of corpora with their direction.

    That is the first corpus of each direction, unless `data` names another one.

    Raises:
        InputError: as `directions`; one that is named, of another direction than all corpora.
    """
    found = directions(data)
    if data.validation_corpus is None:
        corpora = training_data(data)
        return {found.index(direction): corpora[found.index(direction)] for direction in dict.fromkeys(found)}
    held_out = dataclasses.replace(data, corpus=data.validation_corpus)
    if len(set(found)) == 1:
        return {0: held_out}
    if (direction := direction_of(held_out)) not in found:
        names = ["-".join(one) for one in found if one]
        raise unknown("direction", "-".join(direction or ("none",)), names, where=f" of {data.validation_corpus}")
    return {found.index(direction): held_out}


def validation_split(data: DataConfig) -> str:
    """Return the split to validate on: `data.validation_split`, or the first usual name that the corpus has."""
    if data.validation_split is not None:
        return data.validation_split
    known = open_corpus(data).splits()
    for name in VALIDATION_NAMES:
        if name in known:
            return name
    raise InputError(
        f"{data.corpus} has no split to validate on: add one of {', '.join(VALIDATION_NAMES)}, or name another with "
        f"--set data.validation_split=NAME. Received: {', '.join(known) or 'no split'}"
    )


def absolute(name: str | None) -> Any:
    """Return the name of a corpus so that it means the same from every folder."""
    if name is None:
        return None
    corpus, _ = without_direction(name)
    kind = next((kind for kind in KINDS if kind.takes(corpus)), None)
    return os.path.abspath(corpus) + name.removeprefix(corpus) if kind is not None and kind.is_path else name

"""Opening whatever `--data` names, and what training asks of it."""

import dataclasses
import os
from pathlib import Path
from typing import Any, Protocol

from tf_transformer.config import DataConfig
from tf_transformer.data.corpora.built_in import BuiltIn
from tf_transformer.data.corpora.folder import Folder
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
    for name in (data.corpus, *data.extra_corpora):
        open_corpus(dataclasses.replace(data, corpus=name)).check(data.train_split)
    held_out = validation_data(data)
    corpus = open_corpus(held_out)
    if not corpus.needs_tensorflow:
        corpus.check(validation_split(held_out))


def validation_data(data: DataConfig) -> DataConfig:
    """Return the same, with the corpus that the validation split is in."""
    return dataclasses.replace(data, corpus=data.validation_corpus or data.corpus)


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
    kind = next((kind for kind in KINDS if name is not None and kind.takes(name)), None)
    return os.path.abspath(name) if name is not None and kind is not None and kind.is_path else name

"""Opening the corpora that `--data` names, and finding the splits that training needs."""

import contextlib
import dataclasses
import os
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Protocol

from tf_transformer.config import DataConfig
from tf_transformer.data.chunks import Chunk, joined
from tf_transformer.data.corpora.built_in import BuiltIn
from tf_transformer.data.corpora.drawn import Drawn
from tf_transformer.data.corpora.files import ENDINGS, FILES, TABLES, listed
from tf_transformer.data.corpora.folder import TextFolder
from tf_transformer.data.corpora.languages import Direction, directed, direction_of, without_direction
from tf_transformer.data.corpora.tfds import Tfds
from tf_transformer.data.pairs import Pairs
from tf_transformer.errors import InputError, unknown
from tf_transformer.storage.lines import line_blocks, refuse_pipe

KINDS: tuple[type[BuiltIn | Tfds | Drawn | TextFolder], ...] = (BuiltIn, Tfds, *FILES, TextFolder)
"""The kinds of corpora; the first that takes a name opens it. Each has `takes(name)`, and is a `Corpus`."""
STANDARD_INPUT = "-"
"""The name of a .tsv on standard input, which only `prepare` reads."""
MANIFEST = "manifest.json"
"""The file that every prepared corpus has."""
VALIDATION_NAMES = ("val", "valid", "validation", "dev")


class Corpus(Protocol):
    """Parallel text in splits."""

    forms: tuple[str, ...]
    """the forms of its name, for errors"""
    is_path: bool
    """whether its name is a path"""
    needs_tensorflow: bool
    """whether asking for its splits imports TensorFlow, which takes seconds"""

    def splits(self) -> tuple[str, ...]:
        """Return the names of the splits that it has in both languages."""

    def check(self, split: str) -> None:
        """Raise InputError if there is no such split, as far as can be told without reading the corpus."""

    def files(self, split: str) -> list[Path]:
        """Return the files that a split is read from, if they are known."""

    def chunks(self, split: str) -> Iterator[Chunk]:
        """Yield the pairs of a split in chunks.

        Raises:
            InputError: something is missing or malformed; the error names file and line if possible.
        """


def open_corpus(data: DataConfig) -> Corpus:
    """Return the corpus that `data` names.

    Raises:
        InputError: there is no such corpus.
    """
    data = directed(data)
    name = data.corpus
    if name is None:
        raise InputError("no data: name a folder, a file of pairs, tfds:NAME, toy or copy with --data")
    if is_prepared(name):
        raise InputError(
            f"--data {name} is a prepared corpus, which only train reads: name the corpus that it was prepared from"
        )
    for kind in KINDS:
        if kind.takes(name):
            return kind(data)
    if name == STANDARD_INPUT:
        raise InputError("--data -: only prepare reads standard input. Prepare the text, and train on the result")
    if Path(name).exists():
        refuse_pipe(Path(name))
        raise InputError(f"--data {name}: a file of pairs is a {listed()}. A plain text has no pairs")
    if "/" in name or "." in name:
        raise InputError(f"--data {name}: there is no such folder and no such file, which may be a {listed()}")
    raise unknown("dataset", name, [form for kind in KINDS for form in kind.forms])


def is_prepared(path: str | Path) -> bool:
    """Say whether a folder is a prepared corpus."""
    return (Path(path) / MANIFEST).is_file()


def read(data: DataConfig, split: str) -> Pairs:
    """Read a split of the corpus that `data` names.

    Raises:
        InputError: something is missing, malformed or empty; the error names file and line if possible.
    """
    pairs = joined(open_corpus(data).chunks(split))
    if not pairs.sources:
        raise InputError(f"{data.corpus} has no pair in split {split!r}{why_empty(data, split)}")
    return pairs


def text_files(data: DataConfig) -> list[Any]:
    """Return the names of the corpora, and path, size and time of change of each training and validation file, as JSON.

    As long as this is the same, the text has not changed. A missing corpus has no files.
    """
    found: list[Any] = [[data.corpus, *data.extra_corpora, data.validation_corpus]]
    for corpora, split in ((training_data(data), data.train_split), (validation_data(data).values(), None)):
        for corpus in corpora:
            with contextlib.suppress(InputError):
                opened = open_corpus(corpus)
                if opened.is_path:
                    for path in opened.files(split or validation_split(corpus)):
                        status = path.stat()
                        found.append([os.fspath(path), status.st_size, status.st_mtime_ns])
    return found


def _names(data: DataConfig) -> list[str]:
    """Return the names of all corpora, without their directions."""
    named = (data.corpus, *data.extra_corpora, data.validation_corpus)
    return [without_direction(name)[0] for name in named if name]


def paths_of(data: DataConfig) -> list[str]:
    """Return the paths of the folders and files that the text is read from, or that of the prepared corpus alone."""
    if data.prepared is not None:
        return [data.prepared]
    folders = [name for name in _names(data) if Path(name).exists() and not (BuiltIn.takes(name) or Tfds.takes(name))]
    return [*folders, *(path for path, *_ in text_files(data)[1:])]


def is_drawn(data: DataConfig) -> bool:
    """Say whether one of the corpora is a file, whose splits are drawn."""
    return any(name.lower().endswith(ENDINGS) or name == STANDARD_INPUT for name in _names(data))


def has_columns(data: DataConfig) -> bool:
    """Say whether one of the corpora is a table, which has columns, and may have scores in one of them."""
    return any(name.lower().endswith(TABLES) or name == STANDARD_INPUT for name in _names(data))


def check_scores(data: DataConfig) -> None:
    """Raise InputError if the scores of pairs are limited, but no corpus can have any."""
    if data.min_score is not None and not has_columns(data):
        raise InputError(
            f"data.min_score reads scores from a column of a table, such as a .tsv: leave it out. Received: "
            f"{data.min_score} for {data.corpus}, which has none"
        )


def why_empty(data: DataConfig, split: str) -> str:
    """Return why a split of a corpus has no pair and what to do, if that is known."""
    try:
        corpus = open_corpus(data)
        files = corpus.files(split)
    except InputError:  # it was read from elsewhere, such as standard input
        return ""
    if files and not any(any(line_blocks(file, 1)) for file in files):
        return f": {files[0]} is empty"
    if not isinstance(corpus, Drawn):
        return ""
    left_out = Counter(row.why for row in corpus.rows() if row.source or row.target)
    if left_out and not {"", "score"} & left_out.keys():
        reasons = ", ".join(f"{count:,} {why}" for why, count in left_out.items())
        return f": all that it has is left out ({reasons})"
    if split == "train":
        return ""
    return (
        f": it has too few different sources for data.held_out={data.held_out}, the share of them that is drawn. Give "
        "text of its own by --validation-data"
        + (", or hold out a larger share, such as by --set data.held_out=0.1" if data.held_out < 0.1 else "")
    )


def check_training_splits(data: DataConfig) -> None:
    """Raise InputError if a corpus lacks the split to train or validate on, as far as `Corpus.check` can tell."""
    directions(data)
    for one in training_data(data):
        open_corpus(one).check(data.train_split)
    for held_out in validation_data(data).values():
        corpus = open_corpus(held_out)
        if not corpus.needs_tensorflow:
            corpus.check(validation_split(held_out))


def training_data(data: DataConfig) -> list[DataConfig]:
    """Return, for each corpus, the same data with that corpus alone."""
    return [dataclasses.replace(data, corpus=name) for name in (data.corpus, *data.extra_corpora)]


def directions(data: DataConfig) -> list[Direction | None]:
    """Return the direction of each corpus. If all have the same direction, they need not name it, and it is None.

    Raises:
        InputError: the corpora have several directions, and one of them does not name its own.
    """
    corpora = training_data(data)
    found = [direction_of(corpus) for corpus in corpora]
    if None in found and len(set(found)) > 1:
        raise InputError(
            "if corpora have several directions, each must be named with its own, such as --data corpus:en-de --data "
            f"corpus:en-fr. Received: {corpora[found.index(None)].corpus}"
        )
    return found


def validation_data(data: DataConfig) -> dict[int, DataConfig]:
    """Return the same data with each corpus that has a validation split, by the number of a corpus of its direction.

    These are the first corpora of each direction, unless `data` names another one.

    Raises:
        InputError: as `directions`; or the corpus that is named has another direction than all corpora.
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


def absolute(name: str) -> str:
    """Return the name of a corpus in a form that means the same in every working folder."""
    corpus, _ = without_direction(name)
    kind = next((kind for kind in KINDS if kind.takes(corpus)), None)
    return os.path.abspath(corpus) + name.removeprefix(corpus) if kind is not None and kind.is_path else name


def renamed(data: DataConfig, name_of: Callable[[str], str]) -> DataConfig:
    """Return the same data, with other names for its corpora."""
    return dataclasses.replace(
        data,
        corpus=data.corpus and name_of(data.corpus),
        extra_corpora=tuple(map(name_of, data.extra_corpora)),
        validation_corpus=data.validation_corpus and name_of(data.validation_corpus),
    )

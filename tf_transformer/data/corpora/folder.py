"""A folder of text files SPLIT.LANGUAGE, plain, .gz or .zst, whose lines correspond."""

import itertools
import os
from collections.abc import Iterator
from pathlib import Path

from tf_transformer.config import DataConfig
from tf_transformer.data.chunks import LINES, LinePairs
from tf_transformer.data.corpora.files import ENDINGS as FILE_ENDINGS
from tf_transformer.data.corpora.languages import languages_of
from tf_transformer.errors import InputError, unknown
from tf_transformer.storage.lines import line_blocks, refuse_pipe

ENDINGS = ("", ".gz", ".zst")
"""The endings of a file, of which the first that exists is taken."""


class TextFolder:
    """The folder that `data.corpus` names.

    Raises:
        InputError: no languages are given.
    """

    forms: tuple[str, ...] = ("a folder that exists",)
    is_path = True
    needs_tensorflow = False

    def __init__(self, data: DataConfig):
        self.folder = Path(data.corpus or "")
        self.languages = languages_of(data)

    @staticmethod
    def takes(corpus: str) -> bool:
        """Say whether this is a folder."""
        return Path(corpus).is_dir()

    def splits(self) -> tuple[str, ...]:
        """Return the names of the splits that exist in both languages."""
        files = {_plain(path.name) for path in self.folder.iterdir() if not path.is_dir()}
        for language in self.languages:
            if not any(name.endswith(f".{language}") for name in files):
                found = {name.rpartition(".")[2] for name in files if "." in name}
                if of_pairs := sorted(name for name in files if name.lower().endswith(FILE_ENDINGS)):
                    raise InputError(
                        f"{self.folder} has no text like train.{language}, but files of pairs: name each of them, such "
                        f"as by --data {self.folder / of_pairs[0]}"
                    )
                raise unknown("language", language, found, where=f" in {self.folder}")
        endings = [f".{language}" for language in self.languages]
        source, target = ({name.removesuffix(end) for name in files if name.endswith(end)} for end in endings)
        return tuple(sorted(source & target))

    def check(self, split: str) -> None:
        """Raise InputError if there is no such split."""
        self._files(split)

    def files(self, split: str) -> list[Path]:
        """Return the files of both sides of a split."""
        return self._files(split)

    def chunks(self, split: str) -> Iterator[LinePairs]:
        """Yield the pairs of a split."""
        files = self._files(split)
        names = (os.fspath(files[0]), os.fspath(files[1]))
        blocks = [line_blocks(file, LINES) for file in files]
        first = 1
        for source, target in itertools.zip_longest(*blocks, fillvalue=b""):
            counts = [_count(side) for side in (source, target)]
            if counts[0] != counts[1]:
                totals = [first - 1 + n + sum(map(_count, rest)) for n, rest in zip(counts, blocks, strict=True)]
                raise InputError(
                    f"{files[0]} and {files[1]} must have the same number of lines. "
                    f"Received: {totals[0]} and {totals[1]}"
                )
            yield LinePairs(names, first, (source, target))
            first += counts[0]

    def _files(self, split: str) -> list[Path]:
        """Return the files of both sides of a split."""
        known = self.splits()
        files = [self._find(split, language) for language in self.languages]
        for file in files:
            refuse_pipe(file)
        there = [file.is_file() for file in files]
        if any(there) and not all(there):
            missing, other = files if there[1] else reversed(files)
            raise InputError(f"{missing.with_name(_plain(missing.name))} is missing beside {other}")
        if not any(there):
            raise unknown("split", split, known, where=f" in {self.folder}")
        return files

    def _find(self, split: str, language: str) -> Path:
        files = [self.folder / f"{split}.{language}{ending}" for ending in ENDINGS]
        return next((file for file in files if file.is_file()), files[0])


def _plain(name: str) -> str:
    """Return the name of a file without .gz or .zst."""
    return name.removesuffix(".gz").removesuffix(".zst")


def _count(block: bytes) -> int:
    """Return the number of lines of a block; the last one may lack a line feed."""
    return block.count(b"\n") + (not block.endswith(b"\n") and bool(block))

"""A file of lines `source TAB target`, from which the splits are drawn."""

import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tf_transformer.config import DataConfig
from tf_transformer.data.chunks import LINES, digest_of, split_lines
from tf_transformer.data.pairs import Pairs
from tf_transformer.errors import InputError, unknown
from tf_transformer.storage.lines import decoded, line_blocks

SPLITS = ("train", "val", "test")
ENDINGS = (".tsv", ".tsv.gz", ".tsv.zst")


class Tsv:
    """The file that `data.corpus` names."""

    forms: tuple[str, ...] = ("a .tsv file that exists",)
    is_path = True
    needs_tensorflow = False

    def __init__(self, data: DataConfig):
        self.data = data
        self.path = Path(data.corpus or "")

    @staticmethod
    def takes(corpus: str) -> bool:
        """Say whether this is such a file."""
        return corpus.endswith(ENDINGS) and Path(corpus).is_file()

    def splits(self) -> tuple[str, ...]:
        """Return the names of the splits."""
        return SPLITS

    def check(self, split: str) -> None:
        """Raise InputError for an unknown split."""
        if split not in SPLITS:
            raise unknown("split", split, SPLITS, where=f" of {self.path}")

    def files(self, split: str) -> list[Path]:
        """Return the file, which has all splits."""
        return [self.path]

    def chunks(self, split: str) -> Iterator["TsvLines"]:
        """Yield chunks of lines, with the pairs of a split among them."""
        self.check(split)
        for i, block in enumerate(line_blocks(self.path, LINES)):
            yield TsvLines(self.data, os.fspath(self.path), 1 + i * LINES, block, split)


@dataclass(frozen=True)
class TsvLines:
    """Successive lines of such a file, from which a split is taken."""

    data: DataConfig
    name: str
    """name of the file, for errors"""
    first: int
    """number of the first line, from 1"""
    block: bytes
    split: str

    def read(self) -> tuple[Pairs, int]:
        """Return the pairs of the split, and how many training pairs were left out because of their scores."""
        rows, low = [], 0
        wanted = self.data.min_score if self.split == "train" else None
        for number, line in enumerate(decoded(split_lines(self.block), self.name, self.first), self.first):
            # A blank line is an empty pair, which is left out of training and counted.
            columns = line.split("\t") if line else ["", ""]
            is_scored = self.data.min_score is not None and bool(line)
            if len(columns) != 2 + is_scored:
                raise self._wrong_columns(number, columns)
            if (self._split_of(*columns[:2]) if line else "train") != self.split:
                continue
            if wanted is not None and is_scored and not self._score(number, columns[2]) >= wanted:
                low += 1
                continue
            rows.append((columns[0], columns[1]))
        return Pairs.of(rows), low

    def digest(self) -> str:
        """Return a digest of the text."""
        return digest_of(self.block)

    def _wrong_columns(self, number: int, columns: list[str]) -> InputError:
        what, hint = "2 columns, source TAB target", ""
        if self.data.min_score is not None:
            what = "3 columns, source TAB target TAB score, because data.min_score is given"
        elif len(columns) > 2:
            hint = "; cut -f1,2 keeps the first two, and data.min_score reads scores from a third one"
        return InputError(f"{self.name}, line {number} must have {what}{hint}. Received: {len(columns)}")

    def _score(self, number: int, text: str) -> float:
        try:
            return float(text)
        except ValueError:
            raise InputError(f"{self.name}, line {number}: the score must be a number. Received: {text!r}") from None

    def _split_of(self, source: str, target: str) -> str:
        """Return the split of a pair. It depends only on the seed and the source, which all its translations share.

        Of runs from before `data.held_out_by`, it depends on the target as well.
        """
        text = f"{source}\t{target}" if self.data.held_out_by == "pair" else source
        digest = hashlib.sha256(f"{self.data.held_out_seed}\t{text}".encode()).digest()
        place, held_out = int.from_bytes(digest[:8]) / 2**64, self.data.held_out
        return "test" if place < held_out else "val" if place < 2 * held_out else "train"

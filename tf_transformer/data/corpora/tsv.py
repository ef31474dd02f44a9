"""A file of lines `source TAB target`, as programs write it, or as spreadsheets do."""

import functools
import os
from collections.abc import Iterator
from dataclasses import dataclass

from tf_transformer.config import DataConfig
from tf_transformer.data.chunks import LINES, Chunk, digest_of, split_lines
from tf_transformer.data.corpora.columns import Columns, said_once, score_in
from tf_transformer.data.corpora.drawn import PACKED, split_of
from tf_transformer.data.corpora.separated import is_quoted, sample_of, separated
from tf_transformer.data.corpora.table import Cells, Table
from tf_transformer.data.pairs import Pairs
from tf_transformer.errors import InputError
from tf_transformer.storage.lines import decoded, line_blocks

PAIRS = Columns(2)


class Tsv(Table):
    """The file that `data.corpus` names."""

    forms: tuple[str, ...] = ("a .tsv file that exists",)
    endings = tuple(f".tsv{packed}" for packed in PACKED)

    def chunks(self, split: str) -> Iterator[Chunk]:
        """Yield chunks of lines, with the pairs of a split among them, or of pairs where quotation marks are read."""
        self.check(split)
        if self.is_quoted:
            yield from super().chunks(split)
            return
        for i, block in enumerate(line_blocks(self.path, LINES)):
            yield TsvLines(self.data, os.fspath(self.path), 1 + i * LINES, block, split, self.columns)

    def cells(self) -> Cells:
        """Yield all lines where fields are in quotation marks, or else the first ones."""
        if self.is_quoted:
            return separated(self.path, "\t")
        lines, is_whole = sample_of(self.path)
        whole = lines if is_whole else lines[:-1]
        return ((number, line.split("\t")) for number, line in enumerate(decoded(whole, os.fspath(self.path)), 1))

    @functools.cached_property
    def is_quoted(self) -> bool:
        """Whether its fields are in quotation marks, as spreadsheets write them."""
        found = self.data.tsv != "plain" and is_quoted(*sample_of(self.path))
        if found:
            said_once(
                f"{os.path.abspath(self.path)} is read as spreadsheets write it, without the quotation marks around "
                "texts; --set data.tsv=plain keeps them"
            )
        return found

    @functools.cached_property
    def columns(self) -> Columns:
        """Which columns hold the pairs."""
        if self.data.tsv == "plain" and self.data.columns is not None:
            raise InputError(f"data.tsv=plain takes no columns: leave one of them out. Received: {self.data.columns}")
        is_narrow = len(next((cells for _, cells in self.cells()), [])) < 2  # blank, or named by its error
        found = None if self.data.tsv == "plain" or is_narrow else super().columns
        return found or (PAIRS if self.data.min_score is None else Columns(3, score=2))


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
    columns: Columns = PAIRS

    def read(self) -> tuple[Pairs, dict[str, int]]:
        """Return the pairs of the split, and how many were left out, by reason."""
        rows, low, fuzzy = [], 0, 0
        width, source, target, score, above, _ = self.columns
        limit = self.data.min_score if self.split == "train" else None
        for number, line in enumerate(decoded(split_lines(self.block), self.name, self.first), self.first):
            if number <= above:
                continue
            # A blank line is an empty pair, which is left out of training and counted.
            given = line.split("\t") if line else [""] * width
            cells = self.columns.evened(given)
            if cells is None:
                raise self._wrong_columns(number, given)
            pair = cells[source], cells[target]
            if (split_of(self.data, *pair) if line else "train") != self.split:
                continue
            if self.columns.is_fuzzy(cells):
                fuzzy += 1
                continue
            if limit is not None and score is not None and line and not self._score(cells[score], number) >= limit:
                low += 1
                continue
            rows.append(pair)
        return Pairs.of(rows), {"score": low} | ({"fuzzy": fuzzy} if fuzzy else {})

    def digest(self) -> str:
        """Return a digest of the text."""
        return digest_of(self.block)

    def _score(self, text: str, number: int) -> float:
        return score_in(text, f"{self.name}, line {number}")

    def _wrong_columns(self, number: int, cells: list[str]) -> InputError:
        what, hint = f"{self.columns.width} columns, as line 1 has", ""
        if self.columns == PAIRS:
            what = "2 columns, source TAB target"
            hint = "; cut -f1,2 keeps the first two" if len(cells) > 2 else ""
        elif self.columns == Columns(3, score=2):
            what = "3 columns, source TAB target TAB score, because data.min_score is given"
        return InputError(f"{self.name}, line {number} must have {what}{hint}. Received: {len(cells)}")

"""A table, of which two columns hold the pairs."""

import functools
import itertools
import os
from collections.abc import Iterator

from tf_transformer.data.corpora.columns import Columns, columns_of, score_in
from tf_transformer.data.corpora.drawn import Drawn, Row, in_one_line
from tf_transformer.errors import InputError

BEGINS = 100
"""How many lines tell which columns a table has."""
Cells = Iterator[tuple[int, list[str]]]
"""The lines of a table, each with its number."""


class Table(Drawn):
    """A table that `data.corpus` names. Each kind says how its cells are read, in `cells`."""

    def cells(self) -> Cells:
        """Yield the lines."""
        raise NotImplementedError

    def check(self, split: str) -> None:
        """Raise InputError for an unknown split, or if it is not known which columns hold the pairs."""
        super().check(split)
        _ = self.columns

    @functools.cached_property
    def columns(self) -> Columns | None:
        """Which columns hold the pairs; None if there is no line."""
        first = [line for _, line in itertools.islice(self.cells(), BEGINS)]
        if not first:
            return None
        return columns_of(first, self.data, os.fspath(self.path))

    def rows(self) -> Iterator[Row]:
        """Yield the pairs."""
        if self.columns is None:
            return
        width, source, target, score, above, _ = self.columns
        for count, (number, cells) in enumerate(self.cells()):
            if count < above:
                continue
            if not any(cells):
                yield Row("", "")
                continue
            where = f"{self.path}, line {number}"
            evened = self.columns.evened(cells)
            if evened is None:
                raise InputError(
                    f"{where} must have {width} columns, as line 1 has: a text with a separator in it stands between "
                    f"quotation marks. Received: {len(cells)}"
                )
            cells, limit = evened, self.data.min_score
            is_low = score is not None and limit is not None and not score_in(cells[score], where) >= limit
            why = "fuzzy" if self.columns.is_fuzzy(cells) else "score" if is_low else ""
            yield Row(in_one_line(cells[source]), in_one_line(cells[target]), why)

"""Text in columns, as spreadsheets write it: .csv, whose separator is found, and what lies in quotation marks."""

import csv
import functools
import io
import os
import re
from collections.abc import Iterable
from pathlib import Path

from tf_transformer.data.corpora.drawn import PACKED
from tf_transformer.data.corpora.table import Cells, Table
from tf_transformer.errors import InputError
from tf_transformer.storage.lines import READ, decoded, opened

SEPARATORS = "\t;,"
"""In the order in which they are tried: sentences have commas, seldom semicolons, and hardly ever tabs."""
NAMED = re.compile(r"sep=(.)\r?\n?")
"""A first line that names the separator, for Excel."""
SAMPLE = 4 * READ
"""How many bytes of a file are searched for quotation marks and separators."""
FIELD = re.compile(r'(?:"(?P<quoted>(?:[^"]|"")*)"|(?P<plain>[^"\t\n]*))(?:\t|\r?\n|\r?\Z)')
"""A field between tabs as spreadsheets write it: in quotation marks, its own ones doubled, or without any."""


class Csv(Table):
    """The .csv that `data.corpus` names."""

    forms: tuple[str, ...] = ("a .csv file that exists",)
    endings = tuple(f".csv{packed}" for packed in PACKED)

    def cells(self) -> Cells:
        """Yield the lines."""
        lines = separated(self.path, self._separator)
        return ((number, cells) for number, cells in lines if not (number == 1 and self._is_named))

    @functools.cached_property
    def _first(self) -> list[str]:
        """The first lines."""
        return list(decoded(sample_of(self.path)[0], os.fspath(self.path), keep_ends=True))

    @property
    def _is_named(self) -> bool:
        return bool(self._first) and NAMED.fullmatch(self._first[0]) is not None

    @functools.cached_property
    def _separator(self) -> str:
        return separator_of(self._first, self.path)


def separator_of(lines: list[str], path: Path) -> str:
    """Return the separator that gives all lines the same number of columns, or else the first line several.

    Raises:
        InputError: there is none.
    """
    if lines and (named := NAMED.fullmatch(lines[0])):
        return named[1]
    widths = {separator: _widths(lines, separator) for separator in SEPARATORS}
    even = [separator for separator, found in widths.items() if len(set(found)) == 1 and found[0] > 1]
    several = [separator for separator, found in widths.items() if found and found[0] > 1]
    if lines and not several:
        raise InputError(
            f"{path}, line 1 has one column: a .csv has several, with a comma, a semicolon or a tab between. "
            f"Received: {lines[0].strip()[:60]!r}"
        )
    return [*even, *several, ","][0]


def separated(path: Path, separator: str) -> Cells:
    """Yield the lines of a file, whose fields may be in quotation marks and may then be of several lines.

    Raises:
        InputError: a quotation mark is missing or stands alone; the error names the line.
    """
    name = os.fspath(path)
    with opened(path) as file:
        reader = csv.reader(decoded(file, name, keep_ends=True), delimiter=separator, strict=True)
        number = 1
        while True:
            try:
                cells = next(reader, None)
            except csv.Error as error:
                raise InputError(
                    f"{name}, line {number}: its quotation marks are not those of a spreadsheet, which encloses a text "
                    f"in them and doubles those within ({error})"
                ) from None
            if cells is None:
                return
            yield number, cells
            number = reader.line_num + 1


def sample_of(path: Path) -> tuple[list[bytes], bool]:
    """Return the first lines of a file, each with its line feed, and whether they are all of it."""
    with opened(path) as file:
        text = file.read(SAMPLE)
    return io.BytesIO(text).readlines(), len(text) < SAMPLE


def is_quoted(lines: Iterable[bytes], is_whole: bool) -> bool:
    """Say whether a text that is separated by tabs has fields in quotation marks, as spreadsheets write it.

    In such a text no field has a quotation mark in another place; and either a field needs its own, because of a
    quotation mark, a tab or a line feed in it, or all fields have some, or those with a comma, as Excel writes them.

    Args:
        lines: its first lines.
        is_whole: whether there are no more.
    """
    text = b"".join(lines).decode("utf-8-sig", "replace")
    if '"' not in text:
        return False
    is_needed, quoted, plain, commas = False, 0, 0, [0, 0]
    place = 0
    while place < len(text):
        field = FIELD.match(text, place)
        if field is None:
            if not is_whole and text[place] == '"' and not re.search(r'[^"]"[\t\r\n]', text[place:]):
                break  # the sample ends within this field
            return False
        place = field.end()
        content = field["quoted"]
        if content is not None:
            quoted += 1
            commas[0] += "," in content
            is_needed |= re.search(r'["\t\r\n]', content) is not None
        elif field["plain"]:
            plain += 1
            commas[1] += "," in field["plain"]
    return bool(quoted) and (is_needed or not plain or (commas[0] == quoted and not commas[1]))


def _widths(lines: list[str], separator: str) -> list[int]:
    """Return how many columns each line has that is not blank, as far as lines can be read."""
    widths = []
    try:
        for cells in csv.reader(lines, delimiter=separator, strict=True):
            if any(cells):
                widths.append(len(cells))
    except csv.Error:  # the last field of the sample may be cut; `separated` names a line that cannot be read
        pass
    return widths

"""A .csv as a file with slots: the cells of one column, made from those of another."""

import io
import itertools
import re
from pathlib import Path
from typing import NamedTuple

from tf_transformer.config import DataConfig
from tf_transformer.data.corpora.columns import columns_of
from tf_transformer.data.corpora.drawn import in_one_line
from tf_transformer.data.corpora.separated import NAMED, separator_of
from tf_transformer.data.corpora.slots import Parts, Slot, apart, has_words
from tf_transformer.data.corpora.table import BEGINS
from tf_transformer.errors import InputError


class Cell(NamedTuple):
    """A cell, and where it stands in the file."""

    start: int
    end: int
    text: str
    is_quoted: bool


def parts_of(text: str, path: Path, overwrites: bool, data: DataConfig) -> Parts:
    """Return the parts of a .csv.

    Args:
        text: the file.
        path: its name, for errors.
        overwrites: whether cells that are not empty are translated again.
        data: the languages and the columns, as far as they are given.

    Raises:
        InputError: it is not known which columns hold source and translation; a line has other columns than the first.
    """
    lines = list(itertools.islice(io.StringIO(text, newline=""), BEGINS))
    separator = separator_of(lines, path)
    rows = _rows(text, separator, path)
    if lines and NAMED.fullmatch(lines[0]):
        rows = rows[1:]
    if not any(cell.text for row in rows for cell in row):
        return [text]
    columns = columns_of([[cell.text for cell in row] for row in rows[:BEGINS]], data, str(path))
    parts: Parts = []
    place = 0
    for row in rows[columns.above :]:
        if not any(cell.text for cell in row):
            continue
        if columns.evened([cell.text for cell in row]) is None:
            line = text.count("\n", 0, row[0].start) + 1
            raise InputError(f"{path}, line {line} must have {columns.width} columns. Received: {len(row)}")
        source, target = row[columns.source], row[columns.target]
        if target.text.strip() and not overwrites:
            continue
        if has_words(source.text):
            parts += [text[place : target.start], _slot(source, target, separator, text[target.start : target.end])]
            place = target.end
    return [*parts, text[place:]]


def _slot(source: Cell, target: Cell, separator: str, kept: str) -> Slot:
    before, inner, after = apart(source.text)
    is_quoted = source.is_quoted or target.is_quoted

    def write(translation: str) -> str:
        cell = before + translation + after
        if is_quoted or re.search(f'["\\r\\n{re.escape(separator)}]', cell):
            return '"' + cell.replace('"', '""') + '"'
        return cell

    return Slot(in_one_line(inner), write, kept)


def _rows(text: str, separator: str, path: Path) -> list[list[Cell]]:
    """Return the cells of a file, line for line."""
    sign = re.escape(separator)
    field = re.compile(rf'(?:"(?P<quoted>(?:[^"]|"")*)"|(?P<plain>(?!")[^{sign}\r\n]*))(?P<end>{sign}|\r\n|\r|\n|\Z)')
    rows: list[list[Cell]] = [[]]
    place = 0
    while place < len(text) or rows[-1]:
        found = field.match(text, place)
        if found is None:
            line = text.count("\n", 0, place) + 1
            raise InputError(f"{path}, line {line}: its quotation marks are not those of a spreadsheet")
        quoted = found["quoted"]
        cell = found["plain"] if quoted is None else quoted.replace('""', '"')
        rows[-1].append(Cell(place, found.start("end"), cell, quoted is not None))
        place = found.end()
        if found["end"] != separator:
            rows.append([])
            if place >= len(text):
                break
    return [row for row in rows if row]

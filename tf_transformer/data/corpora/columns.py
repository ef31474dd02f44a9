"""Which columns of a table hold the sentences, and whether its first line is a header."""

import functools
import logging
import os
import shlex
from collections.abc import Sequence
from typing import NamedTuple

from tf_transformer.config import DataConfig
from tf_transformer.data.corpora.header import by_languages, by_words, may_be_header
from tf_transformer.data.corpora.languages import Direction, is_language, language_named, normal_code
from tf_transformer.errors import InputError

SCORE, FUZZY = "score", "fuzzy"
SHOWN = 3
"""How many lines of a table an error shows."""
SHOWN_CELLS = 20
"""And how many cells of each."""
log = logging.getLogger(__name__)


class Columns(NamedTuple):
    """How a table holds pairs. Columns are counted from 0."""

    width: int
    """how many columns each line has"""
    source: int = 0
    target: int = 1
    score: int | None = None
    above: int = 0
    """how many lines are no pairs: the header and what stands above it"""
    fuzzy: int | None = None
    """which column says that a translation is not approved"""

    def evened(self, cells: Sequence[str]) -> list[str] | None:
        """Return the cells of a line in all columns: programs leave out empty ones at its end, or add some.

        Returns None if more has text, or a side is missing: then a text may have a separator or a line break in it.
        """
        if any(cell.strip() for cell in cells[self.width :]) or len(cells) <= max(self.source, self.target):
            return None
        return [*cells[: self.width], *[""] * (self.width - len(cells))]

    def is_fuzzy(self, cells: Sequence[str]) -> bool:
        """Say whether a line says that its translation is not approved."""
        return self.fuzzy is not None and cells[self.fuzzy].strip().casefold() in ("true", "yes", "1")


def score_in(text: str, where: str) -> float:
    """Return the score of a pair."""
    try:
        return float(text)
    except ValueError:
        raise InputError(f"{where}: the score must be a number. Received: {text!r}") from None


def columns_of(lines: Sequence[Sequence[str]], data: DataConfig, name: str) -> Columns:
    """Return how a table holds pairs, and say so if its first line is, or may be, a header.

    Args:
        lines: its first lines, at least one.
        data: the languages, the columns if they are given, and whether pairs have scores.
        name: the name of the table, for errors.

    Raises:
        InputError: the columns of the sentences are not known, or there are none as they are given.
    """
    columns, number = found_columns(lines, data, name), _first_line(lines)
    first = _stripped(lines[number])
    where = f"{os.path.abspath(name)}, line {number + 1} is"
    if columns.above:
        left_out = ", and what is above it is left out" if number else ""
        said_once(f"{where} a header{left_out}: {in_short(first)}")
    elif may_be_header(pair := [first[columns.source], first[columns.target]]):
        said_once(f"{where} read as a pair: {in_short(pair)}. If it is a header, {_hint(first, pair, columns, data)}")
    return columns


def found_columns(lines: Sequence[Sequence[str]], data: DataConfig, name: str) -> Columns:
    """Return the same in silence."""
    number = _first_line(lines)
    first = _stripped(lines[number])
    columns = _given(first, data, name, lines) if data.columns is not None else _found(first, data, name, lines)
    if not columns.above:
        return columns
    fuzzy = next((place for place, cell in enumerate(first) if cell.casefold() == FUZZY), None)
    return columns._replace(above=number + 1, fuzzy=fuzzy)


def _first_line(lines: Sequence[Sequence[str]]) -> int:
    """Return which line may be a header, from 0: the first with several cells that are not empty; a title has one."""
    return next((number for number, line in enumerate(lines) if len([*filter(None, _stripped(line))]) > 1), 0)


def _stripped(line: Sequence[str]) -> list[str]:
    return [cell.strip() for cell in line]


@functools.cache
def said_once(message: str) -> None:
    """Say what was recognised; text is read several times."""
    log.info("%s", message)


def _hint(first: list[str], pair: list[str], columns: Columns, data: DataConfig) -> str:
    """Return how to say that the first line is a header."""
    cells = [cell.casefold() for cell in first]
    if any("," in cell or "=" in cell or cells.count(cell.casefold()) > 1 for cell in pair):
        return "remove it"
    codes = data.source or "en", data.target or "de"
    named = [f"{code}={cell}" for code, cell in zip(codes, pair, strict=True)]
    scores = [] if columns.score is None else [f"{SCORE}={columns.score + 1}"]
    return f"give --columns {shlex.quote(','.join([*named, *scores]))}"


def _found(first: list[str], data: DataConfig, name: str, lines: Sequence[Sequence[str]]) -> Columns:
    """Return the columns that the header names, or those of a table that has no others."""
    has_scores = data.min_score is not None
    named = [language_named(cell) for cell in first]
    scores = [i for i, cell in enumerate(first) if cell.casefold() == SCORE] if has_scores else []
    pair = by_languages(first, named, data) or by_words(first)
    is_narrow = len(first) == 2 + has_scores
    if pair is not None:
        if has_scores and not scores:
            raise _unclear(name, "no column of its header is called score", lines, data)
        return Columns(len(first), *pair, scores[0] if has_scores else None, above=1)
    if not is_narrow:
        why = f"it has {len(first)} columns, and no header that names the languages"
        if len([code for code in named if code]) > 1 and not (data.source and data.target):
            why = f"it has {len(first)} columns, of which --source and --target choose by the languages in the header"
        raise _unclear(name, why, lines, data)
    if named[0] and named[1] and named[0] != named[1]:
        if data.source and data.target:
            raise InputError(
                f"{name}, line {_first_line(lines) + 1} is a header, {' and '.join(first)}: give these languages, or "
                "put a line with source and target above it if it is a pair. Received: "
                f"--source {data.source} --target {data.target}"
            )
        return Columns(len(first), 0, 1, 2 if has_scores else None, above=1)
    return Columns(len(first), 0, 1, 2 if has_scores else None)


def _given(first: list[str], data: DataConfig, name: str, lines: Sequence[Sequence[str]]) -> Columns:
    """Return the columns that `data.columns` gives."""
    places: dict[str, int] = {}
    has_header = False
    for language, column in parsed(data.columns or "").items():
        if column.isdecimal() and int(column):
            if int(column) > len(first):
                raise _unclear(name, f"it has no column {column}", lines, data)
            places[language] = int(column) - 1
            continue
        found = [i for i, cell in enumerate(first) if cell.casefold() == column.casefold()]
        if len(found) != 1:
            raise _unclear(name, f"{len(found) or 'no'} columns of its first line are called {column!r}", lines, data)
        places[language], has_header = found[0], True
    score = places.pop(SCORE, None)
    if (score is None) != (data.min_score is None):
        needs = "data.min_score needs a column of scores, such as score=3"
        what = needs if score is None else "a column of scores is for data.min_score, which is not given"
        raise InputError(f"{what}. Received: --columns {data.columns}")
    source, target = _sides(list(places), data)
    pair = places[source], places[target]
    words = [first[i] for i in pair]
    named = [language_named(word) for word in words]
    has_header |= by_words(words) is not None or (None not in named and named[0] != named[1])
    return Columns(len(first), *pair, score, int(has_header))


def _sides(languages: list[str], data: DataConfig) -> tuple[str, str]:
    """Return which of the languages of `--columns` is the source and which the target."""
    if not (data.source and data.target):
        return languages[0], languages[1]
    for source, target in (languages, reversed(languages)):
        if is_language(data.source, source) and is_language(data.target, target):
            return source, target
    raise InputError(
        f"--columns must name the languages of --source and --target. Received: --columns {data.columns} with "
        f"--source {data.source} --target {data.target}"
    )


def parsed(columns: str) -> dict[str, str]:
    """Return the columns that `data.columns` gives, by language.

    Raises:
        InputError: it is written otherwise, or does not name two languages.
    """
    parts = [part.partition("=") for part in columns.split(",")]
    found = {language.strip(): column.strip() for language, _, column in parts}
    if not all(language.strip() and column.strip() for language, _, column in parts) or len(found) != len(parts):
        found = {}
    if len(found) - (SCORE in found) != 2:
        raise InputError(
            "columns must name two languages, each with the number of its column or the name that the header gives it, "
            f"such as en=2,de=3 or en=English,de=German. Received: {columns!r}"
        )
    return found


def column_languages(columns: str) -> Direction | tuple[None, None]:
    """Return the languages that `data.columns` names, source and target, or None for both if they are no known ones.

    Raises:
        InputError: as `parsed`.
    """
    given = [language for language in parsed(columns) if language != SCORE]
    codes = [language_named(language) for language in given]
    source, target = (one if normal_code(one) == code else code for one, code in zip(given, codes, strict=True))
    return (source, target) if source and target else (None, None)


def _unclear(name: str, why: str, lines: Sequence[Sequence[str]], data: DataConfig) -> InputError:
    """Return the error for a table whose columns are not known, with its first lines."""
    languages = f"{data.source or 'en'}=1,{data.target or 'de'}=2"
    scores = ",score=3" if data.min_score is not None else ""
    shown = "; ".join(f"line {number}: {in_short(line)}" for number, line in enumerate(lines[:SHOWN], 1))
    return InputError(
        f"{name}: {why}. Name the columns of the sentences, such as by --columns {languages}{scores}. Received: {shown}"
    )


def in_short(line: Sequence[str]) -> str:
    """Return the cells of a line as messages show them: not all of a wide table, nor all of a long text."""
    return " | ".join([_short(cell) for cell in line[:SHOWN_CELLS]] + ["…"] * (len(line) > SHOWN_CELLS))


def _short(text: str, most: int = 30) -> str:
    text = " ".join(text.split())
    return text if len(text) <= most else f"{text[: most - 1]}…"

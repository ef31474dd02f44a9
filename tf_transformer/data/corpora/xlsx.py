"""A sheet of an .xlsx, as Excel, LibreOffice and others write it."""

import contextlib
import datetime
import itertools
import os
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from tf_transformer.data.corpora.columns import found_columns, said_once
from tf_transformer.data.corpora.package import PROTECTED, refuse_trap
from tf_transformer.data.corpora.table import BEGINS, Cells, Table
from tf_transformer.errors import InputError, missing_extra


class Xlsx(Table):
    """The .xlsx that `data.corpus` names, of which the first sheet that has pairs is read."""

    forms: tuple[str, ...] = ("an .xlsx file that exists",)
    endings = (".xlsx", ".xlsm")

    def cells(self) -> Cells:
        """Yield the lines of that sheet, which are as wide as the widest of the first ones."""
        with _book(self.path) as book:
            begins = {sheet: first for sheet in book.worksheets if any(map(any, first := _first(sheet)))}
            if not begins:
                return
            chosen = max(begins, key=lambda sheet: self._fits(begins[sheet]))
            if len(begins) > 1:
                others = ", ".join(sheet.title for sheet in begins if sheet is not chosen)
                said_once(
                    f"{os.path.abspath(self.path)}: the sheet {chosen.title} is read, and not {others}; save another "
                    "one as a .csv to read it"
                )
            width = max(map(len, begins[chosen]))
            for number, cells in enumerate(_lines(chosen), 1):
                yield (
                    number,
                    (cells + [""] * (width - len(cells)))[:width],
                )  # what stands beside the table is none of it

    def _fits(self, lines: list[list[str]]) -> int:
        """Say how likely a sheet has the pairs, by its first lines: 2 if they have a header, 1 if most are pairs."""
        width = max(map(len, lines))
        cells = [line + [""] * (width - len(line)) for line in lines]
        try:
            columns = found_columns(cells, self.data, os.fspath(self.path))
        except InputError:
            return 0
        pairs = [bool(line[columns.source] and line[columns.target]) for line in cells if any(line)]
        return 2 if columns.above else int(2 * sum(pairs) > len(pairs))


def _lines(sheet: Any) -> Iterator[list[str]]:
    """Yield the lines of a sheet."""
    sheet.reset_dimensions()  # some programs write wrong ones
    return map(_texts, sheet.iter_rows(values_only=True))


def _first(sheet: Any) -> list[list[str]]:
    return list(itertools.islice(_lines(sheet), BEGINS))


@contextlib.contextmanager
def _book(path: Path) -> Iterator[Any]:
    """Open a workbook."""
    try:
        import defusedxml  # noqa: F401  # openpyxl reads XML with it if it is there
        from openpyxl import load_workbook
    except ImportError as error:
        raise missing_extra(f"{path}: .xlsx", "files", error) from None
    try:
        with path.open("rb") as file:
            if file.read(len(PROTECTED)) == PROTECTED:
                raise InputError(
                    f"{path} is protected by a password, or is an .xls: save it as .xlsx without a password"
                )
            with zipfile.ZipFile(path) as package:
                refuse_trap(package, path.stat().st_size, path)
            book = load_workbook(file, read_only=True, data_only=True)
            try:
                yield book
            finally:
                book.close()
    except InputError:
        raise
    except Exception as error:  # of zipfile, of the XML parser or of openpyxl, a dozen kinds
        if isinstance(error, OSError) and error.filename:
            raise
        reason = next(iter(str(error).splitlines()), "") or type(error).__name__
        raise InputError(f"{path} is damaged, or no .xlsx: {reason}") from None


def _texts(values: Iterable[Any]) -> list[str]:
    """Return the cells of a line as text, up to the last that has any."""
    texts = [_text(value) for value in values]
    while texts and not texts[-1]:
        texts.pop()
    return texts


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat(" ") if isinstance(value, datetime.datetime) else value.isoformat()
    return f"{value:.15g}" if isinstance(value, float) else str(value)

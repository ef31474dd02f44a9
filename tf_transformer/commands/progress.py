"""Counting lines at a terminal."""

import sys
from collections.abc import Iterable, Iterator
from typing import TypeVar

Line = TypeVar("Line")


def counted(lines: Iterable[Line], total: int | None = None) -> Iterator[Line]:
    """Pass lines on, counting them on standard error where that is a terminal."""
    shown = sys.stderr.isatty()
    number = 0
    for number, line in enumerate(lines, 1):
        yield line
        if shown and number % 16 == 0:
            print(f"\r{number}{f' of {total}' if total else ''} sentences", end="", file=sys.stderr, flush=True)
    if shown:
        print(f"\r{number} sentences{' ' * 20}", file=sys.stderr)

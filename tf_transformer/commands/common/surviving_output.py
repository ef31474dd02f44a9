"""Standard output for work that goes on when its reader has gone."""

import contextlib
import logging
import os
import sys
from collections.abc import Iterator
from typing import Any, TextIO

log = logging.getLogger(__name__)


class _Surviving:
    """A text file that drops what is written once nobody reads it any more.

    Args:
        file: such as standard output.
    """

    def __init__(self, file: TextIO):
        self._file = file

    def write(self, text: str) -> int:
        """Write a text."""
        try:
            return self._file.write(text)
        except BrokenPipeError:
            self._give_up()
            return len(text)

    def flush(self) -> None:
        """Pass on what was written."""
        try:
            self._file.flush()
        except BrokenPipeError:
            self._give_up()

    def _give_up(self) -> None:
        log.warning("nobody reads standard output any more: going on without it")
        os.dup2(os.open(os.devnull, os.O_WRONLY), self._file.fileno())

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


@contextlib.contextmanager
def surviving_output() -> Iterator[None]:
    """Let work go on without standard output when its reader ends, as `head` does."""
    before = sys.stdout
    sys.stdout = _Surviving(before)
    try:
        yield
    finally:
        sys.stdout = before

"""What long work says on standard error while its user waits."""

import contextlib
import io
import os
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any, TextIO

from tqdm import tqdm

IN_LOG = 60.0
"""Seconds between two lines of a log."""


def progress_bar(what: str, unit: str, total: int | None = None, **settings: Any) -> tqdm:
    """Return a progress bar for standard error; where that is no terminal, it is a line a minute.

    Both show how much is done, how fast, and, where the total is known, the time that is left.

    Args:
        what: is being done, such as "translating".
        unit: of what is counted, in the plural.
        total: how many there are, if that is known.
        **settings: others of `tqdm`.
    """
    if sys.stderr.isatty():
        return tqdm(desc=what, unit=f" {unit}", total=total, file=sys.stderr, dynamic_ncols=True, **settings)
    of = "{n_fmt}/{total_fmt}" if total else "{n_fmt}"
    left = ", {remaining} left" if total else ""
    return tqdm(
        desc=what,
        unit=f" {unit}",
        total=total,
        file=_Lines(sys.stderr),
        **{
            "mininterval": IN_LOG,
            "delay": IN_LOG,
            "bar_format": f"{{desc}}: {of} {unit} in {{elapsed}}{left}, {{rate_fmt}}",
            **settings,
        },
    )


class _Lines(io.TextIOBase):
    """A file in which each state of a progress bar is a line of its own."""

    def __init__(self, file: TextIO):
        self.file = file

    def write(self, text: str) -> int:
        """Write a state, which begins with a carriage return; the end of the bar is passed over."""
        if line := text.strip():
            self.file.write(f"{line}\n")
        return len(text)

    def flush(self) -> None:
        """Pass on what was written."""
        self.file.flush()


@contextlib.contextmanager
def waiting_for(what: str) -> Iterator[None]:
    """Show at a terminal for how many seconds something has been going on; the line is erased at the end.

    Args:
        what: such as "loading the model".
    """
    if not sys.stderr.isatty():
        yield
        return
    is_done = threading.Event()
    start = time.monotonic()
    terminal = os.dup(2)  # file descriptor 2 leads elsewhere while TensorFlow is imported

    def show() -> None:
        while True:
            os.write(terminal, f"\r{what} ... {time.monotonic() - start:.0f} s".encode())
            if is_done.wait(1.0):
                return

    clock = threading.Thread(target=show, daemon=True)
    clock.start()
    try:
        yield
    finally:
        is_done.set()
        clock.join()
        os.write(terminal, f"\r{' ' * (len(what) + 12)}\r".encode())
        os.close(terminal)

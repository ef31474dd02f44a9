"""The text that commands read and write: files by name, standard input and output."""

import contextlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO

from tf_transformer.commands.common.checks import check_place
from tf_transformer.errors import InputError
from tf_transformer.storage.atomic import atomic_write
from tf_transformer.storage.lines import decoded, opened

PART = ".part"
"""What follows the name of a file that is not whole yet."""


def check_input(option: str, path: Path) -> int | None:
    """Return how many lines a file has, after reading all of it; None for a pipe and the like, read only once.

    Raises:
        InputError: there is no such file; a line is not UTF-8; a packed file is cut off.
    """
    if path.is_dir():
        raise InputError(f"{option} {path} is a folder: give a file")
    if path.exists() and not path.is_file():
        return None
    with opened(path) as file:
        return sum(1 for _ in decoded(file, os.fspath(path)))


def check_output(option: str, path: Path, read: Iterable[str | Path | None] = ()) -> None:
    """Raise InputError where a file cannot be written, or is one of those that are read."""
    if path.is_dir():
        raise InputError(f"{option} {path} is a folder: give a file")
    if path.is_file() and any(other and os.path.realpath(other) == os.path.realpath(path) for other in read):
        raise InputError(f"{option} {path} is also read, and would be lost: give another file")
    check_place(option, os.fspath(path.parent))


def is_regular(path: Path) -> bool:
    """Say whether a path is a file, or nothing yet: no link, no pipe and no device such as /dev/stdout."""
    return not path.is_symlink() and (path.is_file() or not path.exists())


def write_whole(path: Path, content: bytes) -> None:
    """Write a file, all of it or, after an error, nothing."""
    if not is_regular(path):
        path.write_bytes(content)
        return
    with atomic_write(path) as beside:
        beside.write_bytes(content)


@contextlib.contextmanager
def written_line_by_line(path: Path) -> Iterator[IO[bytes]]:
    """Open a file for writing bytes; it is called `path.part` until all of it has been written, also after an error.

    Raises:
        InputError: what was raised while it was open; the message also says where the lines before are.
    """
    if not is_regular(path):
        with path.open("wb") as file:
            yield file
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(path.name + PART)
    try:
        with part.open("wb") as file:
            yield file
    except InputError as error:
        if part.stat().st_size:
            raise InputError(f"{error}; what was done before is in {part}") from None
        part.unlink()
        raise
    part.replace(path)

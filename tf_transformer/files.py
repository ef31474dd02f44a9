"""Atomic writes of files and folders."""

import contextlib
import os
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol


@contextlib.contextmanager
def written_whole(place: Path) -> Iterator[Path]:
    """Give a path beside `place` for a file or a folder to be written to, and rename it to `place` at the end.

    After an error nothing of it is left. The folder that `place` is in is made where there is none.
    """
    place.parent.mkdir(parents=True, exist_ok=True)
    beside = place.with_name(f".{place.name}.{os.getpid()}")
    _remove(beside, ignore_errors=False)  # of a killed process of the same number, as in a container
    try:
        yield beside
        beside.rename(place)
    finally:
        _remove(beside, ignore_errors=True)  # the error that led here says more


class Folder(Protocol):
    """A folder, wherever it is, whose files appear when they are whole."""

    def size(self, name: str) -> int | None:
        """Return the bytes of a file; None where there is none."""

    def read(self, name: str) -> bytes:
        """Return the content of a file."""

    def write(self, name: str, content: bytes) -> None:
        """Write a file, in the place of another one of the name."""


@dataclass(frozen=True)
class LocalFolder:
    """A folder of this machine's file system.

    Args:
        path: of the folder.
        beside: the folder where files lie until they are whole.
    """

    path: Path
    beside: Path

    def size(self, name: str) -> int | None:
        """Return the bytes of a file; None where there is none."""
        place = self.path / name
        return place.stat().st_size if place.is_file() else None

    def read(self, name: str) -> bytes:
        """Return the content of a file."""
        return (self.path / name).read_bytes()

    def write(self, name: str, content: bytes) -> None:
        """Write a file, in the place of another one of the name."""
        beside = self.beside / f".{name}.{os.getpid()}"
        try:
            beside.write_bytes(content)
            beside.replace(self.path / name)
        finally:
            beside.unlink(missing_ok=True)


PREPARING = ".tf_transformer_prepared"
"""The text of a training that is about to begin, prepared."""
KEPT = (".lock", "lost+found", PREPARING, f"{PREPARING}.preparing")
"""What is no content of a folder: the lock of who writes to it, what the root of a file system has, and text that is
prepared before a training begins."""
NEW, READY, OLD = (f".tf_transformer_{what}" for what in ("new", "ready", "old"))
"""Folders within one whose contents are replaced: written, whole, and what was there before. Nobody else has such."""


def contents_of(folder: Path) -> list[Path]:
    """Return what is in a folder, if there is one, besides what replacing its contents leaves for a while."""
    if not folder.exists():
        return []
    return sorted(path for path in folder.iterdir() if path.name not in (*KEPT, NEW, READY, OLD))


def is_half_replaced(folder: Path) -> bool:
    """Say whether a process ended while it replaced the contents of a folder."""
    return any((folder / name).exists() for name in (NEW, READY, OLD))


@contextlib.contextmanager
def contents_replaced(folder: Path, head: str) -> Iterator[Path]:
    """Give an empty folder; at the end what was written to it takes the place of the contents of `folder`.

    The folder itself stays: it may be the root of a file system, or hold a lock. After an error its contents are what
    they were. Whenever the process ends, `settle` makes of it what was there before or what has been written.

    Args:
        folder: exists; nobody else writes to it.
        head: the file in both that says what they are: it goes first, and comes last.
    """
    settle(folder, head)
    new = folder / NEW
    new.mkdir()
    try:
        yield new
    except BaseException:
        shutil.rmtree(new, ignore_errors=True)  # the error that led here says more
        raise
    old = folder / OLD
    old.mkdir()
    try:
        _move(contents_of(folder), old, first=head)
        new.rename(folder / READY)
    finally:
        settle(folder, head)


def settle(folder: Path, head: str) -> None:
    """Finish what a process began that replaced the contents of a folder, or undo it; `head` as in `contents_replaced`.

    What was written is whole when its folder is called ready; before that, what was there comes back.
    """
    new, ready, old = (folder / name for name in (NEW, READY, OLD))
    if ready.exists():
        _move(list(ready.iterdir()), folder, last=head)
        if old.exists():
            shutil.rmtree(old)
        ready.rmdir()  # at the very end: without it, what is old comes back
    elif old.exists():
        _move(list(old.iterdir()), folder, last=head)
    for rest in (new, old):
        if rest.exists():
            shutil.rmtree(rest)


def _move(paths: Iterable[Path], to: Path, *, first: str = "", last: str = "") -> None:
    for path in sorted(paths, key=lambda path: (path.name == last, path.name != first)):
        path.rename(to / path.name)


def _remove(path: Path, ignore_errors: bool) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors)
    else:
        path.unlink(missing_ok=True)

"""Atomic writes of files and folders."""

import contextlib
import os
import shutil
import socket
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from tf_transformer.errors import InputError


@contextlib.contextmanager
def atomic_write(place: Path) -> Iterator[Path]:
    """Yield a temporary path beside `place` for a file or a folder, and rename it to `place` at the end.

    After an error, whatever is at the temporary path is removed, and so are the parent folders of `place` that were
    created for it. An `OSError` names `place`.
    """
    created = [folder for folder in place.parents if not folder.exists()]
    place.parent.mkdir(parents=True, exist_ok=True)
    beside = _beside(place.parent, place.name)
    _remove(beside, ignore_errors=False)  # left by a killed process with the same id, as in a container
    try:
        yield beside
        beside.rename(place)
    except BaseException as error:
        _remove(beside, ignore_errors=True)  # the error that led here is more informative
        with contextlib.suppress(OSError):  # another process has written there meanwhile
            for folder in created:
                folder.rmdir()
        if isinstance(error, OSError) and str(error.filename or beside).startswith(str(beside)):
            error.filename = str(place)
        raise


def _beside(folder: Path, name: str) -> Path:
    """Return a temporary path of this process. In containers on several machines, ids of processes are often equal."""
    return folder / f".{name}.{socket.gethostname()}.{os.getpid()}"


def refuse_existing(place: Path, option: str = "--output") -> None:
    """Raise InputError if something is there already; `option` is what names the place."""
    if place.exists():
        raise InputError(f"{place} exists: give another {option}, or remove it")


class Folder(Protocol):
    """A folder, local or remote, in which files appear only once they are complete."""

    def size(self, name: str) -> int | None:
        """Return the size of a file in bytes, or None if there is no such file."""

    def read(self, name: str) -> bytes:
        """Return the content of a file."""

    def write(self, name: str, content: bytes) -> None:
        """Write a file, replacing any file of the same name."""


@dataclass(frozen=True)
class LocalFolder:
    """A folder of this machine's file system.

    Args:
        path: the path of the folder.
        beside: the folder that holds files until they are complete.
    """

    path: Path
    beside: Path

    def size(self, name: str) -> int | None:
        """Return the size of a file in bytes, or None if there is no such file."""
        place = self.path / name
        return place.stat().st_size if place.is_file() else None

    def read(self, name: str) -> bytes:
        """Return the content of a file."""
        return (self.path / name).read_bytes()

    def write(self, name: str, content: bytes) -> None:
        """Write a file, replacing any file of the same name."""
        beside = _beside(self.beside, name)
        try:
            beside.write_bytes(content)
            beside.replace(self.path / name)
        finally:
            beside.unlink(missing_ok=True)


PREPARING = ".tf_transformer_prepared"
"""The folder of the prepared text of a training run that is about to begin."""
KEPT = (".lock", "lost+found", PREPARING, f"{PREPARING}.preparing")
"""Names that do not count as contents of a folder: its lock, what the root of a file system has, and the text that is
prepared before training begins."""
NEW, READY, OLD = (f".tf_transformer_{what}" for what in ("new", "ready", "old"))
"""Folders within a folder whose contents are being replaced: for the new contents while they are written, for the
complete new contents, and for the old contents. Nothing else uses these names."""


def contents_of(folder: Path) -> list[Path]:
    """Return what is in a folder, without locks and temporary folders; nothing if there is no such folder."""
    if not folder.exists():
        return []
    return sorted(path for path in folder.iterdir() if path.name not in (*KEPT, NEW, READY, OLD))


def is_half_replaced(folder: Path) -> bool:
    """Say whether a process ended while it was replacing the contents of a folder."""
    return any((folder / name).exists() for name in (NEW, READY, OLD))


@contextlib.contextmanager
def contents_replaced(folder: Path, head: str) -> Iterator[Path]:
    """Yield an empty folder, and at the end replace the contents of `folder` by what was written to it.

    The folder itself stays, because it may be the root of a file system or hold a lock. After an error its contents
    are unchanged. If the process ends in between, `settle` restores the old contents or puts the new ones in place.

    Args:
        folder: an existing folder to which nobody else writes.
        head: the name of the file that says what the contents are, old or new. It is moved away first and put in
            place last.
    """
    settle(folder, head)
    new = folder / NEW
    new.mkdir()
    try:
        yield new
    except BaseException:
        shutil.rmtree(new, ignore_errors=True)  # the error that led here is more informative
        raise
    old = folder / OLD
    old.mkdir()
    try:
        _move(contents_of(folder), old, first=head)
        new.rename(folder / READY)
    finally:
        settle(folder, head)


def settle(folder: Path, head: str) -> None:
    """Finish or undo a replacement of the contents of a folder that a process has left unfinished.

    The new contents are complete once their folder is called `READY`. Before that, the old contents are restored.

    Args:
        folder: the folder.
        head: as in `contents_replaced`.
    """
    new, ready, old = (folder / name for name in (NEW, READY, OLD))
    if ready.exists():
        _move(list(ready.iterdir()), folder, last=head)
        if old.exists():
            shutil.rmtree(old)
        ready.rmdir()  # last, because without it the old contents would be restored
    elif old.exists():
        _move(list(old.iterdir()), folder, last=head)
    for rest in (new, old):
        if rest.exists():
            shutil.rmtree(rest)


REPLACED = "--overwrite would remove it. Give another folder, or move it out first"
"""Why nothing that a command reads may lie inside a folder whose contents it replaces."""


def refuse_inside(folder: str | Path, paths: Iterable[tuple[str, str | Path | None]], why: str) -> None:
    """Raise InputError if one of some paths is a folder or lies inside it, directly or through links.

    Args:
        folder: the folder.
        paths: the paths, each after what the user calls it, such as `--data`; None is passed over.
        why: what would be lost, and what to do.
    """
    for name, path in paths:
        if path is None:
            continue
        forms = ((os.path.abspath(path), os.path.abspath(folder)), (os.path.realpath(path), os.path.realpath(folder)))
        if any(Path(one).is_relative_to(other) for one, other in forms):
            raise InputError(f"{name} {path} lies inside {folder}: {why}")


def _move(paths: Iterable[Path], to: Path, *, first: str = "", last: str = "") -> None:
    for path in sorted(paths, key=lambda path: (path.name == last, path.name != first)):
        path.rename(to / path.name)


def _remove(path: Path, ignore_errors: bool) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors)
    else:
        path.unlink(missing_ok=True)

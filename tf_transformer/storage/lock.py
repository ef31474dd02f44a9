"""One writer of a folder at a time."""

import contextlib
import datetime
import errno
import fcntl
import logging
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from tf_transformer.errors import InputError

LOCK = ".lock"
"""The name of the lock file in a folder. The file says who holds the lock."""
NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)

log = logging.getLogger(__name__)


@contextlib.contextmanager
def sole_writer(folder: Path) -> Iterator[None]:
    """Hold the lock of a folder, which is created if missing and removed at the end if it is still empty.

    The system releases the lock when the process ends, however it ends, so that a dead process blocks nobody.

    Raises:
        InputError: another process holds the lock.
        OSError: the folder cannot be written to.
    """
    made = [path for path in (folder, *folder.parents) if not path.exists()]
    file = None
    try:
        while file is None:
            file = _locked(folder)
        yield
    finally:
        if file is not None:
            (folder / LOCK).unlink(missing_ok=True)  # while locked: whoever has opened it checks that it still exists
            file.close()
        for path in made:
            try:
                path.rmdir()
            except OSError:  # it is not empty any more
                break


def _locked(folder: Path) -> IO[str] | None:
    """Return the locked file of a folder, or None if another process has removed it meanwhile."""
    place = folder / LOCK
    folder.mkdir(parents=True, exist_ok=True)
    file: IO[str]
    is_own = True
    try:
        file = place.open("a+", encoding="utf-8")
    except FileNotFoundError:
        return None
    except PermissionError:
        if not place.exists():
            raise  # the folder is another user's
        # The file of another user, which can be locked only if that user's process is dead: it is then removed.
        file, is_own = place.open(encoding="utf-8"), False
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.seek(0)
        holder = file.read().strip() or "another process"
        file.close()
        raise InputError(
            f"{folder} is in use by {holder}: wait until it ends or stop it, or give another folder"
        ) from None
    except OSError as error:
        if error.errno not in NO_LOCKS:
            file.close()
            raise
        log.warning("%s is on a file system without locks: make sure that no other process writes to it", folder)
    try:
        is_there = place.stat().st_ino == os.fstat(file.fileno()).st_ino
    except FileNotFoundError:
        is_there = False
    if is_there and not is_own:
        place.unlink()
    if not (is_there and is_own):
        file.close()
        return None
    file.truncate(0)
    since = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC")
    file.write(f"process {os.getpid()} on {socket.gethostname()}, since {since}\n")
    file.flush()
    return file

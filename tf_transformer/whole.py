"""Files and folders that are there whole, or not at all."""

import contextlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path


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


def _remove(path: Path, ignore_errors: bool) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors)
    else:
        path.unlink(missing_ok=True)

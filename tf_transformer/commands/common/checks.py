"""Where the commands write."""

import os
from pathlib import Path

from tf_transformer.errors import InputError


def check_place(option: str, path: str) -> None:
    """Raise InputError where a new folder cannot be made at `path`, parents included."""
    above = Path(path).absolute()
    while not above.exists():
        above = above.parent
    if not above.is_dir():
        raise InputError(f"{option} {path}: {above} is not a folder")
    if not os.access(above, os.W_OK | os.X_OK):
        raise InputError(f"{option} {path}: no permission to write in {above}")

"""Reading the files of a model folder."""

import json
from pathlib import Path
from typing import Any

from tf_transformer.errors import InputError


def read_json(file: Path) -> Any:
    """Return the content of a JSON file.

    Raises:
        InputError: the file is missing or damaged.
    """
    try:
        return json.loads(file.read_text("utf-8"))
    except OSError as error:
        raise InputError(f"cannot read {file}: {error.strerror}") from None
    except (UnicodeDecodeError, json.JSONDecodeError):
        raise InputError(f"{file} is not JSON, or is truncated") from None


def read_bytes(file: Path) -> bytes:
    """Return the content of a file.

    Raises:
        InputError: the file is missing.
    """
    try:
        return file.read_bytes()
    except OSError as error:
        raise InputError(f"cannot read {file}: {error.strerror}") from None


def optional_json(file: Path) -> dict[str, Any]:
    """Return the object in a JSON file, or an empty one if there is no such file."""
    return read_json(file) if file.exists() else {}


def size_of(settings: dict[str, Any], name: str, file: Path) -> int:
    """Return the size that the settings of a file have under a name.

    Raises:
        InputError: the size is missing, or is not an integer of at least 1.
    """
    value = settings.get(name)
    if not isinstance(value, int) or value < 1:
        raise InputError(f"{file}: {name} must be an integer of at least 1. Received: {value!r}")
    return value


def licence_of(folder: Path) -> str | None:
    """Return the licence that the front matter of a model card names, if there is one."""
    card = folder / "README.md"
    if not card.is_file():
        return None
    lines = card.read_text("utf-8", "replace").splitlines()
    if not lines or lines[0].strip() != "---":
        return None
    for line in lines[1:]:
        if line.strip() == "---":
            break
        key, _, value = line.partition(":")
        if key.strip() == "license" and value.strip():
            return value.strip().strip("'\"")
    return None

"""Reading the files of a model folder."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tf_transformer.errors import InputError

LARGEST = 2**31 - 1
"""The largest size or id that a file may name."""


def read_json(file: Path) -> Any:
    """Return the content of a JSON file, which may begin with a byte-order mark.

    Raises:
        InputError: the file is missing or damaged.
    """
    try:
        text = file.read_text("utf-8-sig")
        found = json.loads(text)
        if "\\ud" in text.lower():
            json.dumps(found, ensure_ascii=False).encode()  # fails for half of a character
        return found
    except OSError as error:
        raise InputError(f"cannot read {file}: {error.strerror}") from None
    except (ValueError, RecursionError):
        raise InputError(f"{file} is not JSON, or is truncated") from None


def read_object(file: Path) -> dict[str, Any]:
    """Return the object in a JSON file.

    Raises:
        InputError: the file is missing or damaged, or holds something else.
    """
    found = read_json(file)
    if not isinstance(found, dict):
        raise InputError(f"{file} must hold a JSON object. Received: {shown(found)}")
    return found


def optional_object(file: Path) -> dict[str, Any]:
    """Return the object in a JSON file, or an empty one if there is no such file."""
    return read_object(file) if file.exists() else {}


def read_bytes(file: Path) -> bytes:
    """Return the content of a file.

    Raises:
        InputError: the file is missing.
    """
    try:
        return file.read_bytes()
    except OSError as error:
        raise InputError(f"cannot read {file}: {error.strerror}") from None


class Settings:
    """The object in a file, whose values are checked as they are read. An error names the file, the key and the value.

    Args:
        file: the file.
        values: the object.
        below: settings of another file, for the keys that this one has not.
    """

    def __init__(self, file: Path, values: Mapping[str, Any], below: "Settings | None" = None):
        self.file = file
        self.values: dict[str, Any] = {**(below.values if below else {}), **values}
        self._files: dict[str, Path] = {**(below._files if below else {}), **dict.fromkeys(values, file)}

    @classmethod
    def read(cls, file: Path) -> "Settings":
        """Read a JSON file, which must be there."""
        return cls(file, read_object(file))

    def chosen(self, *names: str) -> "Settings":
        """Return those of the settings that are there and are not null; all names by default."""
        kept = {k: v for k, v in self.values.items() if v is not None and (not names or k in names)}
        return Settings(self.file, kept)

    def integer(self, name: str, default: int | None = None, at_least: int = 0, at_most: int = LARGEST) -> int:
        """Return an integer, which may be written as `512.0`; the default if the key is missing.

        Raises:
            InputError: the value is something else; or it is missing, and there is no default.
        """
        value = self.values.get(name, default)
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int) or not at_least <= value <= at_most:
            limits = f"of at least {at_least}" if at_most == LARGEST else f"from {at_least} to {at_most}"
            raise self.error(name, f"an integer {limits}", value)
        return value

    def number(self, name: str, default: float, at_least: float = 0.0, at_most: float = LARGEST) -> float:
        """Return a number; the default if the key is missing.

        Raises:
            InputError: the value is something else.
        """
        value = self.values.get(name, default)
        if isinstance(value, bool) or not isinstance(value, int | float) or not at_least <= value <= at_most:
            raise self.error(name, f"a number from {at_least:g} to {at_most:g}", value)
        return float(value)

    def flag(self, name: str, default: bool) -> bool:
        """Return true or false; the default if the key is missing.

        Raises:
            InputError: the value is something else.
        """
        value = self.values.get(name, default)
        if not isinstance(value, bool):
            raise self.error(name, "true or false", value)
        return value

    def text(self, name: str) -> str | None:
        """Return a string, or None if the key is missing or null.

        Raises:
            InputError: the value is something else.
        """
        value = self.values.get(name)
        if value is not None and not isinstance(value, str):
            raise self.error(name, "a string", value)
        return value

    def error(self, name: str, needed: str, value: Any) -> InputError:
        """Return the error for a value that is not what is needed."""
        file = self._files.get(name, self.file)
        return InputError(f"{file}: {name} must be {needed}. Received: {shown(value)}")


def shown(value: Any) -> str:
    """Return a value as an error shows it: in one line, cut off if it is long."""
    return repr(value)[:60]


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

"""The fields of sections, each with its default, meaning, range, choices and option."""

import dataclasses
import math
from collections.abc import Callable
from typing import Any

from tf_transformer.errors import InputError, unknown

BOUNDS: dict[str, tuple[str, Callable[[float, float], bool]]] = {
    "at_least": ("at least", lambda value, bound: value >= bound),
    "above": ("above", lambda value, bound: value > bound),
    "at_most": ("at most", lambda value, bound: value <= bound),
    "below": ("below", lambda value, bound: value < bound),
}
"""The bounds that `setting` takes: the words for each in errors, and the check that a value keeps it."""


def setting(
    default: Any,
    help: str,
    *,
    choices: tuple[str, ...] = (),
    or_file: bool = False,
    option: str | None = None,
    **bounds: float,
) -> Any:
    """Return a field of a section.

    Args:
        default: the default value. If it is None, the setting may always be None.
        help: the meaning of the setting, in one line.
        choices: the valid words; by default any value is valid.
        or_file: whether the name of a file is valid as well: a value with a dot or a slash.
        option: the command-line option that sets it, if it has one of its own.
        **bounds: the bounds of a number, by their names in `BOUNDS`. A number with bounds must be finite.
    """
    metadata = {"help": help, "choices": choices, "or_file": or_file, "option": option, "bounds": bounds}
    return dataclasses.field(default=default, metadata=metadata)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Section:
    """A section of settings, which must keep their ranges.

    Raises:
        InputError: a value is out of range, or is none of the choices.
    """

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if value is not None:
                _check(field.name, value, **field.metadata)


def _check(name: str, value: Any, bounds: dict[str, float], choices: tuple[str, ...], or_file: bool, **_: Any) -> None:
    for bound, limit in bounds.items():
        words, keeps = BOUNDS[bound]
        if not (keeps(value, limit) or math.isnan(value)):
            raise InputError(f"{name} must be {words} {limit}. Received: {value}")
    if bounds and not math.isfinite(value):
        raise InputError(f"{name} must be a finite number. Received: {value}")
    if choices and value not in choices and not (or_file and ("." in value or "/" in value)):
        raise InputError(f"{name}: {unknown('value', str(value), choices)}")

"""The fields of sections: each holds its default, meaning, range, choices and option."""

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
"""The bounds that `setting` takes: how an error calls each, and whether a value keeps it."""


def setting(
    default: Any, help: str, *, choices: tuple[str, ...] = (), option: str | None = None, **bounds: float
) -> Any:
    """Return a field of a section.

    Args:
        default: its value where none is given; None may always be given where this is None.
        help: what it means, in a line.
        choices: the words that it takes.
        option: of the commands that set it by an option of its own.
        **bounds: of a number, by the names of `BOUNDS`; a number with bounds is finite.
    """
    metadata = {"help": help, "choices": choices, "option": option, "bounds": bounds}
    return dataclasses.field(default=default, metadata=metadata)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Section:
    """Settings that keep their ranges.

    Raises:
        InputError: a value out of its range, or a word that is none of the choices.
    """

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if value is not None:
                _check(field.name, value, **field.metadata)


def _check(name: str, value: Any, bounds: dict[str, float], choices: tuple[str, ...], **_: Any) -> None:
    for bound, limit in bounds.items():
        words, keeps = BOUNDS[bound]
        if not (keeps(value, limit) or math.isnan(value)):
            raise InputError(f"{name} must be {words} {limit}. Received: {value}")
    if bounds and not math.isfinite(value):
        raise InputError(f"{name} must be a finite number. Received: {value}")
    if choices and value not in choices:
        raise InputError(f"{name}: {unknown('value', str(value), choices)}")

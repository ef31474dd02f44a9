"""The one exception for input that the user can mend."""

from collections.abc import Iterable
from difflib import get_close_matches


class InputError(ValueError):
    """Wrong input: its message says what was wrong, with the value received, and what to do.

    The command line prints it in one line and exits with code 2.
    """


def unknown(what: str, value: str, valid: Iterable[str]) -> InputError:
    """Return the error for a `value` that is none of the `valid` ones; it names the nearest."""
    valid = sorted(valid)
    nearest = get_close_matches(value, valid, n=1, cutoff=0.5)
    hint = f"did you mean {nearest[0]!r}? " if nearest else ""
    return InputError(f"unknown {what} {value!r}: {hint}valid are {', '.join(valid) or 'none'}")

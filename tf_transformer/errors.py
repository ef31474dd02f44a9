"""The one exception for input that the user can correct."""

from collections.abc import Iterable
from difflib import get_close_matches


class InputError(ValueError):
    """Wrong input. The message says what was wrong, which value was received and what to do.

    The command line prints it in one line and exits with code 2.
    """


class MissingExtraError(InputError, ImportError):
    """Something needs packages that an extra of this project installs, and that are missing."""


def missing_extra(what: str, extra: str, error: ImportError | None = None) -> MissingExtraError:
    """Return the error for something that needs an extra, which names the command that installs it."""
    return MissingExtraError(
        f"{what} needs the extra {extra}: pip install 'tf-transformer[{extra}]'" + (f" ({error})" if error else "")
    )


MAX_LISTED = 30
"""The most valid names that an error lists. If there are more, it says how many, so that it stays one short line."""


def unknown(what: str, value: str, valid: Iterable[str], where: str = "") -> InputError:
    """Return the error for a `value` that is none of the `valid` ones. It suggests the nearest of these.

    Args:
        what: the kind of thing that `value` should have named.
        value: the value received.
        valid: the valid values.
        where: words that follow the value, such as `" in corpus.tsv"`.
    """
    valid = sorted(valid)
    nearest = get_close_matches(value, valid, n=1, cutoff=0.5) or [name for name in valid if name.startswith(value)]
    hint = f": did you mean {nearest[0]!r}?" if nearest else "."
    listed = ", ".join(valid) or "none" if len(valid) <= MAX_LISTED else f"{len(valid)} names"
    return InputError(f"unknown {what} {value!r}{where}{hint} Valid: {listed}")

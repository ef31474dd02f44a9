"""What the options of the commands are made of."""

import argparse
import difflib
import math
import os
import typing
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any, NoReturn

from tf_transformer.config.overrides import as_typed, field_of, hint_of, parse_setting
from tf_transformer.errors import InputError
from tf_transformer.text.batching import BATCH_TOKENS

DATA_HELP = (
    "a folder of SPLIT.LANG[.gz|.zst] files, a file of pairs (.tsv, .csv, .xlsx, .tmx, .xliff, .po or .ts), "
    "tfds:NAME[/CONFIG], toy or copy"
)


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one line, and that takes no option for a longer one."""

    def __init__(self, **settings: Any):
        super().__init__(**settings, allow_abbrev=False)

    def refuse(self, unknown: Sequence[str]) -> NoReturn:
        """Print which arguments are unknown, and the option that the first may mean; exit with code 2."""
        option = unknown[0].partition("=")[0]
        close = difflib.get_close_matches(option, self._option_string_actions, n=1)
        hint = f": did you mean {close[0]}?" if close else ""
        if os.path.exists(unknown[0]):
            hint = ": write the option before each file, such as --data FILE --data FILE"
        self.error(f"unrecognized arguments: {' '.join(unknown)}{hint}")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """As argparse does; the error names the choice that may be meant."""
        try:
            super()._check_value(action, value)
        except argparse.ArgumentError as error:
            if close := difflib.get_close_matches(str(value), [str(choice) for choice in action.choices or ()], n=1):
                error.message += f": did you mean {close[0]}?"
            raise

    def error(self, message: str) -> NoReturn:
        """Print the error and exit with code 2."""
        self.exit(2, f"{self.prog}: error: {message} (see {self.prog} --help)\n")


def with_examples(parts: Mapping[str, ModuleType], width: int) -> str:
    """Return a line and an example for each part, a module with `SUMMARY` and `EXAMPLE`; names take `width` places."""
    return "\n".join(
        f"  {name:{width}} {part.SUMMARY}\n  {'':{width}}   $ {part.EXAMPLE}" for name, part in parts.items()
    )


def example_of(part: ModuleType) -> str:
    """Return what stands below the options of a part."""
    return f"example:\n  {part.EXAMPLE}"


def add_settings(parser: Any, section: str, *keys: str, default: str | None = None) -> None:
    """Add the options that settings of a section have; `settings_given` finds what they were given.

    Args:
        parser: or a group of one.
        section: of the config.
        keys: settings with an option.
        default: what holds where one is not given; by default the setting's own default, if it has one.
    """
    for key in keys:
        field, kinds = field_of(section, key), _kinds(section, key)
        shown = default or (as_typed(field.default) if field.default not in (None, ()) else None)
        kind: dict[str, Any] = {"action": "store_true"} if kinds[0] is bool else {"type": READERS[kinds]}
        if kinds[0] is not bool:
            kind["metavar"] = METAVARS.get(key) or ("NAME" if kinds[0] is str else "N")
        parser.add_argument(
            field.metadata["option"],
            dest=f"{section}.{key}",
            default=None,
            help=field.metadata["help"] + (f" (default: {shown})" if shown else ""),
            **kind,
        )


METAVARS = {
    "columns": "LANG=COLUMN,LANG=COLUMN",
    **dict.fromkeys(("source", "target", "source_language", "target_language"), "LANG"),
    "file": "FILE",
    "init_from": "RUN",
    "mixed_precision": "TYPE",
    "validation_corpus": "DATA",
    "weights": "W,W",
}
"""What the help calls the values of options that take neither a number nor a name."""


def settings_given(options: argparse.Namespace) -> dict[str, dict[str, Any]]:
    """Return the settings that were given, as `override` takes them, by what gave them.

    Those of `--set` come first: the options with a name of their own go over them.

    Raises:
        InputError: something else than a setting was given to `--set`.
    """
    layers: dict[str, dict[str, Any]] = {}
    for text in getattr(options, "set", ()):
        layers.pop(f"--set {text}", None)  # given again, it goes over those between
        layers[f"--set {text}"] = parse_setting(text)
    for name, value in vars(options).items():
        section, dot, key = name.partition(".")
        if dot and value is not None:
            layers[field_of(section, key).metadata["option"]] = {section: {key: value}}
    return layers


def add_batch_tokens(parser: argparse.ArgumentParser) -> None:
    """Add `--batch-tokens`."""
    parser.add_argument(
        "--batch-tokens",
        type=positive,
        default=BATCH_TOKENS,
        metavar="N",
        help="most source tokens in a batch, padding included; a sentence counts as at least 16 (default: %(default)s)",
    )


def positive(text: str) -> int:
    """Read an integer of at least 1."""
    if not (text.isdecimal() and int(text)):
        raise argparse.ArgumentTypeError(f"must be an integer of at least 1. Received: {text!r}")
    return int(text)


def count(text: str) -> int:
    """Read an integer of at least 0."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"must be an integer of at least 0. Received: {text!r}")
    return int(text)


def port(text: str) -> int:
    """Read the number of a port."""
    if not (text.isdecimal() and int(text) < 65_536):
        raise argparse.ArgumentTypeError(f"must be an integer below 65536. Received: {text!r}")
    return int(text)


def seconds(text: str) -> float:
    """Read a number of seconds."""
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < math.inf:
        raise argparse.ArgumentTypeError(f"must be a number of seconds above 0. Received: {text!r}")
    return number


def numbers(text: str) -> tuple[float, ...]:
    """Read numbers with commas between them."""
    try:
        return tuple(float(number) for number in text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be numbers with commas between. Received: {text!r}") from None


READERS = {(int,): int, (float,): float, (str,): str, (float, ...): numbers}
"""What reads a setting of a type."""


def _kinds(section: str, key: str) -> tuple[Any, ...]:
    """Return what a setting may be, besides none."""
    hint = hint_of(section, key)
    return tuple(kind for kind in typing.get_args(hint) or (hint,) if kind is not type(None))


def only(section: str, layers: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return the settings of one section.

    Raises:
        InputError: `--set` was given another one.
    """
    for name, layer in layers.items():
        if section not in layer and name.startswith("--set "):
            raise InputError(f"only settings of {section} can be set here. Received: {name}")
    return {name: layer for name, layer in layers.items() if section in layer}

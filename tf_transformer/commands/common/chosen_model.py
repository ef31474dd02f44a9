"""The model that `--model` names, and how it is to search: what the commands that translate have in common."""

import argparse
import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tf_transformer import config
from tf_transformer.commands.common.options import add_settings, only, settings_given
from tf_transformer.commands.common.quiet_tensorflow import import_tensorflow, said_on_failure
from tf_transformer.commands.common.resolve import warn_of_idle
from tf_transformer.data.corpora import direction_of
from tf_transformer.errors import InputError
from tf_transformer.progress import waiting_for
from tf_transformer.runs.descriptions import LANGUAGES, Described, is_export, is_litert, is_saved_model
from tf_transformer.runs.runtimes import runtime_of
from tf_transformer.text.batching import BATCH_TOKENS

if TYPE_CHECKING:
    from tf_transformer.runs.directory import RunDirectory
    from tf_transformer.text.translator import TextTranslator

MODEL_HELP = "a run directory, an exported SavedModel or an export for LiteRT"
SEARCH_OPTIONS = ("beam_size", "length_penalty", "max_length", "temperature", "top_k", "top_p", "seed", "jit_compile")
"""The settings of the search with an option of their own."""
NOT_LITERT = ("temperature", "top_k", "top_p", "seed", "jit_compile", "attention_layer")
"""Those that an export for LiteRT does not take."""


@dataclasses.dataclass(frozen=True)
class ChosenModel:
    """What `--model` names, as far as it is known without TensorFlow."""

    described: Described
    decoding: config.DecodingConfig
    given: frozenset[str] = frozenset()
    """the settings of the search that were given, not the model's own"""
    others: "tuple[RunDirectory, ...]" = ()
    """further runs, which translate with it as an ensemble"""

    def between(self, data: config.DataConfig) -> "ChosenModel":
        """Return the same, that translates as a corpus does if it was not told otherwise and knows its languages."""
        direction, decoding = direction_of(data), self.decoding
        if direction is None or not set(direction) <= set(self.described.languages):
            return self
        languages: dict[str, Any] = {
            name: getattr(decoding, name) if name in self.given else language
            for name, language in zip(LANGUAGES, direction, strict=True)
        }
        return dataclasses.replace(self, decoding=dataclasses.replace(decoding, **languages))

    @property
    def source_language(self) -> str | None:
        """The language that it translates from, as far as it is known."""
        return self.decoding.source_language or self.data.source

    @property
    def target_language(self) -> str | None:
        """The language that it translates into, as far as it is known."""
        return self.decoding.target_language or self.data.target

    @property
    def data(self) -> config.DataConfig:
        """What it was trained on."""
        return self.described.config.data

    @property
    def runtime(self) -> str:
        """The name of the runtime."""
        return runtime_of(self.described.path)

    def open(self, batch_tokens: int = BATCH_TOKENS) -> "TextTranslator":
        """Return what translates, batches of so many tokens at most.

        Raises:
            InputError: a model of several languages, and none given.
        """
        self.decoding.check_directed(self.described.languages)
        from tf_transformer.translation.opening import open_translator

        loading = f"loading the model for {self.runtime}"
        if is_litert(self.described.path):
            with waiting_for(loading), said_on_failure():
                translator = open_translator(self.described, self.decoding, batch_tokens=batch_tokens)
                translator.translate_strings([""])  # LiteRT greets when it first computes
            return translator
        import_tensorflow()
        with waiting_for(loading):
            return open_translator(self.described, self.decoding, self.others)


def add_model(parser: argparse.ArgumentParser, what: str = MODEL_HELP) -> None:
    """Add `--model`; `what` is what it may name."""
    parser.add_argument(
        "--model",
        required=True,
        action="append",
        metavar="DIR",
        help=f"{what}; several run directories, by --model A --model B, translate as an ensemble",
    )


def add_search(
    parser: argparse.ArgumentParser,
    described: str = "of a run or an export for LiteRT; a SavedModel searches as it was told to when it was written",
) -> None:
    """Add the options of the search."""
    group = parser.add_argument_group("search", described)
    add_settings(group, "decoding", *SEARCH_OPTIONS, default="the model's")
    add_set(group)


def add_set(parser: Any) -> None:
    """Add the languages of a model of several, and `--set`, for settings of the search."""
    add_settings(parser, "decoding", *LANGUAGES, default="the model's")
    parser.add_argument(
        "--set",
        metavar="decoding.KEY=VALUE",
        action="append",
        default=[],
        help="any other setting of decoding that `train --help` lists; may be repeated",
    )


def search_given(options: argparse.Namespace) -> dict[str, dict[str, Any]]:
    """Return the settings of the search that were given, by what gave them."""
    return only("decoding", settings_given(options))


def chosen_model(options: argparse.Namespace) -> ChosenModel:
    """Return the model that the options name.

    Raises:
        InputError: there is none; settings of the search that do not fit it.
    """
    path, *others = map(Path, options.model)
    for folder in (path, *others):
        if not folder.is_dir():
            raise InputError(f"--model {folder}: there is no such folder")
        if others and is_export(folder):
            raise InputError(f"--model {folder} is an export, but an ensemble is made of run directories")
    from tf_transformer.runs.directory import RunDirectory  # NumPy takes a while

    given = search_given(options)
    if is_saved_model(path):
        described = Described(path)
        if fixed := [name for name, layer in given.items() if not set(layer["decoding"]) <= set(LANGUAGES)]:
            raise InputError(
                f"{path} is an export: how it searches was chosen when it was written. Give {min(fixed)} and the "
                "like to export, or a run directory here"
            )
    elif is_litert(path):
        described = Described(path)
        fixed = [name for name, layer in given.items() if set(layer["decoding"]) & set(NOT_LITERT)]
        if fixed:
            raise InputError(f"{path} is an export for LiteRT, which searches without drawing: it takes no {fixed[0]}")
    else:
        described = run = RunDirectory(path)
        run.best_checkpoint()  # there must be one
    resolved = config.override(described.config, *given.values())
    warn_of_idle(resolved, given.values())
    decoding = resolved.decoding
    decoding.check_languages(described.languages)
    names = frozenset().union(*(layer["decoding"] for layer in given.values()))
    runs = [RunDirectory(folder) for folder in others]
    for run in runs:
        run.best_checkpoint()
    return ChosenModel(described, decoding, names, tuple(runs))

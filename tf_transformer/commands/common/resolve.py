"""Settings laid over each other: preset, run to start from, prepared corpus, TOML file, options."""

import argparse
import dataclasses
import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from tf_transformer import config
from tf_transformer.commands.common.options import DATA_HELP, add_settings, settings_given
from tf_transformer.config.idle import without_effect
from tf_transformer.config.overrides import read_toml
from tf_transformer.data.corpora import check_codes, column_languages, has_columns, is_drawn, is_prepared
from tf_transformer.errors import InputError
from tf_transformer.runs.descriptions import LANGUAGES

if TYPE_CHECKING:
    from tf_transformer.data.prepared import Prepared

Layer = Mapping[str, Any]

log = logging.getLogger(__name__)

AUTO = "auto"
"""What `data.batch_tokens` is set to if it is to be found."""


def add_text(parser: argparse.ArgumentParser, also: str = "") -> None:
    """Add what names text, tokenizers and settings; `also` is what else `--data` may be."""
    parser.add_argument(
        "--data",
        metavar="DATA",
        action="append",
        help=f"{DATA_HELP}{also}; required, here or in the TOML file; may be repeated, to train on several",
    )
    add_settings(parser, "data", "validation_corpus", "source", "target", "columns")
    add_settings(parser, "tokenizer", "vocab_size", default="the preset's")
    add_settings(parser, "tokenizer", "file")
    add_settings(parser, "training", "init_from")
    add_settings(parser, "decoding", *LANGUAGES)
    presets = ", ".join(config.PRESETS)
    parser.add_argument("--preset", metavar="NAME", help=f"model and training values: {presets} (default: tiny)")
    parser.add_argument("--config", metavar="FILE", help="TOML file laid over the preset")
    parser.add_argument(
        "--set", metavar="SECTION.KEY=VALUE", action="append", default=[], help="a setting; may be repeated"
    )


class Resolved(NamedTuple):
    """What options ask for."""

    config: config.Config
    finds_batches: bool
    """whether `data.batch_tokens`, here the tokens of an update, is to be made in as many parts as memory asks for"""


def resolve(options: argparse.Namespace, run_dir: str | None = None) -> Resolved:
    """Return the config that options of `add_text` and others ask for.

    Args:
        options: as parsed.
        run_dir: the run that goes on, if it does. It keeps the batches that were found for it.

    Raises:
        InputError: settings that do not go together; sizes of vocabularies.
    """
    file = read_toml(options.config) if options.config else {}
    name = str(file.pop("preset", "tiny"))
    corpora: dict[str, Any] = {}
    if options.data:
        corpora["corpus"], *extra = options.data
        corpora |= {"extra_corpora": extra} if extra else {}
    given = (file, *settings_given(options).values())
    layers: tuple[Layer, ...] = tuple(map(_without_auto, (*given, {"data": corpora})))
    preset = config.preset(options.preset or name)
    if (prepared := _prepared(layers)) is not None:
        layers = (prepared.settings(), *layers, {"data": prepared.names()})
    if (start := _last(layers, "training", "init_from")) is not None:
        base = _base_of(run_dir or start)
        if run_dir is None:  # it says nothing of the languages of another text
            base["decoding"] |= dict.fromkeys(LANGUAGES)
        layers = (base, *layers)
    finds_batches = _last(given, "data", "batch_tokens") == AUTO
    if finds_batches and run_dir is not None:
        layers = (*layers, _batches_of(run_dir))
        finds_batches = False
    resolved = config.override(preset, *layers)
    for key in ("input_vocab_size", "target_vocab_size"):
        if (size := getattr(resolved.model, key)) is not None:
            raise InputError(f"model.{key} comes from the tokenizer: set tokenizer.vocab_size. Received: {size}")
    if resolved.data.columns and not (resolved.data.source or resolved.data.target):
        source, target = column_languages(resolved.data.columns)
        resolved = config.override(resolved, {"data": {"source": source, "target": target}})
    if run_dir is None:
        check_codes(resolved.data)
    warn_of_idle(resolved, given)
    return Resolved(resolved, finds_batches)


def warn_of_idle(resolved: config.Config, layers: Iterable[Layer]) -> None:
    """Warn of those settings in the layers that have no effect."""
    given = [f"{section}.{key}" for layer in layers for section, settings in layer.items() for key in settings]
    for line in without_effect(resolved, given):
        log.warning("%s", line)
    training = resolved.training
    if "training.max_steps" in given and training.max_steps <= training.warmup_steps:
        log.warning(
            "training.max_steps=%d ends training while the learning rate still rises, up to "
            "training.warmup_steps=%d: set fewer of the latter, such as a tenth of the former",
            *(training.max_steps, training.warmup_steps),
        )
    for name in ("data.held_out", "data.held_out_seed"):
        if name in given and resolved.data.corpus and not is_drawn(resolved.data):
            log.warning("%s has no effect: only files of pairs are split by chance", name)
    if "data.columns" in given and resolved.data.corpus and not has_columns(resolved.data):
        log.warning("data.columns has no effect: only tables have columns")


def _without_auto(layer: Layer) -> Layer:
    data = layer.get("data")
    if not (isinstance(data, Mapping) and data.get("batch_tokens") == AUTO):
        return layer
    return {**layer, "data": {key: value for key, value in data.items() if key != "batch_tokens"}}


def _last(layers: Iterable[Layer], section: str, key: str) -> Any:
    """Return the last value of a setting that is text, before it is known whether all settings go together."""
    given = None
    for layer in layers:
        if isinstance(settings := layer.get(section), Mapping):
            given = settings.get(key, given)
    return given if isinstance(given, str) else None


def _prepared(layers: Sequence[Layer]) -> "Prepared | None":
    """Return the prepared corpus that is named, if it is one."""
    path = _last(layers, "data", "corpus") or _last(layers, "data", "prepared")
    if path is None or not is_prepared(path):
        return None
    if extra := [name for layer in layers for name in dict(layer.get("data", {})).get("extra_corpora", ())]:
        raise InputError(f"--data {path} is a prepared corpus: it is trained on alone. Received: {extra[0]} besides")
    if held_out := _last(layers, "data", "validation_corpus"):
        raise InputError(
            f"--data {path} is a prepared corpus, which has its validation text: leave --validation-data out, or give "
            f"it to prepare. Received: {held_out}"
        )
    from tf_transformer.data.prepared import Prepared  # NumPy takes a while

    return Prepared(path)


def _base_of(run_dir: str) -> dict[str, Any]:
    """Return the model, the kind of tokenizer and the search of a run to start from, as `override` takes them."""
    from tf_transformer.runs.directory import RunDirectory

    start = RunDirectory(run_dir).config
    # The tokenizer itself comes from there, and the size of the vocabulary with it.
    shared = start.tokenizer.shared or start.tokenizer.file is not None
    return {
        "model": dataclasses.asdict(start.model) | {"input_vocab_size": None, "target_vocab_size": None},
        "tokenizer": dataclasses.asdict(start.tokenizer) | {"shared": shared, "file": None},
        "decoding": dataclasses.asdict(start.decoding),
    }


def _batches_of(run_dir: str) -> Layer:
    """Return the size of the batches of a run."""
    from tf_transformer.runs.directory import RunDirectory

    found = RunDirectory(run_dir).config
    return {
        "data": {"batch_tokens": found.data.batch_tokens},
        "training": {"accumulate": found.training.accumulate},
    }

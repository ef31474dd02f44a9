"""`tf-transformer train`."""

import argparse
import dataclasses
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from tf_transformer import config
from tf_transformer.commands.checks import check_place
from tf_transformer.commands.options import DATA_HELP, add_settings, positive, settings_given
from tf_transformer.commands.quiet_tensorflow import import_tensorflow
from tf_transformer.config.overrides import read_toml, settings_help
from tf_transformer.config.sections import STRATEGIES
from tf_transformer.data.corpora import check_training_splits
from tf_transformer.errors import InputError
from tf_transformer.runs.descriptions import LANGUAGES

SUMMARY = "Train a translator, or go on with a run that was started by the same command."


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what the command takes."""
    presets = ", ".join(config.PRESETS)
    parser.epilog = (
        "settings for --set and for the TOML file, with their defaults; in brackets the values of presets that have "
        "others, of which tiny is taken where none is given:\n"
    )
    parser.epilog += settings_help()
    parser.add_argument("--run-dir", required=True, metavar="DIR", help="where the run is written, or goes on")
    parser.add_argument(
        "--data",
        metavar="DATA",
        action="append",
        help=f"{DATA_HELP}; required, here or in the TOML file; further ones are trained on as well",
    )
    add_settings(parser, "data", "weights", "validation_corpus", "source", "target")
    parser.add_argument("--preset", metavar="NAME", help=f"model and training values: {presets} (default: tiny)")
    parser.add_argument("--config", metavar="FILE", help="TOML file laid over the preset")
    parser.add_argument(
        "--set", metavar="SECTION.KEY=VALUE", action="append", default=[], help="a setting; may be repeated"
    )
    add_settings(parser, "training", "max_steps", default="the preset's")
    add_settings(parser, "training", "seed")
    add_settings(parser, "tokenizer", "file")
    add_settings(parser, "training", "init_from", "mixed_precision", "deterministic")
    add_settings(parser, "decoding", *LANGUAGES)
    parser.add_argument(
        "--strategy",
        choices=STRATEGIES,
        default="auto",
        help="mirrored on the devices of this machine, or multiworker on those that TF_CONFIG names "
        "(default: auto, multiworker where TF_CONFIG is set)",
    )
    parser.add_argument(
        "--devices", type=positive, metavar="N", help="GPUs, or logical CPU devices (default: all GPUs, or one CPU)"
    )
    parser.add_argument("--overwrite", action="store_true", help="start anew where a run exists (default: go on)")


def run(options: argparse.Namespace) -> None:
    """Train a run, or go on with it."""
    resolved = _resolve(options)
    if resolved.data.corpus is None:
        raise InputError(f"no data: give --data {DATA_HELP}")
    check_place("--run-dir", options.run_dir)
    _check_without_tensorflow(resolved, options)
    import_tensorflow(onednn=True)
    from tf_transformer.training import fit
    from tf_transformer.training.strategy import make_strategy

    strategy = make_strategy(options.strategy, options.devices)
    trained = fit.train(resolved, options.run_dir, overwrite=options.overwrite, strategy=strategy)
    print(f"trained: {trained.path}")


def _check_without_tensorflow(resolved: config.Config, options: argparse.Namespace) -> None:
    """Raise InputError for what files and options show to be wrong: importing TensorFlow takes seconds."""
    from tf_transformer.runs.directory import find_run  # NumPy takes a while

    found = find_run(Path(options.run_dir))
    check_training_splits(resolved.data)
    if resolved.tokenizer.file:
        Path(resolved.tokenizer.file).open("rb").close()
    if found and not options.overwrite:
        found.refuse_differences(found.differences(resolved))


def _resolve(options: argparse.Namespace) -> config.Config:
    """Lay preset, sizes of the run to start from, TOML file, settings and named options over each other."""
    file = read_toml(options.config) if options.config else {}
    name = str(file.pop("preset", "tiny"))
    corpora: dict[str, Any] = {}
    if options.data:
        corpora["corpus"], *extra = options.data
        corpora |= {"extra_corpora": extra} if extra else {}
    layers = (file, *settings_given(options).values(), {"data": corpora})
    preset = config.preset(options.preset or name)
    if (start := _init_from(layers)) is not None:
        goes_on = not options.overwrite and Path(options.run_dir, "config.json").exists()
        base = _base_of(options.run_dir if goes_on else start)
        if not goes_on:  # it says nothing of the languages of another text
            base["decoding"] |= dict.fromkeys(LANGUAGES)
        layers = (base, *layers)
    resolved = config.override(preset, *layers)
    for key in ("input_vocab_size", "target_vocab_size"):
        if (size := getattr(resolved.model, key)) is not None:
            raise InputError(f"model.{key} comes from the tokenizer: set tokenizer.vocab_size. Received: {size}")
    return resolved


def _init_from(layers: Iterable[Mapping[str, Any]]) -> str | None:
    """Return the run to start from, before it is known whether all settings go together: that hangs on this run."""
    given = None
    for layer in layers:
        if isinstance(section := layer.get("training"), Mapping):
            given = section.get("init_from", given)
    return given if isinstance(given, str) else None


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

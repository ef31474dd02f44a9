"""The commands that make weights: train, average."""

import argparse
import dataclasses
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from tf_transformer import config, settings
from tf_transformer.arguments import DATA_HELP
from tf_transformer.commands.places import check_place
from tf_transformer.data import check_training_splits
from tf_transformer.errors import InputError
from tf_transformer.quiet import import_tensorflow


def train(options: argparse.Namespace) -> None:
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
    run = fit.train(resolved, options.run_dir, overwrite=options.overwrite, strategy=strategy)
    print(f"trained: {run.path}")


def _check_without_tensorflow(resolved: config.Config, options: argparse.Namespace) -> None:
    """Raise InputError for what files and options show to be wrong: importing TensorFlow takes seconds."""
    from tf_transformer.run_directory import find_run

    run = find_run(Path(options.run_dir))
    check_training_splits(resolved.data)
    if resolved.tokenizer.file:
        Path(resolved.tokenizer.file).open("rb").close()
    if run and not options.overwrite:
        run.refuse_differences(run.differences(resolved))


def _resolve(options: argparse.Namespace) -> config.Config:
    """Lay preset, sizes of the run to start from, TOML file, settings and named options over each other."""
    file = settings.read_toml(options.config) if options.config else {}
    name = str(file.pop("preset", "tiny"))
    corpus, *extra = options.data or [None]
    named = (
        ("data", "corpus", corpus),
        ("data", "extra_corpora", extra or None),
        ("data", "weights", options.weights),
        ("data", "validation_corpus", options.validation_data),
        ("training", "init_from", options.init_from),
        ("training", "mixed_precision", options.mixed_precision),
        ("training", "deterministic", options.deterministic),
        ("data", "source", options.source),
        ("data", "target", options.target),
        ("training", "max_steps", options.max_steps),
        ("training", "seed", options.seed),
        ("tokenizer", "file", options.tokenizer),
    )
    layers = (
        file,
        *map(settings.parse_setting, options.set),
        *({section: {key: value}} for section, key, value in named if value is not None),
    )
    preset = config.preset(options.preset or name)
    if (start := _init_from(layers)) is not None:
        goes_on = not options.overwrite and Path(options.run_dir, "config.json").exists()
        layers = (_sizes_of(options.run_dir if goes_on else start), *layers)
    resolved = settings.override(preset, *layers)
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


def _sizes_of(run_dir: str) -> dict[str, Any]:
    """Return the model and the kind of tokenizer of a run to start from, as `override` takes them."""
    from tf_transformer.run_directory import RunDirectory

    start = RunDirectory(run_dir).config
    # The tokenizer itself comes from there, and the size of the vocabulary with it.
    shared = start.tokenizer.shared or start.tokenizer.file is not None
    return {
        "model": dataclasses.asdict(start.model) | {"input_vocab_size": None, "target_vocab_size": None},
        "tokenizer": dataclasses.asdict(start.tokenizer) | {"shared": shared, "file": None},
    }


def average(options: argparse.Namespace) -> None:
    """Write the mean of several checkpoints as a model."""
    from tf_transformer.averaged_checkpoints import place_of_average, to_average
    from tf_transformer.run_directory import RunDirectory

    started = RunDirectory(options.run_dir)
    to_average(started, last=options.last, best=options.best)  # refused before TensorFlow is imported
    place_of_average(started, options.output, last=options.last, best=options.best)
    if options.output:
        check_place("--output", options.output)
    import_tensorflow()
    from tf_transformer.averaging import average_run

    run = average_run(options.run_dir, options.output, last=options.last, best=options.best)
    print(f"averaged: {run.path}")

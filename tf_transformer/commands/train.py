"""`tf-transformer train`."""

import argparse
import logging
from pathlib import Path
from typing import TYPE_CHECKING

from tf_transformer import config
from tf_transformer.commands.common.checks import check_place
from tf_transformer.commands.common.options import DATA_HELP, add_settings, positive
from tf_transformer.commands.common.quiet_tensorflow import import_tensorflow
from tf_transformer.commands.common.resolve import add_text, resolve
from tf_transformer.commands.common.surviving_output import surviving_output
from tf_transformer.config.overrides import settings_help
from tf_transformer.config.training import STRATEGIES
from tf_transformer.data.corpora import check_training_splits, direction_of, directions, is_drawn, is_prepared
from tf_transformer.errors import InputError
from tf_transformer.storage.atomic import REPLACED, refuse_inside

if TYPE_CHECKING:
    from tf_transformer.runs.directory import RunDirectory

log = logging.getLogger(__name__)

SUMMARY = "Train a translator on parallel text, or continue a run that the same command started."
EXAMPLE = "tf-transformer train --data toy --vocab-size 1000 --max-steps 1200 --run-dir runs/toy"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what the command takes."""
    parser.epilog = (
        "settings for --set and for the TOML file, with their defaults; brackets show where presets differ, and "
        "without --preset those of tiny hold:\n"
    )
    parser.epilog += settings_help()
    parser.add_argument(
        "--run-dir",
        required=True,
        metavar="DIR",
        help="the folder of the run: a new one, or one whose training goes on",
    )
    add_text(parser, ", or what prepare has written")
    add_settings(parser, "data", "weights")
    add_settings(parser, "training", "max_steps", default="the preset's")
    add_settings(parser, "training", "seed", "mixed_precision", "deterministic")
    parser.add_argument(
        "--strategy",
        choices=STRATEGIES,
        default="auto",
        help="mirrored trains on the devices of this machine, multiworker on the machines that TF_CONFIG names; auto "
        "is multiworker where TF_CONFIG is set, and mirrored elsewhere (default: auto)",
    )
    parser.add_argument(
        "--devices",
        type=positive,
        metavar="N",
        help="number of GPUs, or of logical CPU devices (default: all GPUs, or one CPU)",
    )
    parser.add_argument("--overwrite", action="store_true", help="start anew where a run exists (default: go on)")


def run(options: argparse.Namespace) -> None:
    """Train a run, or go on with it."""
    goes_on = not options.overwrite and Path(options.run_dir, "config.json").exists()
    resolved, finds_batches = resolve(options, options.run_dir if goes_on else None)
    if resolved.data.corpus is None:
        raise InputError(f"no data: give --data {DATA_HELP}")
    check_place("--run-dir", options.run_dir)
    _check_without_tensorflow(resolved, options)
    import_tensorflow(onednn=True)
    from tf_transformer.training import fit
    from tf_transformer.training.strategy import make_strategy

    if finds_batches:
        from tf_transformer.training.batch_size import with_fitting_batches

        resolved = with_fitting_batches(resolved, options.strategy, options.devices)
    strategy = make_strategy(options.strategy, options.devices)
    with surviving_output():
        trained = fit.train(resolved, options.run_dir, overwrite=options.overwrite, strategy=strategy)
        print(f"trained: {trained.path}")


def _check_without_tensorflow(resolved: config.Config, options: argparse.Namespace) -> None:
    """Raise InputError for what files and options show to be wrong: importing TensorFlow takes seconds."""
    from tf_transformer.data.prepared import Prepared
    from tf_transformer.data.preparing.plan import sources_of
    from tf_transformer.runs.directory import find_run  # NumPy takes a while

    found = find_run(Path(options.run_dir))
    if options.overwrite:
        refuse_inside(options.run_dir, [*sources_of(resolved), ("--config", options.config)], REPLACED)
    if resolved.data.prepared is not None:
        Prepared(resolved.data.prepared).refuse_differences(resolved.data, resolved.tokenizer)
    elif not (found and not options.overwrite and _is_kept(found, resolved)):
        check_training_splits(resolved.data)
    if resolved.tokenizer.file:
        Path(resolved.tokenizer.file).open("rb").close()
    if found and not options.overwrite:
        found.refuse_differences(found.differences(resolved))
    else:
        _warn_of_languages(resolved)


def _warn_of_languages(resolved: config.Config) -> None:
    """Warn of text whose languages nobody names, and of text that is read in the other direction than the base's."""
    from tf_transformer.runs.directory import RunDirectory

    data = resolved.data
    if is_drawn(data) and not (data.source and data.target) and None in directions(data):
        log.warning("the languages are not known: give --source and --target, if the model is to be served by them")
    if resolved.training.init_from:
        base = RunDirectory(resolved.training.init_from)
        own = direction_of(base.config.data)
        if own and not base.languages and direction_of(data) == own[::-1]:
            log.warning("%s translates from %s to %s, and this text is read the other way", base.path, *own)


def _is_kept(run: "RunDirectory", resolved: config.Config) -> bool:
    """Say whether a run has the text that is named, prepared: it need not be there any more."""
    from tf_transformer.data.prepared.manifest import NAMES
    from tf_transformer.data.preparing.plan import with_absolute_paths

    old, new = run.config.data, with_absolute_paths(resolved.data)
    return is_prepared(run.path / "prepared") and all(getattr(old, key) == getattr(new, key) for key in NAMES)

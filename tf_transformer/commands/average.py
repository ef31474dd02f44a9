"""`tf-transformer average`."""

import argparse

from tf_transformer.commands.common.checks import check_place
from tf_transformer.commands.common.options import positive
from tf_transformer.commands.common.quiet_tensorflow import import_tensorflow

SUMMARY = "Average several checkpoints of a run into one model (paper 6.1)."
EXAMPLE = "tf-transformer average --run-dir runs/toy --last 2"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what the command takes."""
    parser.add_argument("--run-dir", required=True, metavar="DIR", help="a trained run")
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--last", type=positive, metavar="N", help="average the last N checkpoints")
    which.add_argument("--best", type=positive, metavar="N", help="average the N checkpoints with the best validations")
    parser.add_argument(
        "--output", metavar="DIR", help="a new folder (default: average-last-N or average-best-N in the run)"
    )


def run(options: argparse.Namespace) -> None:
    """Write the mean of several checkpoints as a model."""
    from tf_transformer.runs.averaged_checkpoints import place_of_average, to_average
    from tf_transformer.runs.directory import RunDirectory

    started = RunDirectory(options.run_dir)
    to_average(started, last=options.last, best=options.best)  # refused before TensorFlow is imported
    place_of_average(started, options.output, last=options.last, best=options.best)
    if options.output:
        check_place("--output", options.output)
    import_tensorflow()
    from tf_transformer.runs.averaging import average_run

    averaged = average_run(options.run_dir, options.output, last=options.last, best=options.best)
    print(f"averaged: {averaged.path}")

"""`tf-transformer plot history`."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from tf_transformer.errors import InputError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SUMMARY = "Loss, accuracy, perplexity and learning rate of one run or of several."
EXAMPLE = "tf-transformer plot history --run-dir runs/toy --output history.svg"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what this kind of picture takes."""
    parser.add_argument("--run-dir", required=True, action="append", metavar="DIR", help="a run; may be repeated")


def figure(options: argparse.Namespace) -> "Figure":
    """Return the picture."""
    from tf_transformer import plotting
    from tf_transformer.runs.directory import RunDirectory
    from tf_transformer.runs.history import read_history

    runs = {}
    for path in options.run_dir:
        runs[path] = read_history(RunDirectory(path).history)
        if not runs[path]:
            raise InputError(f"--run-dir {path} has no history yet: train it first")
    names = {path: Path(path).name for path in runs}
    if len(set(names.values())) < len(names):
        names = {path: path for path in runs}
    return plotting.history({names[path]: rows for path, rows in runs.items()})

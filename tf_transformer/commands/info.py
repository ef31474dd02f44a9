"""`tf-transformer info`."""

import argparse
import json

from tf_transformer.commands.chosen_model import MODEL_HELP
from tf_transformer.runs.descriptions import describe, is_export

SUMMARY = "Print what a run or an export is made of, as JSON."


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what the command takes."""
    parser.add_argument("path", metavar="DIR", help=MODEL_HELP)


def run(options: argparse.Namespace) -> None:
    """Print what a run or an export is made of."""
    from tf_transformer.runs import checkpoints  # NumPy takes a while
    from tf_transformer.runs.directory import RunDirectory

    if is_export(options.path):
        description = describe(options.path)
    else:
        found = RunDirectory(options.path)
        description = dict(found.description)
        if found.known():
            description["checkpoint"] = found.read_best(checkpoints.state_of)
    print(json.dumps(description, indent=1))

"""`tf-transformer plot`."""

import argparse
from pathlib import Path

from tf_transformer.commands.common.options import example_of, with_examples
from tf_transformer.commands.common.text_files import check_output
from tf_transformer.commands.plots import (
    architecture,
    attention,
    beam,
    history,
    label_smoothing,
    lengths,
    masks,
    positions,
    schedule,
)
from tf_transformer.errors import missing_extra

SUMMARY = "Draw attention, a beam search, the course of training and what the paper describes (needs the extra plots)."
EXAMPLE = "tf-transformer plot attention --model runs/toy --text 'The cat sleeps.' --output attention.svg"
KINDS = {
    "attention": attention,
    "beam": beam,
    "history": history,
    "lengths": lengths,
    "architecture": architecture,
    "positions": positions,
    "masks": masks,
    "schedule": schedule,
    "label-smoothing": label_smoothing,
}
"""What can be drawn. A module has SUMMARY, EXAMPLE, `add_options(parser)` and `figure(options)`."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what the command takes."""
    parser.epilog = f"kinds:\n{with_examples(KINDS, 16)}\n"
    kinds = parser.add_subparsers(metavar="KIND", required=True, help="what to draw; see below")
    for name, kind in KINDS.items():
        sub = kinds.add_parser(
            name,
            description=kind.SUMMARY,
            epilog=example_of(kind),
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        kind.add_options(sub)
        sub.add_argument("--output", required=True, metavar="FILE", help="the picture, .svg or .png")
        sub.set_defaults(figure=kind.figure)


def run(options: argparse.Namespace) -> None:
    """Draw a picture and write it."""
    try:
        from tf_transformer.plotting.style import check_format, save
    except ModuleNotFoundError as error:
        raise missing_extra("plot", "plots", error) from None
    output = Path(options.output)
    check_output("--output", output)
    check_format(output)
    save(options.figure(options), output)
    print(f"drawn: {output}")

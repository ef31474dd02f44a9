"""`tf-transformer plot beam`."""

import argparse
from typing import TYPE_CHECKING

from tf_transformer.commands.common.chosen_model import add_search
from tf_transformer.commands.plots.attention import add_text, translator_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SUMMARY = "The tree of a beam search: what is kept, dropped and finished at each step."
EXAMPLE = "tf-transformer plot beam --model runs/toy --text 'The cat sleeps.' --beam-size 3 --output beam.svg"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what this kind of picture takes."""
    add_text(parser)
    add_search(parser, "of the run")


def figure(options: argparse.Namespace) -> "Figure":
    """Return the picture."""
    from tf_transformer import plotting

    translator = translator_of(options)
    return plotting.beam(translator.tree(options.text), f"“{options.text}”, beam of {translator.decoding.hypotheses}")

"""`tf-transformer plot attention`."""

import argparse
from typing import TYPE_CHECKING

from tf_transformer.commands.common.chosen_model import add_model, add_set, chosen_model
from tf_transformer.commands.common.options import positive
from tf_transformer.errors import InputError
from tf_transformer.runs.descriptions import is_export

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from tf_transformer.translation.translator import Translator

SUMMARY = "What each token attends to in a sentence and its translation, by layer and head."
EXAMPLE = "tf-transformer plot attention --model runs/toy --text 'The cat sleeps.' --output attention.svg"
WHICH = {
    "cross": "the translation to the sentence",
    "encoder": "the sentence to itself",
    "decoder": "the translation to what it has read",
}


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what this kind of picture takes."""
    add_text(parser)
    parser.add_argument("--target", metavar="TEXT", help="its translation (default: the one that the model finds)")
    kinds = ", ".join(f"{name}: {meaning}" for name, meaning in WHICH.items())
    parser.add_argument("--which", choices=tuple(WHICH), default="cross", help=f"{kinds} (default: cross)")
    parser.add_argument("--layer", type=positive, metavar="N", help="one layer, 1 the lowest (default: all)")
    add_set(parser)


def figure(options: argparse.Namespace) -> "Figure":
    """Return the picture."""
    from tf_transformer import plotting

    found = translator_of(options).attention(options.text, options.target)
    if not found.target_tokens:
        raise InputError(f"--text must have at least one word. Received: {options.text!r}")
    weights, rows, columns = {
        "cross": (found.weights, found.target_tokens, found.source_tokens),
        "encoder": (found.encoder, found.source_tokens, found.source_tokens),
        "decoder": (found.decoder, found.target_tokens, found.read_tokens),
    }[options.which]
    layers = len(weights)
    if options.layer is not None and options.layer > layers:
        raise InputError(f"--layer must be at most the layers of the model, {layers}. Received: {options.layer}")
    if options.layer is not None:
        weights = weights[options.layer - 1]
    layer = f", layer {options.layer}" if options.layer else ""
    return plotting.attention(weights, rows, columns, f"Attention of {WHICH[options.which]}{layer}")


def add_text(parser: argparse.ArgumentParser) -> None:
    """Add a model and a sentence."""
    add_model(parser, "a run directory")
    parser.add_argument("--text", required=True, metavar="TEXT", help="a sentence in the source language")


def translator_of(options: argparse.Namespace) -> "Translator":
    """Open the run that `--model` names: an export does not give what is drawn."""
    chosen = chosen_model(options)
    if is_export(chosen.described.path):
        raise InputError(
            f"--model {chosen.described.path} is an export: give a run directory, which shows all layers and heads"
        )
    return chosen.open()  # type: ignore[return-value]

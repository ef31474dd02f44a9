"""`tf-transformer plot masks`."""

import argparse
from typing import TYPE_CHECKING

from tf_transformer.commands.common.options import count
from tf_transformer.commands.common.quiet_tensorflow import import_tensorflow
from tf_transformer.errors import InputError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SUMMARY = "The masks: padding, causal, and both together, of a sentence with padding (paper 3.2.3)."
EXAMPLE = "tf-transformer plot masks --output masks.svg"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what this kind of picture takes."""
    parser.add_argument(
        "--text", default="the cat sleeps", metavar="TEXT", help="words, cut at spaces (default: the cat sleeps)"
    )
    parser.add_argument("--padding", type=count, default=2, metavar="N", help="positions of padding (default: 2)")


def figure(options: argparse.Namespace) -> "Figure":
    """Return the picture."""
    import_tensorflow()
    import keras
    import numpy as np

    from tf_transformer import plotting
    from tf_transformer.model import causal_mask, padding_mask

    words = options.text.split()
    if not words:
        raise InputError(f"--text must have at least one word. Received: {options.text!r}")
    tokens = [*words, *["·"] * options.padding]
    ids = np.array([[1] * len(words) + [0] * options.padding])
    size = (len(tokens), len(tokens))
    padding = np.broadcast_to(keras.ops.convert_to_numpy(padding_mask(ids))[0], size)
    causal = np.broadcast_to(keras.ops.convert_to_numpy(causal_mask(len(tokens))), (1, *size))[0]
    named = {"padding": padding, "causal": causal, "both": padding & causal}
    return plotting.masks(named, tokens, dict.fromkeys(named, tokens))

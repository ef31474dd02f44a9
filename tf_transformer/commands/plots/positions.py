"""`tf-transformer plot positions`."""

import argparse
from typing import TYPE_CHECKING

from tf_transformer.commands.common.options import positive
from tf_transformer.commands.common.quiet_tensorflow import import_tensorflow
from tf_transformer.errors import InputError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SUMMARY = "The positional encoding: the matrix, four dimensions as curves, products against distance (paper 3.5)."
EXAMPLE = "tf-transformer plot positions --length 100 --d-model 20 --output positions.svg"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what this kind of picture takes."""
    parser.add_argument("--length", type=positive, default=100, metavar="N", help="positions (default: 100)")
    parser.add_argument(
        "--d-model", type=positive, default=20, metavar="N", help="width, even and at least 8 (default: 20)"
    )


def figure(options: argparse.Namespace) -> "Figure":
    """Return the picture."""
    if options.d_model % 2 or options.d_model < 8:
        raise InputError(f"--d-model must be even, and at least 8. Received: {options.d_model}")
    import_tensorflow()
    import keras

    from tf_transformer import plotting
    from tf_transformer.model import positional_encoding

    return plotting.positions(keras.ops.convert_to_numpy(positional_encoding(options.length, options.d_model)))

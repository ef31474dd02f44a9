"""`tf-transformer plot schedule`."""

import argparse
import re
from typing import TYPE_CHECKING

from tf_transformer.commands.common.options import positive
from tf_transformer.commands.common.quiet_tensorflow import import_tensorflow
from tf_transformer.errors import InputError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SUMMARY = "The learning rate of the paper for several widths and warm-ups (paper 5.3)."
EXAMPLE = "tf-transformer plot schedule --of 512:4000 512:8000 256:4000 --output schedule.svg"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what this kind of picture takes."""
    given = ["512:4000", "512:8000", "256:4000"]
    parser.add_argument(
        "--of",
        nargs="+",
        default=given,
        metavar="D:W",
        help=f"width of the model and updates of the warm-up (default: {' '.join(given)})",
    )
    parser.add_argument(
        "--updates", type=positive, default=20_000, metavar="N", help="how many updates are drawn (default: 20000)"
    )


def figure(options: argparse.Namespace) -> "Figure":
    """Return the picture."""
    for text in options.of:
        if not re.fullmatch(r"[1-9]\d*:[1-9]\d*", text):
            raise InputError(f"--of takes width:warm-up, such as 512:4000. Received: {text}")
    import_tensorflow()
    import numpy as np

    from tf_transformer import plotting
    from tf_transformer.training import NoamSchedule

    rates = {}
    for text in options.of:
        width, warm_up = map(int, text.split(":"))
        of_step = NoamSchedule(width, warm_up)
        rates[f"width {width}, warm-up {warm_up:,}"] = np.asarray(of_step(np.arange(options.updates, dtype=np.float32)))
    return plotting.schedule(rates)

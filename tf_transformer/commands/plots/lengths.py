"""`tf-transformer plot lengths`."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from tf_transformer.commands.common.options import positive
from tf_transformer.data.corpora import is_prepared
from tf_transformer.errors import InputError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SUMMARY = "The lengths of a prepared corpus, and the padding of the batches that training forms."
EXAMPLE = "tf-transformer plot lengths --data prepared/toy --batch-tokens 1000 --output lengths.svg"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what this kind of picture takes."""
    parser.add_argument(
        "--data", required=True, metavar="DIR", help="what prepare has written, or the run directory of a training"
    )
    parser.add_argument(
        "--batch-tokens", type=positive, metavar="N", help="as data.batch_tokens (default: the corpus's)"
    )


def figure(options: argparse.Namespace) -> "Figure":
    """Return the picture."""
    import numpy as np

    from tf_transformer import plotting
    from tf_transformer.data.plan import MIXED, plan
    from tf_transformer.data.prepared import Prepared
    from tf_transformer.data.windows import Window, windows_of

    path = Path(options.data)
    path = path / "prepared" if is_prepared(path / "prepared") else path
    if not is_prepared(path):
        raise InputError(f"--data {options.data} is no prepared corpus: tf-transformer prepare makes one")
    prepared = Prepared(path)
    pairs = prepared.pairs()
    first, *others = windows_of(pairs, 0, 0)
    lengths = Window(pairs, first).lengths.astype(int)
    batch_tokens = options.batch_tokens or prepared.manifest["config"]["data"]["batch_tokens"]
    if lengths.max() > batch_tokens:
        raise InputError(f"--batch-tokens must hold the longest sentence, {lengths.max()}. Received: {batch_tokens}")
    batches = plan(
        lengths[:, 0], lengths[:, 1], batch_tokens, rng=np.random.default_rng(0), mixed=1 if others else MIXED
    )
    widths = np.array([lengths[batch, 1].max() for batch in batches])
    padding = np.array([1 - lengths[batch, 1].mean() / lengths[batch, 1].max() for batch in batches])
    return plotting.lengths(prepared.manifest["lengths"], widths, padding)

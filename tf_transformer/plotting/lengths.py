"""The lengths of a corpus, and the padding of its batches."""

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from tf_transformer.plotting.style import COLOURS, legend, new_figure, style


def lengths(counts: dict[str, Sequence[int]], widths: np.ndarray, padding: np.ndarray) -> Figure:
    """Draw how many sentences have how many tokens, and which share of the batches of a width is padding.

    Args:
        counts: by side, how many sentences have 0, 1, 2, ... tokens.
        widths: [N], the target tokens of the longest sentence of each batch.
        padding: [N], the share of each batch's target positions that is padding, 0 to 1.
    """
    with style():
        figure = new_figure(9, 3.2)
        histogram, shares = figure.subplots(1, 2)
        for number, (side, of_length) in enumerate(counts.items()):
            histogram.stairs(of_length, np.arange(len(of_length) + 1) - 0.5, color=COLOURS[number], label=side)
        histogram.set(xlabel="tokens", ylabel="sentences", title="lengths")
        legend(histogram)
        found = sorted(set(widths.tolist()))
        means = [100 * padding[widths == width].mean() for width in found]
        shares.bar(found, means, color=COLOURS[0])
        shares.set(xlabel="width of the batch, tokens", ylabel="padding, %", title=f"{len(widths):,} batches")
    return figure

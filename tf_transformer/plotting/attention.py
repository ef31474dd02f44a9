"""What tokens attend to."""

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from tf_transformer.plotting.style import new_figure, style

CELL, PER_ROW = 0.22, 4
"""Inches of a token; heads in a row."""


def attention(weights: np.ndarray, rows: Sequence[str], columns: Sequence[str], title: str = "") -> Figure:
    """Draw the weights of every head of every layer, and of one head alone larger.

    Args:
        weights: [layers, H, T, S], or [H, T, S] of one layer; each row adds up to 1.
        rows: T tokens that attend.
        columns: S tokens that are attended to.
        title: of the figure.
    """
    weights = weights[None] if weights.ndim == 3 else weights
    layers, heads, length, width = weights.shape
    across = min(heads, PER_ROW)
    down = -(-heads // across)
    label = 0.075 * max(map(len, [*rows, *columns]), default=1) + 0.2
    with style():
        figure = new_figure(
            across * (width * CELL + 0.15) + label + 0.9,
            layers * down * (length * CELL + 0.3) + label + 0.4 + 0.3 * bool(title),
        )
        axes = figure.subplots(layers * down, across, squeeze=False)
        for axis in axes.flat:
            axis.set_visible(False)
        for layer in range(layers):
            for head in range(heads):
                axis = axes[layer * down + head // across, head % across]
                axis.set_visible(True)
                image = axis.imshow(weights[layer, head], vmin=0, vmax=1, aspect="auto")
                named = f"layer {layer + 1}, head {head + 1}" if layers > 1 else f"head {head + 1}"
                axis.set_title(named, fontsize=8)
                is_lowest = layer == layers - 1 and head + across >= heads
                below, beside = columns if is_lowest else [""] * width, rows if head % across == 0 else [""] * length
                axis.set_xticks(range(width), below, rotation=90, fontsize=8, parse_math=False)
                axis.set_yticks(range(length), beside, fontsize=8, parse_math=False)
                axis.tick_params(length=0)
                for spine in axis.spines.values():
                    spine.set_visible(False)
        figure.colorbar(image, ax=axes.ravel().tolist(), label="weight", shrink=0.8, pad=0.02)
        if title:
            figure.suptitle(title, parse_math=False)
    return figure

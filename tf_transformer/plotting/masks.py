"""Masks of attention (paper 3.2.3)."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure

from tf_transformer.plotting.style import COLOURS, new_figure, style


def masks(named: Mapping[str, np.ndarray], rows: Sequence[str], columns: Mapping[str, Sequence[str]]) -> Figure:
    """Draw masks side by side; a filled cell is a position that may be attended to.

    Args:
        named: by its title, a boolean mask [T, S], True = attend.
        rows: the T tokens that attend.
        columns: by the same titles, the S tokens that are attended to.
    """
    with style():
        figure = new_figure(2.6 * len(named) + 0.4, 0.32 * len(rows) + 1.6)
        axes = figure.subplots(1, len(named), squeeze=False)[0]
        for axis, (title, mask) in zip(axes, named.items(), strict=True):
            axis.pcolormesh(mask, cmap=ListedColormap(["#eeeeee", COLOURS[0]]), vmin=0, vmax=1, edgecolors="white")
            axis.set_title(title, parse_math=False)
            axis.set(xlabel="attended to", aspect="equal")
            axis.set_xticks(np.arange(mask.shape[1]) + 0.5, columns[title], rotation=90, parse_math=False)
            axis.set_yticks(np.arange(mask.shape[0]) + 0.5, rows, parse_math=False)
            axis.invert_yaxis()
            axis.tick_params(length=0)
        axes[0].set_ylabel("attends")
    return figure

"""Positional encodings (paper 3.5)."""

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from tf_transformer.plotting.style import DASHES, DIVERGING, new_figure, style


def positions(encoding: np.ndarray, dimensions: Sequence[int] = (4, 5, 6, 7)) -> Figure:
    """Draw the matrix, some dimensions as curves, and the product of two encodings against their distance.

    Args:
        encoding: [T, D].
        dimensions: those that are drawn as curves.
    """
    length = len(encoding)
    with style():
        figure = new_figure(10, 3.2)
        matrix, curves, products = figure.subplots(1, 3)
        image = matrix.imshow(encoding, cmap=DIVERGING, vmin=-1, vmax=1, aspect="auto", interpolation="nearest")
        matrix.set(xlabel="dimension", ylabel="position", title=f"the encoding of {length} positions")
        figure.colorbar(image, ax=matrix)
        for number, dimension in enumerate(dimensions):
            curves.plot(encoding[:, dimension], DASHES[number % len(DASHES)], label=f"dimension {dimension}")
        curves.set(xlabel="position", ylabel="value", title="dimensions as curves")
        curves.legend(fontsize=7, loc="lower left")
        for number, position in enumerate((length // 4, length // 2)):
            distance = np.arange(length) - position
            products.plot(
                distance, encoding @ encoding[position], DASHES[number % len(DASHES)], label=f"from position {position}"
            )
        products.set(
            xlabel="distance in positions", ylabel="product of the encodings", title="near positions are alike"
        )
        products.legend(fontsize=7)
    return figure

"""Label smoothing (paper 5.4)."""

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure

from tf_transformer.plotting.style import DASHES, SEQUENTIAL, legend, new_figure, style


def label_smoothing(targets: np.ndarray, confidence: np.ndarray, losses: Mapping[str, np.ndarray]) -> Figure:
    """Draw the smoothed targets of some labels, and what a growing confidence in the right token costs.

    Args:
        targets: [T, V], a distribution for each of T positions; 0 in every place for padding.
        confidence: [N], probabilities of the right token.
        losses: by what a curve is called, the loss [N] at each of them.
    """
    with style():
        figure = new_figure(8.5, 3.2)
        matrix, curves = figure.subplots(1, 2)
        image = matrix.imshow(targets, cmap=SEQUENTIAL, vmin=0, vmax=1, aspect="auto")
        for (row, column), value in np.ndenumerate(targets):
            colour = "white" if value < 0.5 else "black"
            matrix.text(column, row, f"{value:.3g}", ha="center", va="center", color=colour, fontsize=7)
        matrix.set(xlabel="token of the vocabulary", ylabel="position", title="what the model is to give")
        matrix.set_xticks(range(targets.shape[1]))
        matrix.set_yticks(range(targets.shape[0]))
        figure.colorbar(image, ax=matrix, label="probability")
        for number, (name, values) in enumerate(losses.items()):
            curves.plot(confidence, values, DASHES[number % len(DASHES)], label=name)
        curves.set(
            xlabel="probability of the right token", ylabel="loss, nats", title="too much confidence costs again"
        )
        legend(curves)
    return figure

"""Learning rates (paper 5.3)."""

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure

from tf_transformer.plotting.style import DASHES, legend, new_figure, style


def schedule(rates: Mapping[str, np.ndarray]) -> Figure:
    """Draw learning rates against updates.

    Args:
        rates: by what a curve is called, the rates of the updates 1, 2, 3, ...
    """
    with style():
        figure = new_figure(5.5, 3.2)
        axis = figure.subplots()
        for number, (name, values) in enumerate(rates.items()):
            axis.plot(np.arange(1, len(values) + 1), values, DASHES[number % len(DASHES)], label=name)
        axis.set(xlabel="update", ylabel="learning rate", title="The learning rate rises, then falls", ylim=(0, None))
        legend(axis)
    return figure

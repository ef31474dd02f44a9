"""The course of training."""

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure

from tf_transformer.plotting.style import COLOURS, legend, new_figure, style

MEASURES = (("loss", "loss, nats"), ("accuracy", "accuracy of tokens"), ("perplexity", "perplexity"))


def history(runs: Mapping[str, Sequence[Mapping[str, str]]]) -> Figure:
    """Draw loss, accuracy, perplexity and learning rate against updates, of one run or of several.

    Args:
        runs: by their names, the rows of their `history.csv`.
    """
    with style():
        figure = new_figure(9, 5.5)
        axes = figure.subplots(2, 2).flat
        for number, (name, rows) in enumerate(runs.items()):
            colour = COLOURS[number % len(COLOURS)]
            training = [row for row in rows if not row["val_loss"]]
            validation = [row for row in rows if row["val_loss"]]
            for axis, (measure, label) in zip(axes, MEASURES, strict=False):
                axis.plot(*_points(training, measure), color=colour, alpha=0.45, linewidth=0.8)
                axis.plot(*_points(validation, f"val_{measure}"), "o-", color=colour, markersize=3, label=name)
                axis.set(xlabel="update", ylabel=label)
            axes[3].plot(*_points(training, "learning_rate"), color=colour)
        axes[2].set_yscale("log")
        axes[3].set(xlabel="update", ylabel="learning rate")
        legend(axes[0], title="validation (thin: training)", fontsize=7, title_fontsize=7)
    return figure


def _points(rows: Sequence[Mapping[str, str]], column: str) -> tuple[list[int], list[float]]:
    there = [row for row in rows if row[column]]
    return [int(row["step"]) for row in there], [float(row[column]) for row in there]

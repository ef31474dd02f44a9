"""The tree of a beam search."""

from collections.abc import Sequence
from typing import Any

from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from tf_transformer.decoding.search_tree import DROPPED, FINISHED, KEPT, Candidate
from tf_transformer.plotting.style import COLOURS, new_figure, style

LOOKS: dict[str, tuple[str, Any]] = {KEPT: (COLOURS[0], "-"), DROPPED: ("#888888", ":"), FINISHED: (COLOURS[1], "-")}


def beam(steps: Sequence[Sequence[Candidate]], title: str = "") -> Figure:
    """Draw the candidates of every step of a search, the most probable at the top.

    Args:
        steps: the candidates of each step, in the order in which they are drawn from the top.
        title: of the figure.
    """
    widest = max(map(len, steps))
    with style():
        figure = new_figure(1.15 * (len(steps) + 1), 0.36 * widest + 1.1)
        axis = figure.subplots()
        axis.text(0, 0, "start", ha="center", va="center", fontsize=8, bbox=_box("black"))
        for number, nodes in enumerate(steps, 1):
            for rank, node in enumerate(nodes):
                colour, dash = LOOKS[node.status]
                axis.plot(
                    [number - 1, number],
                    [-node.parent, -rank],
                    dash,
                    color=colour,
                    linewidth=2.2 if node.is_best else 0.9,
                    zorder=1,
                )
                value = node.log_probability if node.score is None else node.score
                text = axis.text(number, -rank, f"{node.token}\n{value:.2f}", ha="center", va="center", fontsize=6.5)
                text.set(bbox=_box(colour), fontweight="bold" if node.is_best else "normal", parse_math=False)
        axis.set(xlim=(-0.6, len(steps) + 0.7), ylim=(-widest + 0.3, 0.7))
        axis.set_title(title, parse_math=False)
        axis.set_xticks(range(1, len(steps) + 1))
        axis.set_xlabel("step")
        axis.yaxis.set_visible(False)
        axis.spines["left"].set_visible(False)
        shown = {
            "kept: log P": LOOKS[KEPT],
            "dropped: log P": LOOKS[DROPPED],
            "finished: score, with the length penalty": LOOKS[FINISHED],
        }
        lines = [Line2D([], [], color=colour, linestyle=dash) for colour, dash in shown.values()]
        lines.append(Line2D([], [], color="black", linewidth=2.2))
        figure.legend(
            lines, [*shown, "the translation"], loc="outside lower center", ncols=4, fontsize=7, frameon=False
        )
    return figure


def _box(colour: str) -> dict[str, object]:
    return {"boxstyle": "round,pad=0.2", "facecolor": "white", "edgecolor": colour, "linewidth": 0.8}

"""The parts of a model, as in figure 1 of the paper."""

from collections.abc import Sequence
from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

from tf_transformer.plotting.style import COLOURS, new_figure, style

FILLS = {
    "attention": "#F5D6B8",
    "feed-forward": "#BFE0F5",
    "norm": "#EFEFB5",
    "embedding": "#F3D3E0",
    "output": "#D5E8D4",
}
WIDTH, HEIGHT, GAP = 3.0, 0.62, 0.28


class Part(NamedTuple):
    """A part of a model."""

    title: str
    kind: str
    """one of the keys of `FILLS`"""
    parameters: int
    file: str
    """where its class is, such as model/attention.py"""


class Tower(NamedTuple):
    """Encoder or decoder, from its input at the bottom to its output at the top."""

    name: str
    reads: str
    """what goes in"""
    before: Sequence[Part]
    layer: Sequence[Part]
    """the parts of one layer"""
    layers: int
    after: Sequence[Part]


def architecture(encoder: Tower, decoder: Tower, title: str = "") -> Figure:
    """Draw encoder and decoder side by side; each part has its parameters and the file of its class.

    Args:
        encoder: on the left; the last attention of each decoder layer reads its output.
        decoder: on the right.
        title: of the figure.
    """
    with style():
        rows = max(len(tower.before) + len(tower.layer) + len(tower.after) for tower in (encoder, decoder))
        figure = new_figure(8.2, (rows + 2) * (HEIGHT + GAP) * 0.78 + 0.6)
        axis = figure.subplots()
        axis.set_axis_off()
        top, _ = _tower(axis, encoder, 0.0)
        height, reads_at = _tower(axis, decoder, WIDTH + 2.0)
        middle = WIDTH + 1.0
        axis.plot(
            [WIDTH / 2, WIDTH / 2, middle, middle], [top, top + 0.3, top + 0.3, reads_at], color="black", linewidth=1
        )
        axis.annotate("", xy=(WIDTH + 2.0, reads_at), xytext=(middle - 0.01, reads_at), arrowprops={"arrowstyle": "->"})
        axis.set(xlim=(-0.7, 2 * WIDTH + 2.9), ylim=(-1.1, max(top, height) + 0.4))
        axis.set_title(title, parse_math=False)
    return figure


def _tower(axis: Axes, tower: Tower, left: float) -> tuple[float, float]:
    """Draw a tower; gives the height of its top, and that of the last attention of its layer."""
    y, reads_at = 0.0, 0.0
    centre = left + WIDTH / 2
    axis.text(left + WIDTH, -0.75, tower.reads, ha="right", va="center", fontsize=8, parse_math=False)
    axis.annotate("", xy=(centre, 0), xytext=(centre, -0.55), arrowprops={"arrowstyle": "->"})
    parts = [*tower.before, *tower.layer, *tower.after]
    frame = y
    for number, part in enumerate(parts):
        if number == len(tower.before):
            y += 0.15
            frame = y - 0.16
        axis.add_patch(
            FancyBboxPatch(
                (left, y),
                WIDTH,
                HEIGHT,
                boxstyle="round,pad=0,rounding_size=0.08",
                facecolor=FILLS[part.kind],
                edgecolor="#555555",
                linewidth=0.8,
            )
        )
        axis.text(centre, y + 0.40, part.title, ha="center", va="center", fontsize=8.5, parse_math=False)
        axis.text(
            centre,
            y + 0.16,
            f"{f'{part.parameters:,} parameters' if part.parameters else 'no own parameters'} · {part.file}",
            ha="center",
            va="center",
            fontsize=5.8,
            color="#444444",
            parse_math=False,
        )
        if part.kind == "attention":
            reads_at = y + HEIGHT / 2
        y += HEIGHT
        if number == len(tower.before) + len(tower.layer) - 1:
            axis.add_patch(
                FancyBboxPatch(
                    (left - 0.16, frame),
                    WIDTH + 0.32,
                    y + 0.16 - frame,
                    boxstyle="round,pad=0,rounding_size=0.1",
                    facecolor="none",
                    edgecolor=COLOURS[6],
                    linewidth=1.2,
                )
            )
            side = left - 0.3 if left == 0 else left + WIDTH + 0.3
            axis.text(
                side,
                (frame + y) / 2,
                f"{tower.layers} ×",
                ha="right" if left == 0 else "left",
                va="center",
                fontsize=11,
            )
            y += 0.16
        if number + 1 < len(parts):
            axis.annotate("", xy=(centre, y + GAP), xytext=(centre, y), arrowprops={"arrowstyle": "->"})
            y += GAP
    axis.text(left - 0.16, -0.75, tower.name, ha="left", va="center", fontsize=10, fontweight="bold", parse_math=False)
    return y, reads_at

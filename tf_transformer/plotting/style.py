"""How all figures look, and how they are written."""

import contextlib
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import matplotlib
from cycler import cycler
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tf_transformer.errors import InputError

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Okabe and Ito's colours, which people with any kind of colour blindness can tell apart."""
DASHES = ("-", "--", "-.", ":")
"""The lines of a plot differ by these as well."""
SEQUENTIAL, DIVERGING = "cividis", "RdBu_r"
"""Colour maps that keep their order for the colour-blind and in print."""
FORMATS = (".svg", ".png")
FONTS = [
    "DejaVu Sans",
    "Noto Sans CJK SC",
    "Noto Sans CJK JP",
    "WenQuanYi Zen Hei",
    "Noto Naskh Arabic",
    "Arial Unicode MS",
]
"""Fonts that are tried for each character, in this order; those that are not installed are passed over."""


@contextlib.contextmanager
def style() -> Iterator[None]:
    """Draw as all figures are drawn."""
    settings: Any = {
        "axes.prop_cycle": cycler(color=COLOURS),
        "axes.spines.right": False,
        "axes.spines.top": False,
        "figure.constrained_layout.use": True,
        "font.family": _installed(FONTS),
        "font.size": 9.0,
        "image.cmap": SEQUENTIAL,
        "svg.fonttype": "none",
        "svg.hashsalt": "tf_transformer",
    }
    with matplotlib.rc_context(settings):
        yield


def new_figure(width: float, height: float) -> Figure:
    """Return a figure of a size in inches; call it within `style`."""
    return Figure(figsize=(width, height))


def legend(axis: Axes, **settings: Any) -> None:
    """Add a legend whose names are drawn as they are given: a `$` begins no formula, and a `_` hides none of them."""
    drawn = {artist: str(artist.get_label()) for artist in (*axis.lines, *axis.patches)}
    named = {artist: name for artist, name in drawn.items() if not name.startswith("_child")}  # Matplotlib's own names
    for text in axis.legend(named.keys(), named.values(), **settings).get_texts():
        text.set_parse_math(False)


def save(figure: Figure, path: str | Path) -> None:
    """Write a figure; the same figure gives the same file.

    Text stays text in an SVG: a browser draws it with the fonts of its system, in any script and direction.

    Args:
        figure: to be written.
        path: a file that ends in .svg or .png.

    Raises:
        InputError: another ending; characters that no installed font has, in a PNG.
    """
    path = Path(path)
    check_format(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    metadata = {"Date": None} if path.suffix == ".svg" else {"Software": None}
    with style(), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        figure.savefig(path, dpi=200, metadata=metadata, facecolor="white")
    missing = [str(warning.message) for warning in caught if "missing from" in str(warning.message)]
    if missing and path.suffix != ".svg":
        path.unlink()
        raise InputError(
            f"no installed font has all characters: write {path.with_suffix('.svg')} instead ({missing[0]})"
        )


def check_format(path: Path) -> None:
    """Raise InputError where a picture cannot be written as what a file is called."""
    if path.suffix not in FORMATS:
        raise InputError(f"pictures are written as {' or '.join(FORMATS)}. Received: {path}")


def _installed(names: list[str]) -> list[str]:
    known = set(matplotlib.font_manager.get_font_names())
    return [name for name in names if name in known]

"""What figures show: their data, axes and labels, not their pixels."""

import re

import matplotlib
import numpy as np
import pytest
from matplotlib.text import Text

from tf_transformer import plotting
from tf_transformer.decoding.search_tree import DROPPED, FINISHED, KEPT, Candidate
from tf_transformer.errors import InputError
from tf_transformer.plotting.architecture import Part, Tower

RANDOM = np.random.default_rng(3)


def texts(figure):
    return [text.get_text() for text in figure.findobj(Text) if text.get_text()]


def shown(figure):
    """The axes that are seen, without the colour bar."""
    return [axis for axis in figure.axes if axis.get_visible() and axis.get_label() != "<colorbar>"]


@pytest.mark.parametrize(("layers", "heads"), [(1, 3), (2, 5)])
def test_attention_shows_every_head_with_its_tokens(layers, heads):
    weights = RANDOM.dirichlet(np.ones(7), size=(layers, heads, 5))
    rows, columns = ["▁Der", "▁Hund", "schläft", ".", "</s>"], ["▁the", "▁dog", "▁sle", "eps", "狗", "نام", "</s>"]
    figure = plotting.attention(weights, rows, columns, "a title")
    axes = shown(figure)
    assert len(axes) == layers * heads
    for number, axis in enumerate(axes):
        (image,) = axis.images
        np.testing.assert_array_equal(image.get_array(), weights[divmod(number, heads)])
        assert image.get_clim() == (0, 1)
        assert f"head {number % heads + 1}" in axis.get_title()
        labels = [[label.get_text() for label in side] for side in (axis.get_yticklabels(), axis.get_xticklabels())]
        assert labels[0] == (rows if number % heads % 4 == 0 else [""] * 5)
        is_lowest = number + 4 >= layers * heads  # no head of the last layer is below it
        assert labels[1] == (columns if is_lowest else [""] * 7)
    assert "a title" in texts(figure)
    one = plotting.attention(weights[0], rows, columns)
    assert len(shown(one)) == heads


def test_text_of_any_script_stays_text_in_an_svg(tmp_path):
    rows = ["狗", "ナ", "كلب", "▁Hund"]
    figure = plotting.attention(np.full((1, 1, 4, 4), 0.25), rows, rows)
    plotting.save(figure, tmp_path / "a.svg")
    plotting.save(plotting.attention(np.full((1, 1, 4, 4), 0.25), rows, rows), tmp_path / "b.svg")
    svg = (tmp_path / "a.svg").read_text("utf-8")
    assert all(svg.count(f">{token}</text>") == 2 for token in rows)
    assert (tmp_path / "b.svg").read_text("utf-8") == svg


FORMULA = r"_$5 or $\foo$"
EACH_TEXT = {
    "attention": lambda: plotting.attention(np.full((1, 1, 2, 2), 0.5), [FORMULA, "b"], [FORMULA, "b"], FORMULA),
    "beam": lambda: plotting.beam([[Candidate(FORMULA, 0, -0.5, KEPT, None, True)]], FORMULA),
    "masks": lambda: plotting.masks({FORMULA: np.ones((1, 1), bool)}, [FORMULA], {FORMULA: [FORMULA]}),
    "history": lambda: plotting.history({FORMULA: [row(1, loss="5"), row(1, val_loss="3", val_perplexity="20")]}),
    "schedule": lambda: plotting.schedule({FORMULA: np.ones(3)}),
    "lengths": lambda: plotting.lengths({FORMULA: [0, 3]}, np.array([7]), np.array([0.1])),
    "label_smoothing": lambda: plotting.label_smoothing(np.ones((1, 2)), np.ones(2), {FORMULA: np.ones(2)}),
    "architecture": lambda: plotting.architecture(*[Tower(FORMULA, FORMULA, [], [PART], 1, [PART])] * 2, FORMULA),
    "positions": lambda: plotting.positions(np.ones((4, 8))),  # is given no text
}
PART = Part(FORMULA, "attention", 1, FORMULA)


@pytest.mark.parametrize("ending", [".svg", ".png"])
@pytest.mark.parametrize("kind", sorted(set(plotting.__all__) - {"save"}))
def test_text_that_is_given_is_shown_as_it_is(tmp_path, kind, ending):
    figure = EACH_TEXT[kind]()
    plotting.save(figure, tmp_path / f"a{ending}")
    given = [text for text in figure.findobj(Text) if FORMULA in text.get_text()]
    assert kind == "positions" or given
    assert not any(text.get_parse_math() for text in given)


def test_what_cannot_be_written_is_refused(tmp_path):
    figure = plotting.schedule({"a": np.ones(3)})
    with pytest.raises(InputError, match=r"written as .svg or .png. Received: .*a.pdf"):
        plotting.save(figure, tmp_path / "a.pdf")
    unknown = plotting.masks({"\U0001f9ff": np.ones((1, 1), bool)}, ["\ue123"], {"\U0001f9ff": ["\ue123"]})
    with pytest.raises(InputError, match=r"no installed font has all characters: write .*b.svg instead"):
        plotting.save(unknown, tmp_path / "b.png")
    assert not list(tmp_path.iterdir())
    plotting.save(figure, tmp_path / "new" / "c.png")
    assert (tmp_path / "new" / "c.png").read_bytes().startswith(b"\x89PNG")


def test_positions_shows_matrix_curves_and_products():
    encoding = RANDOM.normal(size=(11, 13))
    matrix, curves, products = shown(plotting.positions(encoding, (2, 5)))
    np.testing.assert_array_equal(matrix.images[0].get_array(), encoding)
    for line, dimension in zip(curves.lines, (2, 5), strict=True):
        np.testing.assert_array_equal(line.get_ydata(), encoding[:, dimension])
    for line, position in zip(products.lines, (2, 5), strict=True):
        here = list(line.get_xdata()).index(0)
        np.testing.assert_allclose(line.get_ydata()[here], encoding[position] @ encoding[position])


def test_schedule_and_label_smoothing_draw_what_they_are_given():
    (axis,) = shown(plotting.schedule({"one": np.array([1.0, 3.0, 2.0]), "two": np.array([2.0])}))
    np.testing.assert_array_equal(axis.lines[0].get_xdata(), [1, 2, 3])
    np.testing.assert_array_equal(axis.lines[0].get_ydata(), [1, 3, 2])
    assert axis.lines[0].get_linestyle() != axis.lines[1].get_linestyle()
    targets = RANDOM.dirichlet(np.ones(5), size=3)
    matrix, curves = shown(plotting.label_smoothing(targets, np.array([0.1, 0.9]), {"a": np.array([3.0, 1.0])}))
    np.testing.assert_array_equal(matrix.images[0].get_array(), targets)
    assert [text.get_text() for text in matrix.texts] == [f"{value:.3g}" for value in targets.ravel()]
    np.testing.assert_array_equal(curves.lines[0].get_ydata(), [3, 1])


def test_masks_are_filled_where_one_may_attend():
    mask = np.array([[True, False, True], [False, True, True]])
    (axis,) = shown(plotting.masks({"m": mask}, ["a", "b"], {"m": ["x", "y", "z"]}))
    (mesh,) = axis.collections
    np.testing.assert_array_equal(mesh.get_array().reshape(mask.shape), mask)
    colours = mesh.cmap([0.0, 1.0])
    assert colours[0].sum() > colours[1].sum()  # True is the dark one


COLUMNS = ("loss", "accuracy", "perplexity", "learning_rate", "val_loss", "val_accuracy", "val_perplexity")


def row(step, **values):
    return {"step": str(step), **dict.fromkeys(COLUMNS, ""), **values}


def test_history_draws_training_and_validation_of_every_run():
    rows = [row(1, loss="5", learning_rate="0.1"), row(2, loss="4", learning_rate="0.2")]
    rows.append(row(2, loss="4", val_loss="3", val_accuracy="0.5", val_perplexity="9"))
    figure = plotting.history({"first": rows, "second": rows[:1]})
    loss, accuracy, perplexity, rate = shown(figure)
    assert [list(line.get_ydata()) for line in loss.lines] == [[5, 4], [3], [5], []]
    assert list(accuracy.lines[1].get_ydata()) == [0.5]
    assert perplexity.get_yscale() == "log"
    assert list(rate.lines[0].get_xdata()) == [1, 2]
    assert {"first", "second", "loss, nats", "update"} <= set(texts(figure))


def test_lengths_shows_the_mean_padding_of_each_width():
    figure = plotting.lengths({"source": [0, 3, 2]}, np.array([7, 7, 11]), np.array([0.1, 0.3, 0.5]))
    histogram, shares = shown(figure)
    np.testing.assert_array_equal(histogram.patches[0].get_data().values, [0, 3, 2])
    np.testing.assert_allclose([bar.get_height() for bar in shares.patches], [20, 50])


def test_beam_draws_each_candidate_once_and_the_best_path_bold():
    steps = [
        [Candidate("a", 0, -0.5, KEPT, None, True), Candidate("b", 0, -1.25, KEPT, None, False)],
        [Candidate("c", 1, -2.0, DROPPED, None, False), Candidate("</s>", 0, -0.75, FINISHED, -0.7, True)],
    ]
    figure = plotting.beam(steps, "title")
    (axis,) = shown(figure)
    assert {"a\n-0.50", "b\n-1.25", "c\n-2.00", "</s>\n-0.70"} <= set(texts(figure))
    bold = {text.get_text()[0] for text in axis.texts if text.get_fontweight() == "bold"}
    assert bold == {"a", "<"}
    ends = [(tuple(line.get_xdata()), tuple(line.get_ydata())) for line in axis.lines]
    assert ends == [((0, 1), (0, 0)), ((0, 1), (0, -1)), ((1, 2), (-1, 0)), ((1, 2), (0, -1))]


def test_architecture_names_each_part_with_parameters_and_file():
    part = Part("Self-attention", "attention", 1234, "model/attention.py")
    tower = Tower("Encoder", "source", [part._replace(parameters=0)], [part], 7, [])
    figure = plotting.architecture(tower, tower._replace(name="Decoder", layers=11), "mine")
    found = texts(figure)
    assert found.count("1,234 parameters · model/attention.py") == 2
    assert found.count("no own parameters · model/attention.py") == 2
    assert {"7 ×", "11 ×", "Encoder", "Decoder", "mine"} <= set(found)


def test_colours_can_be_told_apart_in_grey():
    """The sequential colour map rises in lightness, and curves differ by their dashes."""
    from tf_transformer.plotting.style import DASHES, SEQUENTIAL

    light = matplotlib.colormaps[SEQUENTIAL](np.linspace(0, 1, 11))[:, :3] @ [0.2126, 0.7152, 0.0722]
    assert (np.diff(light) > 0).all()
    assert len(set(DASHES)) == 4
    assert re.fullmatch(r"[a-z]+", SEQUENTIAL)

"""What an export is given beside text: terms, and translations to score."""

from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from tf_transformer.commands.main import main
from tf_transformer.errors import InputError
from tf_transformer.translation.exported import ExportedTranslator

TEXT = "a b c d e"


@pytest.fixture(scope="module")
def exported(copy_export):
    return ExportedTranslator(copy_export)


@pytest.fixture(scope="module")
def with_terms(copy_export):
    function = tf.saved_model.load(str(copy_export)).signatures["translate_with_terms"]
    return lambda text, terms: function(text=tf.constant(text, tf.string), terms=tf.constant(terms, tf.string))


@pytest.mark.long_but_first
@pytest.mark.parametrize("terms", ["", "\t", "\t\t\t"])
def test_padding_of_terms_demands_nothing(with_terms, terms):
    """Rows of different numbers of terms are made equally long by tabs, or have none."""
    found = with_terms([TEXT, TEXT, ""], [terms, f"k{terms}j\t", terms])
    expected = with_terms([TEXT, TEXT, ""], ["", "k\tj" if terms else "kj", ""])
    np.testing.assert_array_equal(found["translations"], expected["translations"])
    assert found["scores"].numpy()[2].tolist() == [0, -np.inf, -np.inf, -np.inf]
    assert np.isfinite(found["scores"][:2]).all()
    assert with_terms([], [])["translations"].shape[0] == 0


@pytest.mark.parametrize(
    ("text", "terms"), [("", "k"), ("  ", "k"), (TEXT, " "), (TEXT, "k\t\u200b"), (TEXT, "\x01"), (TEXT, "\u2581\tk")]
)
def test_where_terms_cannot_be_there_nothing_is(with_terms, text, terms):
    found = with_terms([TEXT, text, TEXT], ["k", terms, ""])
    assert found["scores"].numpy()[1].tolist() == [-np.inf] * 4
    assert found["translations"].numpy()[1].tolist() == [b""] * 4
    assert np.isfinite(found["scores"].numpy()[[0, 2]]).all()


@pytest.mark.long_but_first
@pytest.mark.parametrize("counts", [(1, 3), (3, 1), (1, 0), (0, 1)])
def test_a_signature_has_what_it_needs_for_each_sentence(copy_export, with_terms, exported, counts):
    one, other = ([TEXT] * counts[0], ["k"] * counts[1])
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"give terms for each string"):
        with_terms(one, other)
    with pytest.raises(InputError, match=r"give terms for each sentence"):
        exported.translate_strings(one, terms=[[term] for term in other])
    score = tf.saved_model.load(str(copy_export)).signatures["score"]
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"give target for each string"):
        score(source=tf.constant(one, tf.string), target=tf.constant(other, tf.string))


def test_a_sentence_without_text_has_no_translation_with_terms(exported):
    with pytest.raises(InputError, match=r"the sentence has no text.*Received: 'k'$"):
        exported.translate_strings([TEXT, ""], terms=[[], ["k"]])


@pytest.mark.long_but_first
@pytest.mark.parametrize("kind", ["run", "SavedModel", "LiteRT"])
def test_score_and_search_agree_on_an_empty_sentence(copy_run, copy_export, copy_litert, tmp_path, capsys, kind):
    """By all roads of the command line."""
    model = {"run": copy_run, "SavedModel": copy_export}.get(kind) or copy_litert("float32")
    source, target = (Path(tmp_path, name) for name in ("source", "target"))
    source.write_text(f"\n{TEXT}\n \n\n")
    assert main(["translate", "--model", str(model), "--scores", "--input", str(source), "--output", str(target)]) == 0
    searched = [line.split("\t") for line in target.read_text().splitlines()]
    assert [(float(score), text) for score, text in (searched[0], *searched[2:])] == [(0, "")] * 3
    target.write_text("".join(f"{text}\n" for _, text in searched))
    capsys.readouterr()
    assert main(["score", "--model", str(model), "--tokens", str(source), str(target)]) == 0
    scored = capsys.readouterr().out.splitlines()
    assert [scored[0], *scored[2:]] == ["0.0000\t1.0000\t0.0000"] * 3

"""Alignments: their units and their error rate by hand, and those of a model that copies, which are known."""

import dataclasses

import numpy as np
import pytest

from tf_transformer import Translator
from tf_transformer.commands.main import main
from tf_transformer.data.corpora import copy_task
from tf_transformer.text.alignment import AlignedString, alignment_error_rate, pharaoh, units_of
from tf_transformer.translation.opening import open_translator

LINES = [source for source, _ in copy_task.pairs("test")[:29]]


@pytest.mark.parametrize(
    ("tokens", "words", "of_tokens"),
    [
        (["▁a", "b", "▁c", "</s>"], [[0, 1], [2]], [[0], [1], [2]]),
        (["deu_Latn", "▁x", "</s>", ""], [[1]], [[1]]),
        (["▁", "<0xE2>", "<0x98>", "▁y"], [[0, 1, 2], [3]], [[0], [1], [2], [3]]),
        (["▁", "▁y", "</s>"], [[0, 1]], [[0], [1]]),
        (["</s>"], [], []),
        ([], [], []),
    ],
)
def test_units(tokens, words, of_tokens):
    assert units_of(tokens, "words") == words
    assert units_of(tokens, "tokens") == of_tokens


def test_a_word_is_linked_to_what_its_tokens_attend_to_most():
    attention = np.array([[0.4, 0.3, 0.25, 0.05], [0.1, 0.1, 0.75, 0.05], [0.2, 0.6, 0.1, 0.1], [0, 0, 0, 1]])
    found = AlignedString("xy z", ["▁a", "b", "▁c", "</s>"], ["▁x", "y", "▁z", "</s>"], attention)
    assert found.links() == [(0, 1), (1, 0)]  # x alone would attend to a b: 0.7; with y it is 0.9 against 1.0
    assert found.links("tokens") == [(0, 0), (1, 2), (2, 1)]
    assert pharaoh(found.links()) == "0-1 1-0"
    assert AlignedString("", ["</s>"], ["</s>"], np.ones((1, 1))).links() == []


def test_the_error_rate_is_that_of_och_and_ney():
    assert alignment_error_rate([(0, 0), (1, 1)], [(0, 0), (1, 1)]) == 0
    assert alignment_error_rate([(0, 1)], [(0, 0)]) == 1
    # A = 3, S = 2, one of A is sure and one more possible: 1 - (1 + 2) / (3 + 2).
    assert alignment_error_rate([(0, 0), (1, 1), (2, 2)], [(0, 0), (3, 3)], [(1, 1)]) == pytest.approx(1 - 3 / 5)
    assert alignment_error_rate([], []) == 0


def error_rate(translator):
    rates = []
    for line, found in zip(LINES, translator.aligned_strings(LINES), strict=True):
        words = range(len(line.split()))
        assert found.translation == line
        rates.append(alignment_error_rate(found.links(), [(i, i) for i in words]))
    return np.mean(rates)


@pytest.mark.long
def test_a_model_that_copies_aligns_each_word_with_itself(copy_run, copy_export, copy_litert):
    """By the layer that aligns best; run, SavedModel and LiteRT give the same by the last layer."""
    loaded = Translator.load(copy_run)
    rates = {}
    for layer in range(1, loaded.model.num_decoder_layers + 1):
        decoding = dataclasses.replace(loaded.decoding, attention_layer=layer)
        rates[layer] = error_rate(Translator.load(copy_run, decoding))
    assert min(rates.values()) < 0.1, rates
    expected = [one.links() for one in loaded.aligned_strings(LINES)]
    for other in (copy_export, copy_litert("float32")):
        found = open_translator(other).aligned_strings(LINES)
        assert np.mean([one.links() == links for one, links in zip(found, expected, strict=True)]) > 0.9


@pytest.mark.long
def test_the_command_writes_them_after_the_translations(copy_run, tmp_path, capsys):
    (tmp_path / "in.txt").write_text(f"{LINES[0]}\n\n")
    command = ["translate", "--model", str(copy_run), "--input", str(tmp_path / "in.txt")]
    assert main([*command, "--alignments"]) == 0
    first, second = capsys.readouterr().out.splitlines()
    text, links = first.split(" ||| ")
    assert text == LINES[0] and len(links.split()) == len(text.split()) and second == " ||| "
    assert main([*command, "--alignments", "tokens"]) == 0
    assert main([*command, "--alignments", "--n-best", "2"]) == 2
    assert "give it without --scores and --n-best" in capsys.readouterr().err

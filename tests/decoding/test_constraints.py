"""Beam search with phrases that must be written, against plain Python."""

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.decoding.test_decoding import END, RULES, beam_search, exhaustive, search, tables
from tf_transformer.decoding import BeamSearch, ConstrainedBeamSearch, RecordedBeamSearch, Rules, Sentences
from tf_transformer.decoding.constraints import advanced, count_after, no_progress

VOCABULARY = 7
INNER = [1, 4, 5, 6]
PHRASES = st.lists(st.lists(st.sampled_from(INNER), min_size=1, max_size=3), max_size=2)


def padded(phrases):
    """[B, C, L], with 0 after the tokens of each phrase and after the phrases of each sentence."""
    count = max((len(row) for row in phrases), default=0)
    longest = max((len(phrase) for row in phrases for phrase in row), default=0)
    ids = np.zeros([len(phrases), count, longest], np.int32)
    for i, row in enumerate(phrases):
        for j, phrase in enumerate(row):
            ids[i, j, : len(phrase)] = phrase
    return ids


def contains(ids, phrase):
    return any(ids[i : i + len(phrase)] == phrase for i in range(len(ids)))


@pytest.mark.long
@settings(max_examples=25)
@given(st.integers(0, 10_000), PHRASES, st.sampled_from([0.0, 0.6, 1.7]))
def test_a_wide_beam_is_exhaustive_search_among_what_contains_the_phrases(seed, phrases, alpha):
    limit = 4
    table = tables(seed, 1, limit, VOCABULARY)
    [found] = search(beam_search, table, [limit], width=600, alpha=alpha, phrases=padded([phrases]))
    expected = [
        (score, ids)
        for score, ids, _ in exhaustive(table[0], limit, alpha)
        if all(contains(ids, phrase) for phrase in phrases)
    ]
    if not expected:
        assert found == [([], -np.inf, -np.inf)]
        return
    [(ids, score, _)] = found
    assert ids == expected[0][1]
    assert score == pytest.approx(expected[0][0], abs=1e-4)


@pytest.mark.long
@settings(max_examples=25)
@given(st.integers(0, 10_000), st.lists(PHRASES, min_size=1, max_size=5), st.integers(1, 5), st.booleans())
def test_the_phrases_are_there_whatever_the_beam_and_the_rules(seed, phrases, width, is_strict):
    """The limit has room for the phrases and the end token, and no more."""
    limits = [sum(map(len, row)) + 1 for row in phrases]
    table = tables(seed, len(phrases), max(limits), VOCABULARY, scale=5.0)
    rules = Rules(2, END, banned=(1, 5), no_repeat_ngram=1) if is_strict else Rules(2, END)
    found = search(beam_search, table, limits, rules, width=width, phrases=padded(phrases))
    for row, [(ids, score, _)] in zip(phrases, found, strict=True):
        assert all(contains(ids, phrase) for phrase in row)
        assert np.isfinite(score)


@pytest.mark.long
@settings(max_examples=15)
@given(st.integers(0, 10_000), st.lists(PHRASES, min_size=2, max_size=5), st.integers(1, 5))
def test_phrases_are_those_of_a_sentence_alone(seed, phrases, width):
    phrases = [[], *phrases]
    limits = [3 + sum(map(len, row)) for row in phrases]
    table = tables(seed, len(phrases), max(limits), VOCABULARY)
    together = search(beam_search, table, limits, width=width, phrases=padded(phrases))
    [plain] = search(beam_search, table[:1], limits[:1], width=width)
    assert_same(together[0], plain)
    for i, row in enumerate(phrases):
        [alone] = search(beam_search, table[[i]], limits[i : i + 1], width=width, phrases=padded([row]))
        assert_same(together[i], alone)


def assert_same(found, expected):
    assert [ids for ids, _, _ in found] == [ids for ids, _, _ in expected]
    np.testing.assert_allclose([row[1:] for row in found], [row[1:] for row in expected], rtol=1e-5)


def test_a_phrase_is_found_that_begins_within_another_beginning():
    """1 1 4 stands at the end of 1 1 1 4, where the second 1 begins it."""
    table = np.full([1, 5, VOCABULARY, VOCABULARY], -5.0)
    for position, token in enumerate([1, 1, 1, 4, END]):
        table[0, position, :, token] = 5.0
    [[(ids, _, _)]] = search(beam_search, table, [5], width=3, phrases=padded([[[1, 1, 4]]]))
    assert ids == [1, 1, 1, 4, END]


def test_a_prefix_comes_first():
    table = tables(11, 1, 6, VOCABULARY)
    [[(ids, score, _)]] = search(
        beam_search, table, [6], width=3, phrases=padded([[[5, 6]]]), prefix=np.array([[4, 1]], np.int32)
    )
    assert ids[:2] == [4, 1]
    assert contains(ids, [5, 6])
    assert np.isfinite(score)


def test_without_room_nothing_is_found():
    table = tables(13, 2, 4, VOCABULARY)
    found = search(beam_search, table, [2, 4], width=3, phrases=padded([[[4, 5, 6]], [[4, 5, 6]]]))
    assert found[0] == [([], -np.inf, -np.inf)]
    assert contains(found[1][0][0], [4, 5, 6])


def test_a_sentence_without_a_translation_has_no_phrases():
    """The empty hypothesis of a limit of 0 lacks them."""
    table = tables(17, 3, 4, VOCABULARY)
    found = search(beam_search, table, [0, 0, 4], width=3, phrases=padded([[[4]], [], [[5]]]))
    assert found[0] == [([], -np.inf, -np.inf)]
    assert found[1] == [([], 0, 0)]
    assert 5 in found[2][0][0]


def test_a_search_that_cannot_write_phrases_refuses_them():
    plain = Sentences(tf.constant([3]))
    for kind, sentences in (
        (BeamSearch, plain._replace(phrases=tf.constant([[[4]]]))),
        (RecordedBeamSearch, plain._replace(phrases=tf.constant([[[4]]]))),
        (ConstrainedBeamSearch, plain),
    ):
        with pytest.raises(ValueError, match="need a ConstrainedBeamSearch"):
            kind(None, RULES)((), sentences)


@settings(max_examples=25)
@given(st.lists(PHRASES, min_size=1, max_size=3), st.lists(st.sampled_from(INNER), max_size=6))
def test_what_each_token_would_add_is_counted(phrases, written):
    """Against plain Python: what is contained, and how much of another phrase stands at the end."""
    ids = tf.constant(np.pad(padded(phrases), [[0, 0], [0, 1], [0, 1]]))
    progress = no_progress(ids, 1)
    for token in written:
        progress = advanced(progress, ids, tf.fill([len(phrases), 1], token))
    tokens = tf.tile(tf.range(VOCABULARY)[None, None], [len(phrases), 1, 1])
    counts, are_all_met = count_after(progress, ids, tokens)
    for row, of_row, all_met in zip(phrases, counts.numpy()[:, 0], are_all_met.numpy()[:, 0], strict=True):
        for token in range(1, VOCABULARY):
            after = [*written, token]
            begun = [
                max((n for n in range(len(phrase)) if after[len(after) - n :] == phrase[:n]), default=0)
                for phrase in row
                if not contains(after, phrase)
            ]
            met = [len(phrase) for phrase in row if contains(after, phrase)]
            assert of_row[token] == sum(met) + max(begun, default=0)
            assert all_met[token] == (begun == [])

"""Greedy, beam and sampling against plain Python, on a scripted step function."""

import itertools

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from tf_transformer.decoding import Rules, Sentences, beam_search, greedy, length_penalty, sample

START, END = 2, 3
RULES = Rules(START, END)


def scripted(table):
    """A step function whose logits depend on the sentence, the position and the last token alone.

    Its context is the number of the sentence, its cache what was read so far: that shows where rows have moved.
    """
    table = tf.constant(table, tf.float32)  # [B, T, V, V]

    def step(ids, position, cache, context):
        sentence = tf.repeat(context, tf.size(ids) // tf.maximum(tf.size(context), 1))
        read = tf.concat([cache, ids[:, None]], axis=1)
        logits = tf.gather_nd(table, tf.stack([sentence, tf.fill(tf.shape(ids), position), read[:, -1]], axis=1))
        return logits, read

    return step


def search(method, table, limits, rules=RULES, width=1, **options):
    count = len(limits)
    given_prefix = {"prefix": tf.constant(options.pop("prefix"))} if "prefix" in options else {}
    if "uniform" in options:
        given_prefix["uniform"] = tf.constant(options.pop("uniform"), tf.float32)
    sentences = Sentences(tf.constant(limits, tf.int32), context=tf.range(count), **given_prefix)
    if method is beam_search:
        options["beam_size"] = width
    found = method(scripted(table), tf.zeros([count * width, 0], tf.int32), sentences, rules, **options)
    return [
        [([i for i in ids if i], score, total) for ids, score, total in zip(*rows, strict=True)]
        for rows in zip(found.ids.numpy().tolist(), found.scores.numpy(), found.log_probabilities.numpy(), strict=True)
    ]


def log_softmax(logits):
    logits = logits - logits.max(axis=-1, keepdims=True)
    return logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))


def exhaustive(table, limit, alpha=0.0):
    """Every sequence that ends with the end token or at the limit, and its score; the best first."""
    vocabulary = table.shape[-1]
    log_probabilities = log_softmax(table)
    inner = sorted(set(range(vocabulary)) - {0, START, END})
    found = []
    for length in range(1, limit + 1):
        for head in itertools.product(inner, repeat=length - 1):
            for last in [END, *inner] if length == limit else [END]:
                ids = [*head, last]
                before = [START, *head]
                total = sum(log_probabilities[t, before[t], ids[t]] for t in range(length))
                found.append((total / ((5 + length) / 6) ** alpha, ids, total))
    return sorted(found, reverse=True)


def tables(seed, count, length, vocabulary, scale=2.0):
    return np.random.default_rng(seed).normal(size=(count, length, vocabulary, vocabulary)) * scale


def test_the_length_penalty_is_the_papers():
    assert float(length_penalty(7, 0.6)) == pytest.approx(2**0.6)
    assert float(length_penalty(1, 0.6)) == 1.0
    assert float(length_penalty(19, 0.0)) == 1.0


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000), st.lists(st.integers(0, 5), min_size=1, max_size=5), st.integers(5, 11))
def test_greedy_is_greedy(seed, limits, vocabulary):
    table = tables(seed, len(limits), 5, vocabulary)
    for row, limit, [(ids, score, total)] in zip(table, limits, search(greedy, table, limits), strict=True):
        last, expected, expected_total = START, [], 0.0
        while len(expected) < limit and last != END:
            log_probabilities = log_softmax(row[len(expected)][last])
            last = max(set(range(vocabulary)) - {0, START}, key=log_probabilities.__getitem__)
            expected_total += log_probabilities[last]
            expected.append(last)
        assert ids == expected
        assert score == total == pytest.approx(expected_total, abs=1e-4)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000), st.lists(st.integers(0, 7), min_size=1, max_size=5))
def test_a_beam_of_one_is_greedy(seed, limits):
    table = tables(seed, len(limits), 7, 7)
    for [(ids, _, total)], [(found, score, found_total)] in zip(
        search(greedy, table, limits), search(beam_search, table, limits, alpha=0.0), strict=True
    ):
        assert found == ids
        assert score == found_total == pytest.approx(total, abs=1e-5)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from([0.0, 0.6, 1.0, -0.5]), st.integers(1, 4))
def test_a_wide_beam_is_exhaustive_search(seed, alpha, limit):
    vocabulary, n = 6, 3
    table = tables(seed, 2, limit, vocabulary)
    found = search(beam_search, table, [limit, limit], width=vocabulary**limit, alpha=alpha, n_best=n)
    for row, best in zip(table, found, strict=True):
        expected = exhaustive(row, limit, alpha)[:n]
        for (ids, score, total), (expected_score, expected_ids, expected_total) in zip(best, expected, strict=False):
            assert score == pytest.approx(expected_score, abs=1e-4)
            assert ids == expected_ids or abs(score - expected_score) < 1e-4
            assert total == pytest.approx(expected_total, abs=1e-4)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.permutations(range(6)), st.sampled_from([0.0, 0.6]))
def test_other_sentences_change_nothing(seed, order, alpha):
    """Sentences end at different times and leave the batch; their rows move."""
    limits = [1, 2, 3, 5, 8, 0]
    table = tables(seed, 6, 8, 7)
    options = {"width": 3, "alpha": alpha, "n_best": 3}
    together = search(beam_search, table[list(order)], [limits[i] for i in order], **options)
    for i, found in zip(order, together, strict=True):
        alone = search(beam_search, table[[i]], limits[i : i + 1], **options)[0]
        assert [ids for ids, _, _ in found] == [ids for ids, _, _ in alone]
        np.testing.assert_allclose([score for _, score, _ in found], [score for _, score, _ in alone], rtol=1e-5)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000), st.integers(2, 5), st.sampled_from([0.0, 0.6, 1.0]))
def test_exact_stopping_misses_nothing_and_early_stopping_may(seed, width, alpha):
    """Exact: as good as the same search that goes on to the limit, here by plain Python."""
    limit, vocabulary = 6, 6
    table = tables(seed, 1, limit, vocabulary)
    log_probabilities = log_softmax(table[0])
    live, final = [(0.0, [])], []
    for t in range(limit):
        grown = [
            (total + log_probabilities[t, (ids or [START])[-1], token], [*ids, token])
            for total, ids in live
            for token in set(range(vocabulary)) - {0, START}
        ]
        best = sorted(grown, reverse=True)[: 2 * width]
        kept = best[:width]
        ended = [(total / ((5 + t + 1) / 6) ** alpha, ids) for total, ids in kept if ids[-1] == END or t + 1 == limit]
        final = sorted(final + ended, reverse=True)[:width]
        live = [(total, ids) for total, ids in best if ids[-1] != END][:width]
    [exact] = search(beam_search, table, [limit], width=width, alpha=alpha, n_best=width)
    for (ids, score, _), (expected_score, expected_ids) in zip(exact, final, strict=False):
        assert score == pytest.approx(expected_score, abs=1e-4)
        assert ids == expected_ids
    scores = [score for _, score, _ in exact]
    assert scores == sorted(scores, reverse=True)
    [early] = search(beam_search, table, [limit], width=width, alpha=alpha, early_stopping=True)
    assert early[0][1] <= exact[0][1] + 1e-5


def test_fewer_hypotheses_than_wanted_leave_the_rest_empty():
    """Of one token there are as many as tokens that may be written."""
    [rows, none] = search(beam_search, tables(2, 2, 1, 6), [1, 0], width=5, n_best=5)
    assert sorted(ids for ids, _, _ in rows) == [[], [1], [END], [4], [5]]
    assert rows[4] == ([], -np.inf, -np.inf)
    assert none[0] == ([], 0.0, 0.0)
    assert none[1:] == [([], -np.inf, -np.inf)] * 4


def test_rules():
    vocabulary = 8
    table = tables(5, 1, 9, vocabulary)
    for method in (greedy, beam_search):
        width = {"width": 3} if method is beam_search else {}
        [[(ids, _, _)]] = search(method, table, [9], RULES._replace(banned=(4, 5), min_length=9), **width)
        assert len(ids) == 9
        assert not {0, START, END, 4, 5} & set(ids)
        [[(ids, _, _)]] = search(method, table, [9], RULES._replace(min_length=9, no_repeat_ngram=2), **width)
        bigrams = list(itertools.pairwise(ids))
        assert len(set(bigrams)) == len(bigrams)
        [[(ids, _, total)]] = search(method, table, [9], prefix=[[6, 6, 0]], **width)
        assert ids[:2] == [6, 6]
        before = [START, *ids[:-1]]
        scored = sum(log_softmax(table[0, t, before[t]])[token] for t, token in enumerate(ids))
        assert total == pytest.approx(scored, abs=1e-4)  # of all tokens, those that may not be written among them


def test_a_repeated_token_is_an_ngram_of_one():
    [[(ids, _, _)]] = search(greedy, tables(6, 1, 9, 9), [5], RULES._replace(min_length=5, no_repeat_ngram=1))
    assert len(set(ids)) == len(ids) == 5


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10_000), st.floats(0.2, 3.0))
def test_drawing_from_the_best_token_is_greedy(seed, temperature):
    table, limits = tables(seed, 3, 6, 7), [6, 4, 2]
    uniform = np.random.default_rng(seed).random((3, 6))
    expected = search(greedy, table, limits)
    for cut in ({"top_k": 1}, {"top_p": 1e-6}):
        drawn = search(sample, table, limits, uniform=uniform, temperature=temperature, **cut)
        assert [[ids for ids, _, _ in row] for row in drawn] == [[ids for ids, _, _ in row] for row in expected]


def test_tokens_are_drawn_as_often_as_they_are_probable():
    """10,007 evenly spread numbers: shares are within one of their number of what the distribution says."""
    count, vocabulary, temperature = 10_007, 7, 0.7
    logits = np.random.default_rng(8).normal(size=vocabulary)
    table = np.broadcast_to(logits, (1, 1, vocabulary, vocabulary))
    uniform = (np.arange(count)[:, None] + 0.5) / count
    allowed = np.array([1, 3, 4, 5, 6])
    expected = np.exp(log_softmax(logits[allowed] / temperature))

    def shares(**cut):
        sentences = Sentences(tf.ones([count], tf.int32), tf.zeros([count], tf.int32), uniform=tf.constant(uniform))
        sentences = sentences._replace(uniform=tf.cast(sentences.uniform, tf.float32))
        found = sample(
            scripted(table), tf.zeros([count, 0], tf.int32), sentences, RULES, temperature=temperature, **cut
        )
        np.testing.assert_allclose(found.scores[:, 0], log_softmax(logits)[found.ids[:, 0, 0].numpy()], atol=1e-5)
        return np.array([(found.ids[:, 0, 0].numpy() == token).mean() for token in allowed])

    np.testing.assert_allclose(shares(), expected, atol=1e-3)
    order = np.argsort(expected)[::-1]
    two = np.zeros(5)
    two[order[:2]] = expected[order[:2]] / expected[order[:2]].sum()
    np.testing.assert_allclose(shares(top_k=2), two, atol=1e-3)
    enough = expected[order[0]] + expected[order[1]] - 0.01  # one token is not enough, two are
    np.testing.assert_allclose(shares(top_p=enough), two, atol=1e-3)


def test_it_runs_in_a_graph_of_unknown_shapes():
    table, limits = tables(1, 3, 5, 7), [5, 2, 4]

    @tf.function(input_signature=[tf.TensorSpec([None], tf.int32)])
    def found(limits):
        count = tf.size(limits)
        sentences = Sentences(limits, context=tf.range(count))
        cache = tf.zeros([count * 3, 0], tf.int32)
        return beam_search(scripted(table), cache, sentences, RULES, beam_size=3, n_best=2)

    ids = found(tf.constant(limits)).ids.numpy().tolist()
    expected = search(beam_search, table, limits, width=3, n_best=2)
    assert [[[i for i in row if i] for row in rows] for rows in ids] == [[ids for ids, _, _ in row] for row in expected]
    assert found(tf.constant([], tf.int32)).ids.shape == (0, 2, 0)

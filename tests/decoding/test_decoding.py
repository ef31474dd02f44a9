"""Greedy, beam and sampling against plain Python, on a scripted step function."""

import itertools

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from tf_transformer.decoding import (
    BeamSearch,
    ConstrainedBeamSearch,
    RecordedBeamSearch,
    Rules,
    Sentences,
    greedy,
    length_penalty,
    sample,
)

START, END = 2, 3
RULES = Rules(START, END)


def scripted(table, attention=None):
    """A step function whose logits and attention depend on the sentence, the position and the last token alone.

    Its context is the number of the sentence, its cache the sum of what was read: that shows where rows have moved.
    """
    table = tf.constant(table, tf.float32)  # [B, T, V, V]
    weights = () if attention is None else tf.constant(attention, tf.float32)  # [B, T, V, S]

    def step(ids, position, cache, context):
        sentence = tf.repeat(context, tf.size(ids) // tf.maximum(tf.size(context), 1))
        places = tf.stack([sentence, tf.fill(tf.shape(ids), position), ids], axis=1)
        return tf.gather_nd(table, places), () if attention is None else tf.gather_nd(weights, places), cache + ids

    return step


def beam_search(step, cache, sentences, rules, **options):
    kind = ConstrainedBeamSearch if tf.is_tensor(sentences.phrases) else BeamSearch
    return kind(step, rules, **options)(cache, sentences)


def search(method, table, limits, rules=RULES, width=1, attention=None, **options):
    """Search twice, with tensors that grow and with tensors of a fixed size, and give what both have found."""
    count = len(limits)
    given = options.keys() & {"prefix", "uniform", "coverage", "phrases"}
    tensors = {name: tf.constant(options.pop(name)) for name in given}
    sentences = Sentences(tf.constant(limits, tf.int32), context=tf.range(count), **tensors)
    if method is beam_search:
        options["beam_size"] = width
    step, cache = scripted(table, attention), tf.zeros([count * width], tf.int32)
    growing, fixed = (
        method(step, cache, sentences, rules, capacity=capacity, **options) for capacity in (None, max(limits) + 2)
    )
    np.testing.assert_array_equal(growing.ids, fixed.ids[:, :, : growing.ids.shape[2]])
    assert not np.any(fixed.ids[:, :, growing.ids.shape[2] :])
    np.testing.assert_allclose(growing.scores, fixed.scores, rtol=1e-5)
    np.testing.assert_allclose(growing.log_probabilities, fixed.log_probabilities, rtol=1e-5)
    return [
        [([i for i in ids if i], score, total) for ids, score, total in zip(*rows, strict=True)]
        for rows in zip(
            growing.ids.numpy().tolist(), growing.scores.numpy(), growing.log_probabilities.numpy(), strict=True
        )
    ]


def log_softmax(logits):
    logits = logits - logits.max(axis=-1, keepdims=True)
    return logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))


def exhaustive(table, limit, alpha=0.0, beta=0.0, attention=None, offset=5.0):
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
                score = total / ((offset + length) / (offset + 1)) ** alpha
                if beta:
                    covered = sum(attention[t, before[t]] for t in range(length))
                    score += beta * np.log(np.minimum(covered, 1)).sum()
                found.append((score, ids, total))
    return sorted(found, reverse=True)


def tables(seed, count, length, vocabulary, scale=2.0):
    return np.random.default_rng(seed).normal(size=(count, length, vocabulary, vocabulary)) * scale


def test_the_length_penalty_is_the_papers():
    assert float(length_penalty(7, 0.6)) == pytest.approx(2**0.6)
    assert float(length_penalty(1, 0.6)) == 1.0
    assert float(length_penalty(19, 0.0)) == 1.0
    assert float(length_penalty(7, 2.0, offset=0.0)) == 49.0


@settings(max_examples=15)
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


@settings(max_examples=15)
@given(st.integers(0, 10_000), st.lists(st.integers(0, 7), min_size=1, max_size=5))
def test_a_beam_of_one_is_greedy(seed, limits):
    table = tables(seed, len(limits), 7, 7)
    for [(ids, _, total)], [(found, score, found_total)] in zip(
        search(greedy, table, limits), search(beam_search, table, limits, alpha=0.0), strict=True
    ):
        assert found == ids
        assert score == found_total == pytest.approx(total, abs=1e-5)


@settings(max_examples=13)
@given(
    st.integers(0, 10_000), st.sampled_from([0.0, 0.6, 1.0, -0.5]), st.integers(1, 4), st.sampled_from([5.0, 0.0, 1.5])
)
def test_a_wide_beam_is_exhaustive_search(seed, alpha, limit, offset):
    vocabulary, n = 6, 3
    table = tables(seed, 2, limit, vocabulary)
    options = {"width": vocabulary**limit, "alpha": alpha, "offset": offset, "n_best": n}
    found = search(beam_search, table, [limit, limit], **options)
    for row, best in zip(table, found, strict=True):
        expected = exhaustive(row, limit, alpha, offset=offset)[:n]
        for (ids, score, total), (expected_score, expected_ids, expected_total) in zip(best, expected, strict=False):
            assert score == pytest.approx(expected_score, abs=1e-4)
            assert ids == expected_ids or abs(score - expected_score) < 1e-4
            assert total == pytest.approx(expected_total, abs=1e-4)


@settings(max_examples=13)
@given(st.integers(0, 10_000), st.sampled_from([0.0, 0.6, -0.5]), st.sampled_from([0.2, 3.0]), st.integers(1, 4))
def test_coverage_is_rewarded_exactly(seed, alpha, beta, limit):
    """Three source positions and one of padding, which asks for nothing."""
    vocabulary, n = 6, 3
    table = tables(seed, 2, limit, vocabulary)
    attention = np.random.default_rng(seed).dirichlet(np.full(3, 0.3), size=(2, limit, vocabulary)) + 1e-6
    padded = np.pad(attention, [(0, 0)] * 3 + [(0, 1)])
    covered = np.float32([[0, 0, 0, 1]] * 2)
    options = {"width": vocabulary**limit, "alpha": alpha, "beta": beta, "n_best": n, "coverage": covered}
    found = search(beam_search, table, [limit, limit], attention=padded, **options)
    for row, weights, best in zip(table, attention, found, strict=True):
        expected = exhaustive(row, limit, alpha, beta, weights)[:n]
        for (ids, score, total), (expected_score, expected_ids, expected_total) in zip(best, expected, strict=False):
            assert score == pytest.approx(expected_score, abs=2e-4)
            assert ids == expected_ids or abs(score - expected_score) < 2e-4
            assert total == pytest.approx(expected_total, abs=1e-4)


@pytest.mark.long
@settings(max_examples=13)
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


@pytest.mark.long
@settings(max_examples=20)
@given(st.integers(0, 10_000), st.integers(2, 5), st.sampled_from([0.0, 0.6, 1.0]))
def test_exact_stopping_misses_nothing_and_early_stopping_may(seed, width, alpha):
    """Exact: as good as the same search that goes on to the limit, here by plain Python."""
    limit, vocabulary = 6, 6
    table = tables(seed, 1, limit, vocabulary)
    final = plain_search(table[0], limit, width, alpha)
    [exact] = search(beam_search, table, [limit], width=width, alpha=alpha, n_best=width)
    for (ids, score, _), (expected_score, expected_ids) in zip(exact, final, strict=False):
        assert score == pytest.approx(expected_score, abs=1e-4)
        assert ids == expected_ids
    scores = [score for _, score, _ in exact]
    assert scores == sorted(scores, reverse=True)
    for options in ({"stopping": "early"}, {"stopping": "heuristic"}):
        [sooner] = search(beam_search, table, [limit], width=width, alpha=alpha, **options)
        assert sooner[0][1] <= exact[0][1] + 1e-5


@settings(max_examples=20)
@given(st.integers(0, 10_000), st.integers(2, 5), st.sampled_from([0.6, 1.0, 2.0]))
def test_likely_stopping_is_that_of_transformers(seed, width, alpha):
    """It ends where the worst of the final ones is as good as the best that goes on, at the length of now."""
    table = tables(seed, 1, 6, 6)

    def is_enough(length, live, final):
        worst = final[width - 1][0] if len(final) == width else -np.inf
        return not live or worst >= live[0][0] / ((5 + length) / 6) ** alpha

    final = plain_search(table[0], 6, width, alpha, is_enough)
    [found] = search(beam_search, table, [6], width=width, alpha=alpha, n_best=width, stopping="heuristic")
    for (ids, score, _), (expected_score, expected_ids) in zip(found, final, strict=False):
        assert score == pytest.approx(expected_score, abs=1e-4)
        assert ids == expected_ids


def plain_search(table, limit, width, alpha, is_enough=lambda length, live, final: False):
    """A beam search in plain Python: the final hypotheses, with their scores."""
    log_probabilities, vocabulary = log_softmax(table), table.shape[-1]
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
        if is_enough(t + 1, live, final):
            break
    return final


@pytest.mark.parametrize("alpha", [-2.0, 2.0])
def test_what_the_penalty_prefers_is_found_among_later_ones(alpha):
    """By its length, 2 or 6, the second hypothesis beats the end; by the length of the other it could not."""
    length = 2 if alpha < 0 else 6
    table = np.full((1, 6, 6, 6), -9.0)
    table[0, 0, START, [0, END, 4]] = np.log([1e-9, 0.35, 0.65] if alpha < 0 else [0.45, 0.35, 0.2])
    table[0, 1 : length - 1, 4, 4] = table[0, length - 1, 4, END] = 9.0
    [[(ids, score, _)]] = search(beam_search, table, [6], width=2, alpha=alpha)
    expected_score, expected_ids, _ = exhaustive(table[0], 6, alpha)[0]
    assert ids == expected_ids == [4] * (length - 1) + [END]
    assert score == pytest.approx(expected_score, abs=1e-4)


def steps_of(limits, **options):
    """How many steps a beam of 3 takes, and with how many rows."""
    table = tables(7, len(limits), 12, 7)
    rows = []

    def step(ids, position, cache, context):
        rows.append(int(tf.size(ids)))
        return scripted(table)(ids, position, cache, context)

    sentences = Sentences(tf.constant(limits), context=tf.range(len(limits)))
    beam_search(step, tf.zeros([3 * len(limits)], tf.int32), sentences, RULES, beam_size=3, **options)
    return rows


def test_a_search_stops_once_nothing_better_can_follow():
    """Sooner for the best one than for all three, and sooner still where it stops at three; never at the limit."""
    early, best, all_three = (
        len(steps_of([12], **options)) for options in ({"stopping": "early"}, {"n_best": 1}, {"n_best": 3})
    )
    assert early < all_three < 12
    assert best <= all_three


def test_sentences_that_are_done_leave_the_batch():
    rows = steps_of([1, 1, 2, 12])
    assert rows[0] == 12
    assert set(rows[2:]) == {3}


def test_what_is_out_of_range_is_refused():
    for options in ({"beam_size": 0}, {"beam_size": 2, "n_best": 3}, {"beta": -1.0}, {"stopping": "never"}):
        with pytest.raises(ValueError, match="n_best must be 1 to beam_size"):
            BeamSearch(None, RULES, **options)
    for options in ({"temperature": 0.0}, {"top_p": 1.5}, {"top_p": 0.0}, {"top_k": -1}):
        with pytest.raises(ValueError, match="temperature must be above 0"):
            sample(None, (), None, RULES, **options)


def test_sentences_may_be_arrays():
    """Each field, in the searches that read it, with tensors that grow and without."""
    table = tables(5, 2, 6, 7)
    random = np.random.default_rng(5)
    step = scripted(table, random.random((2, 6, 7, 3)))
    limits, start = np.array([4, 3]), np.array([4, 5])
    cases = [
        (greedy, {}, {"start": start, "prefix": np.array([[6], [0]])}),
        (sample, {}, {"start": start, "uniform": random.random((2, 6))}),
        (beam_search, {"beam_size": 2, "beta": 0.3}, {"start": start, "coverage": np.zeros((2, 3))}),
        (constrained, {"beam_size": 2}, {"phrases": np.array([[[6, 5]], [[4, 0]]])}),
    ]
    for (method, options, arrays), capacity in itertools.product(cases, (None, 6)):
        found = []
        for make in (np.asarray, as_tensor):
            fields = {name: make(value) for name, value in ({"limits": limits} | arrays).items()}
            sentences = Sentences(**fields, context=make(np.arange(2, dtype=np.int32)))
            cache = tf.zeros([2 * options.get("beam_size", 1)], tf.int32)
            found.append(method(step, cache, sentences, RULES, capacity=capacity, **options).ids)
        np.testing.assert_array_equal(*found)


def constrained(step, cache, sentences, rules, **options):
    return ConstrainedBeamSearch(step, rules, **options)(cache, sentences)


def as_tensor(array):
    return tf.cast(array, tf.float32 if array.dtype.kind == "f" else tf.int32)


def test_what_a_search_needs_is_asked_for():
    sentences = Sentences(tf.constant([3]))
    with pytest.raises(ValueError, match="sampling needs random numbers"):
        sample(scripted(tables(0, 1, 4, 7)), (), sentences, RULES)
    with pytest.raises(ValueError, match="a coverage penalty needs the coverage of sentences"):
        BeamSearch(scripted(tables(0, 1, 4, 7)), RULES, beta=0.1)(tf.zeros([4], tf.int32), sentences)


@pytest.mark.parametrize("rules", [{"min_length": 3}, {"no_repeat_ngram": 1}])
def test_where_nothing_else_may_follow_the_end_does(rules):
    """Of 5 tokens only 4 may be written, and it but once, or not at all."""
    allowed = RULES._replace(banned=(1, 4) if "min_length" in rules else (1,), **rules)
    for method in (greedy, beam_search):
        [[(ids, score, _)]] = search(method, tables(2, 1, 4, 5), [4], allowed)
        assert ids in ([END], [4, END])
        assert np.isfinite(score)


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
        strict = RULES._replace(banned=(6,), min_length=9, no_repeat_ngram=1)
        [[(ids, _, _)]] = search(method, table, [5], strict, prefix=[[6, 6, 0]], **width)
        assert ids[:2] == [6, 6]  # what is asked for is written, whatever the rules are
        assert 6 not in ids[2:]


def test_a_repeated_token_is_an_ngram_of_one():
    [[(ids, _, _)]] = search(greedy, tables(6, 1, 9, 9), [5], RULES._replace(min_length=5, no_repeat_ngram=1))
    assert len(set(ids)) == len(ids) == 5


@settings(max_examples=10)
@given(st.integers(0, 10_000), st.sampled_from([1e-38, 0.2, 1.0, 3.0]))
def test_drawing_from_the_best_token_is_greedy(seed, temperature):
    table, limits = tables(seed, 3, 6, 7), [6, 4, 2]
    uniform = np.random.default_rng(seed).random((3, 8), np.float32)
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
        found = sample(scripted(table), tf.zeros([count], tf.int32), sentences, RULES, temperature=temperature, **cut)
        np.testing.assert_allclose(found.scores[:, 0], log_softmax(logits)[found.ids[:, 0, 0].numpy()], atol=1e-5)
        return np.array([(found.ids[:, 0, 0].numpy() == token).mean() for token in allowed])

    np.testing.assert_allclose(shares(), expected, atol=1e-3)
    order = np.argsort(expected)[::-1]
    two = np.zeros(5)
    two[order[:2]] = expected[order[:2]] / expected[order[:2]].sum()
    np.testing.assert_allclose(shares(top_k=2), two, atol=1e-3)
    enough = expected[order[0]] + expected[order[1]] - 0.01  # one token is not enough, two are
    np.testing.assert_allclose(shares(top_p=enough), two, atol=1e-3)


@pytest.mark.long_but_first
@pytest.mark.parametrize("method", ["greedy", "beam", "sample"])
def test_it_runs_in_a_graph_of_unknown_shapes_and_xla_compiles_it(method):
    """With every option; XLA knows the shapes when it compiles."""
    table, limits = tables(1, 3, 5, 7), tf.constant([5, 2, 4])
    attention = np.random.default_rng(3).dirichlet(np.ones(2), size=(3, 5, 7))
    rules = RULES._replace(banned=(1,), min_length=1, no_repeat_ngram=2)
    rng = np.random.default_rng(4)
    uniform, covered = tf.constant(rng.random((3, 5), np.float32)), tf.zeros([3, 2])
    prefix = tf.constant([[4, 0], [0, 0], [5, 5]])

    def find(limits, uniform, covered, prefix, is_fixed):
        count = tf.size(limits)
        sentences = Sentences(limits, tf.range(count), prefix, uniform, covered)
        capacity = tf.shape(uniform)[1] if is_fixed else None
        arguments = scripted(table, attention), tf.zeros([count * (3 if method == "beam" else 1)], tf.int32), sentences
        if method == "greedy":
            return greedy(*arguments, rules, capacity=capacity)
        if method == "sample":
            return sample(*arguments, rules, 0.8, 4, 0.9, capacity=capacity)
        return beam_search(*arguments, rules, beam_size=3, beta=0.2, n_best=2, capacity=capacity)

    vector, matrix = tf.TensorSpec([None], tf.int32), tf.TensorSpec([None, None], tf.float32)
    signature = [vector, matrix, matrix, tf.TensorSpec([None, None], tf.int32)]
    graph = tf.function(lambda *tensors: find(*tensors, False), input_signature=signature)
    compiled = tf.function(lambda *tensors: find(*tensors, True), input_signature=signature, jit_compile=True)
    found, fixed = (run(limits, uniform, covered, prefix) for run in (graph, compiled))
    length = found.ids.shape[2]
    np.testing.assert_array_equal(found.ids, fixed.ids[:, :, :length])
    assert not np.any(fixed.ids[:, :, length:])
    np.testing.assert_allclose(found.scores, fixed.scores, rtol=1e-5)
    assert found.ids.numpy()[:, 0, 0].tolist()[::2] == [4, 5]
    assert graph(tf.zeros([0], tf.int32), *(tensor[:0] for tensor in (uniform, covered, prefix))).ids.shape[0] == 0


@settings(max_examples=20)
@given(seed=st.integers(0, 2**20), limits=st.lists(st.integers(0, 6), min_size=1, max_size=3), width=st.integers(2, 4))
def test_what_is_considered_leads_to_what_is_found(seed, limits, width):
    """Recording changes nothing, and every candidate has the probability of the tokens that lead to it."""
    table = np.random.default_rng(seed).normal(size=(len(limits), 7, 7, 7)).astype(np.float32) * 2
    log_probabilities = log_softmax(table)
    sentences = Sentences(tf.constant(limits, tf.int32), context=tf.range(len(limits)))
    arguments = scripted(table), tf.zeros([len(limits) * width], tf.int32), sentences, RULES
    plain = beam_search(*arguments, beam_size=width, n_best=width)
    step, cache, sentences, rules = arguments
    recorded, considered = RecordedBeamSearch(step, rules, beam_size=width, n_best=width).considered(cache, sentences)
    np.testing.assert_array_equal(recorded.ids, plain.ids)
    np.testing.assert_allclose(recorded.scores, plain.scores, rtol=1e-5)
    for sentence, limit in enumerate(limits):
        alive, finished = {0: [START]}, {}
        columns = [np.asarray(column)[sentence] for column in considered]
        for step in zip(*columns, strict=True):
            going_on = {}
            for token, parent, place, log_probability, score in zip(*step, strict=True):
                if log_probability == -np.inf:
                    assert place == -1 and score == -np.inf
                    continue
                ids = [*alive[parent], token]
                total = sum(log_probabilities[sentence, t, ids[t], ids[t + 1]] for t in range(len(ids) - 1))
                assert log_probability == pytest.approx(total, abs=1e-4)
                assert not (place >= 0 and score > -np.inf)
                if place >= 0:
                    going_on[place] = ids
                if score > -np.inf:
                    finished[tuple(ids[1:])] = score
            assert len(going_on) <= width
            alive = going_on
        for ids, score in zip(recorded.ids[sentence].numpy(), recorded.scores[sentence].numpy(), strict=True):
            if limit and score > -np.inf:
                assert finished[tuple(token for token in ids if token)] == pytest.approx(score, abs=1e-4)

import numpy as np
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from tf_transformer.decoding import greedy

START, END, V = 2, 3, 7


def scripted(table):
    """A step function whose logits depend on the row, the position and the last token alone; the cache counts."""
    table = tf.constant(table, tf.float32)  # [B, T, V, V]

    def step(ids, position, cache):
        rows = tf.range(tf.shape(ids)[0])
        logits = tf.gather_nd(table, tf.stack([rows, tf.fill(tf.shape(rows), position), ids], axis=1))
        return logits, tf.concat([cache, ids[:, None]], axis=1)

    return step, tf.zeros([table.shape[0], 0], tf.int32)


def reference(table, limits):
    """Greedy search in plain Python."""
    ids, scores = [], []
    for row, limit in zip(table, limits, strict=True):
        last, found, score = START, [], 0.0
        while len(found) < limit and (not found or last != END):
            logits = row[len(found)][last]
            log_probabilities = logits - logits.max() - np.log(np.exp(logits - logits.max()).sum())
            last = max(set(range(V)) - {0, START}, key=log_probabilities.__getitem__)
            score += log_probabilities[last]
            found.append(last)
        ids.append(found)
        scores.append(score)
    return ids, scores


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 10_000), st.lists(st.integers(0, 5), min_size=1, max_size=5))
def test_it_is_greedy(seed, limits):
    table = np.random.default_rng(seed).normal(size=(len(limits), 5, V, V)) * 3
    step, cache = scripted(table)
    found = greedy(step, cache, tf.constant(limits), start=START, end=END)
    ids, scores = reference(table, limits)
    width = max(map(len, ids))
    assert found.ids.numpy().tolist() == [row + [0] * (width - len(row)) for row in ids]
    np.testing.assert_allclose(found.scores, scores, atol=1e-4)


def test_it_runs_in_a_graph_of_unknown_shapes():
    table = np.random.default_rng(1).normal(size=(3, 5, V, V))
    step, _ = scripted(table)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.int32)])
    def search(limits):
        return greedy(step, tf.zeros([tf.shape(limits)[0], 0], tf.int32), limits, start=START, end=END)

    ids, scores = search(tf.constant([5, 2, 4]))
    expected, expected_scores = reference(table, [5, 2, 4])
    assert [[i for i in row if i] for row in ids.numpy().tolist()] == [[i for i in r if i] for r in expected]
    np.testing.assert_allclose(scores, expected_scores, atol=1e-5)


def test_rows_do_not_wait_to_write_padding():
    """After its end a row is padding, whatever the step function says."""
    table = np.zeros((2, 5, V, V))
    table[0, 0, :, END] = 5
    table[1, :, :, 6] = 5
    step, cache = scripted(table)
    found = greedy(step, cache, tf.constant([5, 4]), start=START, end=END)
    assert found.ids.numpy().tolist() == [[END, 0, 0, 0], [6, 6, 6, 6]]


def test_no_rows_give_nothing():
    step, cache = scripted(np.zeros((1, 1, V, V)))
    found = greedy(step, cache[:0], tf.constant([], tf.int32), start=START, end=END)
    assert found.ids.shape == (0, 0)
    assert found.scores.shape == (0,)

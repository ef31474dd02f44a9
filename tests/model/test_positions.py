import math

import keras
import numpy as np
import pytest
import tensorflow as tf

from tf_transformer import positional_encoding
from tf_transformer.model.embeddings import PositionalEmbedding, TokenEmbedding

T, D = 11, 14


def test_positional_encoding_is_the_formula_of_the_paper():
    table = keras.ops.convert_to_numpy(positional_encoding(T, D))
    assert table.shape == (T, D)
    for position in range(T):
        for i in range(D // 2):
            angle = position / 10_000 ** (2 * i / D)
            assert table[position, 2 * i] == pytest.approx(math.sin(angle), abs=1e-5)
            assert table[position, 2 * i + 1] == pytest.approx(math.cos(angle), abs=1e-5)


@pytest.mark.parametrize(
    ("kind", "first", "steps"),
    [("opus", 0, D // 2), ("marian", 0, D // 2 - 1), ("m2m100", 2, D // 2 - 1)],
)
def test_the_sinusoids_of_other_models(kind, first, steps):
    """Sines first; transformers' modeling_marian.py, Marian's src/common/definitions, modeling_m2m_100.py."""
    table = keras.ops.convert_to_numpy(positional_encoding(T, D, kind=kind))
    for position in range(T):
        for i in range(D // 2):
            angle = (position + first) / 10_000 ** (i / steps)
            assert table[position, i] == pytest.approx(math.sin(angle), abs=1e-5)
            assert table[position, D // 2 + i] == pytest.approx(math.cos(angle), abs=1e-5)


def test_unknown_sinusoids_are_refused():
    with pytest.raises(ValueError, match=r"sinusoidal, opus, marian, m2m100\. Received: kind='opsu'"):
        positional_encoding(3, 8, kind="opsu")


def test_positional_encoding_may_start_anywhere():
    whole = positional_encoding(T, D)
    np.testing.assert_allclose(positional_encoding(3, D, start=5), whole[5:8], atol=1e-6)


def test_positional_encoding_of_a_length_known_only_at_run_time():
    @tf.function(input_signature=[tf.TensorSpec([], tf.int32), tf.TensorSpec([], tf.int32)])
    def encode(length, start):
        return positional_encoding(length, D, start)

    np.testing.assert_allclose(encode(5, 2), positional_encoding(7, D)[2:], atol=1e-6)


def test_an_odd_depth_is_refused():
    with pytest.raises(ValueError, match="depth=7"):
        positional_encoding(3, 7)


def test_embeddings_begin_with_unit_variance():
    embedding = TokenEmbedding(997, 64)
    x = keras.ops.convert_to_numpy(embedding(np.arange(997)[None]))
    assert np.std(x) == pytest.approx(1, abs=0.02)
    assert np.std(embedding.table.numpy()) == pytest.approx(64**-0.5, rel=0.02)


def test_the_embedding_gradient_is_that_of_tensorflows_gather():
    embedding = TokenEmbedding(13, 6)
    ids = tf.constant([[1, 5, 1], [5, 5, 12]])
    upstream = tf.random.stateless_normal([2, 3, 6], [1, 2])
    embedding(ids)
    with tf.GradientTape(persistent=True) as tape:
        ours = tf.reduce_sum(embedding(ids) * upstream)
        theirs = tf.reduce_sum(tf.gather(embedding.table.value, ids) * math.sqrt(6) * upstream)
    gradient = tape.gradient(ours, embedding.table.value)
    assert isinstance(gradient, tf.Tensor)  # dense, not IndexedSlices
    np.testing.assert_allclose(gradient, tf.convert_to_tensor(tape.gradient(theirs, embedding.table.value)), atol=1e-6)


def test_learned_positions_are_added_by_position():
    embedding = PositionalEmbedding(13, D, dropout_rate=0, positions="learned", max_positions=7)
    ids = np.array([[3, 3, 3]])
    x = keras.ops.convert_to_numpy(embedding(ids))
    table, token = embedding.table.numpy(), embedding.tokens.table.numpy()[3] * math.sqrt(D)
    np.testing.assert_allclose(x[0], token + table[:3], rtol=1e-5)
    np.testing.assert_allclose(embedding(ids, start=4)[0], token + table[4:7], rtol=1e-5)


def test_an_input_longer_than_the_learned_table_is_refused():
    embedding = PositionalEmbedding(13, D, positions="learned", max_positions=7)
    embedding(np.ones((1, 7), "int32"))
    with pytest.raises(ValueError, match=r"8 tokens.*max_positions=7"):
        embedding(np.ones((1, 8), "int32"))


def test_unknown_positions_are_refused():
    with pytest.raises(ValueError, match="rotary"):
        PositionalEmbedding(13, D, positions="rotary")

import keras
import numpy as np
import pytest
import tensorflow as tf

from tf_transformer.model.layer_norm import LayerNorm


def values_and_gradients(layer, x, upstream):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = layer(x)
        total = tf.reduce_sum(tf.cast(y, tf.float32) * upstream)
    return [y, *tape.gradient(total, [x, *layer.trainable_variables])]


# bfloat16 has 8 bits: two ways of rounding may differ by one of them.
@pytest.mark.parametrize("shape", [(5, 7), (2, 3, 7), (2, 3, 5, 11)])
@pytest.mark.parametrize(("dtype", "tolerance"), [("float32", 3e-6), ("mixed_bfloat16", 2**-7)])
@pytest.mark.parametrize("options", [{}, {"epsilon": 0.5}])
def test_it_is_keras_s_and_so_are_its_gradients(shape, dtype, tolerance, options):
    rng = np.random.default_rng(0)
    ours = LayerNorm(**options, dtype=dtype)
    theirs = keras.layers.LayerNormalization(epsilon=options.get("epsilon", 1e-6), dtype=dtype)
    weights = [rng.normal(size=shape[-1:]) for _ in range(2)]
    for layer in (ours, theirs):
        layer.build(shape)
        layer.set_weights(weights)
    x = tf.constant(rng.normal(3, 2, size=shape), ours.compute_dtype)
    upstream = tf.constant(rng.normal(size=shape), tf.float32)
    found, expected = (values_and_gradients(layer, x, upstream) for layer in (ours, theirs))
    for mine, other in zip(found, expected, strict=True):
        assert mine.dtype == other.dtype
        np.testing.assert_allclose(*(tf.cast(v, tf.float32) for v in (mine, other)), tolerance, tolerance)


def test_numbers_far_from_zero_keep_their_variance():
    y = LayerNorm()(tf.constant([[10_000.0, 10_001.0, 10_002.0]]))
    np.testing.assert_allclose(y, [[-np.sqrt(1.5), 0, np.sqrt(1.5)]], atol=1e-5)

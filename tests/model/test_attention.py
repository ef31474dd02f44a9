import keras
import numpy as np
import pytest

from tf_transformer import MultiHeadAttention, causal_mask, padding_mask, scaled_dot_product_attention

B, T, S, H, HEAD = 2, 3, 5, 7, 4
D = H * HEAD
rng = np.random.default_rng(1)


def normal(*shape):
    return rng.normal(size=shape).astype("float32")


def give_keras_weights(ours, theirs):
    """Copy the weights of keras.layers.MultiHeadAttention into ours."""
    kernels = {
        n: d.kernel.numpy().reshape(d.kernel.shape[0], -1) for n, d in zip("qkv", projections(theirs), strict=True)
    }
    biases = {n: d.bias.numpy().reshape(-1) for n, d in zip("qkv", projections(theirs), strict=True)}
    layers = {"qkv": getattr(ours, "query_key_value", None), "q": getattr(ours, "query", None)}
    layers["kv"] = getattr(ours, "key_value", None)
    for names, layer in layers.items():
        if layer is not None:
            layer.kernel.assign(np.concatenate([kernels[n] for n in names], axis=1))
            layer.bias.assign(np.concatenate([biases[n] for n in names]))
    ours.output_projection.kernel.assign(theirs.output_dense.kernel.numpy().reshape(-1, D))
    ours.output_projection.bias.assign(theirs.output_dense.bias.numpy())


def projections(theirs):
    return theirs.query_dense, theirs.key_dense, theirs.value_dense


WIDTHS = [{}, {"key_dim": 3, "value_dim": 11}, {"value_dim": 2}]


def keras_attention(key_dim=HEAD, value_dim=HEAD):
    return keras.layers.MultiHeadAttention(
        H, key_dim, value_dim, output_shape=D, kernel_initializer="random_normal", bias_initializer="random_normal"
    )


@pytest.mark.parametrize("widths", WIDTHS)
def test_self_attention_equals_keras(widths):
    x = normal(B, T, D)
    mask = np.asarray(causal_mask(T)) & np.array([[[True, True, False]], [[True, True, True]]])
    theirs = keras_attention(**widths)
    expected, expected_weights = theirs(x, x, attention_mask=mask, return_attention_scores=True)
    ours = MultiHeadAttention(d_model=D, num_heads=H, **widths)
    ours.build(x.shape)
    give_keras_weights(ours, theirs)
    output, weights = ours(x, mask=mask)
    np.testing.assert_allclose(output, expected, atol=1e-6)
    np.testing.assert_allclose(weights, expected_weights, atol=1e-6)


@pytest.mark.parametrize("widths", WIDTHS)
def test_attention_to_a_context_equals_keras(widths):
    x, context = normal(B, T, D), normal(B, S, 11)
    mask = padding_mask(np.array([[1, 2, 3, 0, 0], [1, 2, 3, 4, 5]]))
    theirs = keras_attention(**widths)
    expected, expected_weights = theirs(x, context, attention_mask=mask, return_attention_scores=True)
    ours = MultiHeadAttention(d_model=D, num_heads=H, **widths)
    ours.build(x.shape, context.shape)
    give_keras_weights(ours, theirs)
    output, weights = ours(x, context, mask=mask)
    assert output.shape == (B, T, D)
    assert weights.shape == (B, H, T, S)
    np.testing.assert_allclose(output, expected, atol=1e-6)
    np.testing.assert_allclose(weights, expected_weights, atol=1e-6)


def test_scaled_dot_product_attention_is_the_formula_of_the_paper():
    query, key, value = normal(B, T, HEAD), normal(B, S, HEAD), normal(B, S, 3)
    output, weights = scaled_dot_product_attention(query, key, value)
    scores = np.exp(query @ key.swapaxes(1, 2) / np.sqrt(HEAD))
    expected = scores / scores.sum(-1, keepdims=True)
    np.testing.assert_allclose(weights, expected, atol=1e-6)
    np.testing.assert_allclose(output, expected @ value, atol=1e-5)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_a_row_that_may_attend_to_nothing_is_finite(dtype):
    query, key, value = (keras.ops.cast(normal(B, n, HEAD), dtype) for n in (T, S, S))
    output, weights = scaled_dot_product_attention(query, key, value, np.zeros((B, T, S), bool))
    assert np.isfinite(keras.ops.convert_to_numpy(keras.ops.cast(output, "float32"))).all()
    np.testing.assert_allclose(keras.ops.cast(weights, "float32"), np.full((B, T, S), 1 / S), rtol=4e-3)


def test_masked_positions_get_no_weight():
    mask = rng.random((B, T, S)) < 0.5
    mask[..., 0] = True
    _, weights = scaled_dot_product_attention(normal(B, T, HEAD), normal(B, S, HEAD), normal(B, S, HEAD), mask)
    assert (keras.ops.convert_to_numpy(weights)[~mask] == 0).all()


@pytest.mark.parametrize("context_depth", [None, 11])
def test_fused_projections_keep_the_fans_of_their_parts(context_depth):
    layer = MultiHeadAttention(d_model=64, num_heads=4)
    layer.build((None, None, 64), None if context_depth is None else (None, None, context_depth))
    fused = layer.query_key_value if context_depth is None else layer.key_value
    limit = np.sqrt(6 / ((context_depth or 64) + 64))
    parts = np.split(fused.kernel.numpy(), len(fused.widths), axis=1)
    for part in parts:
        assert 0.97 * limit < np.abs(part).max() <= limit
    assert np.abs(parts[0] - parts[1]).max() > 0.1 * limit  # drawn apart


@pytest.mark.parametrize("length", [None, T + 4])
def test_steps_with_a_cache_equal_the_whole(length):
    x = normal(B, T, D)
    layer = MultiHeadAttention(d_model=D, num_heads=H)
    whole, whole_weights = layer(x, mask=causal_mask(T))
    cache = layer.empty_cache(B, length)
    for t in range(T):
        output, weights, cache = layer.step(x[:, t], t, cache)
        np.testing.assert_allclose(output, whole[:, t], atol=1e-5)
        np.testing.assert_allclose(weights[:, :, 0, : t + 1], whole_weights[:, :, t, : t + 1], atol=1e-5)
        assert not np.any(weights[:, :, 0, t + 1 :])
        assert cache.key.shape == (B, H, length or t + 1, HEAD)


def test_attention_dropout_acts_in_training_only():
    x = normal(B, T, D)
    layer = MultiHeadAttention(d_model=D, num_heads=H, dropout_rate=0.5)
    still, _ = layer(x)
    np.testing.assert_array_equal(still, layer(x, training=False)[0])
    assert np.abs(still - layer(x, training=True)[0]).max() > 1e-3


def test_the_weights_are_those_before_dropout():
    query, key, value = (np.random.default_rng(i).normal(size=(2, 3, 5, 7)).astype("float32") for i in range(3))
    output, weights = scaled_dot_product_attention(query, key, value, dropout=lambda weights: weights * 3)
    np.testing.assert_allclose(np.sum(weights, axis=-1), 1, rtol=1e-6)
    np.testing.assert_allclose(output, 3 * (weights @ value), rtol=1e-5, atol=1e-6)


def test_wrong_use_is_refused():
    with pytest.raises(ValueError, match="d_model=7, num_heads=2"):
        MultiHeadAttention(d_model=7, num_heads=2, key_dim=3)
    layer = MultiHeadAttention(d_model=D, num_heads=H)
    x = normal(B, T, D)
    layer(x)
    with pytest.raises(ValueError, match="built for self-attention"):
        layer(x, normal(B, S, D))
    with pytest.raises(ValueError, match=r"mask of shape \(3,\)"):
        layer(x, mask=np.ones(T, bool))
    with pytest.raises(ValueError, match=r"mask of shape \(2, 1, 3, 5\)"):
        MultiHeadAttention(d_model=D, num_heads=H)(x, normal(B, S, D), mask=np.ones((B, 1, T, S), bool))


def test_the_implicit_mask_of_keras_is_a_padding_mask():
    ids = np.array([[1, 2, 0], [3, 0, 0]])
    x = keras.layers.Embedding(5, D, mask_zero=True)(ids)
    layer = MultiHeadAttention(d_model=D, num_heads=H)
    np.testing.assert_array_equal(layer(x)[0], layer(np.asarray(x), mask=padding_mask(ids))[0])
    layer, query = MultiHeadAttention(d_model=D, num_heads=H), normal(2, T, D)
    found = [layer(query, np.asarray(x), mask=mask)[0] for mask in (ids != 0, padding_mask(ids))]
    np.testing.assert_array_equal(*found)
    np.testing.assert_array_equal(layer(query, x)[0], found[0])  # that of a context, which Keras does not pass on
    not_the_first = np.arange(3)[None, None] > 0
    weights = layer(query, x, mask=not_the_first)[1]
    assert not np.any(np.where(((ids != 0)[:, None] & not_the_first)[:, None], 0, weights)[0])


def test_a_mask_may_be_lists():
    x, layer = normal(B, T, D), MultiHeadAttention(d_model=D, num_heads=H)
    mask = np.tri(T, dtype=bool)[None]
    np.testing.assert_array_equal(layer(x, mask=mask.tolist())[0], layer(x, mask=mask)[0])

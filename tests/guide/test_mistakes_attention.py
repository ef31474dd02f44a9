"""Mistakes that are often made with attention and its masks; each breaks a law that ours keeps (docs/guide)."""

import keras
import numpy as np
import pytest

from tf_transformer import (
    DecoderLayer,
    EncoderLayer,
    MultiHeadAttention,
    Transformer,
    causal_mask,
    padding_mask,
    scaled_dot_product_attention,
)

B, T, S, H, HEAD = 3, 5, 11, 2, 7
D = H * HEAD
CAUSAL = np.tri(T, dtype=bool)
rng = np.random.default_rng(5)


def normal(*shape):
    return rng.normal(size=shape).astype("float32")


def attention(query, key, value, mask=None):
    return tuple(keras.ops.convert_to_numpy(x) for x in scaled_dot_product_attention(query, key, value, mask))


def softmax(scores, axis=-1):
    exponentials = np.exp(scores - scores.max(axis=axis, keepdims=True))
    return exponentials / exponentials.sum(axis=axis, keepdims=True)


def effect(function, changed, read):
    """How much what `function` gives for the positions `read` changes with the positions `changed` of its input."""
    before = normal(B, T, D)
    after = before.copy()
    after[:, changed] += 1 + normal(D)
    return np.abs(np.asarray(function(after))[:, read] - np.asarray(function(before))[:, read]).max()


LAST, EARLIER = slice(T - 1, None), slice(T - 1)


def is_causal(function):
    return effect(function, LAST, EARLIER) < 1e-6


# Scaled dot-product attention (paper 3.2.1).


def test_softmax_over_the_queries():
    query, key, value = normal(T, HEAD), normal(S, HEAD), normal(S, 3)

    def wrong(query):
        return softmax(query @ key.T / np.sqrt(HEAD), axis=-2) @ value

    def ours(query):
        return attention(query, key, value)[0]

    # Its answer to the first query depends on what others ask.
    np.testing.assert_allclose(ours(query)[:1], ours(query[:1]), atol=1e-6)
    assert np.abs(wrong(query)[:1] - wrong(query[:1])).max() > 0.1


def test_keys_summed_in_place_of_values():
    query, key, value = normal(T, HEAD), normal(S, HEAD), normal(S, HEAD)

    def wrong(value):
        return softmax(query @ key.T / np.sqrt(HEAD)) @ key

    np.testing.assert_array_equal(wrong(value), wrong(2 * value))
    ours = [attention(query, key, factor * value)[0] for factor in (1, 2)]
    np.testing.assert_allclose(2 * ours[0], ours[1], rtol=1e-5)


def test_values_inside_the_softmax():
    query, key, value = normal(T, HEAD), normal(S, HEAD), 5 + normal(S, 3)

    def wrong(value):
        return softmax(query @ key.T @ value / np.sqrt(HEAD))

    def ours(value):
        return attention(query, key, value)[0]

    def is_mean(output):
        return (output >= value.min(axis=0)).all() and (output <= value.max(axis=0)).all()

    assert is_mean(ours(value)) and not is_mean(wrong(value))
    np.testing.assert_allclose(ours(2 * value), 2 * ours(value), rtol=1e-5)
    assert np.abs(wrong(2 * value) - 2 * wrong(value)).max() > 0.1


def test_keys_not_transposed():
    query, key, value = normal(T, HEAD), normal(HEAD, HEAD), normal(HEAD, 3)
    order = rng.permutation(HEAD)

    def wrong(key, value):
        return softmax(query @ key / np.sqrt(HEAD)) @ value

    def ours(key, value):
        return attention(query, key, value)[0]

    # The pairs have no order.
    np.testing.assert_allclose(ours(key[order], value[order]), ours(key, value), atol=1e-5)
    assert np.abs(wrong(key[order], value[order]) - wrong(key, value)).max() > 0.1


def test_division_after_the_softmax():
    query, key = normal(T, HEAD), normal(S, HEAD)
    wrong = softmax(query @ key.T) / np.sqrt(HEAD)
    _, weights = attention(query, key, key)
    np.testing.assert_allclose(weights.sum(axis=-1), 1, rtol=1e-5)
    np.testing.assert_allclose(wrong.sum(axis=-1), 1 / np.sqrt(HEAD), rtol=1e-5)


# The scale of the scores (paper 3.2.1).


def variance_of_scores(attend, width):
    """The log of the ratio of two weights is the difference of two scores, which has twice their variance."""
    query, key = normal(4000, 1, width), normal(4000, 2, width)
    first, second = np.moveaxis(np.asarray(attend(query, key)).astype(np.float64), -1, 0)
    return np.var(np.log(first) - np.log(second)) / 2


@pytest.mark.parametrize("width", [3, 61])
def test_no_division(width):
    layer = keras.layers.Attention()

    def wrong(query, key):
        return layer([query, key], return_attention_scores=True)[1]

    def ours(query, key):
        return attention(query, key, key)[1]

    assert variance_of_scores(ours, width) == pytest.approx(1, rel=0.15)
    assert variance_of_scores(wrong, width) == pytest.approx(width, rel=0.15)


def test_division_by_the_width_of_the_model():
    heads, head = 7, 11

    def wrong(query, key):
        return softmax(query @ key.swapaxes(1, 2) / np.sqrt(heads * head))

    assert variance_of_scores(wrong, head) == pytest.approx(1 / heads, rel=0.15)
    layer = MultiHeadAttention(d_model=heads * head, num_heads=heads)
    layer.build((None, None, heads * head), (None, None, heads * head))
    layer.query.kernel.assign(np.eye(heads * head))
    layer.key_value.kernel.assign(np.tile(np.eye(heads * head), 2))

    def ours(query, key):
        return layer(query, key)[1][:, 0]

    assert variance_of_scores(ours, heads * head) == pytest.approx(1, rel=0.15)


def test_division_after_the_product_in_half_precision():
    query = key = np.full((1, 64), 40, "float16")
    with np.errstate(over="ignore"):
        product = query @ key.T
    assert float(np.finfo("float16").max) == 65504 < 64 * 40 * 40 and np.isinf(product).all()
    keys = np.concatenate([key, key])
    output, weights = attention(query, keys, keys)
    np.testing.assert_array_equal(weights, [[0.5, 0.5]])
    assert np.isfinite(output).all()


# Heads (paper 3.2.2).


@pytest.fixture(scope="module")
def layer():
    layer = MultiHeadAttention(d_model=D, num_heads=H)
    layer.build((None, None, D))
    return layer


def split(x):
    return x.reshape(B, T, H, HEAD).transpose(0, 2, 1, 3)


def join(x):
    return x.transpose(0, 2, 1, 3).reshape(B, T, D)


def reshape_to_heads(x):
    return x.reshape(B, H, T, HEAD)


def reshape_from_heads(x):
    return x.reshape(B, T, D)


def by_hand(layer, split, join):
    def call(x):
        query, key, value = (split(part) for part in np.split(layer.query_key_value(x).numpy(), 3, axis=-1))
        return layer.output_projection(join(attention(query, key, value, CAUSAL)[0])).numpy()

    return call


def test_heads_split_by_a_reshape_alone(layer):
    def ours(x):
        return layer(x, mask=causal_mask(T))[0]

    x = normal(B, T, D)
    np.testing.assert_allclose(by_hand(layer, split, join)(x), ours(x), atol=1e-5)
    assert is_causal(ours) and effect(ours, 0, T - 1) > 0.01
    cut = by_hand(layer, reshape_to_heads, reshape_from_heads)
    assert effect(cut, 0, T - 1) == 0  # the last position never reads the first
    assert not is_causal(by_hand(layer, reshape_to_heads, join))


def test_heads_joined_without_transposition(layer):
    assert is_causal(by_hand(layer, split, join))
    assert not is_causal(by_hand(layer, split, reshape_from_heads))


def test_key_dim_is_the_width_of_one_head(layer):
    def kernels(key_dim):
        theirs = keras.layers.MultiHeadAttention(H, key_dim, use_bias=False)
        theirs.build((None, None, D), (None, None, D))
        return theirs.count_params()

    ours = layer.count_params() - 4 * D  # the biases
    assert kernels(HEAD) == ours == 4 * D * D
    assert kernels(D) == H * ours


def test_one_projection_for_queries_and_keys(layer):
    """Then the score of a position for another is that of the other for it."""
    query, key, _ = np.split(layer.query_key_value(normal(B, T, D)).numpy(), 3, axis=-1)

    def asymmetry(query, key):
        scores = split(query) @ split(key).swapaxes(-1, -2)
        return np.abs(scores - scores.swapaxes(-1, -2)).max()

    assert asymmetry(query, query) < 1e-5
    assert asymmetry(query, key) > 0.1


# The three uses (paper 3.2.3).


@pytest.fixture(scope="module")
def model():
    model = Transformer(num_layers=1, d_model=D, num_heads=H, dff=13, input_vocab_size=17, target_vocab_size=19)
    model.build(((None, None), (None, None)))
    return model


def test_the_source_mask_in_the_decoders_self_attention(model):
    source, target = np.array([[3, 4, 0, 0, 0]]), np.array([[1, 5, 6, 7, 0]])
    ours = np.asarray(model.attention((source, target)).decoder[0])
    assert ours[..., 3, :4].min() > 0  # every real token behind it is read
    assert not ours[..., 4].any()  # padding is not
    layer, x = model.decoder.layers[0].self_attention, model.decoder.embedding(target)
    wrong = np.asarray(layer(x, mask=np.asarray(padding_mask(source)) & CAUSAL)[1])
    assert not wrong[..., 3, 2:4].any()
    # Without the causal mask, the first position reads a later one.
    assert np.asarray(layer(x, mask=padding_mask(source))[1])[..., 0, 1].min() > 0
    longer = np.array([[3, 4, 5, 0, 0, 0, 0]])
    with pytest.raises(Exception, match="[Ii]ncompatible shapes"):
        layer(x, mask=padding_mask(longer))
    assert model((longer, target)).shape == (1, T, 19)


def test_queries_from_the_wrong_side():
    target, context = normal(B, T, D), normal(B, S, D)
    attend = MultiHeadAttention(d_model=D, num_heads=H)
    assert attend(target, context)[0].shape == (B, T, D)
    assert attend(context, target)[0].shape == (B, S, D)  # no word for each position of the target


def test_a_causal_mask_in_the_encoder(model):
    source, other = np.array([[3, 4, 5, 6, 7]]), np.array([[3, 4, 5, 6, 8]])

    def encode(ids, mask):
        return np.asarray(model.encoder(ids, mask=mask))[:, 0]

    first = [encode(ids, np.asarray(padding_mask(source)) & CAUSAL) for ids in (source, other)]
    np.testing.assert_array_equal(*first)  # the first word knows nothing of the last
    first = [encode(ids, padding_mask(source)) for ids in (source, other)]
    assert np.abs(first[0] - first[1]).max() > 0.01


# Masks (paper 3.2.3).

IDS = np.array([[3, 4, 5, 6, 7], [3, 4, 5, 0, 0], [3, 0, 0, 0, 0]])
IS_PADDING = np.broadcast_to((IDS == 0)[:, None, None], (B, H, T, T))


def test_a_mask_with_true_for_hide(layer):
    x = normal(B, T, D)[1:]
    assert np.asarray(layer(x, mask=padding_mask(IDS[1:]))[1])[IS_PADDING[1:]].max() == 0
    wrong = np.asarray(layer(x, mask=(IDS == 0)[1:, None])[1])
    assert wrong[~IS_PADDING[1:]].max() == 0  # all real tokens are hidden


def test_is_causal_ignored_beside_a_padding_mask(layer):
    mask = np.asarray(padding_mask(np.full((B, T), 1)))

    def wrong(x, mask=None, is_causal=True):
        if mask is None and is_causal:
            mask = causal_mask(T)
        return layer(x, mask=mask)[0]

    context = normal(B, S, D)
    decoder = DecoderLayer(d_model=D, num_heads=H, dff=13)
    assert is_causal(wrong)
    assert not is_causal(lambda x: wrong(x, mask))
    assert is_causal(lambda x: decoder(x, context))
    assert is_causal(lambda x: decoder(x, context, mask=mask))


def test_a_causal_mask_without_the_diagonal(layer):
    assert np.asarray(causal_mask(T))[0].diagonal().all()
    assert is_causal(lambda x: layer(x, mask=causal_mask(T))[0])
    wrong = np.tri(T, k=-1, dtype=bool)[None]
    assert not is_causal(lambda x: layer(x, mask=wrong)[0])
    first = np.asarray(layer(normal(B, T, D), mask=wrong)[1])[..., 0, :]
    np.testing.assert_allclose(first, 1 / T, rtol=1e-5)


def test_a_mask_that_multiplies():
    query, key = normal(T, HEAD), normal(T, HEAD)
    scores = query @ key.T / np.sqrt(HEAD)
    _, ours = attention(query, key, key, CAUSAL)
    assert ours[~CAUSAL].max() == 0
    np.testing.assert_allclose(ours.sum(axis=-1), 1, rtol=1e-5)
    assert softmax(scores * CAUSAL)[~CAUSAL].min() > 0.001
    assert (softmax(scores) * CAUSAL).sum(axis=-1)[0] < 0.9


def test_a_padding_mask_on_the_queries(layer):
    x = normal(B, T, D)
    assert np.asarray(layer(x, mask=padding_mask(IDS))[1])[IS_PADDING].max() == 0
    wrong = (IDS != 0)[:, :, None]
    assert np.asarray(layer(x, mask=wrong)[1])[IS_PADDING].max() > 0.1


def test_minus_infinity_in_an_empty_row():
    query, key, mask = normal(T, HEAD), normal(T, HEAD), CAUSAL.copy()
    mask[2] = False
    with np.errstate(invalid="ignore"):
        wrong = softmax(np.where(mask, query @ key.T, -np.inf))
    assert np.isnan(wrong[2]).all()
    _, ours = attention(query, key, key, mask)
    np.testing.assert_allclose(ours[2], 1 / T, rtol=1e-5)
    assert np.isfinite(ours).all()


def test_an_encoder_layer_is_no_decoder_layer():
    """What a layer without the causal mask lets through, as the page on masks measures it."""
    encoder = EncoderLayer(d_model=D, num_heads=H, dff=13)
    assert not is_causal(encoder)
    assert is_causal(lambda x: encoder(x, mask=causal_mask(T)))

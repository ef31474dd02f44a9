"""Feed-forward, encoder and decoder."""

import keras
import numpy as np
import pytest

from tf_transformer import Decoder, DecoderLayer, Encoder, EncoderLayer, FeedForward, MultiHeadAttention, padding_mask
from tf_transformer.model.residual import Residual

B, T, S, D, H, DFF, V = 2, 3, 5, 14, 7, 11, 17
rng = np.random.default_rng(2)
SIZES = dict(d_model=D, num_heads=H, dff=DFF)


def normal(*shape):
    return rng.normal(size=shape).astype("float32")


def norm(x):
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-6)


@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_feed_forward_is_the_formula_of_the_paper(activation):
    x = normal(B, T, D)
    layer = FeedForward(D, DFF, activation=activation)
    layer.build(x.shape)
    w1, b1, w2, b2 = (normal(*weight.shape) for weight in layer.weights)
    layer.set_weights([w1, b1, w2, b2])
    hidden = keras.activations.get(activation)(x @ w1 + b1)
    np.testing.assert_allclose(layer(x), hidden @ w2 + b2, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("arrangement", ["post", "pre"])
def test_a_residual_connection_is_the_formula_of_the_paper(arrangement):
    x, kernel = normal(B, T, D), normal(D, D)
    residual = Residual(0.0, norm=arrangement)
    residual.build(x.shape)
    y = residual.add_and_norm(x, residual.sublayer_input(x) @ kernel)
    expected = norm(x + x @ kernel) if arrangement == "post" else x + norm(x) @ kernel
    np.testing.assert_allclose(y, expected, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("kind", [EncoderLayer, DecoderLayer])
@pytest.mark.parametrize("arrangement", ["post", "pre"])
def test_every_sub_layer_has_its_residual_connection(kind, arrangement):
    """A layer whose sub-layers give nothing only normalises."""
    x = normal(B, T, D)
    layer = kind(**SIZES, norm=arrangement)
    inputs = (x,) if kind is EncoderLayer else (x, x)
    layer(*inputs)
    for sublayer in ("self_attention", "cross_attention", "feed_forward")[:: 2 if kind is EncoderLayer else 1]:
        part = getattr(layer, sublayer)
        last = part.outer if sublayer == "feed_forward" else part.output_projection
        last.kernel.assign(np.zeros(last.kernel.shape))
    np.testing.assert_allclose(layer(*inputs), norm(x) if arrangement == "post" else x, atol=1e-5)


@pytest.mark.parametrize("kind", [EncoderLayer, DecoderLayer])
def test_dropout_scales_the_outputs_of_sub_layers(kind):
    x = np.zeros((64, 64, D), "float32")
    layer = kind(**SIZES, dropout_rate=0.3, norm="pre")
    inputs = (x,) if kind is EncoderLayer else (x, x)
    layer(*inputs)
    layer.feed_forward.outer.bias.assign(np.ones(D))
    y = keras.ops.convert_to_numpy(layer(*inputs, training=True))
    assert set(np.unique(y.round(4))) == {0, np.float32(1 / 0.7).round(4)}
    assert (y == 0).mean() == pytest.approx(0.3, abs=0.01)


def test_dropout_after_the_activation_drops_units_there():
    x = np.ones((64, 64, D), "float32")
    layer = FeedForward(D, 1, activation_dropout_rate=0.3)
    layer(x)
    layer.inner.kernel.assign(np.zeros((D, 1)))
    layer.inner.bias.assign([2.0])
    layer.outer.kernel.assign(np.ones((1, D)))
    y = keras.ops.convert_to_numpy(layer(x, training=True))
    assert (y == y[..., :1]).all()  # one unit inside, dropped for the whole position
    assert set(np.unique(y.round(4))) == {0, np.float32(2 / 0.7).round(4)}
    assert (y[..., 0] == 0).mean() == pytest.approx(0.3, abs=0.03)
    np.testing.assert_array_equal(layer(x), 2 * x)
    assert FeedForward(D, 1).activation_dropout is None  # no seed in the checkpoints of models without it


@pytest.mark.parametrize("arrangement", ["post", "pre"])
def test_encoder_layer_ignores_what_is_masked(arrangement):
    layer = EncoderLayer(**SIZES, norm=arrangement)
    x, mask = normal(B, S, D), padding_mask(np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]]))
    changed = x.copy()
    changed[0, 3:] = normal(2, D)
    np.testing.assert_allclose(layer(x, mask=mask)[0, :3], layer(changed, mask=mask)[0, :3], atol=1e-6)
    assert np.abs(layer(x)[0, :3] - layer(changed)[0, :3]).max() > 1e-3


def test_decoder_layer_is_causal_and_reads_the_context():
    layer = DecoderLayer(**SIZES)
    x, context = normal(B, T, D), normal(B, S, 13)
    y = layer(x, context)
    later = x.copy()
    later[:, 2] += 3
    np.testing.assert_allclose(layer(later, context)[:, :2], y[:, :2], atol=1e-6)
    assert np.abs(layer(x, context + 1) - y).max() > 1e-3


@pytest.mark.parametrize("shape", [(B, S), (B, 1, S)], ids=["padding", "attention"])
def test_layers_hand_no_mask_on_that_is_an_argument(shape):
    """That of a context has other positions than the output, and a later layer or loss would take it for its own."""
    mask = np.ones(shape, bool)
    outputs = [
        EncoderLayer(**SIZES)(normal(B, S, D), mask=mask),
        MultiHeadAttention(num_heads=2, d_model=D)(normal(B, T, D), normal(B, S, D), mask=mask)[0],
        DecoderLayer(**SIZES)(normal(B, T, D), normal(B, S, D), context_mask=mask),
        DecoderLayer(**SIZES)(normal(B, T, D), normal(B, S, D), mask=np.ones((B, 1, T), bool), context_mask=mask),
    ]
    assert [getattr(y, "_keras_mask", None) for y in outputs] == [None] * 4


def test_stacks_take_ids():
    encoder = Encoder(num_layers=2, vocab_size=V, **SIZES)
    decoder = Decoder(num_layers=2, vocab_size=V, **SIZES)
    ids = rng.integers(1, V, (B, S))
    context = encoder(ids, mask=padding_mask(ids))
    assert context.shape == (B, S, D)
    assert decoder(ids[:, :T], context).shape == (B, T, D)


def test_pre_norm_ends_with_a_norm():
    encoder = Encoder(num_layers=2, vocab_size=V, norm="pre", **SIZES)
    x = keras.ops.convert_to_numpy(encoder(rng.integers(1, V, (B, S))))
    np.testing.assert_allclose(x.mean(-1), 0, atol=1e-5)
    np.testing.assert_allclose(x.var(-1), 1, atol=1e-3)


@pytest.mark.parametrize(
    ("layer", "inputs"),
    [
        (lambda: FeedForward(D, DFF, activation="gelu", activation_dropout_rate=0.1), [(B, T, D)]),
        (lambda: EncoderLayer(**SIZES, norm="pre", attention_dropout_rate=0.1), [(B, T, D)]),
        (lambda: DecoderLayer(**SIZES, activation="silu"), [(B, T, D), (B, S, D)]),
    ],
)
def test_layers_come_back_from_their_config(layer, inputs):
    layer = layer()
    copy = type(layer).from_config(layer.get_config())
    arrays = [normal(*shape) for shape in inputs]
    expected = layer(*arrays)
    copy(*arrays)
    copy.set_weights(layer.get_weights())
    np.testing.assert_allclose(copy(*arrays), expected, atol=1e-6)
    assert copy.get_config() == layer.get_config()


def test_an_unknown_arrangement_is_refused():
    with pytest.raises(ValueError, match="sandwich"):
        EncoderLayer(**SIZES, norm="sandwich")


def masked(x, layers):
    """Embed ids with Keras's own embedding, and go through layers; the mask is Keras's to hand on."""
    for layer in layers:
        x = layer(x)
    return x


@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.filterwarnings("error:.*does not support masking")
def test_keras_padding_masks_go_through_a_stack(count, norm):
    """Padding behind a sentence changes neither its positions nor their mean."""
    embedding = keras.layers.Embedding(V, D, mask_zero=True)
    layers = [EncoderLayer(**SIZES, norm=norm) for _ in range(count)] + [FeedForward(D, DFF)]
    pool = keras.layers.GlobalAveragePooling1D()
    ids = rng.integers(1, V, (B, S))
    padded = np.pad(ids, ((0, 0), (0, 4)))
    short, long = (masked(embedding(given), layers) for given in (ids, padded))
    np.testing.assert_allclose(long[:, :S], short, atol=1e-5)
    np.testing.assert_allclose(pool(long), pool(short), atol=1e-5)


def test_keras_padding_masks_go_through_the_layers_of_a_decoder():
    embedding = keras.layers.Embedding(V, D, mask_zero=True)
    layers = [DecoderLayer(**SIZES) for _ in range(2)]
    source, target = rng.integers(1, V, (B, S)), rng.integers(1, V, (B, T))
    found = []
    for more in (0, 4):
        context, x = (embedding(np.pad(ids, ((0, 0), (0, more)))) for ids in (source, target))
        for layer in layers:
            x = layer(x, context)
        found.append((x[:, :T], keras.layers.GlobalAveragePooling1D()(x)))
    for short, long in zip(*found, strict=True):
        np.testing.assert_allclose(long, short, atol=1e-5)


@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize("kind", [EncoderLayer, DecoderLayer])
def test_padding_that_keras_knows_is_masked_beside_a_mask_that_is_given(kind, norm):
    """At the left, too, where `keras.utils.pad_sequences` puts it: a causal mask does not hide it there."""
    embedding = keras.layers.Embedding(V, D, mask_zero=True)
    layer = kind(**SIZES, norm=norm)
    ids = np.pad(rng.integers(1, V, (B, T)), ((0, 0), (2, 0)))
    context = [] if kind is EncoderLayer else [embedding(ids)]
    given = np.ones((1, T + 2, T + 2), bool)
    given[..., -1] = False
    for mask in (None, given):
        more = {} if kind is EncoderLayer else {"context_mask": mask}
        _, *weights = layer(embedding(ids), *context, mask=mask, return_attention_scores=True, **more)
        for found in weights:
            assert not np.any(np.asarray(found)[:, :, 2:, :2])
            assert mask is None or not np.any(np.asarray(found)[:, :, 2:, -1])


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_dropout_is_on_the_output_of_the_sub_layer_alone(norm):
    residual = Residual(0.999, norm=norm)
    x = np.random.default_rng(0).normal(size=(2, 3, 5)).astype("float32")
    residual.build(x.shape)
    kept = residual.add_and_norm(x, np.zeros_like(x), training=True)
    np.testing.assert_allclose(kept, x if norm == "pre" else residual.norm(x), rtol=1e-6)

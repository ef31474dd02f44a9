"""Common mistakes in positions, feed-forward layers, norms, the whole model, embeddings and label smoothing.

Each test builds the wrong form, shows what it breaks, and that ours does not.
"""

import math

import keras
import numpy as np
import pytest
import tensorflow as tf

from tf_transformer import (
    Decoder,
    Encoder,
    EncoderLayer,
    FeedForward,
    Transformer,
    padding_mask,
    positional_encoding,
)
from tf_transformer.config.special_tokens import PAD, START
from tf_transformer.model.embeddings import PositionalEmbedding, TokenEmbedding
from tf_transformer.model.layer_norm import LayerNorm
from tf_transformer.model.residual import Residual
from tf_transformer.training import Perplexity, TokenLoss
from tf_transformer.training.loss import token_losses

B, T, S, D, H, DFF, V = 3, 5, 7, 14, 2, 11, 17
SIZES = dict(num_layers=2, d_model=D, num_heads=H, dff=DFF, dropout_rate=0.0)


@pytest.fixture(autouse=True)
def seeded():
    keras.utils.set_random_seed(5)


def vectors(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype("float32")


def ids(*shape, seed=0):
    return np.random.default_rng(seed).integers(4, V, size=shape)


def array(x):
    return x.numpy() if isinstance(x, keras.Variable) else keras.ops.convert_to_numpy(x)


def built(**options):
    model = Transformer(**SIZES, input_vocab_size=V, target_vocab_size=V, **options)
    model.build(((None, None), (None, None)))
    return model


def encoding_of(exponents, length=100):
    """Sines and cosines with rates 10,000^exponent, one for each pair."""
    angles = np.arange(length)[:, None] * 10_000.0 ** np.asarray(exponents)
    return np.stack([np.sin(angles), np.cos(angles)], axis=-1).reshape(length, -1)


# Positions.


def test_the_exponent_of_the_positions_doubled():
    """`for i in range(0, d, 2)` counts 2i already: 2 * i / d doubles it."""
    width, twice_i = 20, np.arange(0, 20, 2)
    right, wrong = encoding_of(-twice_i / width), encoding_of(-2 * twice_i / width)
    np.testing.assert_allclose(positional_encoding(100, width), right, atol=1e-4)
    moves = [np.ptp(table, axis=0) for table in (right, wrong)]
    assert (moves[0][::2] > 0.01).all()  # every sine moves within 100 positions
    assert (moves[1][width // 2 :] < 0.01).all()  # half of the dimensions hardly do


def test_the_minus_of_the_exponent_lost():
    width, twice_i = 20, np.arange(0, 20, 2)
    ours, wrong = array(positional_encoding(100, width)), encoding_of(twice_i / width)

    def likeness_of_neighbours(table):
        products = table @ table.T / (width / 2)
        return products[0, 1], np.abs(products[0, 10:]).mean()

    near, far = likeness_of_neighbours(ours)
    assert near > 0.9 > far
    near, far = likeness_of_neighbours(wrong)
    assert near < far + 0.2


def test_positions_counted_along_the_batch():
    """Code for [T, B, D] that is given [B, T, D]: the place in the batch decides, not the place in the sentence."""
    embedding = PositionalEmbedding(V, D, dropout_rate=0.0)
    same = np.full((B, T), 6)
    ours = array(embedding(same))
    wrong = array(embedding.tokens(same)) + array(positional_encoding(B, D))[:, None]
    assert np.abs(ours[:, 1:] - ours[:, :1]).max() > 0.5
    np.testing.assert_allclose(ours[1], ours[0], atol=1e-6)  # a sentence is the same in every row
    np.testing.assert_array_equal(wrong[:, 1:], np.repeat(wrong[:, :1], T - 1, axis=1))  # no order within it
    assert np.abs(wrong[1] - wrong[0]).max() > 0.5


def test_a_step_that_forgets_its_position():
    model, source, target = built(), ids(B, S), ids(B, T, seed=1)
    whole = array(model((source, target)))

    def last_logits(position_of):
        memory, cache = model.encode(source), model.empty_cache(B)
        for t in range(T):
            logits, _, cache = model.decode_step(target[:, t], position_of(t), cache, memory)
        return array(logits)

    np.testing.assert_allclose(last_logits(lambda t: t), whole[:, -1], atol=1e-5)
    assert np.abs(last_logits(lambda t: 0) - whole[:, -1]).max() > 0.05


# Feed-forward layers.


def test_a_feed_forward_layer_that_returns_nothing():
    class Silent(FeedForward):
        def call(self, x, training=None):
            super().call(x, training)

    x = vectors(B, T, D)
    silent, ours = Silent(D, DFF), FeedForward(D, DFF)
    silent.build(x.shape), ours.build(x.shape)
    assert silent.call(x) is None

    def gradients(layer):
        with tf.GradientTape() as tape:
            y = layer.call(x)
            y = tf.constant(x) if y is None else y  # the guard that hides it
            loss = tf.reduce_sum(y**2 * vectors(B, T, D, seed=1))
        return tape.gradient(loss, [weight.value for weight in layer.trainable_variables])

    assert all(gradient is None for gradient in gradients(silent))
    assert all(gradient is not None and np.abs(gradient).max() > 0 for gradient in gradients(ours))


@pytest.mark.parametrize("kind", ["flatten", "convolution"])
def test_a_feed_forward_layer_that_mixes_positions(kind):
    if kind == "flatten":
        layers = [keras.layers.Flatten(), keras.layers.Dense(T * D), keras.layers.Reshape((T, D))]
    else:
        layers = [keras.layers.Conv1D(DFF, 3, padding="same", activation="relu"), keras.layers.Conv1D(D, 1)]
    wrong, ours = keras.Sequential(layers), FeedForward(D, DFF)
    x = vectors(B, T, D)
    changed = x.copy()
    changed[:, -1] += 1
    earlier = [np.abs(array(layer(changed)) - array(layer(x)))[:, :-1].max() for layer in (wrong, ours)]
    assert earlier[0] > 0.01
    assert earlier[1] < 1e-6


def test_two_linear_maps_without_an_activation_are_one():
    x = vectors(B, T, D)

    def bends(activation):
        """How far the layer is from f(x) + f(-x) = 2 f(0), which affine maps obey."""
        layer = FeedForward(D, DFF, activation=activation)
        return np.abs(array(layer(x)) + array(layer(-x)) - 2 * array(layer(0 * x))).max()

    assert bends("linear") < 1e-5
    assert bends("relu") > 0.1


def test_one_layer_repeated_has_the_weights_of_one():
    encoder = Encoder(**SIZES | {"num_layers": 6}, vocab_size=V)
    encoder.build((None, None))
    layer = EncoderLayer(d_model=D, num_heads=H, dff=DFF)
    repeated = keras.Sequential([keras.Input((None, D)), layer])
    for _ in range(5):
        repeated = keras.Model(repeated.inputs, layer(repeated.outputs[0]))
    assert repeated.count_params() == layer.count_params()
    assert encoder.count_params() == 6 * layer.count_params() + V * D
    kernels = [array(one.feed_forward.inner.kernel) for one in encoder.layers]
    assert all(np.abs(kernel - kernels[0]).max() > 0.1 for kernel in kernels[1:])


# Norms and residual connections.


def test_batch_norm_depends_on_the_other_sentences():
    x, others = vectors(B, T, D), vectors(B, T, D, seed=1) * 3
    mixed = np.concatenate([x[:1], others[1:]])
    wrong = keras.layers.BatchNormalization()
    assert np.abs(array(wrong(mixed, training=True)) - array(wrong(x, training=True)))[0].max() > 0.1
    ours = LayerNorm()
    np.testing.assert_allclose(array(ours(mixed))[0], array(ours(x))[0], atol=1e-6)


def test_a_norm_over_the_whole_sentence_sees_later_tokens():
    x = vectors(B, T, D)
    changed = x.copy()
    changed[:, -1] *= 10
    wrong, ours = keras.layers.LayerNormalization(axis=(1, 2)), LayerNorm()
    earlier = [np.abs(array(norm(changed)) - array(norm(x)))[:, :-1].max() for norm in (wrong, ours)]
    assert earlier[0] > 0.1
    assert earlier[1] < 1e-6


def framed(sublayer, normalize, x, norm):
    """A sub-layer with its residual connection, by the formula."""
    return array(normalize(x + sublayer(x)) if norm == "post" else x + sublayer(normalize(x)))


def test_pre_norm_code_under_a_post_norm_formula():
    x = vectors(B, T, D) * 3
    for norm, other in (("post", "pre"), ("pre", "post")):
        sublayer, residual = FeedForward(D, DFF), Residual(0.0, norm=norm)
        residual.build(x.shape)
        y = array(residual.add_and_norm(x, sublayer(residual.sublayer_input(x))))
        np.testing.assert_allclose(y, framed(sublayer, residual.norm, x, norm), atol=1e-5)
        assert np.abs(y - framed(sublayer, residual.norm, x, other)).max() > 0.5
        is_normal = np.abs(y.var(axis=-1) - 1).max() < 1e-3
        assert is_normal == (norm == "post")


def test_pre_norm_without_a_final_norm():
    x = ids(B, S)
    variances = {}
    for layers in (2, 12):
        encoder = Encoder(**SIZES | {"num_layers": layers}, vocab_size=V, norm="pre")
        ours, norm = array(encoder(x)), encoder.final_norm
        encoder.final_norm = None
        variances[layers] = array(encoder.call(x)).var(axis=-1).mean()
        encoder.final_norm = norm
        np.testing.assert_allclose(ours.var(axis=-1), 1, atol=1e-3)
    assert variances[12] > 2 * variances[2] > 2


def test_epsilon_beside_the_standard_deviation():
    constant = tf.ones([1, 16])  # the mean of 16 ones is exactly 1

    def wrong(x):
        centred = x - tf.reduce_mean(x, axis=-1, keepdims=True)
        return centred / (tf.math.reduce_std(x, axis=-1, keepdims=True) + 1e-6)

    with tf.GradientTape(persistent=True) as tape:
        tape.watch(constant)
        sums = [tf.reduce_sum(norm(constant) * vectors(16)) for norm in (LayerNorm(), wrong)]
    ours, theirs = (tape.gradient(total, constant) for total in sums)
    upstream = vectors(16) - vectors(16).mean()
    np.testing.assert_allclose(ours[0], upstream / math.sqrt(1e-6), rtol=1e-3)
    assert not (np.abs(theirs) < 0.9e6 * np.abs(upstream)).any()  # nor are they finite on every backend


# The whole model.


def reads(model, target_of, labels, t):
    """Whether the logits of label t change with label t."""
    changed = labels.copy()
    changed[:, t] = 4 + (changed[:, t] - 3) % (V - 4)
    source = ids(B, S)
    return np.abs(array(model((source, target_of(changed))) - model((source, target_of(labels))))[:, t]).max() > 1e-3


def test_an_unshifted_target_leaks():
    model, labels = built(), ids(B, T, seed=1)
    shifted = lambda labels: np.pad(labels[:, :-1], ((0, 0), (1, 0)), constant_values=START)  # noqa: E731
    for t in range(T):
        assert reads(model, lambda labels: labels, labels, t)
        assert not reads(model, shifted, labels, t)


def test_encoder_and_decoder_given_the_same_input():
    model, source = built(), ids(B, S)
    targets = [ids(B, S, seed=seed) for seed in (1, 2)]
    wrong = lambda source, target: array(model((source, source)))  # noqa: E731
    right = lambda source, target: array(model((source, target)))  # noqa: E731
    for form, follows in ((wrong, False), (right, True)):
        difference = np.abs(form(source, targets[0]) - form(source, targets[1])).max()
        assert (difference > 0.1) == follows


def test_each_decoder_layer_reading_the_encoder_layer_beside_it():
    model, source, target = built(), ids(B, S), ids(B, T, seed=1)
    mask = padding_mask(source)
    outputs = [model.encoder.embedding(source)]
    for layer in model.encoder.layers:
        outputs.append(layer(outputs[-1], mask=mask))

    def decoded(contexts):
        x = model.decoder.embedding(target)
        for layer, context in zip(model.decoder.layers, contexts, strict=True):
            x = layer(x, context, context_mask=mask)
        return array(x)

    ours = array(model.decoder(target, model.encoder(source, mask=mask), context_mask=mask))
    np.testing.assert_allclose(ours, decoded([outputs[-1]] * 2), atol=1e-5)
    assert np.abs(ours - decoded(outputs[1:])).max() > 0.01


def test_the_mask_of_the_source_on_the_target():
    """Padding at other places than the target's hides real tokens and shows padding."""
    decoder = Decoder(**SIZES, vocab_size=V)
    source, target = ids(B, T), ids(B, T, seed=1)
    source[:, 2:] = PAD
    target[:, 3:] = PAD
    context = vectors(B, T, D)
    decoder(target, context)
    for mask, hides_the_third in ((padding_mask(source), True), (padding_mask(target), False)):
        masks = dict(mask=mask, context_mask=padding_mask(source))
        _, own, _ = decoder(target, context, **masks, return_attention_scores=True)
        third = array(own[0])[:, :, 2, 2]
        assert (third.max() < 1e-6) == hides_the_third
    with pytest.raises(Exception, match=r"(?i)shape|broadcast|dimension"):
        decoder(target, context, mask=padding_mask(ids(B, S)))  # and most often the lengths differ


# Embeddings.


def positions_outweigh(scale, width=64):
    """How much of the variance of the embedding sum is of the positions, for a factor on the table."""
    table = array(TokenEmbedding(997, width)(np.arange(997)[None])) / math.sqrt(width)
    tokens = np.square(table * scale).mean()
    positions = np.square(positional_encoding(50, width)).mean()
    return positions / (positions + tokens)


def test_embeddings_divided_by_the_root_of_the_width():
    assert positions_outweigh(1 / math.sqrt(64)) > 0.99
    assert positions_outweigh(math.sqrt(64)) == pytest.approx(1 / 3, abs=0.02)  # ours: 1/2 of 3/2


def test_embeddings_without_the_factor():
    assert positions_outweigh(1) > 0.95
    assert positions_outweigh(math.sqrt(64)) < 0.5


def test_logits_with_the_factor():
    width = 256
    tokens = TokenEmbedding(997, width)
    x = array(LayerNorm()(vectors(50, width)))
    tokens.build((None, None))
    ours, wrong = array(tokens.logits(x)), array(tokens.logits(x)) * math.sqrt(width)
    certainty = [array(keras.ops.softmax(logits)).max(axis=-1).mean() for logits in (ours, wrong)]
    assert certainty[0] < 0.05
    assert certainty[1] > 0.8
    labels = np.random.default_rng(1).integers(1, 997, size=(1, 50))
    assert array(token_losses(labels, ours[None])).mean() == pytest.approx(math.log(997), abs=1)
    assert array(token_losses(labels, wrong[None])).mean() > 20


@pytest.mark.long
def test_tables_that_are_equal_only_at_the_start():
    source, target, labels = ids(B, S), ids(B, T, seed=1), ids(B, T, seed=2)
    tied, copied = built(share_embeddings="all"), built()
    copied.decoder.embedding.tokens.table.assign(copied.encoder.embedding.tokens.table)
    copied.output_projection.kernel.assign(keras.ops.transpose(copied.encoder.embedding.tokens.table))

    def tables(model):
        first, second = (array(stack.embedding.tokens.table) for stack in (model.encoder, model.decoder))
        logits = array(model((source, target)))
        x = model.decoder(target, model.encoder(source, mask=padding_mask(source)), context_mask=padding_mask(source))
        return np.abs(first - second).max(), np.abs(logits - array(x) @ first.T).max()

    for model, stays in ((tied, True), (copied, False)):
        assert max(tables(model)) < 1e-5
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(token_losses(labels, model((source, target))))
        optimizer = keras.optimizers.Adam(0.01)
        optimizer.apply(tape.gradient(loss, model.trainable_variables), model.trainable_variables)
        assert (max(tables(model)) < 1e-5) == stays


# Label smoothing.


def target_of(loss, label):
    """The distribution that a loss asks for: softmax(logits) - gradient."""
    logits = tf.Variable(vectors(1, 1, V))
    with tf.GradientTape() as tape:
        total = tf.reduce_sum(loss(np.array([[label]]), logits))
    return (tf.nn.softmax(logits) - tape.gradient(total, logits)).numpy()[0, 0]


def test_label_smoothing_that_gives_padding_a_share():
    e = 0.1
    of_keras = keras.losses.CategoricalCrossentropy(from_logits=True, label_smoothing=e, reduction="sum")
    wrong = target_of(lambda labels, logits: of_keras(np.eye(V)[labels], logits), 4)
    ours = target_of(lambda labels, logits: token_losses(labels, logits, e), 4)
    for target in (wrong, ours):
        assert target.sum() == pytest.approx(1, abs=1e-5)
    assert wrong[PAD] == pytest.approx(e / V, abs=1e-5)
    assert ours[PAD] == pytest.approx(0, abs=1e-6)
    assert ours[4] == pytest.approx(1 - e + e / (V - 1), abs=1e-5)
    np.testing.assert_allclose(np.delete(ours, [PAD, 4]), e / (V - 1), atol=1e-5)


def test_a_loss_that_counts_padding():
    labels, logits = ids(B, T), vectors(B, T, V)
    padded = np.pad(labels, ((0, 0), (0, 4))), np.concatenate([logits, vectors(B, 4, V, seed=1)], axis=1)
    wrong = lambda labels, logits: np.mean(token_losses(labels, logits))  # noqa: E731

    def ours(labels, logits):
        metric = TokenLoss()
        metric.update_state(labels, logits)
        return float(metric.result())

    assert ours(*padded) == pytest.approx(ours(labels, logits), rel=1e-5)
    assert wrong(*padded) == pytest.approx(wrong(labels, logits) * T / (T + 4), rel=1e-5)


def test_probabilities_given_for_logits():
    label = np.array([[4]])
    logits = 20 * np.eye(V, dtype="float32")[label]  # as sure as can be, and right
    assert token_losses(label, logits)[0, 0] < 1e-5
    least = math.log(1 + (V - 1) / math.e)  # what a probability of 1 costs if it is taken for a logit
    twice = float(token_losses(label, keras.ops.softmax(logits))[0, 0])
    assert twice == pytest.approx(least, abs=1e-3)
    assert twice > 1.9


def test_a_perplexity_of_the_smoothed_loss():
    labels, logits, e = ids(B, T), vectors(B, T, V), 0.3
    ours, smoothed = Perplexity(), TokenLoss(label_smoothing=e)
    sure = 20 * np.eye(V, dtype="float32")[labels]
    for one in (ours, smoothed):
        one.update_state(labels, sure)
    assert float(ours.result()) == pytest.approx(1, abs=1e-3)  # the model is always right and sure of it
    assert math.exp(float(smoothed.result())) > 100
    plain = keras.ops.log_softmax(logits)
    expected = np.exp(-np.mean(np.take_along_axis(array(plain), labels[..., None], axis=-1)))
    ours.reset_state()
    ours.update_state(labels, logits)
    assert float(ours.result()) == pytest.approx(expected, rel=1e-4)

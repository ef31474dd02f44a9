import keras
import numpy as np
import pytest
import tensorflow as tf

from tf_transformer.training import Perplexity, SmoothedCrossEntropy, TokenAccuracy, TokenLoss
from tf_transformer.training.loss import token_losses

B, T, V = 2, 3, 7
LABELS = np.array([[5, 1, 0], [2, 0, 0]])
REAL = LABELS != 0
LOGITS = np.random.default_rng(4).normal(size=(B, T, V)).astype("float32")
smoothing = pytest.mark.parametrize("e", [0.0, 0.1, 0.7])


def smoothed(e):
    """The distribution that label smoothing aims at, by its definition."""
    return (1 - e) * np.eye(V)[LABELS] + e / (V - 1) * (np.arange(V) != 0)


@smoothing
def test_losses_are_those_of_keras_under_the_smoothed_labels(e):
    expected = keras.losses.categorical_crossentropy(smoothed(e), LOGITS, from_logits=True) * REAL
    np.testing.assert_allclose(token_losses(LABELS, LOGITS, e), expected, atol=1e-5)


@smoothing
def test_the_written_gradient_is_the_derived_one(e):
    logits, upstream = tf.Variable(LOGITS), np.arange(1.0, 7).reshape(B, T).astype("float32")
    with tf.GradientTape(persistent=True) as tape:
        ours = tf.reduce_sum(token_losses(LABELS, logits, e) * upstream)
        theirs = -tf.reduce_sum(smoothed(e) * tf.nn.log_softmax(logits) * (REAL * upstream)[..., None])
    np.testing.assert_allclose(tape.gradient(ours, logits), tape.gradient(theirs, logits), atol=1e-5)


def test_smoothing_gives_no_mass_to_padding():
    e = 0.1
    logits = tf.Variable(LOGITS)
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(token_losses(LABELS, logits, e))
    probabilities = tf.nn.softmax(logits)
    # d loss / d logit = probability - target probability: at padding the target has none.
    np.testing.assert_allclose(tape.gradient(loss, logits)[..., 0], probabilities[..., 0] * REAL, atol=1e-6)


def test_the_loss_is_a_weighted_sum_over_sentences():
    weight = np.array([0.5, 0.25], "float32")
    losses = np.asarray(token_losses(LABELS, LOGITS, 0.1)).sum(axis=1)
    total = SmoothedCrossEntropy(0.1)(LABELS, LOGITS, sample_weight=weight)
    assert float(total) == pytest.approx((losses * weight).sum(), rel=1e-6)


@pytest.mark.parametrize("sentences", [1, 2, 3])
def test_a_mask_that_keras_has_attached_changes_no_loss(sentences):
    """Of as many sentences as tokens, too, where a mask of tokens would be taken for one of sentences."""
    labels = np.tile([[5, 1, 0]], (sentences, 1))
    x = keras.layers.Dense(V)(keras.layers.Embedding(V, 5, mask_zero=True)(labels))
    loss = SmoothedCrossEntropy()
    assert float(loss(labels, x)) == pytest.approx(float(loss(labels, np.asarray(x))), rel=1e-6)


def test_weights_of_tokens_are_refused():
    with pytest.raises(ValueError, match=r"one weight a sentence; .* Received: weights of shape \(2, 3\)"):
        SmoothedCrossEntropy()(LABELS, LOGITS, sample_weight=REAL)
    loss, weight = SmoothedCrossEntropy(), np.array([0.5, 0.25], "float32")
    assert float(loss(LABELS, LOGITS, weight[:, None])) == pytest.approx(float(loss(LABELS, LOGITS, weight)))


def test_metrics_average_over_tokens_and_ignore_padding():
    wide, wide_logits = np.array([[3, 3, 3, 4, 5], [6, 6, 0, 0, 0]]), np.concatenate([LOGITS, -LOGITS[:, :2]], axis=1)
    metrics = {"plain": TokenLoss(name="plain"), "ppl": Perplexity(), "smooth": TokenLoss(0.1), "acc": TokenAccuracy()}
    for labels, logits in ((LABELS, LOGITS), (wide, wide_logits)):
        for metric in metrics.values():
            metric.update_state(labels, logits)
    result = {name: float(metric.result()) for name, metric in metrics.items()}
    both = [
        np.concatenate([LABELS.ravel(), wide.ravel()]),
        np.concatenate([LOGITS.reshape(-1, V), wide_logits.reshape(-1, V)]),
    ]
    real = both[0] != 0
    plain = np.asarray(token_losses(*both))[real]
    assert result["plain"] == pytest.approx(plain.mean(), rel=1e-5)
    assert result["ppl"] == pytest.approx(np.exp(plain.mean()), rel=1e-5)
    assert result["smooth"] == pytest.approx(np.asarray(token_losses(*both, 0.1))[real].mean(), rel=1e-5)
    assert result["acc"] == pytest.approx((both[1].argmax(-1) == both[0])[real].mean())


def test_they_come_back_from_their_config():
    loss = SmoothedCrossEntropy(0.3)
    copy = keras.losses.deserialize(keras.losses.serialize(loss))
    assert float(copy(LABELS, LOGITS)) == float(loss(LABELS, LOGITS))
    for metric in (TokenLoss(0.3), Perplexity(), TokenAccuracy()):
        copy = keras.metrics.deserialize(keras.metrics.serialize(metric))
        metric.update_state(LABELS, LOGITS)
        copy.update_state(LABELS, LOGITS)
        assert copy.name == metric.name
        assert float(copy.result()) == float(metric.result())


def test_nonsense_is_refused():
    with pytest.raises(ValueError, match=r"label_smoothing=1\.5"):
        SmoothedCrossEntropy(1.5)

"""The loss (paper 5.4) and the metrics that go with it. All of them ignore padding, label 0."""

from typing import Any

import keras
import tensorflow as tf

from tf_transformer.model.masks import PAD


def token_losses(labels: Any, logits: Any, label_smoothing: float = 0.0) -> Any:
    """Cross-entropy of every token, 0 at padding.

    With label smoothing e, the label has probability 1 - e, and e is spread evenly over all tokens except padding,
    including the label (paper 5.4).

    Args:
        labels: token ids, [B, T]; 0 is padding.
        logits: [B, T, V].
        label_smoothing: e, at least 0 and below 1.

    Returns:
        [B, T], float32, in nats.
    """
    losses = _cross_entropy(*_rows(labels, logits), label_smoothing)
    return tf.reshape(losses, tf.shape(labels)) * tf.cast(labels != PAD, tf.float32)


def _rows(labels: Any, logits: Any) -> tuple[tf.Tensor, tf.Tensor]:
    """Return labels [B, T] as [N] and logits [B, T, V] as [N, V].

    Loss and metrics both call this, so that TensorFlow computes what they have in common only once.
    """
    return tf.reshape(tf.cast(labels, tf.int32), [-1]), tf.reshape(tf.cast(logits, tf.float32), [-1, logits.shape[-1]])


def _cross_entropy(labels: tf.Tensor, logits: tf.Tensor, label_smoothing: float) -> tf.Tensor:
    """Cross-entropy [N] of labels [N] under logits [N, V], with an explicit gradient.

    Automatic differentiation would make a dozen tensors [N, V]. This makes the softmax, takes the normaliser from its
    greatest probability, and gets the gradient by changing the softmax at the labels.
    """
    probabilities = tf.nn.softmax(logits)
    # Summing the exponentials would compute them a second time.
    log_total = tf.reduce_max(logits, axis=-1) - tf.math.log(tf.reduce_max(probabilities, axis=-1))
    # The probability that smoothing gives to each token except padding.
    smooth = label_smoothing / (logits.shape[-1] - 1)
    smoothed = smooth * tf.cast(tf.range(logits.shape[-1]) != PAD, tf.float32)

    @tf.custom_gradient
    def cross_entropy(logits: tf.Tensor) -> Any:
        losses = log_total - (1 - label_smoothing) * tf.gather(logits, labels, batch_dims=1)
        if label_smoothing:
            losses -= smooth * (tf.reduce_sum(logits, axis=-1) - logits[:, PAD])

        def gradient(upstream: tf.Tensor) -> tf.Tensor:
            change = (probabilities - smoothed if label_smoothing else probabilities) * upstream[:, None]
            places = tf.stack([tf.range(tf.size(labels)), labels], axis=-1)
            return tf.tensor_scatter_nd_sub(change, places, (1 - label_smoothing) * upstream)

        return losses, gradient

    return cross_entropy(logits)


@keras.saving.register_keras_serializable("tf_transformer")
class SmoothedCrossEntropy(keras.losses.Loss):
    """Label-smoothed cross-entropy, summed over the tokens of a sentence and over the sentences (paper 5.4).

    If each sentence has the weight 1 / (target tokens of the whole batch), as `Batches` gives it, the sum is the mean
    over tokens for any number of replicas, because Keras neither averages nor rescales a sum.

    Args:
        label_smoothing: share of the probability spread over the vocabulary; the paper's 0.1 by default.
        name: the name of the loss.
    """

    def __init__(self, label_smoothing: float = 0.1, name: str = "smoothed_cross_entropy", **kwargs: Any):
        if not 0 <= label_smoothing < 1:
            raise ValueError(f"label_smoothing must be at least 0 and below 1. Received: {label_smoothing=}")
        super().__init__(name=name, **{"reduction": "sum", **kwargs})
        self.label_smoothing = label_smoothing

    def call(self, y_true: Any, y_pred: Any) -> Any:
        """Return the losses [B] of labels [B, T] under logits [B, T, V]."""
        return tf.reduce_sum(token_losses(y_true, y_pred, self.label_smoothing), axis=-1)

    def get_config(self) -> dict[str, Any]:
        """Return the constructor's arguments."""
        return super().get_config() | {"label_smoothing": self.label_smoothing}


@keras.saving.register_keras_serializable("tf_transformer")
class TokenLoss(keras.metrics.Mean):
    """The mean loss per token, over all tokens since the epoch began.

    Named "loss", it replaces Keras's own metric, which weights batches by their number of sentences.
    """

    def __init__(self, label_smoothing: float = 0.0, name: str = "loss", **kwargs: Any):
        super().__init__(name=name, **kwargs)
        self.label_smoothing = label_smoothing

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        """Add labels [B, T] under logits [B, T, V]; weights are ignored, because padding is excluded anyway."""
        super().update_state(*_flat(token_losses(y_true, y_pred, self.label_smoothing), y_true))

    def get_config(self) -> dict[str, Any]:
        """Return the constructor's arguments."""
        return super().get_config() | {"label_smoothing": self.label_smoothing}


@keras.saving.register_keras_serializable("tf_transformer")
class Perplexity(TokenLoss):
    """exp of the mean cross-entropy per token, without label smoothing."""

    def __init__(self, name: str = "perplexity", **kwargs: Any):
        super().__init__(**{**kwargs, "name": name, "label_smoothing": 0.0})

    def result(self) -> Any:
        """Return the perplexity."""
        return tf.exp(super().result())


@keras.saving.register_keras_serializable("tf_transformer")
class TokenAccuracy(keras.metrics.Mean):
    """The share of target tokens, including the end token, that the model finds the most probable."""

    def __init__(self, name: str = "accuracy", **kwargs: Any):
        super().__init__(name=name, **kwargs)

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        """Add labels [B, T] under logits [B, T, V]; weights are ignored, because padding is excluded anyway."""
        labels, logits = _rows(y_true, y_pred)
        # This is cheaper than argmax, because the loss computes the greatest logit already.
        right = tf.gather(logits, labels, batch_dims=1) >= tf.reduce_max(logits, axis=-1)
        super().update_state(*_flat(right, y_true))


def _flat(values: Any, labels: Any) -> tuple[Any, Any]:
    """Return values and weights as vectors, because Keras would average over the last of several axes first."""
    is_token = tf.cast(labels, tf.int32) != PAD
    return tf.reshape(tf.cast(values, tf.float32), [-1]), tf.reshape(tf.cast(is_token, tf.float32), [-1])

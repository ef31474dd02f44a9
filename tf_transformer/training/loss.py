"""The loss (paper 5.4) and the metrics that go with it. All of them ignore padding, label 0."""

from typing import Any

import keras
from keras import ops

from tf_transformer.layers.masks import PAD


def token_losses(labels: Any, logits: Any, label_smoothing: float = 0.0) -> Any:
    """Cross-entropy of every token, 0 at padding.

    With label smoothing e the label has probability 1 - e, and e is spread evenly over all tokens but padding, the
    label among them (paper 5.4).

    Args:
        labels: token ids, [B, T]; 0 is padding.
        logits: [B, T, V].
        label_smoothing: e, at least 0 and below 1.

    Returns:
        [B, T], float32, in nats.
    """
    vocabulary = logits.shape[-1]
    flat_labels = ops.reshape(ops.cast(labels, "int32"), (-1,))
    flat_logits = ops.reshape(ops.cast(logits, "float32"), (-1, vocabulary))
    losses = _cross_entropy(flat_labels, flat_logits, label_smoothing)
    return ops.reshape(losses, ops.shape(labels)) * ops.cast(labels != PAD, "float32")


def _cross_entropy(labels: Any, logits: Any, label_smoothing: float) -> Any:
    """Cross-entropy [N] of labels [N] under logits [N, V], with a gradient written out.

    Differentiated step by step it would make half a dozen tensors [N, V]; this makes the softmax and changes it where
    the labels stand.
    """
    at_label = ops.squeeze(ops.take_along_axis(logits, ops.expand_dims(labels, -1), axis=-1), -1)
    places = ops.stack([ops.arange(ops.shape(labels)[0]), labels], axis=-1)
    # The probability that smoothing gives a token: none to padding.
    smooth = label_smoothing / (logits.shape[-1] - 1)
    smoothed = smooth * ops.cast(ops.arange(logits.shape[-1]) != PAD, "float32")

    @ops.custom_gradient
    def cross_entropy(logits: Any) -> Any:
        log_total = ops.logsumexp(logits, axis=-1)
        losses = log_total - (1 - label_smoothing) * at_label
        if label_smoothing:
            losses = losses - smooth * (ops.sum(logits, axis=-1) - logits[:, PAD])

        def gradient(*args: Any, upstream: Any = None) -> Any:
            upstream = args[0] if upstream is None else upstream
            probabilities = ops.softmax(logits, axis=-1)
            change = (probabilities - smoothed) * ops.expand_dims(upstream, -1)
            labelled = (ops.exp(at_label - log_total) - smooth - (1 - label_smoothing)) * upstream
            return ops.scatter_update(change, places, labelled)

        return losses, gradient

    return cross_entropy(logits)


@keras.saving.register_keras_serializable("tf_transformer")
class SmoothedCrossEntropy(keras.losses.Loss):
    """Label-smoothed cross-entropy, summed over the tokens of a sentence and over the sentences (paper 5.4).

    Weight the sentences by one over the target tokens of the whole batch, as `Batches` does, and the sum is the mean
    over tokens, whatever the number of replicas: Keras neither averages nor rescales a sum.

    Args:
        label_smoothing: share of the probability spread over the vocabulary; the paper's 0.1 by default.
        name: of the loss.
    """

    def __init__(self, label_smoothing: float = 0.1, name: str = "smoothed_cross_entropy", **kwargs: Any):
        if not 0 <= label_smoothing < 1:
            raise ValueError(f"label_smoothing must be at least 0 and below 1. Received: {label_smoothing=}")
        super().__init__(name=name, **{"reduction": "sum", **kwargs})
        self.label_smoothing = label_smoothing

    def call(self, y_true: Any, y_pred: Any) -> Any:
        """Return the losses [B] of labels [B, T] under logits [B, T, V]."""
        return ops.sum(token_losses(y_true, y_pred, self.label_smoothing), axis=-1)

    def get_config(self) -> dict[str, Any]:
        """Return the constructor's arguments."""
        return super().get_config() | {"label_smoothing": self.label_smoothing}


@keras.saving.register_keras_serializable("tf_transformer")
class TokenLoss(keras.metrics.Mean):
    """The mean loss of a token, over all tokens since the epoch began.

    Called "loss" it takes the place of Keras's own, which averages over batches by their number of sentences.
    """

    def __init__(self, label_smoothing: float = 0.0, name: str = "loss", **kwargs: Any):
        super().__init__(name=name, **kwargs)
        self.label_smoothing = label_smoothing

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        """Add labels [B, T] under logits [B, T, V]; weights are not used, for padding weighs nothing anyway."""
        super().update_state(*_flat(token_losses(y_true, y_pred, self.label_smoothing), y_true))

    def get_config(self) -> dict[str, Any]:
        """Return the constructor's arguments."""
        return super().get_config() | {"label_smoothing": self.label_smoothing}


@keras.saving.register_keras_serializable("tf_transformer")
class Perplexity(TokenLoss):
    """exp of the mean cross-entropy of a token, without label smoothing."""

    def __init__(self, name: str = "perplexity", **kwargs: Any):
        super().__init__(**{**kwargs, "name": name, "label_smoothing": 0.0})

    def result(self) -> Any:
        """Return the perplexity."""
        return ops.exp(super().result())


@keras.saving.register_keras_serializable("tf_transformer")
class TokenAccuracy(keras.metrics.Mean):
    """The share of tokens, the end token among them, that are the most probable one."""

    def __init__(self, name: str = "accuracy", **kwargs: Any):
        super().__init__(name=name, **kwargs)

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        """Add labels [B, T] under logits [B, T, V]; weights are not used, for padding weighs nothing anyway."""
        right = ops.cast(y_true, "int32") == ops.cast(ops.argmax(y_pred, axis=-1), "int32")
        super().update_state(*_flat(right, y_true))


def _flat(values: Any, labels: Any) -> tuple[Any, Any]:
    """Return values and weights as vectors: of more axes than one, Keras would average over the last ones first."""
    is_token = ops.cast(labels, "int32") != PAD
    return ops.reshape(ops.cast(values, "float32"), (-1,)), ops.reshape(ops.cast(is_token, "float32"), (-1,))

"""The loss (paper 5.4) and the metrics that go with it. All of them ignore padding, label 0."""

from typing import Any

import keras
from keras import ops

from tf_transformer.config.special_tokens import PAD
from tf_transformer.model.gradients import on_tensorflow
from tf_transformer.training import loss_gradient


@on_tensorflow(loss_gradient.take_labels)
def take_labels(labels: Any, values: Any) -> Any:
    """Return values[..., label] for every label: values [..., V], labels [...] -> [...]."""
    labels = ops.cast(labels, "int32")  # Keras gives labels as floats
    return ops.take_along_axis(values, ops.expand_dims(labels, -1), axis=-1)[..., 0]


@on_tensorflow(loss_gradient.token_losses)
def token_losses(labels: Any, logits: Any, label_smoothing: float = 0.0) -> Any:
    """Cross-entropy of every token, 0 at padding.

    With label smoothing e (paper 5.4), the label has probability 1 - e, and e is spread evenly over all tokens except
    padding, including the label.

    Args:
        labels: token ids, [B, T]; 0 is padding.
        logits: [B, T, V].
        label_smoothing: e, at least 0 and below 1.

    Returns:
        [B, T], float32, in nats.
    """
    log_probs = ops.log_softmax(ops.cast(logits, "float32"), axis=-1)
    total = ops.sum(log_probs, axis=-1) - log_probs[..., PAD]
    share = label_smoothing / (logits.shape[-1] - 1)
    losses = -(1 - label_smoothing) * take_labels(labels, log_probs) - share * total
    return ops.where(ops.equal(labels, PAD), 0.0, losses)


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

    def __call__(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> Any:
        """Return the loss of labels [B, T] under logits [B, T, V]. Padding is left out by the labels alone.

        Args:
            y_true: the labels.
            y_pred: the logits. A mask that Keras has attached to them is left out.
            sample_weight: the weights of the sentences, [B] or [B, 1]; 1 by default.

        Raises:
            ValueError: weights of another shape.
        """
        if sample_weight is not None and len(ops.shape(sample_weight)) > 1 and ops.shape(sample_weight)[-1] != 1:
            raise ValueError(
                "sample_weight must be [B], one weight a sentence; padding is left out without weights. "
                f"Received: weights of shape {tuple(sample_weight.shape)}"
            )
        if getattr(y_pred, "_keras_mask", None) is not None:  # [B, T], by which Keras would multiply losses [B]
            y_pred = ops.reshape(y_pred, ops.shape(y_pred))
        return super().__call__(y_true, y_pred, sample_weight)

    def call(self, y_true: Any, y_pred: Any) -> Any:
        """Return the losses [B] of labels [B, T] under logits [B, T, V]."""
        return ops.sum(token_losses(y_true, y_pred, self.label_smoothing), axis=-1)

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
        return ops.exp(super().result())


@keras.saving.register_keras_serializable("tf_transformer")
class TokenAccuracy(keras.metrics.Mean):
    """The share of target tokens, including the end token, that the model finds the most probable."""

    def __init__(self, name: str = "accuracy", **kwargs: Any):
        super().__init__(name=name, **kwargs)

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        """Add labels [B, T] under logits [B, T, V]; weights are ignored, because padding is excluded anyway."""
        logits = ops.cast(y_pred, "float32")
        logits = ops.reshape(logits, (-1, logits.shape[-1]))  # so TensorFlow shares this maximum with that of the loss
        labels = ops.reshape(y_true, (-1,))
        is_right = take_labels(labels, logits) >= ops.max(logits, axis=-1)  # a tie counts as right
        super().update_state(*_flat(is_right, labels))


def _flat(values: Any, labels: Any) -> tuple[Any, Any]:
    """Return values and weights as vectors, because Keras would average over the last of several axes first."""
    is_token = ops.not_equal(labels, PAD)
    return ops.reshape(ops.cast(values, "float32"), (-1,)), ops.reshape(ops.cast(is_token, "float32"), (-1,))

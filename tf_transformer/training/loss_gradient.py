"""The loss with an explicit gradient, which TensorFlow runs in place of its formula."""

from typing import Any

from tf_transformer.config.special_tokens import PAD


def token_losses(labels: Any, logits: Any, label_smoothing: float = 0.0) -> Any:
    """As `loss.token_losses`. The formula and its gradient make a dozen tensors [B, T, V]; this makes two.

    It makes the softmax, takes the normaliser from its greatest probability, because summing the exponentials would
    compute them a second time, and gets the gradient by changing the softmax at the labels.
    """
    import tensorflow as tf

    shape, size = tf.shape(labels), logits.shape[-1]
    labels = tf.reshape(tf.cast(labels, tf.int32), [-1])
    logits = tf.reshape(tf.cast(logits, tf.float32), [-1, size])
    probabilities = tf.nn.softmax(logits)
    log_total = tf.reduce_max(logits, axis=-1) - tf.math.log(tf.reduce_max(probabilities, axis=-1))
    # The probability that smoothing gives to each token except padding.
    smooth = label_smoothing / (size - 1)
    smoothed = smooth * tf.cast(tf.range(size) != PAD, tf.float32)

    @tf.custom_gradient
    def cross_entropy(logits: tf.Tensor) -> Any:
        losses = log_total - (1 - label_smoothing) * of_labels(labels, logits)
        if label_smoothing:
            losses -= smooth * (tf.reduce_sum(logits, axis=-1) - logits[:, PAD])

        def backward(upstream: tf.Tensor) -> tf.Tensor:
            change = (probabilities - smoothed if label_smoothing else probabilities) * upstream[:, None]
            places = tf.stack([tf.range(tf.size(labels)), labels], axis=-1)
            return tf.tensor_scatter_nd_sub(change, places, (1 - label_smoothing) * upstream)

        return losses, backward

    return tf.reshape(cross_entropy(logits) * tf.cast(labels != PAD, tf.float32), shape)


def of_labels(labels: Any, values: Any) -> Any:
    """As `loss.of_labels`; Keras's operation would copy the values first."""
    import tensorflow as tf

    labels = tf.cast(labels, tf.int32)
    return tf.gather(values, labels, batch_dims=labels.shape.rank)

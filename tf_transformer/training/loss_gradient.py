"""What TensorFlow runs in place of the functions of `loss`: the same loss with an explicit gradient."""

from typing import Any

from tf_transformer.config.special_tokens import PAD


def token_losses(labels: Any, logits: Any, label_smoothing: float = 0.0) -> Any:
    """As `loss.token_losses`. The formula and its gradient make a dozen tensors [B, T, V]; this makes two.

    log Z = max(logits) - log(max(softmax)), because the greatest probability is exp(max) / Z: this saves a second pass
    over the exponentials. The gradient is the softmax minus the smoothed label.
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
        losses = log_total - (1 - label_smoothing) * take_labels(labels, logits)
        if label_smoothing:
            losses -= smooth * (tf.reduce_sum(logits, axis=-1) - logits[:, PAD])

        def backward(upstream: tf.Tensor) -> tf.Tensor:
            change = (probabilities - smoothed if label_smoothing else probabilities) * upstream[:, None]
            places = tf.stack([tf.range(tf.size(labels)), labels], axis=-1)
            return tf.tensor_scatter_nd_sub(change, places, (1 - label_smoothing) * upstream)

        return losses, backward

    return tf.reshape(cross_entropy(logits) * tf.cast(labels != PAD, tf.float32), shape)


def take_labels(labels: Any, values: Any) -> Any:
    """As `loss.take_labels`; Keras's operation would copy the values first."""
    import tensorflow as tf

    flat = tf.gather(
        tf.reshape(values, [-1, values.shape[-1]]), tf.reshape(tf.cast(labels, tf.int32), [-1]), batch_dims=1
    )
    return tf.reshape(flat, tf.shape(labels))

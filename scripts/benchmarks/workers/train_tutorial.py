"""A training step of the TensorFlow tutorial's architecture in keras.layers, with heads of d_model and Keras masks."""

import keras
import numpy as np
import tensorflow as tf
from protocol import random_ids, spec
from repeated import repeated, serve_fit

given = spec()
if given["dtype"] != "float32":
    keras.config.set_dtype_policy(f"mixed_{given['dtype']}")
layers, width, heads, inner = given["num_layers"], given["d_model"], given["num_heads"], given["dff"]
longest = max(given["source"], given["target"])
rates = 10_000 ** (-np.arange(width // 2) / (width // 2))
angles = np.arange(longest)[:, None] * rates
encoding = np.concatenate([np.sin(angles), np.cos(angles)], axis=-1).astype(np.float32)


class Positions(keras.layers.Layer):
    """A scaled embedding with positions; Keras masks its padding implicitly."""

    def __init__(self):
        super().__init__()
        self.embedding = keras.layers.Embedding(given["vocabulary"], width, mask_zero=True)

    def compute_mask(self, ids, previous=None):
        """Return which tokens are real."""
        return self.embedding.compute_mask(ids)

    def call(self, ids):
        """[B, T] -> [B, T, D]."""
        x = self.embedding(ids)
        return x * tf.cast(width**0.5, x.dtype) + tf.cast(encoding[None, : ids.shape[1]], x.dtype)


def attention(query, value, **options):
    """Attention with its residual connection and layer norm."""
    found = keras.layers.MultiHeadAttention(heads, key_dim=width, dropout=0.1)(query, value, **options)
    return keras.layers.LayerNormalization()(keras.layers.Add()([query, found]))


def feed_forward(x):
    """Two dense layers, dropout, residual connection, layer norm."""
    found = keras.layers.Dropout(0.1)(keras.layers.Dense(width)(keras.layers.Dense(inner, activation="relu")(x)))
    return keras.layers.LayerNormalization()(keras.layers.Add()([x, found]))


source, target = keras.Input((given["source"],), dtype="int32"), keras.Input((given["target"],), dtype="int32")
context, x = keras.layers.Dropout(0.1)(Positions()(source)), keras.layers.Dropout(0.1)(Positions()(target))
for _ in range(layers):
    context = feed_forward(attention(context, context))
for _ in range(layers):
    x = feed_forward(attention(attention(x, x, use_causal_mask=True), context))
model = keras.Model([source, target], keras.layers.Dense(given["vocabulary"])(x))


def masked_loss(labels, logits):
    """Return the mean loss over real tokens."""
    mask = labels != 0
    losses = keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction="none")(labels, logits)
    return tf.reduce_sum(losses * tf.cast(mask, losses.dtype)) / tf.reduce_sum(tf.cast(mask, losses.dtype))


def masked_accuracy(labels, logits):
    """Return the share of real tokens that are the most probable."""
    labels = tf.cast(labels, tf.int64)
    match, mask = labels == tf.argmax(logits, axis=2), labels != 0
    return tf.reduce_sum(tf.cast(match & mask, tf.float32)) / tf.reduce_sum(tf.cast(mask, tf.float32))


model.compile(
    keras.optimizers.Adam(1e-4, beta_2=0.98, epsilon=1e-9), masked_loss, metrics=[masked_accuracy], jit_compile=False
)
ids, labels = random_ids(given)
serve_fit(model, repeated(((ids, labels[:, :-1]), labels[:, 1:])), model.count_params())

"""Sentences that are done leave the batch."""

from typing import Any

import tensorflow as tf

from tf_transformer.decoding.hypotheses import Hypotheses, store


def without_done(state: Any, is_live: tf.Tensor, found: Hypotheses, width: int = 1) -> Any:
    """Return the state of a search without the sentences that are done, once they are half of all.

    Args:
        state: a NamedTuple of tensors with a row for each of b sentences, but for two: its `cache` has `width` rows for
            each, and its `results` are the hypotheses of all sentences that the search began with, in whose rows
            `places` what was found of the b sentences is stored.
        is_live: [b], boolean: the sentences that are not done.
        found: the hypotheses of the b sentences.
        width: rows of the cache for each sentence.
    """
    live = tf.cast(tf.reshape(tf.where(is_live), [-1]), tf.int32)

    def compact() -> Any:
        rows = tf.reshape(live[:, None] * width + tf.range(width), [-1])
        left = _rows(state._replace(cache=(), results=()), live)
        return left._replace(cache=_rows(state.cache, rows), results=store(state.results, found, state.places))

    return tf.cond(2 * tf.size(live) <= tf.size(is_live), compact, lambda: state)


def _rows(tensors: Any, rows: tf.Tensor) -> Any:
    return tf.nest.map_structure(lambda tensor: tf.gather(tensor, rows), tensors)

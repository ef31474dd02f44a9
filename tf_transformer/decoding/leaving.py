"""Removal of finished sentences from the batch."""

from typing import Any

import tensorflow as tf

from tf_transformer.decoding.hypotheses import Hypotheses, store


def drop_finished(state: Any, is_live: tf.Tensor, found: Hypotheses, beam_size: int = 1) -> Any:
    """Return the state of a search without its finished sentences, once these are at least half of all.

    Args:
        state: a NamedTuple of tensors with a row for each of b sentences, with two exceptions: its `cache` has
            `beam_size` rows for each, and its `results` are the hypotheses of all sentences that the search began with.
            `sentence_indices` says in which rows of `results` those of the b sentences are stored.
        is_live: [b], boolean: whether each sentence is unfinished.
        found: the hypotheses of the b sentences.
        beam_size: rows of the cache for each sentence.
    """
    live = tf.cast(tf.reshape(tf.where(is_live), [-1]), tf.int32)

    def compact() -> Any:
        rows = tf.reshape(live[:, None] * beam_size + tf.range(beam_size), [-1])
        left = _rows(state._replace(cache=(), results=()), live)
        return left._replace(
            cache=_rows(state.cache, rows), results=store(state.results, found, state.sentence_indices)
        )

    return tf.cond(2 * tf.size(live) <= tf.size(is_live), compact, lambda: state)


def _rows(tensors: Any, rows: tf.Tensor) -> Any:
    return tf.nest.map_structure(lambda tensor: tf.gather(tensor, rows), tensors)

"""Greedy search: the most probable token at every step."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

Step = Callable[[tf.Tensor, tf.Tensor, Any], tuple[tf.Tensor, Any]]
"""`(ids [B], position, cache) -> (logits [B, V], cache)`; the axes of the cache may grow from step to step."""


class Hypotheses(NamedTuple):
    """What a search found."""

    ids: tf.Tensor
    """[B, T], int32: the tokens after the start token, the end token among them where one came; padded"""
    scores: tf.Tensor
    """[B], float32: summed log-probability of those tokens"""


class State(NamedTuple):
    """The state of the loop."""

    position: tf.Tensor
    """scalar: tokens written so far, T"""
    last: tf.Tensor
    """[B]: the token to read next"""
    ids: tf.Tensor
    """[B, T]"""
    scores: tf.Tensor
    """[B]"""
    finished: tf.Tensor
    """[B], boolean: no token is added any more"""
    cache: Any
    """of the step function"""


def greedy(step: Step, cache: Any, limits: tf.Tensor, *, start: int, end: int, pad: int = 0) -> Hypotheses:
    """Take the most probable token until every row has ended, by the end token or by its limit.

    Args:
        step: gives the logits of the next token.
        cache: what the first step is given.
        limits: most tokens a row, the end token among them, [B] int32; a row of limit 0 stays empty.
        start: id that is read at position 0.
        end: id that ends a row.
        pad: id after the end.
    """
    batch = tf.shape(limits)[0]
    state = State(
        position=tf.constant(0),
        last=tf.fill([batch], start),
        ids=tf.zeros([batch, 0], tf.int32),
        scores=tf.zeros([batch]),
        finished=limits <= 0,
        cache=cache,
    )

    def advance(state: State) -> tuple[State]:
        logits, cache = step(state.last, state.position, state.cache)
        # A row neither pads itself nor starts anew, however probable a model finds that.
        allowed = logits + tf.reduce_sum(tf.one_hot([pad, start], tf.shape(logits)[-1], -np.inf, 0.0), axis=0)
        best = tf.argmax(allowed, axis=-1, output_type=tf.int32)
        # The log-probability of one token: no [B, V] of them is made.
        gained = tf.reduce_max(allowed, axis=-1) - tf.reduce_logsumexp(logits, axis=-1)
        ids = tf.where(state.finished, pad, best)
        position = state.position + 1
        return (
            State(
                position=position,
                last=ids,
                ids=tf.concat([state.ids, ids[:, None]], axis=1),
                scores=state.scores + tf.where(state.finished, 0.0, gained),
                finished=state.finished | (ids == end) | (position >= limits),
                cache=cache,
            ),
        )

    (state,) = tf.while_loop(
        lambda state: ~tf.reduce_all(state.finished),
        advance,
        (state,),
        shape_invariants=(
            State(
                position=state.position.shape,
                last=state.last.shape,
                ids=tf.TensorShape([None, None]),
                scores=state.scores.shape,
                finished=state.finished.shape,
                cache=tf.nest.map_structure(_any_length, cache),
            ),
        ),
    )
    return Hypotheses(state.ids, state.scores)


def _any_length(tensor: tf.Tensor) -> tf.TensorShape:
    """Return the shape with every axis free that may grow: those of size 0, and those unknown."""
    return tf.TensorShape([size or None for size in tensor.shape])

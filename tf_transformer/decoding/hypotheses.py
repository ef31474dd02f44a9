"""What all searches share. None of it depends on a model."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

Step = Callable[[tf.Tensor, tf.Tensor, Any, Any], tuple[tf.Tensor, Any, Any]]
"""`(ids [R], position, cache, context) -> (logits [R, V], attention, cache)`.

Every sentence has one row for each of its hypotheses, R rows in all. Tensors of the cache have R rows and may grow
along other axes; those of the context have one row per sentence. The attention [R, S] is how much each row attends to
every source position; it may be `()` without a coverage penalty.
"""


class Hypotheses(NamedTuple):
    """What a search found for B sentences: N hypotheses each, the best first."""

    ids: tf.Tensor
    """[B, N, T], int32: the tokens after the start token, with the end token if there is one, then padding"""
    scores: tf.Tensor
    """[B, N], float32: the values that they are ranked by; -inf where there are fewer than N"""
    log_probabilities: tf.Tensor
    """[B, N], float32: the sums over the tokens"""


class Sentences(NamedTuple):
    """The input of a search for B sentences."""

    limits: tf.Tensor
    """[B], int32: the most tokens of a hypothesis, including the end token; with limit 0, it is empty and certain"""
    context: Any = ()
    """what the step function is given; tensors [B, ...]"""
    prefix: Any = ()
    """[B, P], int32: tokens that hypotheses must begin with, padded with 0; () for none"""
    uniform: Any = ()
    """[B, at least the largest limit], float32, at least 0 and below 1: random numbers for sampling; () without it"""
    coverage: Any = ()
    """[B, S], float32: the attention that source positions start with: 1 where there is nothing to cover, such as
    padding, and 0 elsewhere; () without a coverage penalty"""
    phrases: Any = ()
    """[B, C, L], int32: tokens that hypotheses must contain, C phrases of at most L, padded with 0; () for none"""
    start: Any = ()
    """[B], int32: the token that is read at position 0; () for the start token of the rules"""

    def take(self, rows: tf.Tensor) -> "Sentences":
        """Return the sentences of those rows."""
        return tf.nest.map_structure(lambda tensor: tf.gather(tensor, rows), self)


class Rules(NamedTuple):
    """Which tokens a hypothesis may contain."""

    start: int
    """the token that is read at position 0; never written"""
    end: int
    """the token that ends a hypothesis"""
    pad: int = 0
    """the token that fills the places after the end; never written"""
    banned: tuple[int, ...] = ()
    """tokens that are never written"""
    min_length: int = 0
    """the fewest tokens before the end token, if the limit leaves room for them"""
    no_repeat_ngram: int = 0
    """size of the n-grams that a hypothesis may not repeat; 0 allows all repeats"""

    def apply(self, logits: tf.Tensor, ids: tf.Tensor, position: tf.Tensor, prefix: Any = ()) -> tf.Tensor:
        """Return logits [R, V] with -inf for the tokens that are not allowed at a position.

        Args:
            logits: the logits at that position.
            ids: [R, at least position], the tokens before it.
            position: 0 or more, scalar.
            prefix: [R, P], tokens that override all other rules; or ().
        """
        vocabulary = tf.shape(logits)[-1]
        is_end = tf.one_hot(self.end, vocabulary, True, False)
        never = tf.reduce_any(tf.one_hot([self.pad, self.start, *self.banned], vocabulary, True, False), axis=0)
        if self.min_length:
            never |= is_end & (position < self.min_length)
        # The end token is allowed where no other token is.
        never &= ~(is_end & tf.reduce_all(never))
        refused = tf.broadcast_to(never, tf.shape(logits))
        if self.no_repeat_ngram:
            refused |= _completes_a_repeated_ngram(ids, position, self.no_repeat_ngram, vocabulary)
            refused &= ~(is_end & tf.reduce_all(refused, axis=1, keepdims=True))
        if tf.is_tensor(prefix):
            here = prefix_at(prefix, position)
            forced = tf.one_hot(here, vocabulary, False, True)
            refused = tf.where(here[:, None] != self.pad, forced, refused)
        return tf.where(refused, -np.inf, logits)


def prefix_at(prefix: tf.Tensor, position: tf.Tensor) -> tf.Tensor:
    """Return the tokens [R] of prefixes [R, P] at a position; 0 beyond their ends."""
    return tf.pad(prefix, [[0, 0], [0, 1]])[:, tf.minimum(position, tf.shape(prefix)[1])]


def _completes_a_repeated_ngram(ids: tf.Tensor, position: tf.Tensor, n: int, vocabulary: tf.Tensor) -> tf.Tensor:
    """Return [R, V], boolean: the tokens that would complete an n-gram that ids already have before the position."""
    rows = tf.shape(ids)[0]
    ids = tf.pad(ids, [[0, 0], [0, n]])  # so that there is at least one n-gram to compare
    count = tf.shape(ids)[1] - n + 1
    starts = tf.range(count)
    same = tf.repeat(starts[None] + n <= position, rows, axis=0)
    for i in range(n - 1):
        last = tf.gather(ids, tf.maximum(position - n + 1 + i, 0), axis=1)
        same &= ids[:, i : i + count] == last[:, None]
    followers = tf.where(same, ids[:, n - 1 : n - 1 + count], vocabulary)  # beyond the vocabulary where none follows
    places = tf.stack([tf.repeat(tf.range(rows)[:, None], count, axis=1), followers], axis=-1)
    none = tf.zeros([rows, vocabulary + 1], tf.bool)
    return tf.tensor_scatter_nd_update(none, places, tf.ones_like(followers, tf.bool))[:, :vocabulary]


def no_tokens(rows: list[Any], capacity: Any) -> tf.Tensor:
    """Return empty ids [*rows, T], where T is the capacity, or 0 without one."""
    return tf.zeros([*rows, 0 if capacity is None else capacity], tf.int32)


def add_token(ids: tf.Tensor, token: tf.Tensor, position: tf.Tensor, capacity: Any) -> tf.Tensor:
    """Return ids [..., T] with a token [...] at a position. It is appended, or takes its place in the capacity."""
    if capacity is None:
        return tf.concat([ids, token[..., None]], axis=-1)
    return tf.where(tf.range(tf.shape(ids)[-1]) == position, token[..., None], ids)


def token_before(ids: tf.Tensor, position: tf.Tensor, sentences: Sentences, rules: Rules) -> tf.Tensor:
    """Return the token [R] of ids [R, T] before a position, or at position 0 the start token.

    Every sentence has equally many of the R rows.
    """
    rows = tf.shape(ids)[0]
    if tf.is_tensor(sentences.start):
        first = tf.repeat(sentences.start, rows // tf.maximum(tf.size(sentences.start), 1))
    else:
        first = tf.fill([rows], rules.start)
    return tf.gather(tf.concat([first[:, None], ids], axis=1), position, axis=1)


def store(results: Hypotheses, found: Hypotheses, indices: tf.Tensor) -> Hypotheses:
    """Return `results` with `found` in the rows `indices`; the ids of `found` are not the shorter ones."""
    more = tf.shape(found.ids)[2] - tf.shape(results.ids)[2]
    padded = results._replace(ids=tf.pad(results.ids, [[0, 0], [0, 0], [0, more]]))
    count = tf.shape(results.scores)[0]
    # The row of `results` followed by `found` that each row becomes. Scattering the rows themselves fails if empty.
    rows = tf.tensor_scatter_nd_update(tf.range(count), indices[:, None], count + tf.range(tf.size(indices)))
    return tf.nest.map_structure(lambda old, new: tf.gather(tf.concat([old, new], axis=0), rows), padded, found)


def repeat_until_done(advance: Callable[[tf.Tensor, Any], Any], is_live: Callable[[Any], tf.Tensor], state: Any) -> Any:
    """Return the state after `advance(position, state) -> state` at positions 0, 1, ... until none is live."""
    _, state = tf.while_loop(
        lambda position, state: tf.reduce_any(is_live(state)),
        lambda position, state: (position + 1, advance(position, state)),
        (tf.constant(0), state),
        shape_invariants=(tf.TensorShape([]), tf.nest.map_structure(shape_throughout, state)),
    )
    return state


def shape_throughout(tensor: tf.Tensor) -> tf.TensorShape:
    """Return the shape that a tensor has throughout a search: any number of rows, and any size of axes that grow.

    An axis grows if it is unknown or empty at first.
    """
    return tf.TensorShape([None, *(size or None for size in tensor.shape[1:])])

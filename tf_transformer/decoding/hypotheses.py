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
    """The input of a search for B sentences: tensors, or arrays, which a search makes tensors of."""

    limits: tf.Tensor
    """[B], int32: the most tokens of a hypothesis, including the end token; a sentence with limit 0 gets the empty
    hypothesis, with log-probability 0"""
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

    def as_tensors(self) -> "Sentences":
        """Return the same sentences, all of whose fields are tensors or ()."""
        done = {"context": tf.nest.map_structure(tf.convert_to_tensor, self.context)}
        for name, value in self._asdict().items():
            if name != "context" and not isinstance(value, tuple):
                done[name] = tf.cast(value, tf.float32 if name in ("uniform", "coverage") else tf.int32)
        return self._replace(**done)

    def first_tokens(self, rules: "Rules") -> tf.Tensor:
        """Return the tokens [B] that are read at position 0."""
        return self.start if tf.is_tensor(self.start) else tf.fill(tf.shape(self.limits), rules.start)


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
            logits: the logits at that position; V is known before the search.
            ids: [R, at least position], the tokens before it.
            position: 0 or more, scalar.
            prefix: [R, P], tokens that override all other rules; or ().
        """
        vocabulary = logits.shape[-1]
        penalty = self._penalty(position, vocabulary)
        if not self.no_repeat_ngram and not tf.is_tensor(prefix):
            return logits + penalty
        refused = tf.broadcast_to(penalty < 0, tf.shape(logits))
        if self.no_repeat_ngram:
            refused |= _completes_a_repeated_ngram(ids, position, self.no_repeat_ngram, vocabulary)
            refused &= ~((np.arange(vocabulary) == self.end) & tf.reduce_all(refused, axis=1, keepdims=True))
        if tf.is_tensor(prefix):
            here = prefix_at(prefix, position)
            forced = tf.one_hot(here, vocabulary, False, True)
            refused = tf.where(here[:, None] != self.pad, forced, refused)
        return tf.where(refused, -np.inf, logits)

    def _penalty(self, position: tf.Tensor, vocabulary: int) -> tf.Tensor:
        """Return [V], float32: -inf for the tokens that no hypothesis may write at a position, and 0 for the others."""
        token = np.arange(vocabulary)
        never = np.isin(token, [self.pad, self.start, *self.banned])
        rows = np.stack([never | (token == self.end), never])  # before the fewest tokens are written, and after that
        rows &= ~((token == self.end) & rows.all(axis=1, keepdims=True))  # allowed where no other token is
        penalties = np.where(rows, -np.inf, 0).astype(np.float32)
        if not self.min_length:
            return tf.constant(penalties[1])
        return tf.gather(penalties, tf.cast(position >= self.min_length, tf.int32))


def prefix_at(prefix: tf.Tensor, position: tf.Tensor) -> tf.Tensor:
    """Return the tokens [R] of prefixes [R, P] at a position; 0 beyond their ends."""
    return tf.pad(prefix, [[0, 0], [0, 1]])[:, tf.minimum(position, tf.shape(prefix)[1])]


def _completes_a_repeated_ngram(ids: tf.Tensor, position: tf.Tensor, n: int, vocabulary: int) -> tf.Tensor:
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
    token = tf.expand_dims(token, -1)
    if capacity is None:
        return tf.concat([ids, token], axis=-1)
    return tf.where(tf.range(tf.shape(ids)[-1]) == position, token, ids)


def size_of(tensor: tf.Tensor, axis: int) -> Any:
    """Return the size of an axis: an int where it is known before the search, which takes no operation."""
    size = tensor.shape[axis]
    return tf.shape(tensor)[axis] if size is None else size


def log_normalizer(logits: tf.Tensor) -> tf.Tensor:
    """Return log(sum(exp(logits))) [R] of logits [R, V] whose highest is finite.

    That is tf.reduce_logsumexp without what it does for others, which is more than half of its operations.
    """
    highest = tf.reduce_max(logits, axis=-1, keepdims=True)
    return tf.math.log(tf.reduce_sum(tf.exp(logits - highest), axis=-1)) + tf.squeeze(highest, -1)

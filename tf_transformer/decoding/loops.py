"""The loop of a search over positions, and the rounds in which finished sentences leave the batch."""

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from tf_transformer.decoding.hypotheses import Hypotheses

Advance = Callable[[tf.Tensor, Any], Any]
"""`(position, state) -> state` with one more token"""

IsLive = Callable[[Any], tf.Tensor]
"""`state -> [b]`, boolean: whether each of its sentences is unfinished"""


def search(
    advance: Advance,
    is_live: IsLive,
    found: Callable[[Any], Hypotheses],
    state: Any,
    capacity: Any = None,
    beam_size: int = 1,
) -> Hypotheses:
    """Return what is found for all sentences: `in_rounds`, or `until_done` with a capacity, for shapes that stay."""
    if capacity is None:
        return in_rounds(advance, is_live, found, state, beam_size)
    return found(until_done(advance, is_live, state))


def until_done(advance: Advance, is_live: IsLive, state: Any) -> Any:
    """Return the state after `advance` at positions 0, 1, ... until no sentence is live. All stay in the batch.

    Args:
        advance: adds a token.
        is_live: says which sentences are unfinished.
        state: a NamedTuple of tensors; its `sentences` never change.
    """
    return _steps(advance, lambda state: tf.reduce_any(is_live(state)), tf.constant(0), state)[1]


def in_rounds(
    advance: Advance, is_live: IsLive, found: Callable[[Any], Hypotheses], state: Any, beam_size: int = 1
) -> Hypotheses:
    """As `until_done`, but finished sentences leave the batch, once they are at least half of it.

    Args:
        advance: adds a token.
        is_live: says which sentences are unfinished.
        found: returns the hypotheses of a state.
        state: a NamedTuple of tensors with a row for each sentence, save for its `cache`.
        beam_size: rows of the cache for each sentence.

    Returns:
        What was found for all sentences.
    """

    def one_round(position: tf.Tensor, state: Any, indices: tf.Tensor, results: Hypotheses) -> tuple[Any, ...]:
        live = tf.cast(tf.reshape(tf.where(is_live(state)), [-1]), tf.int32)
        rows = tf.reshape(live[:, None] * beam_size + tf.range(beam_size), [-1])
        cache = _rows(state.cache, rows)
        state, indices = _rows((state._replace(cache=()), indices), live)

        def most_are_live(state: Any) -> tf.Tensor:
            return 2 * tf.math.count_nonzero(is_live(state), dtype=tf.int32) > tf.size(live)

        position, state = _steps(advance, most_are_live, position, state._replace(cache=cache))
        return position, state, indices, _stored(results, found(state), indices)

    state = tf.nest.map_structure(tf.convert_to_tensor, state)  # the cache may have arrays
    results = found(state)
    first = (tf.constant(0), state, tf.range(tf.shape(results.scores)[0]), results)
    return tf.while_loop(
        lambda position, state, indices, results: tf.reduce_any(is_live(state)),
        one_round,
        first,
        shape_invariants=tf.nest.map_structure(shape_throughout, first),
    )[3]


def _steps(advance: Advance, goes_on: Callable[[Any], tf.Tensor], position: tf.Tensor, state: Any) -> Any:
    """Return the position and the state after as many steps as `goes_on(state)` allows."""
    sentences = state.sentences  # outside of what the loop carries on, as every tensor there costs an operation a step

    def body(position: tf.Tensor, state: Any) -> Any:
        return position + 1, advance(position, state._replace(sentences=sentences))._replace(sentences=())

    first = (position, state._replace(sentences=()))
    position, state = tf.while_loop(
        lambda position, state: goes_on(state),
        body,
        first,
        shape_invariants=tf.nest.map_structure(shape_throughout, first),
    )
    return position, state._replace(sentences=sentences)


def shape_throughout(tensor: tf.Tensor) -> tf.TensorShape:
    """Return the shape that a tensor has throughout a search: any number of rows, and any size of axes that grow.

    An axis grows if it is unknown or empty at first.
    """
    return tf.TensorShape([None, *(size or None for size in tensor.shape[1:])] if tensor.shape.rank else [])


def _stored(results: Hypotheses, found: Hypotheses, indices: tf.Tensor) -> Hypotheses:
    """Return `results` with `found` in the rows `indices`; the ids of `found` are not the shorter ones."""
    more = tf.shape(found.ids)[2] - tf.shape(results.ids)[2]
    padded = results._replace(ids=tf.pad(results.ids, [[0, 0], [0, 0], [0, more]]))
    count = tf.shape(results.scores)[0]
    # The row of `results` followed by `found` that each row becomes. Scattering the rows themselves fails if empty.
    rows = tf.tensor_scatter_nd_update(tf.range(count), indices[:, None], count + tf.range(tf.size(indices)))
    return tf.nest.map_structure(lambda old, new: tf.gather(tf.concat([old, new], axis=0), rows), padded, found)


def _rows(tensors: Any, rows: tf.Tensor) -> Any:
    return tf.nest.map_structure(lambda tensor: tf.gather(tensor, rows), tensors)

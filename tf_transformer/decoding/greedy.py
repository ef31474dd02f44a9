"""Greedy search, and what it shares with sampling: one hypothesis a sentence, a token at a time."""

from collections.abc import Callable
from typing import Any, NamedTuple

import tensorflow as tf

from tf_transformer.decoding.search import Hypotheses, Rules, Sentences, Step, free_rows, last_tokens, store

Choose = Callable[[tf.Tensor, tf.Tensor, Sentences], tf.Tensor]
"""`(logits [B, V], position, sentences) -> tokens [B]`; the logits are -inf where a rule forbids."""


class State(NamedTuple):
    """The state of the loop, of the b sentences that it still goes through."""

    sentences: Sentences
    places: tf.Tensor
    """[b]: the rows of their results"""
    ids: tf.Tensor
    """[b, T]"""
    log_probabilities: tf.Tensor
    """[b]"""
    is_live: tf.Tensor
    """[b], boolean"""
    cache: Any
    """of the step function; tensors [b, ...]"""
    results: Hypotheses
    """of all sentences, those of the ones that are left as of some time before"""


def greedy(step: Step, cache: Any, sentences: Sentences, rules: Rules) -> Hypotheses:
    """Take the most probable token until every sentence has ended, by the end token or by its limit.

    Args:
        step: gives the logits of the next token.
        cache: what the first step is given, with a row for each sentence.
        sentences: B of them.
        rules: what hypotheses may be made of.

    Returns:
        One hypothesis a sentence; its score is its log-probability.
    """
    return one_path(step, cache, sentences, rules, lambda logits, *_: tf.argmax(logits, axis=-1, output_type=tf.int32))


def one_path(step: Step, cache: Any, sentences: Sentences, rules: Rules, choose: Choose) -> Hypotheses:
    """Write the token that `choose` takes, at every step; otherwise as `greedy`."""
    size = tf.shape(sentences.limits)[0]
    nothing = Hypotheses(tf.zeros([size, 1, 0], tf.int32), tf.zeros([size, 1]), tf.zeros([size, 1]))
    state = State(
        sentences=sentences,
        places=tf.range(size),
        ids=nothing.ids[:, 0],
        log_probabilities=nothing.scores[:, 0],
        is_live=sentences.limits > 0,
        cache=cache,
        results=nothing,
    )

    def advance(state: State) -> tuple[State]:
        position = tf.shape(state.ids)[1]
        last = last_tokens(state.ids, rules.start)
        logits, cache = step(last, position, state.cache, state.sentences.context)
        allowed = rules.apply(logits, state.ids, state.sentences.prefix)
        token = tf.where(state.is_live, choose(allowed, position, state.sentences), rules.pad)
        # The log-probability of one token: no [B, V] of them is made.
        gained = tf.gather(logits, token, batch_dims=1) - tf.reduce_logsumexp(logits, axis=-1)
        return (
            _without_done(
                state._replace(
                    ids=tf.concat([state.ids, token[:, None]], axis=1),
                    log_probabilities=state.log_probabilities + tf.where(state.is_live, gained, 0.0),
                    is_live=state.is_live & (token != rules.end) & (position + 1 < state.sentences.limits),
                    cache=cache,
                )
            ),
        )

    (state,) = tf.while_loop(
        lambda state: tf.size(state.places) > 0,
        advance,
        (_without_done(state),),
        shape_invariants=(tf.nest.map_structure(free_rows, state),),
    )
    return state.results


def _without_done(state: State) -> State:
    """Return the state without the sentences that are done, once they are half of all; their results are stored."""
    live = tf.cast(tf.reshape(tf.where(state.is_live), [-1]), tf.int32)

    def compact() -> State:
        scores = state.log_probabilities[:, None]
        return State(
            sentences=state.sentences.take(live),
            places=tf.gather(state.places, live),
            ids=tf.gather(state.ids, live),
            log_probabilities=tf.gather(state.log_probabilities, live),
            is_live=tf.gather(state.is_live, live),
            cache=tf.nest.map_structure(lambda tensor: tf.gather(tensor, live), state.cache),
            results=store(state.results, Hypotheses(state.ids[:, None], scores, scores), state.places),
        )

    return tf.cond(2 * tf.size(live) <= tf.size(state.is_live), compact, lambda: state)

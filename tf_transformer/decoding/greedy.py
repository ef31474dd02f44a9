"""Greedy search, and what it shares with sampling: one hypothesis a sentence, a token at a time."""

from collections.abc import Callable
from typing import Any, NamedTuple

import tensorflow as tf

from tf_transformer.decoding.hypotheses import (
    Hypotheses,
    Rules,
    Sentences,
    Step,
    add_token,
    no_tokens,
    repeat_until_done,
    token_before,
)
from tf_transformer.decoding.leaving import without_done

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
    results: Any
    """of all sentences, those of the ones that are left as of some time before; () where none leaves the batch"""

    def found(self) -> Hypotheses:
        """Return the hypotheses of the b sentences."""
        scores = self.log_probabilities[:, None]
        return Hypotheses(self.ids[:, None], scores, scores)


def greedy(step: Step, cache: Any, sentences: Sentences, rules: Rules, capacity: Any = None) -> Hypotheses:
    """Take the most probable token until every sentence has ended, by the end token or by its limit.

    Args:
        step: gives the logits of the next token.
        cache: what the first step is given, with a row for each sentence.
        sentences: B of them.
        rules: what hypotheses may be made of.
        capacity: at least the largest limit. No shape changes then and no sentence leaves the batch, so that XLA can
            compile the search; None is for all else.

    Returns:
        One hypothesis a sentence; its score is its log-probability.
    """

    def choose(logits: tf.Tensor, position: tf.Tensor, sentences: Sentences) -> tf.Tensor:
        return tf.argmax(logits, axis=-1, output_type=tf.int32)

    return one_path(step, cache, sentences, rules, choose, capacity)


def one_path(
    step: Step, cache: Any, sentences: Sentences, rules: Rules, choose: Choose, capacity: Any = None
) -> Hypotheses:
    """Write the token that `choose` takes, at every step; otherwise as `greedy`."""
    size = tf.shape(sentences.limits)[0]
    state = State(
        sentences=sentences,
        places=tf.range(size),
        ids=no_tokens([size], capacity),
        log_probabilities=tf.zeros([size]),
        is_live=sentences.limits > 0,
        cache=cache,
        results=(),
    )
    leaves = capacity is None
    if leaves:
        state = state._replace(results=state.found())
        state = without_done(state, state.is_live, state.found())

    def advance(position: tf.Tensor, state: State) -> State:
        last = token_before(state.ids, position, state.sentences, rules)
        logits, _, cache = step(last, position, state.cache, state.sentences.context)
        allowed = rules.apply(logits, state.ids, position, state.sentences.prefix)
        token = tf.where(state.is_live, choose(allowed, position, state.sentences), rules.pad)
        # The log-probability of one token: no [B, V] of them is made.
        gained = tf.gather(logits, token, batch_dims=1) - tf.reduce_logsumexp(logits, axis=-1)
        state = state._replace(
            ids=add_token(state.ids, token, position, capacity),
            log_probabilities=state.log_probabilities + tf.where(state.is_live, gained, 0.0),
            is_live=state.is_live & (token != rules.end) & (position + 1 < state.sentences.limits),
            cache=cache,
        )
        return without_done(state, state.is_live, state.found()) if leaves else state

    state = repeat_until_done(advance, lambda state: state.is_live, state)
    return state.results if leaves else state.found()

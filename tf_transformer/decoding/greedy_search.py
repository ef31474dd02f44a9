"""Greedy search, and the loop that it shares with sampling: one hypothesis per sentence, one token at a time."""

from collections.abc import Callable
from typing import Any, NamedTuple

import tensorflow as tf

from tf_transformer.decoding.hypotheses import (
    Hypotheses,
    Rules,
    Sentences,
    Step,
    add_token,
    log_normalizer,
    no_tokens,
)
from tf_transformer.decoding.loops import search

Choose = Callable[[tf.Tensor, tf.Tensor, Sentences], tf.Tensor]
"""`(logits [B, V], position, sentences) -> tokens [B]`; the logits of forbidden tokens are -inf."""


class State(NamedTuple):
    """The state of the loop for the b sentences that are still in the batch."""

    sentences: Any
    """the `Sentences`"""
    last: tf.Tensor
    """[b]: the token that is read next"""
    ids: tf.Tensor
    """[b, T]"""
    log_probabilities: tf.Tensor
    """[b]"""
    is_live: tf.Tensor
    """[b], boolean"""
    cache: Any
    """the cache of the step function; tensors [b, ...]"""

    def found(self) -> Hypotheses:
        """Return the hypotheses of the b sentences."""
        scores = self.log_probabilities[:, None]
        return Hypotheses(self.ids[:, None], scores, scores)


def greedy(step: Step, cache: Any, sentences: Sentences, rules: Rules, capacity: Any = None) -> Hypotheses:
    """Take the most probable token at each step, until every sentence has its end token or reaches its limit.

    Args:
        step: gives the logits of the next token.
        cache: the cache for the first step, with a row for each sentence.
        sentences: the B sentences.
        rules: which tokens a hypothesis may contain.
        capacity: room for tokens, at least the largest limit. No shape changes then and no sentence leaves the batch,
            so that XLA can compile the search. Leave it None if XLA does not compile the search.

    Returns:
        One hypothesis per sentence; its score is its log-probability.
    """

    def choose(logits: tf.Tensor, position: tf.Tensor, sentences: Sentences) -> tf.Tensor:
        return tf.argmax(logits, axis=-1, output_type=tf.int32)

    return one_path(step, cache, sentences, rules, choose, capacity)


def one_path(
    step: Step, cache: Any, sentences: Sentences, rules: Rules, choose: Choose, capacity: Any = None
) -> Hypotheses:
    """Write the token that `choose` returns at every step. Everything else is as in `greedy`."""
    sentences = sentences.as_tensors()
    size = tf.shape(sentences.limits)[0]
    state = State(
        sentences=sentences,
        last=sentences.first_tokens(rules),
        ids=no_tokens([size], capacity),
        log_probabilities=tf.zeros([size]),
        is_live=sentences.limits > 0,
        cache=cache,
    )

    def advance(position: tf.Tensor, state: State) -> State:
        logits, _, cache = step(state.last, position, state.cache, state.sentences.context)
        allowed = rules.apply(logits, state.ids, position, state.sentences.prefix)
        token = tf.where(state.is_live, choose(allowed, position, state.sentences), rules.pad)
        # Only the log-probability of this token is computed, not all [B, V].
        gained = tf.gather(logits, token, batch_dims=1) - log_normalizer(logits)
        return state._replace(
            last=token,
            ids=add_token(state.ids, token, position, capacity),
            log_probabilities=state.log_probabilities + tf.where(state.is_live, gained, 0.0),
            is_live=state.is_live & (token != rules.end) & (position + 1 < state.sentences.limits),
            cache=cache,
        )

    return search(advance, lambda state: state.is_live, State.found, state, capacity)

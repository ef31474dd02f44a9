"""Beam search with a length penalty (paper 6.1)."""

from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from tf_transformer.decoding.hypotheses import (
    Hypotheses,
    Rules,
    Sentences,
    Step,
    add_token,
    log_normalizer,
    no_tokens,
    size_of,
)
from tf_transformer.decoding.loops import search

STOPPING = ("exact", "heuristic", "early")


def length_penalty(length: Any, alpha: float, offset: float = 5.0) -> tf.Tensor:
    """Return the length penalty ((k + length) / (k + 1))^alpha, where k is the offset.

    A summed log-probability is divided by it. k = 5 gives the penalty of Wu et al. 2016, equation 14; k = 0 gives
    length^alpha, which Marian and transformers use.
    """
    return ((offset + tf.cast(length, tf.float32)) / (offset + 1.0)) ** alpha


def coverage_reward(coverage: tf.Tensor) -> tf.Tensor:
    """Return the sum over source positions of log(min(attention, 1)), at most 0 (Wu et al. 2016, equation 14).

    Args:
        coverage: [..., S], the attention that each position has received, summed over the target tokens.
    """
    return tf.reduce_sum(tf.math.log(tf.clip_by_value(coverage, 1e-9, 1.0)), axis=-1)


class State(NamedTuple):
    """The state of a search: K unfinished hypotheses for each of the b sentences that are still being searched."""

    sentences: Any
    """the `Sentences`"""
    last: tf.Tensor
    """[b, K]: the token that is read next"""
    ids: tf.Tensor
    """[b, K, T]"""
    log_probabilities: tf.Tensor
    """[b, K]; -inf where there is no hypothesis"""
    coverage: Any
    """[b, K, S]: the attention that source positions have received; () without a coverage penalty"""
    cache: Any
    """the cache of the step function; tensors [b * K, ...]"""
    final: Hypotheses
    """the K best final hypotheses of each of the b sentences"""
    extra: Any = ()
    """what another kind of search keeps of each sentence, or of each of its hypotheses"""


class Continuations(NamedTuple):
    """The C = 2 K most probable ways to continue the K hypotheses of b sentences by one token, the best first."""

    tokens: tf.Tensor
    """[b, C]"""
    parents: tf.Tensor
    """[b, C]: which of the K hypotheses each continues"""
    ids: tf.Tensor
    """[b, C, T]: the hypothesis with its token"""
    log_probabilities: tf.Tensor
    """[b, C], of the hypothesis with its token"""
    is_final: tf.Tensor
    """[b, C], boolean: whether it has its end token or has reached its limit"""
    scores: tf.Tensor
    """[b, C], float32, of those that are final; -inf for all others"""
    extra: Any = ()
    """as in `State`, of the hypothesis with its token"""


class BeamSearch:
    """Searches for the hypotheses with the highest log-probability / ((k + length) / (k + 1))^alpha.

    A hypothesis is final once it has its end token or reaches its limit. At every step, the K best unfinished ones are
    kept by probability; the penalties rank final ones only. Finished sentences leave the batch.

    Args:
        step: gives the logits of the next token.
        rules: which tokens a hypothesis may contain.
        beam_size: hypotheses kept at every step, K (paper 6.1: 4).
        alpha: exponent of the length penalty (paper 6.1: 0.6); 0 ranks by log-probability alone.
        offset: k in the length penalty.
        beta: weight of the coverage penalty, at least 0. Above 0, `beta * coverage_reward` is added to a score, and
            the sentences must have `coverage`.
        n_best: hypotheses to return, N; at most `beam_size`.
        stopping: when the search for a sentence ends. "exact": when no unfinished hypothesis can still beat its
            `n_best` best final ones. That is certain because a log-probability never rises, no length penalty is larger
            than that of the limit, and a coverage reward is at most 0. "heuristic": once it has `beam_size` final
            hypotheses and no unfinished one would beat the worst of them if it ended now, as transformers and others
            do. With a large alpha, a longer hypothesis might still win; to rule that out takes about as many steps as
            the limit allows. "early": once it has `beam_size` final hypotheses, as most toolkits do. This takes fewer
            steps, but may miss a better hypothesis.
        capacity: as in `greedy`.

    Raises:
        ValueError: an argument is out of its range.
    """

    takes_phrases = False
    """whether the search writes the phrases of its sentences"""

    def __init__(
        self,
        step: Step,
        rules: Rules,
        *,
        beam_size: int = 4,
        alpha: float = 0.6,
        offset: float = 5.0,
        beta: float = 0.0,
        n_best: int = 1,
        stopping: str = "exact",
        capacity: Any = None,
    ):
        if not (1 <= n_best <= beam_size and beta >= 0 and stopping in STOPPING):
            raise ValueError(
                f"n_best must be 1 to beam_size, beta at least 0, stopping one of {', '.join(STOPPING)}. "
                f"Received: {n_best=}, {beam_size=}, {beta=}, {stopping=}"
            )
        self.step, self.rules = step, rules
        self.beam_size, self.n_best = beam_size, n_best
        self.alpha, self.offset, self.beta = alpha, offset, beta
        self.stopping = stopping
        self.capacity = capacity

    def __call__(self, cache: Any, sentences: Sentences) -> Hypotheses:
        """Search.

        Args:
            cache: the cache for the first step, with `beam_size` rows for each sentence.
            sentences: the B sentences. One with limit 0 has an empty hypothesis.

        Raises:
            ValueError: phrases for a search that does not write them, or none for one that does; no coverage for a
                search with a coverage penalty.

        Returns:
            `n_best` hypotheses for each sentence; their scores are the penalised log-probabilities.
        """
        sentences = self.checked(sentences)
        first = self.begin(cache, sentences)
        found = search(self.advance, self.is_live, lambda state: state.final, first, self.capacity, self.beam_size)
        return self.result(found, sentences)

    def checked(self, sentences: Sentences) -> Sentences:
        """Return the sentences as tensors; raises as a search does."""
        sentences = sentences.as_tensors()
        if tf.is_tensor(sentences.phrases) != self.takes_phrases:
            raise ValueError("sentences with phrases need a ConstrainedBeamSearch, and it needs phrases")
        if self.beta and not tf.is_tensor(sentences.coverage):
            raise ValueError(f"a coverage penalty needs the coverage of sentences, [B, S]. Received: (), {self.beta=}")
        return sentences

    def begin(self, cache: Any, sentences: Sentences) -> State:
        """Return the state before the first step: one empty hypothesis for each sentence."""
        size, width = tf.shape(sentences.limits)[0], self.beam_size
        nothing = tf.fill([size, width], -np.inf)
        none = Hypotheses(no_tokens([size, width], self.capacity), nothing, nothing)
        first = tf.where((tf.range(width) == 0) & (sentences.limits[:, None] > 0), 0.0, -np.inf)
        coverage = tf.repeat(sentences.coverage[:, None], width, axis=1) if self.beta else ()
        last = tf.repeat(sentences.first_tokens(self.rules)[:, None], width, axis=1)
        return State(sentences, last, none.ids, first, coverage, cache, none)

    def is_live(self, state: State) -> tf.Tensor:
        """Return [b], boolean: whether each sentence has unfinished hypotheses."""
        return tf.reduce_any(state.log_probabilities > -np.inf, axis=1)

    def advance(self, position: tf.Tensor, state: State) -> State:
        """Return the state after one more token."""
        last = tf.reshape(state.last, [-1])
        logits, attention, cache = self.step(last, position, state.cache, state.sentences.context)
        if self.beta:
            state = state._replace(coverage=state.coverage + tf.reshape(attention, tf.shape(state.coverage)))
        new = self.continuations(position, state, logits)
        ended = Hypotheses(new.ids, new.scores, new.log_probabilities)
        state = state._replace(cache=cache, final=self.best(state.final, ended))
        return self.keep(position + 1, state, new)

    def continuations(self, position: tf.Tensor, state: State, logits: tf.Tensor) -> Continuations:
        """Return the best continuations of all hypotheses, given the logits [b * K, V] of their next tokens."""
        length = position + 1
        # The best tokens of each hypothesis suffice to find the best of all, without log-probabilities [b * K, V].
        values, tokens = self.best_tokens(position, state, logits)
        gained = values - tf.expand_dims(log_normalizer(logits), 1)
        width, choices = self.beam_size, size_of(tokens, 1)
        log_probabilities = tf.expand_dims(state.log_probabilities, 2) + tf.reshape(gained, [-1, width, choices])
        log_probabilities, tokens = (tf.reshape(each, [-1, width * choices]) for each in (log_probabilities, tokens))
        is_final = (tokens == self.rules.end) | tf.expand_dims(length >= state.sentences.limits, 1)
        best, chosen, extra = self.choose(state, log_probabilities, tokens, is_final)
        parents = chosen // choices
        tokens, is_final = (tf.gather(each, chosen, batch_dims=1) for each in (tokens, is_final))
        ids = add_token(tf.gather(state.ids, parents, batch_dims=1), tokens, position, self.capacity)
        new = Continuations(tokens, parents, ids, best, is_final, best, extra)
        return new._replace(scores=self.scores(length, state, new))

    def best_tokens(self, position: tf.Tensor, state: State, logits: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Return the logits and the ids of the best tokens of each hypothesis, [b * K, at most 2 K] each."""
        allowed = self.allowed(position, state, logits)
        return tf.math.top_k(allowed, min(2 * self.beam_size, allowed.shape[1]))

    def allowed(self, position: tf.Tensor, state: State, logits: tf.Tensor) -> tf.Tensor:
        """Return the logits [b * K, V] with -inf for the tokens that a hypothesis may not continue with."""
        ids = self.rows(state.ids) if self.rules.no_repeat_ngram else ()
        return self.rules.apply(logits, ids, position, self.prefix(state))

    def choose(
        self, state: State, log_probabilities: tf.Tensor, tokens: tf.Tensor, is_final: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor, Any]:
        """Return the best 2 K of the candidates [b, M]: log-probabilities and indices, [b, C] each, and their `extra`.

        There are M / K candidates for each hypothesis. Twice the beam is enough, because at most half of them end.
        """
        return *tf.math.top_k(log_probabilities, 2 * self.beam_size), ()

    def best(self, old: Hypotheses, new: Hypotheses) -> Hypotheses:
        """Return the K best of hypotheses [b, K, T], and of new ones [b, C, T or T + 1]."""
        if self.capacity is None:
            old = old._replace(ids=tf.pad(old.ids, [[0, 0], [0, 0], [0, 1]]))
        both = tf.nest.map_structure(lambda a, b: tf.concat([a, b], axis=1), old, new)
        _, chosen = tf.math.top_k(both.scores, self.beam_size)
        return tf.nest.map_structure(lambda tensor: tf.gather(tensor, chosen, batch_dims=1), both)

    def scores(self, length: tf.Tensor, state: State, new: Continuations) -> tf.Tensor:
        """Return the scores [b, C] of the continuations, of so many tokens, that are final; -inf for the others."""
        scores = new.log_probabilities / length_penalty(length, self.alpha, self.offset)
        if self.beta:
            scores += self.beta * tf.gather(coverage_reward(state.coverage), new.parents, batch_dims=1)
        # A hypothesis that ends must be among the best K, just like one that continues.
        is_kept = new.is_final & (np.arange(2 * self.beam_size) < self.beam_size)
        return tf.where(is_kept, scores, -np.inf)

    def keep(self, length: tf.Tensor, state: State, new: Continuations) -> State:
        """Return the state that goes on with the K best continuations, of so many tokens, that are not final."""
        kept = self.best_unfinished(new)
        alive = tf.gather(tf.where(new.is_final, -np.inf, new.log_probabilities), kept, batch_dims=1)
        is_over = self.is_over(length, state, tf.reduce_max(alive, axis=1))
        parents = tf.gather(new.parents, kept, batch_dims=1)
        first = tf.range(0, tf.size(parents), self.beam_size)  # the rows of each sentence
        rows = tf.reshape(tf.expand_dims(first, 1) + parents, [-1])
        return state._replace(
            last=tf.gather(new.tokens, kept, batch_dims=1),
            ids=tf.gather(new.ids, kept, batch_dims=1),
            log_probabilities=tf.where(tf.expand_dims(is_over, 1), -np.inf, alive),
            coverage=tf.gather(state.coverage, parents, batch_dims=1) if self.beta else (),
            cache=tf.nest.map_structure(lambda tensor: tf.gather(tensor, rows), state.cache),
            extra=tf.nest.map_structure(lambda tensor: tf.gather(tensor, kept, batch_dims=1), new.extra),
        )

    def best_unfinished(self, new: Continuations) -> tf.Tensor:
        """Return the indices [b, K] of the best continuations that are not final; of others where there are fewer."""
        order = np.arange(2 * self.beam_size, 0, -1, dtype=np.int32)  # they come in the order of their probabilities
        return tf.math.top_k(tf.where(new.is_final, 0, order), self.beam_size)[1]

    def is_over(self, length: tf.Tensor, state: State, best: tf.Tensor) -> tf.Tensor:
        """Return [b], boolean: whether to stop searching each sentence.

        Args:
            length: the tokens written.
            state: has the final hypotheses.
            best: [b], the highest log-probability of an unfinished hypothesis.
        """
        worst = state.final.scores[:, self.beam_size - 1]
        if self.stopping == "early":
            return worst > -np.inf
        if self.stopping == "heuristic":
            return worst >= best / length_penalty(length, self.alpha, self.offset)
        limits = state.sentences.limits
        longest = limits if self.alpha >= 0 else tf.fill(tf.shape(limits), length + 1)
        return state.final.scores[:, self.n_best - 1] >= best / length_penalty(longest, self.alpha, self.offset)

    def result(self, found: Hypotheses, sentences: Sentences) -> Hypotheses:
        """Return the best of the final hypotheses of all sentences."""
        found = tf.nest.map_structure(lambda tensor: tensor[:, : self.n_best], found)
        is_there = found.scores > -np.inf
        is_empty = self.may_be_empty(sentences)[:, None] & (tf.range(self.n_best) == 0)
        return Hypotheses(
            ids=tf.where(is_there[:, :, None], found.ids, self.rules.pad),
            scores=tf.where(is_empty, 0.0, found.scores),
            log_probabilities=tf.where(is_empty, 0.0, tf.where(is_there, found.log_probabilities, -np.inf)),
        )

    def may_be_empty(self, sentences: Sentences) -> tf.Tensor:
        """Return [B], boolean: whether each sentence has the empty hypothesis, which is certain."""
        return sentences.limits <= 0

    def rows(self, ids: tf.Tensor) -> tf.Tensor:
        """[b, K, T] -> [b * K, T]."""
        return tf.reshape(ids, [-1, tf.shape(ids)[2]])

    def prefix(self, state: State) -> Any:
        """Return the prefix [b * K, P] of each hypothesis; () for none."""
        prefix = state.sentences.prefix
        return tf.repeat(prefix, self.beam_size, axis=0) if tf.is_tensor(prefix) else ()

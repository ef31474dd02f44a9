"""Beam search in NumPy, over a decoder's steps: `tf_transformer.decoding.beam` without TensorFlow, by the same names.

The search, and the rules by which it stops, are described there. A beam of 1 is greedy search.
"""

import functools
from typing import Any, NamedTuple, Protocol

import numpy as np

from tf_transformer.config import DecodingConfig
from tf_transformer.config.special_tokens import END, PAD, START, UNKNOWN

IMPOSSIBLE = np.float32(-np.inf)


class Predicted(NamedTuple):
    """What a step predicts as the next token of R rows."""

    tokens: np.ndarray
    """[R, C], int32: the C most probable ones, the best first"""
    logits: np.ndarray
    """[R, C], float32: the logits of these tokens"""
    normalizers: np.ndarray
    """[R], float32: what to subtract from a logit to get a log-probability"""


class Steps(Protocol):
    """The steps of a decoder, with K rows for each of b sentences. It keeps a cache of the steps before."""

    vocabulary: int
    """the number of tokens, V"""

    def step(self, ids: np.ndarray, forbidden: np.ndarray, count: int) -> Predicted:
        """Read a token [R] in every row, and predict the next one.

        Args:
            ids: the tokens, int32.
            forbidden: [V], float32: -inf for tokens that may not be predicted, 0 for the others.
            count: the number of tokens to predict, C.
        """

    def logits(self) -> np.ndarray:
        """Return the logits [R, V] of the last step."""

    def attention(self) -> np.ndarray:
        """Return how much each row attended to the source in the last step, [R, S]."""

    def take(self, sentences: np.ndarray, rows: np.ndarray) -> None:
        """Continue with some of the sentences, by their numbers [b'], and with rows, by theirs [b' * K]."""


class Hypotheses(NamedTuple):
    """What a search found for B sentences: N hypotheses each, the best first."""

    ids: np.ndarray
    """[B, N, T], int32: the tokens, with the end token if there is one, then padding"""
    scores: np.ndarray
    """[B, N], float32: the values that they are ranked by; -inf where there are fewer than N"""
    log_probabilities: np.ndarray
    """[B, N], float32: the sums over the tokens"""


def length_penalty(length: Any, decoding: DecodingConfig) -> Any:
    """Return the penalty ((k + length) / (k + 1))^alpha, by which a summed log-probability is divided."""
    offset = np.float32(decoding.length_penalty_offset)
    return ((offset + np.asarray(length, np.float32)) / (offset + 1)) ** np.float32(decoding.length_penalty)


class State(NamedTuple):
    """The state of a search: K unfinished hypotheses for each of the b sentences that are still being searched."""

    sentence_indices: np.ndarray
    """[b]: the numbers of the sentences"""
    first: np.ndarray
    """[b]: the token that is read at position 0"""
    limits: np.ndarray
    """[b]"""
    ids: np.ndarray
    """[b, K, T]"""
    log_probabilities: np.ndarray
    """[b, K]; -inf where there is no hypothesis"""
    coverage: np.ndarray
    """[b, K, S]: the attention that source positions have received"""
    final: Hypotheses
    """the K best final hypotheses of each sentence"""

    def take(self, sentences: np.ndarray) -> "State":
        """Return the state of some of the sentences."""
        arrays = {name: array[sentences] for name, array in self._asdict().items() if name != "final"}
        return State(**arrays, final=Hypotheses(*(array[sentences] for array in self.final)))


class Continuations(NamedTuple):
    """The C most probable ways to continue the K hypotheses of b sentences by one token, the best first."""

    parents: np.ndarray
    """[b, C]: which of the K hypotheses each continues"""
    ids: np.ndarray
    """[b, C, T]: the hypothesis with its token"""
    log_probabilities: np.ndarray
    """[b, C], of the hypothesis with its token"""
    is_final: np.ndarray
    """[b, C], boolean: whether it has its end token or has reached its limit"""


class BeamSearch:
    """Searches for the hypotheses with the highest score, as `decoding` says.

    Args:
        steps: the steps of a decoder.
        decoding: how to search.
        n_best: the number of hypotheses for each sentence, N.
    """

    def __init__(self, steps: Steps, decoding: DecodingConfig, n_best: int):
        self.steps, self.decoding = steps, decoding
        self.beam_size, self.n_best = decoding.beam_size, n_best

    def __call__(self, first: np.ndarray, limits: np.ndarray, padding: np.ndarray) -> Hypotheses:
        """Search for the best hypotheses of B sentences.

        Args:
            first: [B]: the token that the decoder reads before the first token of a hypothesis.
            limits: [B]: the most tokens of a hypothesis; a sentence with limit 0 gets the empty one.
            padding: [B, S], boolean: which source positions are padding.
        """
        state = self.begin(first, limits, padding)
        results = _Results(len(limits), self.beam_size)
        live, rows = np.flatnonzero(limits > 0), np.arange(len(limits) * self.beam_size)
        for position in range(int(limits.max(initial=0))):
            if not len(live):
                break
            kept = np.arange(len(state.limits))
            if 2 * len(live) <= len(kept):
                kept = live
                results.store(state)
                state = state.take(kept)
            self.steps.take(kept, rows.reshape(-1, self.beam_size)[kept].reshape(-1))
            state, rows = self.advance(position, state)
            live = np.flatnonzero((state.log_probabilities > IMPOSSIBLE).any(axis=1))
        results.store(state)
        return results.best(self.n_best, limits)

    def begin(self, first: np.ndarray, limits: np.ndarray, padding: np.ndarray) -> State:
        """Return the state before the first step: one empty hypothesis for each sentence."""
        size, width = len(limits), self.beam_size
        nothing = np.full((size, width), IMPOSSIBLE)
        log_probabilities = nothing.copy()
        log_probabilities[limits > 0, 0] = 0
        ids = np.zeros((size, width, 0), np.int32)
        coverage = np.repeat(padding.astype(np.float32)[:, None], width, axis=1)
        final = Hypotheses(ids, nothing, nothing)
        return State(np.arange(size), first, limits, ids, log_probabilities, coverage, final)

    def advance(self, position: int, state: State) -> tuple[State, np.ndarray]:
        """Return the state after one more token, and the rows [b * K] that its hypotheses continue."""
        tokens, gained = self.best_tokens(position, state)
        if self.decoding.coverage_penalty:
            attention = self.steps.attention().reshape(state.coverage.shape)
            state = state._replace(coverage=state.coverage + attention)
        new = self.continuations(position, state, tokens, gained)
        ended = Hypotheses(new.ids, self.scores(position + 1, state, new), new.log_probabilities)
        state = state._replace(final=_best(state.final, ended, self.beam_size))
        return self.keep(position + 1, state, new)

    def best_tokens(self, position: int, state: State) -> tuple[np.ndarray, np.ndarray]:
        """Return the best next tokens of each hypothesis and their log-probabilities, [b * K, at most 2 K] each."""
        size, width, _ = state.ids.shape
        rows = state.ids.reshape(size * width, position)
        last = rows[:, -1] if position else np.repeat(state.first, width)
        vocabulary, count = self.steps.vocabulary, 2 * width if width > 1 else 1
        forbidden = _forbidden(vocabulary, self.decoding.ban_unknown, position < self.decoding.min_length)
        found = self.steps.step(np.ascontiguousarray(last, np.int32), forbidden, min(count, vocabulary))
        tokens, logits = found.tokens, found.logits
        if self.decoding.no_repeat_ngram:
            allowed = _without_repeats(self.steps.logits() + forbidden, rows, self.decoding.no_repeat_ngram)
            tokens = np.argsort(-allowed, axis=1, kind="stable")[:, : tokens.shape[1]].astype(np.int32)
            logits = np.take_along_axis(allowed, tokens, axis=1)
        return tokens, logits - found.normalizers[:, None]

    def continuations(self, position: int, state: State, tokens: np.ndarray, gained: np.ndarray) -> Continuations:
        """Return the best continuations of all hypotheses, given the best tokens of each."""
        size, width = state.log_probabilities.shape
        choices = tokens.shape[1]
        log_probabilities = (state.log_probabilities[:, :, None] + gained.reshape(size, width, -1)).reshape(size, -1)
        chosen = np.argsort(-log_probabilities, axis=1, kind="stable")[:, : 2 * width if width > 1 else 1]
        parents = chosen // choices
        tokens = np.take_along_axis(tokens.reshape(size, -1), chosen, axis=1)
        before = np.take_along_axis(state.ids, parents[:, :, None], axis=1)
        return Continuations(
            parents,
            ids=np.concatenate([before, tokens[:, :, None]], axis=2),
            log_probabilities=np.take_along_axis(log_probabilities, chosen, axis=1),
            is_final=(tokens == END) | (position + 1 >= state.limits)[:, None],
        )

    def scores(self, length: int, state: State, new: Continuations) -> np.ndarray:
        """Return the scores [b, C] of the continuations, of so many tokens, that are final; -inf for the others."""
        scores = new.log_probabilities / length_penalty(length, self.decoding)
        if self.decoding.coverage_penalty:
            reward = np.log(np.clip(state.coverage, 1e-9, 1)).sum(axis=-1)
            scores += np.float32(self.decoding.coverage_penalty) * np.take_along_axis(reward, new.parents, axis=1)
        scores[~new.is_final] = IMPOSSIBLE
        scores[:, self.beam_size :] = IMPOSSIBLE  # one that ends must be among the best K, just like one that continues
        return scores

    def keep(self, length: int, state: State, new: Continuations) -> tuple[State, np.ndarray]:
        """Return the state that goes on with the K best continuations that are not final, and the rows of these."""
        alive = np.where(new.is_final, IMPOSSIBLE, new.log_probabilities)
        kept = np.argsort(-alive, axis=1, kind="stable")[:, : self.beam_size]
        alive = np.take_along_axis(alive, kept, axis=1)
        alive[self.is_over(length, state, alive.max(axis=1))] = IMPOSSIBLE
        parents = np.take_along_axis(new.parents, kept, axis=1)
        state = state._replace(
            ids=np.take_along_axis(new.ids, kept[:, :, None], axis=1),
            log_probabilities=alive,
            coverage=np.take_along_axis(state.coverage, parents[:, :, None], axis=1),
        )
        return state, (np.arange(len(parents))[:, None] * self.beam_size + parents).reshape(-1)

    def is_over(self, length: int, state: State, best: np.ndarray) -> np.ndarray:
        """Return [b], boolean: whether to stop searching each sentence, whose best unfinished one is given, [b]."""
        worst = state.final.scores[:, -1]
        if self.decoding.stopping == "early":
            return worst > IMPOSSIBLE
        if self.decoding.stopping == "heuristic":
            return worst >= best / length_penalty(length, self.decoding)
        longest = state.limits if self.decoding.length_penalty >= 0 else length + 1
        return state.final.scores[:, self.n_best - 1] >= best / length_penalty(longest, self.decoding)


class _Results:
    """The final hypotheses of all sentences, outdated for those that are still being searched."""

    def __init__(self, size: int, width: int):
        self._ids: list[list[np.ndarray]] = [[] for _ in range(size)]
        self._scores = np.full((size, width), IMPOSSIBLE)
        self._log_probabilities = np.full((size, width), IMPOSSIBLE)

    def store(self, state: State) -> None:
        """Keep the final hypotheses of a state."""
        self._scores[state.sentence_indices] = state.final.scores
        self._log_probabilities[state.sentence_indices] = state.final.log_probabilities
        for index, ids in zip(state.sentence_indices, state.final.ids, strict=True):
            self._ids[index] = list(ids)

    def best(self, n_best: int, limits: np.ndarray) -> Hypotheses:
        """Return the N best of each sentence; a sentence with limit 0 has one empty hypothesis with score 0."""
        scores, log_probabilities = self._scores[:, :n_best].copy(), self._log_probabilities[:, :n_best].copy()
        log_probabilities[scores == IMPOSSIBLE] = IMPOSSIBLE
        rows = [
            [row[row != PAD] if score > IMPOSSIBLE else row[:0] for row, score in zip(ids, of_sentence, strict=False)]
            for ids, of_sentence in zip(self._ids, scores, strict=True)
        ]
        longest = max((len(row) for each in rows for row in each), default=0)
        found = np.full((len(limits), n_best, longest), PAD, np.int32)
        for i, each in enumerate(rows):
            for j, row in enumerate(each):
                found[i, j, : len(row)] = row
        scores[limits <= 0, 0] = log_probabilities[limits <= 0, 0] = 0
        return Hypotheses(found, scores, log_probabilities)


@functools.lru_cache(4)
def _forbidden(vocabulary: int, ban_unknown: bool, ban_end: bool) -> np.ndarray:
    """Return [V], float32: -inf for the tokens that are not allowed at a position."""
    forbidden = np.zeros(vocabulary, np.float32)
    forbidden[[PAD, START, *([UNKNOWN] if ban_unknown else [])]] = IMPOSSIBLE
    if ban_end and (forbidden == 0).sum() > 1:  # the end is allowed where no other token is
        forbidden[END] = IMPOSSIBLE
    forbidden.flags.writeable = False
    return forbidden


def _without_repeats(logits: np.ndarray, rows: np.ndarray, n: int) -> np.ndarray:
    """Return logits [R, V] with -inf for the tokens that would complete an n-gram that rows [R, T] already have."""
    length = rows.shape[1]
    for row, allowed in zip(rows, logits, strict=True):
        if length < n:
            break
        grams = np.lib.stride_tricks.sliding_window_view(row, n)
        left = allowed[END]
        allowed[grams[(grams[:, : n - 1] == row[length - n + 1 :]).all(axis=1), n - 1]] = IMPOSSIBLE
        if allowed.max() == IMPOSSIBLE:
            allowed[END] = left  # the end is allowed where no other token is
    return logits


def _best(old: Hypotheses, new: Hypotheses, count: int) -> Hypotheses:
    """Return the `count` best hypotheses of both; the ids of `new` are one token longer."""
    old = old._replace(ids=np.pad(old.ids, [(0, 0), (0, 0), (0, new.ids.shape[2] - old.ids.shape[2])]))
    ids, scores, log_probabilities = (np.concatenate(both, axis=1) for both in zip(old, new, strict=True))
    chosen = np.argsort(-scores, axis=1, kind="stable")[:, :count]
    return Hypotheses(
        np.take_along_axis(ids, chosen[:, :, None], axis=1),
        np.take_along_axis(scores, chosen, axis=1),
        np.take_along_axis(log_probabilities, chosen, axis=1),
    )

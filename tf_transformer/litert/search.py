"""Greedy search and beam search in NumPy, over a decoder's steps: `tf_transformer.decoding` without TensorFlow.

The searches, and the rules by which they stop, are described there.
"""

import functools
from collections.abc import Iterator
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


def search(
    steps: Steps, first: np.ndarray, limits: np.ndarray, padding: np.ndarray, decoding: DecodingConfig, n_best: int
) -> Hypotheses:
    """Search for the best hypotheses of B sentences.

    Args:
        steps: the steps of a decoder.
        first: [B]: the token that it reads before the first token of a hypothesis.
        limits: [B]: the most tokens of a hypothesis; a sentence with limit 0 gets none.
        padding: [B, S], boolean: which source positions are padding.
        decoding: how to search.
        n_best: the number of hypotheses for each sentence, N.
    """
    size, width = len(limits), decoding.beam_size
    state = _State.begun(first, limits, padding, width)
    results = _Results(size, width)
    live, rows = np.flatnonzero(limits > 0), np.arange(size * width)
    for position in range(int(limits.max(initial=0))):
        if not len(live):
            break
        kept = np.arange(len(state.places))
        if 2 * len(live) <= len(kept):
            kept = live
            results.store(state)
            state = state.take(kept)
        steps.take(kept, rows.reshape(-1, width)[kept].reshape(-1))
        state, rows = _advance(steps, state, position, decoding, n_best)
        live = np.flatnonzero((state.log_probabilities > IMPOSSIBLE).any(axis=1))
    results.store(state)
    return results.best(n_best, limits)


class _State(NamedTuple):
    """K unfinished hypotheses for each of the b sentences that are still being searched, and their final ones."""

    places: np.ndarray
    """[b]: the numbers of the sentences"""
    first: np.ndarray
    """[b]: the token that is read at position 0"""
    limits: np.ndarray
    """[b]"""
    ids: np.ndarray
    """[b, K, T]"""
    log_probabilities: np.ndarray
    """[b, K]; -inf where there is no hypothesis"""
    covered: np.ndarray
    """[b, K, S]: the attention that source positions have received"""
    final: Hypotheses
    """the K best final hypotheses of each sentence"""

    @classmethod
    def begun(cls, first: np.ndarray, limits: np.ndarray, padding: np.ndarray, width: int) -> "_State":
        """Return the state before the first token: one empty hypothesis."""
        size = len(limits)
        none = np.full((size, width), IMPOSSIBLE)
        log_probabilities = none.copy()
        log_probabilities[limits > 0, 0] = 0
        ids = np.zeros((size, width, 0), np.int32)
        covered = np.repeat(padding.astype(np.float32)[:, None], width, axis=1)
        return cls(np.arange(size), first, limits, ids, log_probabilities, covered, Hypotheses(ids, none, none))

    def take(self, sentences: np.ndarray) -> "_State":
        """Return the state of some of the sentences."""
        arrays = {name: array[sentences] for name, array in self._asdict().items() if name != "final"}
        return _State(**arrays, final=Hypotheses(*(array[sentences] for array in self.final)))


class _Results:
    """The final hypotheses of all sentences, outdated for those that are still being searched."""

    def __init__(self, size: int, width: int):
        self._ids: list[list[np.ndarray]] = [[] for _ in range(size)]
        self._scores = np.full((size, width), IMPOSSIBLE)
        self._log_probabilities = np.full((size, width), IMPOSSIBLE)

    def store(self, state: _State) -> None:
        """Keep the final hypotheses of a state."""
        self._scores[state.places] = state.final.scores
        self._log_probabilities[state.places] = state.final.log_probabilities
        for place, ids in zip(state.places, state.final.ids, strict=True):
            self._ids[place] = list(ids)

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


def _advance(
    steps: Steps, state: _State, position: int, decoding: DecodingConfig, n_best: int
) -> tuple[_State, np.ndarray]:
    """Return the state after one more token, and the rows [b * K] that its hypotheses continue."""
    size, width = state.log_probabilities.shape
    choices = 2 * width if width > 1 else 1
    tokens, gained, covered = _continuations(steps, state, position, decoding, choices)
    total = state.log_probabilities[:, :, None] + gained.reshape(size, width, -1)
    flat = total.reshape(size, -1)
    chosen = np.argsort(-flat, axis=1, kind="stable")[:, :choices]
    best = np.take_along_axis(flat, chosen, axis=1)
    parents = chosen // gained.shape[1]
    token = np.take_along_axis(tokens.reshape(size, -1), chosen, axis=1)
    ids = np.concatenate([np.take_along_axis(state.ids, parents[:, :, None], axis=1), token[:, :, None]], axis=2)
    is_final = (token == END) | (position + 1 >= state.limits)[:, None]
    scores = best / length_penalty(position + 1, decoding)
    if decoding.coverage_penalty:
        reward = np.log(np.clip(covered, 1e-9, 1)).sum(axis=-1)
        scores += np.float32(decoding.coverage_penalty) * np.take_along_axis(reward, parents, axis=1)
    scores[~is_final] = IMPOSSIBLE
    scores[:, width:] = IMPOSSIBLE  # one that ends must be among the best K, just like one that continues
    final = _best(state.final, Hypotheses(ids, scores, best), width)
    best = np.where(is_final, IMPOSSIBLE, best)
    kept = np.argsort(-best, axis=1, kind="stable")[:, :width]
    going_on = np.take_along_axis(best, kept, axis=1)
    going_on[_is_enough(position + 1, state.limits, final, going_on, decoding, n_best)] = IMPOSSIBLE
    parents = np.take_along_axis(parents, kept, axis=1)
    state = state._replace(
        ids=np.take_along_axis(ids, kept[:, :, None], axis=1),
        log_probabilities=going_on,
        covered=np.take_along_axis(covered, parents[:, :, None], axis=1),
        final=final,
    )
    return state, (np.arange(size)[:, None] * width + parents).reshape(-1)


def _continuations(
    steps: Steps, state: _State, position: int, decoding: DecodingConfig, count: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the best next tokens of all rows [R, C], their log-probabilities, and the attention received by then."""
    size, width, _ = state.ids.shape
    rows = state.ids.reshape(size * width, position)
    last = rows[:, -1] if position else np.repeat(state.first, width)
    forbidden = _forbidden(steps.vocabulary, decoding.ban_unknown, position < decoding.min_length)
    found = steps.step(np.ascontiguousarray(last, np.int32), forbidden, min(count, steps.vocabulary))
    tokens, logits = found.tokens, found.logits
    if decoding.no_repeat_ngram:
        allowed = steps.logits() + forbidden
        for row, repeated in enumerate(_completing(rows, decoding.no_repeat_ngram)):
            left = allowed[row, END]
            allowed[row, repeated] = IMPOSSIBLE
            if allowed[row].max() == IMPOSSIBLE:
                allowed[row, END] = left  # the end is allowed where no other token is
        tokens = np.argsort(-allowed, axis=1, kind="stable")[:, : tokens.shape[1]].astype(np.int32)
        logits = np.take_along_axis(allowed, tokens, axis=1)
    gained = logits - found.normalizers[:, None]
    covered = state.covered
    if decoding.coverage_penalty:
        covered = covered + steps.attention().reshape(covered.shape)
    return tokens, gained, covered


@functools.lru_cache(4)
def _forbidden(vocabulary: int, ban_unknown: bool, ban_end: bool) -> np.ndarray:
    """Return [V], float32: -inf for the tokens that are not allowed at a position."""
    forbidden = np.zeros(vocabulary, np.float32)
    forbidden[[PAD, START, *([UNKNOWN] if ban_unknown else [])]] = IMPOSSIBLE
    if ban_end and (forbidden == 0).sum() > 1:  # the end is allowed where no other token is
        forbidden[END] = IMPOSSIBLE
    forbidden.flags.writeable = False
    return forbidden


def _completing(rows: np.ndarray, n: int) -> Iterator[np.ndarray]:
    """Yield, for each row of tokens [R, T], those that would complete an n-gram that the row already has."""
    length = rows.shape[1]
    for row in rows:
        if length < n:
            yield row[:0]
            continue
        grams = np.lib.stride_tricks.sliding_window_view(row, n)
        yield grams[(grams[:, : n - 1] == row[length - n + 1 :]).all(axis=1), n - 1]


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


def _is_enough(
    length: int,
    limits: np.ndarray,
    final: Hypotheses,
    going_on: np.ndarray,
    decoding: DecodingConfig,
    n_best: int,
) -> np.ndarray:
    """Return [b], boolean: whether to stop searching each sentence, by the stopping rule of `decoding`."""
    worst = final.scores[:, -1]
    if decoding.early_stopping:
        return worst > IMPOSSIBLE
    best = going_on.max(axis=1)
    if decoding.likely_stopping:
        return worst >= best / length_penalty(length, decoding)
    longest = limits if decoding.length_penalty >= 0 else length + 1
    return final.scores[:, n_best - 1] >= best / length_penalty(longest, decoding)

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


class Final(NamedTuple):
    """The K best final hypotheses of each of b sentences, the best first, by how they ended."""

    scores: np.ndarray
    """[b, K]; -inf where there is none"""
    log_probabilities: np.ndarray
    """[b, K]"""
    positions: np.ndarray
    """[b, K]: the position of the last token"""
    tokens: np.ndarray
    """[b, K]: the last token"""
    rows: np.ndarray
    """[b, K]: the row that had read what comes before it, at that position"""


class State(NamedTuple):
    """The state of a search: K unfinished hypotheses for each of the b sentences that are still being searched."""

    sentence_indices: np.ndarray
    """[b]: the numbers of the sentences"""
    limits: np.ndarray
    """[b]"""
    last: np.ndarray
    """[b, K]: the token that is read next"""
    rows: np.ndarray
    """[b, K]: the row, at the position before, that each hypothesis continues"""
    log_probabilities: np.ndarray
    """[b, K]; -inf where there is no hypothesis"""
    coverage: np.ndarray
    """[b, K, S]: the attention that source positions have received"""
    final: Final

    def take(self, sentences: np.ndarray) -> "State":
        """Return the state of some of the sentences."""
        arrays = {name: array[sentences] for name, array in self._asdict().items() if name != "final"}
        return State(**arrays, final=Final(*(array[sentences] for array in self.final)))


class Continuations(NamedTuple):
    """The C most probable ways to continue the K hypotheses of b sentences by one token, the best first."""

    parents: np.ndarray
    """[b, C]: which of the K hypotheses each continues"""
    tokens: np.ndarray
    """[b, C]"""
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
        read, found = Read(), Final(*(array.copy() for array in state.final))
        live = np.flatnonzero(limits > 0)
        for position in range(int(limits.max(initial=0))):
            if not len(live):
                break
            kept = np.arange(len(state.limits))
            if 2 * len(live) <= len(kept):
                kept = live
                _store(found, state)
                state = state.take(kept)
            self.steps.take(kept, state.rows.reshape(-1))
            read.add(state.last.reshape(-1), state.rows.reshape(-1))
            state = self.advance(position, state, read)
            live = np.flatnonzero(state.log_probabilities.max(axis=1) > IMPOSSIBLE)
        _store(found, state)
        return self.best(found, limits, read)

    def begin(self, first: np.ndarray, limits: np.ndarray, padding: np.ndarray) -> State:
        """Return the state before the first step: one empty hypothesis for each sentence."""
        size, width = len(limits), self.beam_size
        nothing = np.full((size, width), IMPOSSIBLE)
        log_probabilities = nothing.copy()
        log_probabilities[limits > 0, 0] = 0
        last = np.repeat(first.astype(np.int32)[:, None], width, axis=1)
        rows = np.arange(size * width).reshape(size, width)
        coverage = np.repeat(padding.astype(np.float32)[:, None], width, axis=1)
        final = Final(nothing, nothing, rows, last, rows)
        return State(np.arange(size), limits, last, rows, log_probabilities, coverage, final)

    def advance(self, position: int, state: State, read: "Read") -> State:
        """Return the state after one more token."""
        tokens, gained = self.best_tokens(position, state, read)
        if self.decoding.coverage_penalty:
            attention = self.steps.attention().reshape(state.coverage.shape)
            state = state._replace(coverage=state.coverage + attention)
        new = self.continuations(position, state, tokens, gained)
        if new.is_final[:, : self.beam_size].any():
            state = state._replace(final=self.final(position, state, new))
        return self.keep(position + 1, state, new)

    def best_tokens(self, position: int, state: State, read: "Read") -> tuple[np.ndarray, np.ndarray]:
        """Return the best next tokens of each hypothesis and their log-probabilities, [b * K, at most 2 K] each."""
        vocabulary, count = self.steps.vocabulary, 2 * self.beam_size if self.beam_size > 1 else 1
        forbidden = _forbidden(vocabulary, self.decoding.ban_unknown, position < self.decoding.min_length)
        found = self.steps.step(state.last.reshape(-1), forbidden, min(count, vocabulary))
        tokens, logits = found.tokens, found.logits
        if self.decoding.no_repeat_ngram and position:
            rows = read.ids(np.full(state.last.size, position - 1), state.last.reshape(-1), state.rows.reshape(-1))
            allowed = _without_repeats(self.steps.logits() + forbidden, rows, self.decoding.no_repeat_ngram)
            tokens = np.argsort(-allowed, axis=1, kind="stable")[:, : tokens.shape[1]].astype(np.int32)
            logits = np.take_along_axis(allowed, tokens, axis=1)
        return tokens, logits - found.normalizers[:, None]

    def continuations(self, position: int, state: State, tokens: np.ndarray, gained: np.ndarray) -> Continuations:
        """Return the best continuations of all hypotheses, given the best tokens of each."""
        size, width = state.log_probabilities.shape
        choices = tokens.shape[1]
        log_probabilities = (state.log_probabilities.reshape(-1, 1) + gained).reshape(size, -1)
        chosen = np.argsort(-log_probabilities, axis=1, kind="stable")[:, : 2 * width if width > 1 else 1]
        sentences = np.arange(size)[:, None]
        tokens = tokens.reshape(size, -1)[sentences, chosen]
        return Continuations(
            parents=chosen // choices,
            tokens=tokens,
            log_probabilities=log_probabilities[sentences, chosen],
            is_final=(tokens == END) | (position + 1 >= state.limits)[:, None],
        )

    def final(self, position: int, state: State, new: Continuations) -> Final:
        """Return the best final hypotheses of each sentence, those among the continuations included."""
        sentences = np.arange(len(new.parents))[:, None]
        ended = Final(
            scores=self.scores(position + 1, state, new),
            log_probabilities=new.log_probabilities,
            positions=np.full(new.parents.shape, position),
            tokens=new.tokens,
            rows=sentences * self.beam_size + new.parents,
        )
        both = Final(*(np.concatenate(each, axis=1) for each in zip(state.final, ended, strict=True)))
        best = np.argsort(-both.scores, axis=1, kind="stable")[:, : self.beam_size]
        return Final(*(each[sentences, best] for each in both))

    def scores(self, length: int, state: State, new: Continuations) -> np.ndarray:
        """Return the scores [b, C] of the continuations, of so many tokens, that are final; -inf for the others."""
        scores = new.log_probabilities / length_penalty(length, self.decoding)
        if self.decoding.coverage_penalty:
            reward = np.log(np.clip(state.coverage, 1e-9, 1)).sum(axis=-1)
            scores += np.float32(self.decoding.coverage_penalty) * np.take_along_axis(reward, new.parents, axis=1)
        scores[~new.is_final] = IMPOSSIBLE
        scores[:, self.beam_size :] = IMPOSSIBLE  # one that ends must be among the best K, just like one that continues
        return scores

    def keep(self, length: int, state: State, new: Continuations) -> State:
        """Return the state that goes on with the K best continuations that are not final."""
        sentences = np.arange(len(new.parents))[:, None]
        kept = np.argsort(new.is_final, axis=1, kind="stable")[:, : self.beam_size]  # they are sorted already
        alive = np.where(new.is_final, IMPOSSIBLE, new.log_probabilities)[sentences, kept]
        alive[self.is_over(length, state, alive[:, 0])] = IMPOSSIBLE
        parents = new.parents[sentences, kept]
        if self.decoding.coverage_penalty:
            state = state._replace(coverage=state.coverage[sentences, parents])
        return state._replace(
            last=new.tokens[sentences, kept],
            rows=sentences * self.beam_size + parents,
            log_probabilities=alive,
        )

    def is_over(self, length: int, state: State, best: np.ndarray) -> np.ndarray:
        """Return [b], boolean: whether to stop searching each sentence, whose best unfinished one is given, [b]."""
        scores = state.final.scores
        if self.decoding.stopping == "early":
            return scores[:, -1] > IMPOSSIBLE
        if self.decoding.stopping == "heuristic":
            return scores[:, -1] >= best / length_penalty(length, self.decoding)
        longest = state.limits if self.decoding.length_penalty >= 0 else length + 1
        return scores[:, self.n_best - 1] >= best / length_penalty(longest, self.decoding)

    def best(self, final: Final, limits: np.ndarray, read: "Read") -> Hypotheses:
        """Return the N best of each sentence; a sentence with limit 0 has one empty hypothesis with score 0."""
        final = Final(*(each[:, : self.n_best] for each in final))
        is_there = final.scores > IMPOSSIBLE
        scores, log_probabilities = final.scores.copy(), np.where(is_there, final.log_probabilities, IMPOSSIBLE)
        scores[limits <= 0, 0] = log_probabilities[limits <= 0, 0] = 0
        written = read.ids(final.positions[is_there], final.tokens[is_there], final.rows[is_there])
        ids = np.full((*scores.shape, written.shape[1]), PAD, np.int32)
        ids[is_there] = written
        return Hypotheses(ids, scores, log_probabilities)


class Read:
    """What the rows of each step have read. Hypotheses are put together from it where they are needed as a whole."""

    def __init__(self) -> None:
        self._steps: list[tuple[np.ndarray, np.ndarray]] = []

    def add(self, tokens: np.ndarray, rows: np.ndarray) -> None:
        """Note the token [R] that each row reads, and which row of the step before it continues, [R]."""
        self._steps.append((tokens, rows))

    def ids(self, positions: np.ndarray, last: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Return n hypotheses as [n, T], int32, padded, T being the length of the longest.

        Args:
            positions: [n], the positions of their last tokens.
            last: [n], their last tokens.
            rows: [n], the rows that had read what comes before, at these positions.
        """
        ids = np.full((len(positions), positions.max(initial=-1) + 1), PAD, np.int32)
        ids[np.arange(len(positions)), positions] = last
        rows = rows.copy()
        for position in range(ids.shape[1] - 1, 0, -1):
            tokens, before = self._steps[position]
            there = positions >= position
            ids[there, position - 1] = tokens[rows[there]]
            rows[there] = before[rows[there]]
        return ids


def _store(found: Final, state: State) -> None:
    """Note the final hypotheses of a state among those of all sentences."""
    for of_all, of_state in zip(found, state.final, strict=True):
        of_all[state.sentence_indices] = of_state


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

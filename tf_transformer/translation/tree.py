"""The tree that a search goes through for one sentence, including the branches that it dropped."""

import dataclasses
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from tf_transformer.candidates import DROPPED, FINISHED, KEPT, Candidate
from tf_transformer.decoding import Rules, length_penalty
from tf_transformer.errors import InputError
from tf_transformer.tokenizers import END, text_of
from tf_transformer.translation.search import Search
from tf_transformer.translation.translator import Translator


class _Seen(NamedTuple):
    """What a search had at a step, for R hypotheses."""

    ids: np.ndarray
    """[R, T], their tokens so far"""
    log_probabilities: np.ndarray
    """[R, V], of the next token; -inf where a token is not allowed"""


def search_tree(translator: Translator, sentence: str) -> list[list[Candidate]]:
    """Search for the translation of a sentence, and return the candidates of every step, the most probable first.

    A step has 2 K candidates, K being the beam size, of which at most K are kept (paper 6.1).

    Args:
        translator: the translator whose model and search are used.
        sentence: in the source language, not empty.

    Raises:
        InputError: a search with sampling or a coverage penalty; a sentence without tokens.
    """
    settings = translator.decoding
    if settings.temperature or settings.coverage_penalty:
        raise InputError(
            "only a search without sampling and without a coverage penalty has a tree. Received: "
            f"temperature={settings.temperature}, coverage_penalty={settings.coverage_penalty}"
        )
    seen: list[_Seen] = []

    class Watched(Rules):
        def apply(self, logits: tf.Tensor, ids: tf.Tensor, position: tf.Tensor, prefix: Any = ()) -> tf.Tensor:
            allowed = super().apply(logits, ids, position, prefix)
            normalised = allowed - tf.reduce_logsumexp(logits, axis=-1, keepdims=True)
            seen.append(_Seen(ids.numpy(), normalised.numpy()))
            return allowed

    search = Search(translator.model, dataclasses.replace(settings, jit_compile=False), Watched)
    _, found = translator.search(text_of([sentence]), search=search)
    if not seen:
        raise InputError(f"give a sentence with at least one word. Received: {sentence!r}")
    best = [int(token) for token in found.ids[0, 0].numpy() if token]
    return _steps(translator, seen, best)


def _steps(translator: Translator, seen: list[_Seen], best: list[int]) -> list[list[Candidate]]:
    """Return the candidates of every step."""
    settings = translator.decoding
    width = settings.hypotheses
    alive: dict[tuple[int, ...], tuple[int, float]] = {(): (0, 0.0)}  # its place in the step before, its log P
    steps = []
    for position, (ids, log_probabilities) in enumerate(seen):
        goes_on = {tuple(row[: position + 1]) for row in seen[position + 1].ids} if position + 1 < len(seen) else set()
        rows = {tuple(row[:position]): number for number, row in reversed([*enumerate(ids)])}
        following = [
            (log_p + log_probabilities[rows[prefix], token], (*prefix, int(token)), place)
            for prefix, (place, log_p) in alive.items()
            for token in np.argsort(-log_probabilities[rows[prefix]], kind="stable")[: 2 * width]
            if np.isfinite(log_probabilities[rows[prefix], token])
        ]
        following = sorted(following, key=lambda found: -found[0])[: 2 * width]
        alive, candidates = {}, []
        pieces = [
            piece.decode()
            for piece in translator.target_tokenizer.pieces_of([written[-1] for _, written, _ in following]).numpy()
        ]
        for rank, ((log_p, written, place), piece) in enumerate(zip(following, pieces, strict=True)):
            is_kept = written in goes_on and written[-1] != END
            is_last = written[-1] == END or (not is_kept and list(written) == best)
            status = KEPT if is_kept else FINISHED if is_last and rank < width else DROPPED
            score = None
            if status == FINISHED:
                penalty = length_penalty(position + 1, settings.length_penalty, settings.length_penalty_offset)
                score = float(log_p / penalty)
            if is_kept:
                alive[written] = (rank, log_p)
            is_best = list(written) == best[: position + 1]
            candidates.append(Candidate(piece, place, float(log_p), status, score, is_best))
        steps.append(candidates)
    return steps

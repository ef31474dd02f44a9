"""What a search weighs at each of its steps, as the search tells it and a picture draws it."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

KEPT, DROPPED, FINISHED = "kept", "dropped", "finished"


class Candidate(NamedTuple):
    """A token that might continue a hypothesis."""

    token: str
    """its piece"""
    parent: int
    """the index of the candidate that it continues, in the step before; 0 at the first step"""
    log_probability: float
    """of the hypothesis up to this token"""
    status: str
    """`kept` where the hypothesis goes on, `finished` where it ends and counts, `dropped` where neither"""
    score: float | None = None
    """the log-probability divided by the length penalty, if it is finished"""
    is_best: bool = False
    """whether it is part of the translation"""


def search_tree(
    tokens: Sequence[Sequence[str]], parents: Any, places: Any, log_probabilities: Any, scores: Any, best: Sequence[str]
) -> list[list[Candidate]]:
    """Return the candidates of every step of a search for one sentence, the most probable first.

    A step has 2 K candidates, K being the beam size, of which at most K are kept (paper 6.1).

    Args:
        tokens: [T, C], the pieces of the candidates.
        parents: [T, C], as in `decoding.Considered`, and so are the next three.
        places: [T, C].
        log_probabilities: [T, C].
        scores: [T, C].
        best: the pieces of the translation.
    """
    parents, places, log_probabilities, scores = map(np.asarray, (parents, places, log_probabilities, scores))
    alive = {0: (0, True)}  # by its place: which candidate of the step before it is, and whether it is the translation
    steps = []
    for position, pieces in enumerate(tokens):
        candidates: list[Candidate] = []
        going_on = {}
        for number, piece in enumerate(pieces):
            log_probability, score = float(log_probabilities[position, number]), float(scores[position, number])
            if log_probability == -np.inf:
                continue
            rank, is_best = alive[int(parents[position, number])]
            is_best = is_best and position < len(best) and piece == best[position]
            place = int(places[position, number])
            is_finished = score > -np.inf
            if place >= 0:
                going_on[place] = len(candidates), is_best
            status = KEPT if place >= 0 else FINISHED if is_finished else DROPPED
            candidates.append(Candidate(piece, rank, log_probability, status, score if is_finished else None, is_best))
        if candidates:
            steps.append(candidates)
        alive = going_on
    return steps

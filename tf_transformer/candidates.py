"""What a search weighs at each of its steps, as the search tells it and a picture draws it."""

from typing import NamedTuple

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

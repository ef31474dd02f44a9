"""The pairs of a chunk that are wanted, as far as their text says."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tf_transformer.data.chunks import Chunk
from tf_transformer.data.corpora import open_corpus
from tf_transformer.data.pairs import Pairs
from tf_transformer.data.preparing.plan import Plan


class Numbered(NamedTuple):
    """A chunk of one of the corpora."""

    number: int
    """among all chunks"""
    corpus: int
    chunk: Chunk


def numbered_chunks(plan: Plan) -> Iterator[Numbered]:
    """Yield the chunks of all corpora, in their order."""
    number = 0
    for corpus, data in enumerate(plan.corpora):
        for chunk in open_corpus(data).chunks(data.train_split):
            yield Numbered(number, corpus, chunk)
            number += 1


class Chosen(NamedTuple):
    """Pairs of a chunk."""

    pairs: Pairs
    given: int
    """pairs that the chunk has"""
    dropped: dict[str, int]
    """those that are not here: `score`, `equal` or `copy`"""


@dataclass(frozen=True)
class Choice:
    """What is wanted."""

    drop_copies: bool

    def of(self, task: Numbered, equal: np.ndarray | None) -> Chosen:
        """Return the wanted pairs of a chunk.

        Args:
            task: the chunk.
            equal: those that are there before, as `equal_to_earlier` has them; none where these are wanted too.
        """
        pairs, low = task.chunk.read()
        given = len(pairs.sources)
        keep = np.ones(given, bool) if equal is None else np.unpackbits(equal, count=given) == 0
        dropped = {"score": low, "equal": given - int(keep.sum()), "copy": 0}
        if self.drop_copies:
            copies = np.array([s == t and bool(s.strip()) for s, t in zip(*pairs, strict=True)], bool)
            dropped["copy"] = int((keep & copies).sum())
            keep &= ~copies
        if not keep.all():
            pairs = Pairs.of(pair for pair, is_kept in zip(zip(*pairs, strict=True), keep, strict=True) if is_kept)
        return Chosen(pairs, given + low, dropped)

"""Choosing pairs of a chunk by their text."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tf_transformer.data.chunks import Chunk
from tf_transformer.data.corpora import open_corpus
from tf_transformer.data.pairs import Pairs
from tf_transformer.data.preparing.plan import Plan
from tf_transformer.tokenizers.normalization import is_blank


class Numbered(NamedTuple):
    """A chunk of one of the corpora, with its number and that of the corpus."""

    number: int
    """the number among all chunks"""
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
    """The chosen pairs of a chunk."""

    pairs: Pairs
    given: int
    """number of pairs that the chunk has"""
    dropped: dict[str, int]
    """number of pairs that are not chosen, by the reason: `equal`, `copy`, or one of the file"""


@dataclass(frozen=True)
class Choice:
    """Which pairs are chosen."""

    drop_copies: bool

    def of(self, task: Numbered, duplicates: np.ndarray | None) -> Chosen:
        """Return the chosen pairs of a chunk.

        Args:
            task: the chunk.
            duplicates: the pairs that equal earlier ones, as `duplicates_in` returns them; None chooses these too.
        """
        pairs, left_out = task.chunk.read()
        given = len(pairs.sources)
        keep = np.ones(given, bool) if duplicates is None else np.unpackbits(duplicates, count=given) == 0
        dropped = {**left_out, "equal": given - int(keep.sum()), "copy": 0}
        if self.drop_copies:
            copies = np.array([s == t and not is_blank(s) for s, t in zip(*pairs, strict=True)], bool)
            dropped["copy"] = int((keep & copies).sum())
            keep &= ~copies
        if not keep.all():
            pairs = Pairs.of(pair for pair, is_kept in zip(zip(*pairs, strict=True), keep, strict=True) if is_kept)
        return Chosen(pairs, given + sum(left_out.values()), dropped)

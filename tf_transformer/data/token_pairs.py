"""Encoded pairs in blocks, in memory. Those of prepared corpora are on the disk."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from tf_transformer.data.pairs import Pairs

BLOCK = 1_024
"""Most pairs of a block."""


class TokenPairs:
    """Encoded pairs in blocks of successive pairs, each side with the end token, and the number of pairs left out.

    Args:
        sizes: the number of pairs of each block, [K].
        corpora: the number of the corpus of each block, [K].
        has_languages: whether each side begins with the token of its language.
        keep: [pairs that were given], boolean: whether each is kept; None if that is not known any more.
        dropped: the number of pairs that were left out, by the reason.
    """

    def __init__(
        self,
        sizes: np.ndarray,
        corpora: np.ndarray,
        *,
        has_languages: bool = False,
        keep: np.ndarray | None = None,
        dropped: Mapping[str, int] | None = None,
    ):
        self.sizes = sizes
        self.corpora = corpora
        self.has_languages = has_languages
        self.keep = keep
        self.dropped = dict(dropped or {})

    @classmethod
    def of(cls, ids: np.ndarray, lengths: np.ndarray, **facts: Any) -> "TokenPairs":
        """Return pairs that are in memory; see `EncodedPairs` for the arrays."""
        return _InMemory(ids, lengths, **facts)

    def __len__(self) -> int:
        return int(self.sizes.sum())

    def lengths(self, block: int) -> np.ndarray:
        """Return the tokens of both sides of the pairs of a block, [n, 2]."""
        raise NotImplementedError

    def ids(self, block: int) -> np.ndarray:
        """Return the ids of a block, [tokens]: of each pair the source, then the target."""
        raise NotImplementedError

    def text(self, block: int) -> Pairs:
        """Return the text of a block, if it is kept."""
        raise NotImplementedError

    def sequences(self) -> tuple[list[list[int]], list[list[int]]]:
        """Return the ids of all sources and of all targets, each a list of its own, which takes much memory."""
        sides: tuple[list[list[int]], list[list[int]]] = ([], [])
        for block in range(len(self.sizes)):
            ends = np.cumsum(self.lengths(block).reshape(-1).astype(np.int64))
            for i, row in enumerate(np.split(self.ids(block), ends[:-1])):
                sides[i % 2].append(row.tolist())
        return sides


class _InMemory(TokenPairs):
    """Pairs of one corpus, all in memory."""

    def __init__(self, ids: np.ndarray, lengths: np.ndarray, **facts: Any):
        self._firsts = np.arange(0, len(lengths), BLOCK)
        super().__init__(np.diff(np.append(self._firsts, len(lengths))), np.zeros(len(self._firsts), np.int64), **facts)
        self._ids, self._lengths = ids, lengths
        ends = np.cumsum(lengths.sum(axis=1, dtype=np.int64))
        self._starts = np.append(0, ends)[np.append(self._firsts, len(lengths))]

    def lengths(self, block: int) -> np.ndarray:
        """Return the lengths of a block."""
        return self._lengths[self._firsts[block] : self._firsts[block] + BLOCK]

    def ids(self, block: int) -> np.ndarray:
        """Return the ids of a block."""
        return self._ids[self._starts[block] : self._starts[block + 1]]

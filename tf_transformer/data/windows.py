"""Windows: parts of a corpus within which batches are formed, so that a corpus of any size needs the same memory."""

import threading
from typing import NamedTuple

import numpy as np

from tf_transformer.data.encoding import Encoder, draw
from tf_transformer.data.token_pairs import TokenPairs

WINDOW = 2**20
"""The most pairs of a window, give or take a part of a block."""


class Dropout(NamedTuple):
    """BPE-dropout, which tokenises the text anew in each epoch."""

    encoders: tuple[Encoder, Encoder]
    rate: float
    max_length: int


def windows_of(pairs: TokenPairs, seed: int | None, epoch: int) -> list[np.ndarray]:
    """Return the blocks of each window of an epoch. Each block is in exactly one window.

    The blocks of each corpus are permuted by (seed, epoch), and spaced evenly among those of the others. Within a
    window they are in the order of the corpus. Without a seed nothing is permuted.
    """
    places = np.empty(len(pairs.sizes))
    for corpus in np.unique(pairs.corpora):
        blocks = np.flatnonzero(pairs.corpora == corpus)
        if seed is not None:
            # The raw numbers of a bit generator stay the same in every version of NumPy (NEP 19).
            numbers = np.random.PCG64(np.random.SeedSequence((seed, epoch, int(corpus)))).random_raw(len(blocks))
            blocks = blocks[np.argsort(numbers, kind="stable")]
        places[blocks] = (np.arange(len(blocks)) + 0.5) / len(blocks)
    count = max(1, min(-(-len(pairs) // WINDOW), len(pairs.sizes)))
    return [np.sort(blocks) for blocks in np.array_split(np.argsort(places, kind="stable"), count)]


class Window:
    """The pairs of some blocks. The ids of a block are read when its first pair is asked for.

    Args:
        pairs: the pairs of all blocks.
        blocks: the numbers of the blocks of the window, ascending.
        dropout: tokenises the text of the window anew, all of it at once.
        seed: the seed of the dropout.
    """

    def __init__(
        self, pairs: TokenPairs, blocks: np.ndarray, dropout: Dropout | None = None, seed: tuple[int, ...] = ()
    ):
        self.blocks = blocks
        self.corpora = np.repeat(pairs.corpora[blocks], pairs.sizes[blocks])
        self._pairs = pairs
        self.has_languages = pairs.has_languages
        self._drawn = [self._draw(int(block), dropout, (*seed, int(block))) for block in blocks] if dropout else []
        lengths = [drawn for _, drawn in self._drawn] or [pairs.lengths(int(block)) for block in blocks]
        self.lengths = np.concatenate([np.empty((0, 2), np.uint16), *lengths])
        """[N, 2]: tokens of sources and targets"""
        ends = np.cumsum(self.lengths.reshape(-1), dtype=np.int64)
        self._starts = np.append(0, ends)[:-1].reshape(-1, 2)
        self._first_rows = np.append(0, np.cumsum(pairs.sizes[blocks]))
        self._ids: np.ndarray | None = None
        self._is_read = np.zeros(len(blocks), bool)
        self._reading = threading.Lock()

    def __len__(self) -> int:
        return len(self.lengths)

    def padded(self, rows: np.ndarray, side: int, width: int) -> np.ndarray:
        """Return the ids [B, width] of one side of the pairs `rows` [B], int32; a negative row gives padding."""
        self._read(np.unique(np.searchsorted(self._first_rows, rows[rows >= 0], "right") - 1))
        if self._ids is None:  # all rows are padding
            return np.zeros((len(rows), width), np.int32)
        lengths = np.where(rows < 0, 0, self.lengths[rows, side])
        columns = np.arange(width)
        places = np.minimum(self._starts[rows, side, None] + columns, len(self._ids) - 1)
        return np.where(columns < lengths[:, None], self._ids[places], 0).astype(np.int32)

    def _read(self, wanted: np.ndarray) -> None:
        """Read the ids of those blocks, given by their numbers in the window, that have not been read yet."""
        if self._is_read[wanted].all():
            return
        with self._reading:
            for i in wanted[~self._is_read[wanted]]:
                ids = self._drawn[i][0] if self._drawn else self._pairs.ids(int(self.blocks[i]))
                if self._ids is None:
                    # Memory is used only as blocks are read, and each of several machines reads only some blocks.
                    self._ids = np.empty(int(self.lengths.sum(dtype=np.int64)), ids.dtype)
                start = self._starts[self._first_rows[i], 0] if len(ids) else 0
                self._ids[start : start + len(ids)] = ids
                self._is_read[i] = True

    def _draw(self, block: int, dropout: Dropout, seed: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
        pairs = self._pairs
        return draw(
            pairs.text(block),
            dropout.encoders,
            pairs.ids(block),
            pairs.lengths(block),
            dropout=dropout.rate,
            has_languages=pairs.has_languages,
            seed=seed,
            max_length=dropout.max_length,
        )

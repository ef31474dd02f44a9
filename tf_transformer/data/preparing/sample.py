"""The pairs that tokenizers are trained on."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from tf_transformer.data.pairs import Pairs
from tf_transformer.data.preparing.chosen import Choice, Numbered
from tf_transformer.data.preparing.workers import Workers

SAMPLE = 1_000_000
"""The most pairs of a sample. More sentences would give the same pieces, but cost memory and hours."""
EVERYTHING = np.uint64(np.iinfo(np.uint64).max)


@dataclass(frozen=True)
class Sampling:
    """Draws the pairs of a chunk whose hash, a function of their places alone, is not above a bound."""

    choice: Choice
    bound: np.uint64

    def __call__(self, task: tuple[Numbered, np.ndarray | None]) -> tuple[np.ndarray, Pairs, str]:
        """Return the hashes of the drawn pairs, the pairs, and the digest of the chunk."""
        pairs = self.choice.of(*task).pairs
        hashes = _mixed(np.uint64(task[0].number << 32) + np.arange(len(pairs.sources), dtype=np.uint64))
        if self.bound < EVERYTHING:
            drawn = np.flatnonzero(hashes <= self.bound)
            hashes, pairs = hashes[drawn], Pairs(*([side[i] for i in drawn] for side in pairs))
        return hashes, pairs, task[0].chunk.digest()


class Sample:
    """All pairs, or `SAMPLE` of them if there are more, in the order of the text.

    Args:
        workers: the processes that read and draw.
        choice: which pairs are chosen.
        tasks: the chunks, each with those of its pairs that equal earlier ones.
    """

    def __init__(self, workers: Workers, choice: Choice, tasks: Iterable[tuple[Numbered, np.ndarray | None]]):
        self.digests: list[str] = []
        """the digests of the chunks"""
        self._bound = EVERYTHING
        hashes, self.pairs = np.empty(0, np.uint64), Pairs([], [])
        for drawn, pairs, digest in workers.map(_call, self._bounded(choice, tasks)):
            self.digests.append(digest)
            hashes = np.append(hashes, drawn)
            self.pairs.sources.extend(pairs.sources)
            self.pairs.targets.extend(pairs.targets)
            if len(hashes) > SAMPLE + SAMPLE // 4:
                hashes = self._keep_lowest(hashes)
        self._keep_lowest(hashes)

    def _keep_lowest(self, hashes: np.ndarray) -> np.ndarray:
        """Keep the pairs with the lowest hashes, and return these hashes."""
        if len(hashes) <= SAMPLE:
            return hashes
        self._bound = np.partition(hashes, SAMPLE - 1)[SAMPLE - 1]
        keep = np.flatnonzero(hashes <= self._bound)
        self.pairs = Pairs(*([side[i] for i in keep] for side in self.pairs))
        return hashes[keep]

    def _bounded(
        self, choice: Choice, tasks: Iterable[tuple[Numbered, np.ndarray | None]]
    ) -> Iterator[tuple[Sampling, tuple[Numbered, np.ndarray | None]]]:
        """Yield tasks with the current bound, which saves drawing pairs that a later bound would leave out anyway."""
        for task in tasks:
            yield Sampling(choice, self._bound), task


def _call(task: tuple[Sampling, tuple[Numbered, np.ndarray | None]]) -> tuple[np.ndarray, Pairs, str]:
    sampling, chunk = task
    return sampling(chunk)


def _mixed(numbers: np.ndarray) -> np.ndarray:
    """Return hashes of numbers (SplitMix64, Steele et al. 2014)."""
    with np.errstate(over="ignore"):
        numbers = numbers + np.uint64(0x9E3779B97F4A7C15)
        numbers = (numbers ^ (numbers >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        numbers = (numbers ^ (numbers >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return numbers ^ (numbers >> np.uint64(31))

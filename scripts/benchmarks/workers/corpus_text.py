"""Text of any size: sentences of real words, drawn by Zipf's law. The same words and size give the same text."""

from collections import Counter
from pathlib import Path

import numpy as np
from protocol import serve, spec

from tf_transformer.data.corpora.toy import pairs

CHUNK = 100_000
"""The pairs that are made at once."""
REPEATED = 2_000
"""The pairs of a chunk that repeat others of it, as in text from the web."""
URN = 2**20
"""The size of the urn that words are drawn from, which has each as often as Zipf's law says."""
MEAN, SHAPE = 22, 2.5
"""The mean and the shape of the gamma distribution of the words per sentence."""
SPREAD = 0.2
"""The standard deviation of log(words of a target / words of its source)."""
LONGEST = 100
"""The most words of a sentence."""

given = spec()


def urn(words: list[str]) -> np.ndarray:
    """Return indices of words, each as often as Zipf's law (in Mandelbrot's form) says for its rank."""
    shares = 1 / (np.arange(len(words)) + 2.7)
    return np.searchsorted(np.cumsum(shares / shares.sum()), (np.arange(URN) + 0.5) / URN).clip(0, len(words) - 1)


def words_of_sides() -> list[list[str]]:
    """Return the words of both sides of a folder of text, or of the toy corpus, the most frequent first."""
    if given["data"]:
        files = [Path(given["data"]) / f"train.{given[side]}" for side in ("source", "target")]
        text = [file.read_text("utf-8").splitlines() for file in files]
    else:
        text = [list(side) for side in zip(*pairs("train"), strict=True)]
    return [[word for word, _ in Counter(" ".join(side).split()).most_common()] for side in text]


class Side:
    """Writes the sentences of one language."""

    def __init__(self, words: list[str]):
        self.words = np.array([f"{word} " for word in words] + [f"{word}\n" for word in words], object)
        self.urn = urn(words)

    def lines(self, rng: np.random.Generator, lengths: np.ndarray) -> str:
        """Return sentences with the given numbers of words."""
        numbers = self.urn[rng.integers(0, URN, lengths.sum())]
        numbers[np.cumsum(lengths) - 1] += len(self.words) // 2
        return "".join(self.words[numbers].tolist())


sides = [Side(words) for words in words_of_sides()]


def chunk(rng: np.random.Generator, count: int, repeated: int) -> list[bytes]:
    """Return the lines of both sides of `count` pairs, the last `repeated` of which equal the first ones."""
    lengths = [1 + rng.gamma(SHAPE, MEAN / SHAPE, count - repeated)]
    lengths.append(lengths[0] * np.exp(rng.normal(0, SPREAD, count - repeated)))
    lengths = [each.astype(np.int64).clip(1, LONGEST) for each in lengths]
    made = []
    for side, each in zip(sides, lengths, strict=True):
        text = side.lines(rng, each)
        again = text.split("\n", repeated)[:repeated]
        made.append((text + "".join(f"{line}\n" for line in again)).encode())
    return made


def work(folder: str, count: int) -> None:
    """Write `train` with `count` pairs, and a `val`."""
    place = Path(folder)
    place.mkdir(parents=True)
    names = [given["source"], given["target"]]
    for split, size in (("val", 1_000), ("train", count)):
        files = [(place / f"{split}.{name}").open("wb") for name in names]
        for first in range(0, size, CHUNK):
            number = min(CHUNK, size - first)
            rng = np.random.default_rng((first, split == "val"))
            for file, lines in zip(files, chunk(rng, number, number * REPEATED // CHUNK), strict=True):
                file.write(lines)
        for file in files:
            file.close()


serve(work, words=[len(side.words) // 2 for side in sides])

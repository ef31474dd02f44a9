"""The toy corpus: short English sentences and their German, to try the library without a download.

The German of a sentence is a function of its English, so a model can translate every test sentence exactly. Test and
validation sentences are new combinations of words that the training text has in the same roles. How it was made is in
docs/notes/toy_corpus.md.
"""

from functools import lru_cache
from pathlib import Path

from tf_transformer.errors import unknown
from tf_transformer.storage.lines import read_lines

FILE = Path(__file__).with_name("toy.tsv.zst")
SIZES = {"train": 27_000, "val": 500, "test": 1_000}
"""The numbers of pairs of the splits, in their order in the file."""


def pairs(split: str) -> list[tuple[str, str]]:
    """Return the pairs of a split. No sentence occurs in two splits or twice in one."""
    if split not in SIZES:
        raise unknown("split", split, SIZES)
    start = sum(list(SIZES.values())[: list(SIZES).index(split)])
    return _pairs()[start : start + SIZES[split]]


@lru_cache(1)
def _pairs() -> list[tuple[str, str]]:
    return [(source, target) for source, _, target in (line.partition("\t") for line in read_lines(FILE))]

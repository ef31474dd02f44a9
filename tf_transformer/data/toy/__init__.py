"""A seeded generator of a small English-German corpus, to try the library without a download.

The German of a sentence is a function of its English, so a model can in principle translate every
sentence of the test split exactly. Validation and test sentences are new combinations of words that
the training split has in the same roles.
"""

from functools import lru_cache
from random import Random

from tf_transformer.data.toy.grammar import PATTERNS
from tf_transformer.data.toy.lexicon import NOUNS
from tf_transformer.data.toy.phrases import Pair

SPLITS = ("train", "val", "test")
"""The names of the splits."""

_SIZES = {"val": 500, "test": 1_000, "train": 27_000}
_SHORTEST, _LONGEST = 3, 16


def pairs(split: str, seed: int = 0) -> list[tuple[str, str]]:
    """English-German pairs of a split.

    Args:
        split: One of ``SPLITS``.
        seed: Seed of the corpus; the splits of one seed share no sentence.

    Returns:
        Pairs of an English sentence and its German translation: 27,000 for ``train``, 500 for ``val``
        and 1,000 for ``test``.

    Raises:
        ValueError: If ``split`` is none of ``SPLITS``.
    """
    if split not in SPLITS:
        raise ValueError(f"unknown split {split!r}: expected one of {', '.join(SPLITS)}")
    return [(pair.en, pair.de) for _, pair in labelled_pairs(seed)[split]]


@lru_cache(maxsize=4)
def labelled_pairs(seed: int = 0) -> dict[str, tuple[tuple[str, Pair], ...]]:
    """The pairs of each split, each with the name of its sentence pattern."""
    rng = Random(seed)
    drawn = _draw(rng, sum(_SIZES.values()))
    splits = {}
    start = 0
    for split, size in _SIZES.items():
        part = drawn[start : start + size]
        rng.shuffle(part)
        splits[split] = tuple(part)
        start += size
    return splits


def _draw(rng: Random, count: int) -> list[tuple[str, Pair]]:
    """Draws distinct pairs, one of each pattern in turn, so that every split has every pattern."""
    drawn: list[tuple[str, Pair]] = []
    sources: set[str] = set()
    targets: set[str] = set()
    while True:
        for pattern in PATTERNS:
            pair = pattern(rng)
            if pair.en in sources or pair.de in targets or not _is_sound(pair.en):
                continue
            sources.add(pair.en)
            targets.add(pair.de)
            drawn.append((pattern.__name__, pair))
            if len(drawn) == count:
                return drawn


def _is_sound(english: str) -> bool:
    """Whether a sentence has a suitable length and names nobody and nothing twice ('The man sees the man.')."""
    words = "".join(char for char in english.lower() if char not in ".,?!").split()
    named = [_LEMMAS[word] for word in words if word in _LEMMAS]
    return _SHORTEST <= len(words) <= _LONGEST and len(set(named)) == len(named)


_LEMMAS = {noun.en_plural: noun.en for noun in NOUNS} | {noun.en: noun.en for noun in NOUNS}
_LEMMAS |= {"i": "we", "me": "we", "we": "we", "us": "we", "you": "you"}
_LEMMAS |= {"he": "he", "him": "he", "they": "they", "them": "they"}

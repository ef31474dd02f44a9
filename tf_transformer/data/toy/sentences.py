"""From clauses to sentences: the first capital, the final mark, and the commonest sentence."""

from collections.abc import Callable
from random import Random

from tf_transformer.data.toy.choices import subject
from tf_transformer.data.toy.clauses import Predicate, VerbGroup, clause, present
from tf_transformer.data.toy.phrases import Pair
from tf_transformer.data.toy.verbs import Verb

Pattern = Callable[[Random], Pair]
"""Draws one sentence of a construction."""


def sentence(words: Pair, mark: str = ".") -> Pair:
    """Puts in the first capital and the final mark."""
    return Pair(words.en[0].upper() + words.en[1:] + mark, words.de[0].upper() + words.de[1:] + mark)


def tell(rng: Random, predicate: Predicate, group: Callable[[Verb], VerbGroup] = present) -> Pair:
    """A statement with a random subject."""
    return sentence(clause(subject(rng), group(predicate.verb), predicate).statement())

"""What all translators have in common, whatever runs the model."""

from collections.abc import Sequence
from typing import Protocol

from tf_transformer.text.alignment import AlignedString

Terms = Sequence[Sequence[str]] | None
"""What the translation of each sentence must contain; None for nothing."""


class TextTranslator(Protocol):
    """The interface of everything that translates Python strings."""

    def translate_strings(
        self, sentences: list[str], numbers: Sequence[int] | None = None, *, terms: Terms = None
    ) -> list[str]:
        """Translate sentences. Warnings name those that were cut, by `numbers` if these are given.

        Each translation contains the `terms` of its sentence.
        """

    def n_best_strings(
        self, sentences: list[str], n: int, numbers: Sequence[int] | None = None, *, terms: Terms = None
    ) -> list[list[tuple[str, float]]]:
        """Translate sentences in n ways each, and return them with their scores, the best first."""

    def aligned_strings(
        self, sentences: list[str], numbers: Sequence[int] | None = None, *, terms: Terms = None
    ) -> list[AlignedString]:
        """Translate sentences, and return what the tokens of the translations attended to."""

    @property
    def most_source(self) -> int:
        """The most source tokens that the search takes, including the end token; the rest of a sentence is cut."""

    def check_n_best(self, n: int) -> None:
        """Raise InputError if there are fewer than n translations of a sentence."""

    def score_strings(self, pairs: list[tuple[str, str]], numbers: Sequence[int] | None = None) -> list[list[float]]:
        """Return for every pair of source and target the log-probabilities of the target's tokens."""

    def count_tokens(self, sentences: list[str]) -> list[int]:
        """Return how many source tokens of each sentence the search takes, including the end token."""


class LineTranslator(Protocol):
    """What translates lines: a `TextTranslator`, or one with terms."""

    def translate_strings(self, sentences: list[str], numbers: Sequence[int] | None = None) -> list[str]:
        """Translate sentences."""

    def n_best_strings(
        self, sentences: list[str], n: int, numbers: Sequence[int] | None = None
    ) -> list[list[tuple[str, float]]]:
        """Translate sentences in n ways each."""

    def aligned_strings(self, sentences: list[str], numbers: Sequence[int] | None = None) -> list[AlignedString]:
        """Translate sentences and align them."""

"""Translation of lines whose translations contain the terms of each."""

from collections.abc import Sequence

from tf_transformer.text.alignment import AlignedString
from tf_transformer.text.glossary import TermsOf
from tf_transformer.text.translator import TextTranslator


class WithTerms:
    """A translator whose translations contain the terms of their lines.

    Args:
        model: what translates.
        terms: finds the terms of a line.
    """

    def __init__(self, model: TextTranslator, terms: TermsOf):
        self._model, self._terms = model, terms

    def translate_strings(self, sentences: list[str], numbers: Sequence[int] | None = None) -> list[str]:
        """Translate lines, as `TextTranslator` does."""
        texts, terms = self._both(sentences)
        return self._model.translate_strings(texts, numbers, terms=terms)

    def n_best_strings(
        self, sentences: list[str], n: int, numbers: Sequence[int] | None = None
    ) -> list[list[tuple[str, float]]]:
        """Translate lines in n ways each, as `TextTranslator` does."""
        texts, terms = self._both(sentences)
        return self._model.n_best_strings(texts, n, numbers, terms=terms)

    def aligned_strings(self, sentences: list[str], numbers: Sequence[int] | None = None) -> list[AlignedString]:
        """Translate lines and align them, as `TextTranslator` does."""
        texts, terms = self._both(sentences)
        return self._model.aligned_strings(texts, numbers, terms=terms)

    def _both(self, sentences: list[str]) -> tuple[list[str], list[list[str]]]:
        both = [self._terms(line) for line in sentences]
        return [text for text, _ in both], [terms for _, terms in both]

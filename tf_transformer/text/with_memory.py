"""Translation with a memory, whose translations go before those of the model."""

from collections.abc import Callable, Mapping, Sequence


class WithMemory:
    """A translator that takes the translations of sentences that it knows from a memory.

    Args:
        translate: translates the others, as `TextTranslator.translate_strings` does.
        memory: the translations by their sources.
    """

    def __init__(self, translate: Callable[[list[str], Sequence[int] | None], list[str]], memory: Mapping[str, str]):
        self._translate, self._memory = translate, memory

    def translate_strings(self, sentences: list[str], numbers: Sequence[int] | None = None) -> list[str]:
        """Translate sentences. Warnings are as in `TextTranslator`."""
        unknown = [place for place, sentence in enumerate(sentences) if sentence.strip() not in self._memory]
        translations = [self._memory.get(sentence.strip(), "") for sentence in sentences]
        if unknown:
            numbered = None if numbers is None else [numbers[place] for place in unknown]
            made = self._translate([sentences[place] for place in unknown], numbered)
            for place, translation in zip(unknown, made, strict=True):
                translations[place] = translation
        return translations

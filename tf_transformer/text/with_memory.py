"""Translation with a memory, whose translations go before those of the model."""

from collections.abc import Callable, Mapping, Sequence


def key_of(text: str) -> str:
    """Return a text as a memory knows it: with one space in the place of all white space between words."""
    return " ".join(text.split())


class WithMemory:
    """A translator that takes the translations of sentences that it knows from a memory.

    Args:
        translate: translates the others, as `TextTranslator.translate_strings` does.
        memory: the translations by the keys of their sources (`key_of`).
    """

    def __init__(self, translate: Callable[[list[str], Sequence[int] | None], list[str]], memory: Mapping[str, str]):
        self._translate, self._memory = translate, memory

    def translate_strings(self, sentences: list[str], numbers: Sequence[int] | None = None) -> list[str]:
        """Translate sentences. Warnings are as in `TextTranslator`."""
        translations = [self._memory.get(key_of(sentence), "") for sentence in sentences]
        unknown = [place for place, translation in enumerate(translations) if not translation]
        if unknown:
            numbered = None if numbers is None else [numbers[place] for place in unknown]
            made = self._translate([sentences[place] for place in unknown], numbered)
            for place, translation in zip(unknown, made, strict=True):
                translations[place] = translation
        return translations

"""Translation with a memory, whose translations go before those of the model."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from tf_transformer.text.markup import TAG, partners

PLACE = "\0"
"""What stands for a tag in a text as a memory knows it."""


class Memory:
    """Translations by their sources, whatever the white space between words is.

    A text with tags is found if a source has tags at the same places, whatever they are called there, and each of them
    once in its translation. A text without tags is also found if a source has tags, which are then left out.

    Args:
        pairs: sources and their translations; of several for one source, the last is taken.
    """

    def __init__(self, pairs: Iterable[tuple[str, str]]):
        self._known: dict[str, str] = {}
        self._orders: dict[str, tuple[int, ...]] = {}
        """for each source with tags, which of them each tag of its translation is"""
        self._without_tags: dict[str, str] = {}
        for source, target in pairs:
            key, tags = _keyed(source)
            translation, target_tags = _keyed(target)
            if not tags and not target_tags:
                self._known[key] = target
                continue
            self._without_tags[_plain(key)] = _plain(translation)
            if (order := _order(tags, target_tags)) is not None:
                self._known[key], self._orders[key] = translation, order

    def get(self, text: str) -> str | None:
        """Return the translation of a text, with its own tags; None if there is none."""
        key, tags = _keyed(text)
        found = self._known.get(key)
        if found is None:
            return None if tags else self._without_tags.get(key)
        if not tags:
            return found
        placed = [tags[number] for number in self._orders[key]]
        if _pairs(placed) != _pairs(tags):
            return None
        first, *others = found.split(PLACE)
        return first + "".join(tag + piece for tag, piece in zip(placed, others, strict=True))

    def has_other_tags(self, text: str) -> bool:
        """Say whether a text is known, but with other tags, so that it has no translation."""
        key, tags = _keyed(text)
        plain = _plain(key)
        return bool(tags) and self.get(text) is None and (plain in self._known or plain in self._without_tags)


def _keyed(text: str) -> tuple[str, list[str]]:
    """Return a text with PLACE in the place of its tags and single spaces between words, and the tags."""
    text = text.replace(PLACE, "")
    tags = [tag[0] for tag in TAG.finditer(text)]
    return " ".join((TAG.sub(PLACE, text) if tags else text).split()), tags


def _plain(key: str) -> str:
    return " ".join(key.replace(PLACE, "").split())


def _order(tags: Sequence[str], others: Sequence[str]) -> tuple[int, ...] | None:
    """Return which of the tags each of the others is; None if they are not the same."""
    if Counter(tags) != Counter(others):
        return None
    places: dict[str, list[int]] = {}
    for number in reversed(range(len(tags))):
        places.setdefault(tags[number], []).append(number)
    return tuple(places[tag].pop() for tag in others)


def _pairs(tags: list[str]) -> Counter[tuple[str, str]]:
    """Return the tags that enclose text together."""
    return Counter((tags[first], tags[last]) for first, last in partners(tags).items() if first < last)


class WithMemory:
    """A translator that takes the translations of sentences that it knows from a memory.

    Args:
        translate: translates the others, as `TextTranslator.translate_strings` does.
        memory: the memory.
    """

    def __init__(self, translate: Callable[[list[str], Sequence[int] | None], list[str]], memory: Memory):
        self._translate, self._memory = translate, memory

    def translate_strings(self, sentences: list[str], numbers: Sequence[int] | None = None) -> list[str]:
        """Translate sentences. Warnings are as in `TextTranslator`."""
        known = [self._memory.get(sentence) for sentence in sentences]
        unknown = [place for place, translation in enumerate(known) if translation is None]
        numbered = None if numbers is None else [numbers[place] for place in unknown]
        made = iter(self._translate([sentences[place] for place in unknown], numbered) if unknown else ())
        return [next(made) if translation is None else translation for translation in known]

"""Tags, placeholders and addresses in text: taken out before a translation, and put back where attention points."""

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from tf_transformer.text.alignment import units_of
from tf_transformer.text.documents import WIDE
from tf_transformer.tokenizers.vocabulary import SPACE_MARK

if TYPE_CHECKING:
    import numpy as np

MARKUP = re.compile(
    r"</?[A-Za-z][^<>]*>"  # tags
    r"|&(?:\w+|#\d+);"  # character references
    r"|\{\{[^{}]*\}\}|\$?\{[^{}]*\}"  # {{name}}, {name} and ${name}
    r"|%\(\w+\)[a-z]|%[sd]\b"  # as in format strings of Python and C
    r"|(?:https?|ftp)://[^\s<>{}]*[^\s<>{}.,;:!?'\")\]}]"
)
"""What is kept as it is."""
BYTE = re.compile("<0x([0-9A-F]{2})>")
TAG = re.compile(r"<(?P<closing>/?)(?P<name>[A-Za-z][^\s/>]*)[^<>]*?(?P<single>/?)>")


class Mark(NamedTuple):
    """Something that is kept, or a pair of tags with what is kept between them."""

    opening: str
    """the markup itself, or the first tag of the pair"""
    place: int
    """how many characters of the text, other than white space, stand before it"""
    spaces: tuple[bool, bool]
    """whether white space stands before it, and after it"""
    closing: "Mark | None" = None
    """the second tag of the pair"""
    inside: "tuple[Mark, ...]" = ()
    """what the pair encloses"""


class Stripped(NamedTuple):
    """A text without its markup."""

    text: str
    marks: tuple[Mark, ...]
    """what was taken out, in its order"""


def stripped(text: str) -> Stripped:
    """Take the markup out of a text."""
    found = list(MARKUP.finditer(text))
    partners = _partners([match[0] for match in found])
    rest, end = "", 0
    levels: list[list[Mark]] = [[]]
    for number, match in enumerate(found):
        rest += text[end : match.start()]
        end = match.end()
        after = text[end:]
        spaces = text[: match.start()][-1:].isspace(), after[:1].isspace()
        mark = Mark(match[0], sum(not character.isspace() for character in rest), spaces)
        partner = partners.get(number)
        if partner is None or partner > number:
            levels[-1].append(mark)
        if partner is not None and partner > number:
            levels.append([])
        elif partner is not None:
            inside = tuple(levels.pop())
            levels[-1][-1] = levels[-1][-1]._replace(closing=mark, inside=inside)
        # Of two spaces one goes, and so does that before what leaves nothing or a full stop behind.
        leaves_nothing = partner is None and not after[:1].isalnum() and not MARKUP.match(after)
        if rest[-1:].isspace() and (spaces[1] or leaves_nothing):
            rest = rest.rstrip()
    return Stripped((rest + text[end:]).strip(), tuple(levels[0]))


def restored(
    source: Stripped,
    translation: str,
    source_tokens: Sequence[str],
    target_tokens: Sequence[str],
    attention: "np.ndarray",
) -> str:
    """Return a translation with the markup of its source; the other arguments are as in `AlignedString`.

    What a pair of tags encloses is, in the translation, everything from the first to the last token that attends to
    it. Anything else comes after the word that attends most to the word before it; at the beginning, before the one
    that attends most to the first word. Words are not cut. Spaces around markup stay, and some may be added.
    """
    sources, targets = _ends(source_tokens), _ends(target_tokens)
    columns = [i for i in range(len(sources)) if sources[i] > (sources[i - 1] if i else 0)]
    rows = [i for i in range(len(targets)) if targets[i] > (targets[i - 1] if i else 0)]
    offsets = [i for i, character in enumerate(translation) if not character.isspace()]
    if not rows or not columns or not offsets:
        return _Writer(translation, lambda mark: (0, 0)).write(source.marks)
    best_column = {row: max(columns, key=lambda column: attention[row, column]) for row in rows}
    best_row = {column: max(rows, key=lambda row: attention[row, column]) for column in columns}

    def words_of(first: int, last: int) -> tuple[int, int]:
        """Return the range of characters of the words that rows are in."""
        characters = targets[first - 1] if first else 0, targets[last] - 1
        start, stop = (offsets[min(character, len(offsets) - 1)] for character in characters)
        return _word_start(translation, start), _word_end(translation, stop + 1)

    def range_of(mark: Mark) -> tuple[int, int]:
        if mark.closing:
            inside = {column for column in columns if mark.place < sources[column] <= mark.closing.place}
            attending = [row for row in rows if best_column[row] in inside] or [best_row[column] for column in inside]
            if attending:
                return words_of(min(attending), max(attending))
        before = [column for column in columns if sources[column] <= mark.place]
        nearest = best_row[before[-1] if before else columns[0]]
        return (words_of(nearest, nearest)[bool(before)],) * 2

    return _Writer(translation, range_of).write(source.marks)


class _Writer:
    """Writes a text with marks in it.

    Args:
        text: the text.
        range_of: where each mark begins and ends in it.
    """

    def __init__(self, text: str, range_of: Callable[[Mark], tuple[int, int]]):
        self._text, self._range_of = text, range_of
        self._written = ""
        self._at = 0
        """how much of the text is written"""
        self._wants_space = False

    def write(self, marks: Sequence[Mark]) -> str:
        """Return the text with the marks."""
        self._within(marks, len(self._text))
        self._up_to(len(self._text))
        return self._written

    def _within(self, marks: Sequence[Mark], stop: int) -> None:
        """Write marks, all of them before a place of the text: pairs stay nested, whatever the ranges are."""
        for (start, end), mark in sorted(((self._range_of(mark), mark) for mark in marks), key=lambda pair: pair[0]):
            self._up_to(min(max(start, self._at), stop))
            self._mark(mark)
            if mark.closing:
                end = min(max(end, self._at), stop)
                self._within(mark.inside, end)
                self._up_to(end)
                self._mark(mark.closing)

    def _up_to(self, end: int) -> None:
        self._add(self._text[self._at : end])
        self._at = end

    def _mark(self, mark: Mark) -> None:
        self._wants_space |= mark.spaces[0]
        self._add(mark.opening)
        self._wants_space = mark.spaces[1]

    def _add(self, text: str) -> None:
        if text:
            if self._wants_space and self._written and not (self._written[-1].isspace() or text[0].isspace()):
                self._written += " "
            self._written += text
            self._wants_space = False


def _partners(marks: Sequence[str]) -> dict[int, int]:
    """Return for each tag of a pair which mark the other one is."""
    partners: dict[int, int] = {}
    opened: list[tuple[str, int]] = []
    for number, text in enumerate(marks):
        tag = TAG.fullmatch(text)
        if not tag or tag["single"]:
            continue
        if not tag["closing"]:
            opened.append((tag["name"], number))
            continue
        found = [place for place, (name, _) in enumerate(opened) if name == tag["name"]]
        if found:  # tags that were opened after it are never closed, or elsewhere: they stand alone
            partner = opened[found[-1]][1]
            partners |= {partner: number, number: partner}
            del opened[found[-1] :]
    return partners


def _ends(tokens: Sequence[str]) -> list[int]:
    """Return how many characters, other than white space, a text has up to the end of each token."""
    text = {place for unit in units_of(tokens, "tokens") for place in unit}
    ends, count = [], 0
    for place, token in enumerate(tokens):
        byte = BYTE.fullmatch(token)
        if place not in text:
            pass  # a language or an end token
        elif byte:
            count += int(byte[1], 16) & 0xC0 != 0x80  # a character has one byte that does not continue another
        else:
            count += sum(not character.isspace() for character in token.replace(SPACE_MARK, ""))
        ends.append(count)
    return ends


def _word_start(text: str, place: int) -> int:
    while place and _is_of_word(text[place - 1 : place + 1]):
        place -= 1
    return place


def _word_end(text: str, place: int) -> int:
    while _is_of_word(text[place - 1 : place + 1]):
        place += 1
    return place


def _is_of_word(pair: str) -> bool:
    """Say whether two characters belong to one word, in a script that has spaces between words."""
    return len(pair) == 2 and all(re.match(r"\w", character) and not WIDE.match(character) for character in pair)

"""Markup goes back into a translation, where attention points."""

import codecs
import difflib
import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from tf_transformer.text.alignment import units_of
from tf_transformer.text.markup import MARKUP, TAG, Mark, Stripped
from tf_transformer.text.words import UNSPACED, is_within_word, is_word, lowered
from tf_transformer.tokenizers.vocabulary import SPACE_MARK

if TYPE_CHECKING:
    import numpy as np

BYTE = re.compile("<0x([0-9A-F]{2})>")
WINDOW = 64
"""How many characters are aligned at once: for text that repeats itself, it takes cubic time."""
SPACE = re.compile(r"\s")


def restored(
    source: Stripped,
    translation: str,
    source_tokens: Sequence[str],
    target_tokens: Sequence[str],
    attention: "np.ndarray",
) -> str:
    """Return a translation with the markup of its source; the other arguments are as in `AlignedString`.

    What a pair of tags encloses is, in the translation, everything from the first to the last token that belongs to it:
    that attends to one of its tokens most, and to it more than any other token does. Anything else comes after the word
    that attends most to the word before it, or before the one for the word after it, if only that one touches it. What
    encloses everything, and tags alone at an end, stay there. Words are not cut. Spaces around markup stay, and some
    are added: what stood apart from a word does not touch one.
    """
    import numpy as np  # which takes a while

    sources, targets = token_ends(source_tokens, source.text), token_ends(target_tokens, translation)
    columns, rows = np.flatnonzero(np.diff(sources, prepend=0)), np.flatnonzero(np.diff(targets, prepend=0))
    offsets = [i for i, character in enumerate(translation) if not character.isspace()]
    if not rows.size or not columns.size:
        return _Writer(translation, lambda mark: (0, 0)).write(source.marks)
    attention = attention[np.ix_(rows, columns)]
    best_column, best_row = attention.argmax(axis=1), attention.argmax(axis=0)
    column_ends = [sources[column] for column in columns]
    column_starts = [0, *column_ends[:-1]]

    def words_of(first: int, last: int) -> tuple[int, int]:
        """Return the range of characters of the words that two tokens are in, and what is between them."""
        start, stop = offsets[targets[rows[first - 1]] if first else 0], offsets[targets[rows[last]] - 1] + 1
        while is_within_word(translation, start):
            start -= 1
        while is_within_word(translation, stop):
            stop += 1
        return start, stop

    def range_of(mark: Mark) -> tuple[int, int]:
        if mark.closing and mark.place == 0 and mark.closing.place >= column_ends[-1]:
            return 0, len(translation)
        before = bisect_right(column_ends, mark.place)
        if mark.closing and (end := bisect_left(column_starts, mark.closing.place)) > before:
            most = best_row[before:end]
            mutual = most[(before <= best_column[most]) & (best_column[most] < end)]
            found = mutual if mutual.size else most
            return words_of(found.min(), found.max())
        if TAG.fullmatch(mark.opening) and (mark.place == 0 or mark.place >= column_ends[-1]):
            return (0 if mark.place == 0 else len(translation),) * 2
        belongs_to_next = is_word(mark.sides[1] or " ") and not is_word(mark.sides[0] or " ")
        follows = before > 0 and not (belongs_to_next and before < len(column_ends))
        nearest = best_row[before - 1 if follows else before]
        return (words_of(nearest, nearest)[follows],) * 2

    return _Writer(translation, range_of).write(source.marks)


def token_ends(tokens: Sequence[str], text: str) -> list[int]:
    """Return how many characters of a text, other than white space, stand up to the end of each token.

    Args:
        tokens: those of the text, which a tokenizer may have normalised before it cut it.
        text: as it was before.
    """
    in_text = {place for unit in units_of(tokens, "tokens") for place in unit}
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    normalized, ends = "", []
    for place, token in enumerate(tokens):
        if byte := BYTE.fullmatch(token):
            normalized += decoder.decode(bytes([int(byte[1], 16)]))
        elif place in in_text:  # and no language or end token
            normalized += decoder.decode(b"", final=True) + "".join(token.replace(SPACE_MARK, " ").split())
        ends.append(len(normalized))
    places = _places(normalized, "".join(text.split()))
    return [places[end] for end in ends]


def _places(normalized: str, text: str) -> list[int]:
    """Return, for each number of characters of a normalised text, how many of the text these were."""
    pairs = enumerate(zip(normalized, text, strict=False))
    start = next((i for i, (one, other) in pairs if one != other), min(len(normalized), len(text)))
    places = list(range(start + 1))
    left = len(normalized) - start
    # A text that the model does not take whole may be longer by far.
    text = text[: start + 2 * left + 64]
    backwards = enumerate(zip(normalized[:start:-1], text[:start:-1], strict=False))
    tail = next((i for i, (one, other) in backwards if one != other), 0)
    middle, of_text = (lowered(one[start : len(one) - tail]) for one in (normalized, text))
    for width, text_width in _widths(middle, of_text):
        places += [start + text_width * i // width for i in range(1, width + 1)]
        start += text_width
    return places + list(range(len(text) - tail + 1, len(text) + 1))


def _widths(normalized: str, text: str) -> Iterator[tuple[int, int]]:
    """Yield for each piece of a normalised text its length, and that of the piece of the text that it was."""
    at = text_at = 0
    while at < len(normalized):
        some, of_text = normalized[at : at + WINDOW], text[text_at : text_at + WINDOW]
        codes = difflib.SequenceMatcher(None, some, of_text, autojunk=False).get_opcodes()
        if at + WINDOW < len(normalized) or text_at + WINDOW < len(text):
            # What is near the end of a window is aligned in the next one, which knows what follows.
            equal = [number for number, code in enumerate(codes) if code[0] == "equal"]
            far = (number for number in equal if codes[number][2] > WINDOW // 2)
            codes = codes[: next(far, equal[-1]) + 1] if equal else []
        widths = [(last - first, text_last - text_first) for _, first, last, text_first, text_last in codes]
        widths = widths or [(len(some), len(some) * (len(text) - text_at) // (len(normalized) - at))]
        yield from widths
        at += sum(width for width, _ in widths)
        text_at += sum(text_width for _, text_width in widths)


Placed = tuple[tuple[int, int], Mark]
"""A mark, and where it begins and ends in a text."""


class _Writer:
    """Writes a text with marks in it.

    Args:
        text: the text.
        range_of: where each mark begins and ends in it.
    """

    def __init__(self, text: str, range_of: Callable[[Mark], tuple[int, int]]):
        self._text, self._range_of = text, range_of
        self._written: list[str] = []
        self._at = 0
        """how much of the text is written"""
        self._mark: Mark | None = None
        """the mark that was written last, if no text was since"""
        self._recent = ""
        """what was written last: a mark, and the text after it, unless a space is in it"""
        self._length = 0
        """of the mark in it"""

    def write(self, marks: Sequence[Mark]) -> str:
        """Return the text with the marks. Pairs stay nested, whatever their ranges are."""
        levels: list[tuple[list[Placed], int, Mark | None]] = [(self._in_order(marks), len(self._text), None)]
        while levels:
            waiting, stop, closing = levels[-1]
            if not waiting:
                self._write_text(stop)
                if closing:
                    self._write_mark(closing)
                levels.pop()
                continue
            (start, end), mark = waiting.pop()
            self._write_text(min(max(start, self._at), stop))
            self._write_mark(mark)
            if mark.closing:
                levels.append((self._in_order(mark.inside), min(max(end, self._at), stop), mark.closing))
        return "".join(self._written)

    def _in_order(self, marks: Sequence[Mark]) -> list[Placed]:
        """Return marks with their ranges, the first at the end of the list."""
        return sorted(((self._range_of(mark), mark) for mark in marks), key=lambda pair: pair[0])[::-1]

    def _write_text(self, end: int) -> None:
        text, self._at = self._text[self._at : end], end
        if not text:
            return
        if self._mark and self._mark.is_space:
            text = text.removeprefix(" ")
        elif self._mark and self._stands_apart(self._mark, 1, text[:1]):
            self._write(" ")
        self._write(text)
        self._mark = None

    def _write_mark(self, mark: Mark) -> None:
        text = self._written[-1] if self._written else ""
        last = text[-1:]
        if self._mark:
            is_apart = not last.isspace() and (self._mark.sides[1].isspace() or mark.sides[0].isspace())
        else:
            is_apart = self._stands_apart(mark, 0, last)
        if is_apart or not _is_still(mark.opening, last if self._mark else text[-2:], ""):
            self._write(" ")
        self._write(mark.opening)
        self._mark, self._recent, self._length = mark, mark.opening, len(mark.opening)

    def _write(self, text: str) -> None:
        if self._recent and not _is_still(self._recent[: self._length], "", self._recent[self._length :] + text):
            text = " " + text
        if text:
            self._recent = "" if not self._recent or SPACE.search(text) else self._recent + text
            self._written.append(text)

    def _stands_apart(self, mark: Mark, side: int, character: str) -> bool:
        """Say whether a space was, or is wanted, between a mark and a character of the text on one of its sides."""
        if not character or character.isspace():
            return False
        if mark.sides[side].isspace():
            return not (TAG.fullmatch(mark.opening) and UNSPACED.match(character))
        return is_word(character) and not is_word(mark.sides[side] or " ") and not TAG.fullmatch(mark.opening)


def _is_still(mark: str, before: str, after: str) -> bool:
    """Say whether a mark is found as such where it stands directly between other text."""
    text = before + mark + after
    match = MARKUP.search(text)
    while match and match.end() <= len(before):
        match = MARKUP.search(text, match.end())
    if match is None or match.start() != len(before):
        return False
    return match["brace"] is not None or match.end() == len(before + mark)

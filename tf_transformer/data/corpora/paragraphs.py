"""Text with tags as slots: a paragraph is one, or several if something in it separates texts."""

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence

from tf_transformer.data.corpora.drawn import in_one_line
from tf_transformer.data.corpora.slots import (
    BREAK,
    HOLES,
    Marked,
    Parts,
    Piece,
    Slot,
    apart,
    has_words,
    marked,
    nested_pairs,
)

DEEPEST = 20
"""In how many pairs of tags, at most, a text is still cut at what separates texts."""
Restore = Callable[[Marked, str, Piece | None], str | None]
"""Returns what stands in the file for a translation. The piece is the innermost tag around all of the text."""


def slots_of(pieces: Sequence[Piece], restore: Restore, inside: Mapping[int, Parts] | None = None) -> Parts:
    """Return the parts of a paragraph.

    Args:
        pieces: the paragraph.
        restore: writes a translation.
        inside: what belongs into the holes of the pieces.
    """
    return [part for some in _separated(pieces) for part in _slot(some, restore, inside or {})]


def _separated(pieces: Sequence[Piece]) -> Iterator[list[Piece]]:
    """Yield the pieces of each text and, alone, what separates it from the next. A pair of tags is not cut."""
    closes = _pairs(pieces)
    waiting: list[Piece] = []
    end = 0
    for number, piece in enumerate(pieces):
        end = max(end, closes.get(number, 0))
        if piece.tag == BREAK and piece.text is None and number >= end:
            yield waiting
            yield [piece]
            waiting = []
        else:
            waiting.append(piece)
    yield waiting


def _pairs(pieces: Sequence[Piece]) -> dict[int, int]:
    """Return which pieces belong together, by the one that opens."""
    places = [number for number, piece in enumerate(pieces) if piece.text is None]
    found = nested_pairs([pieces[place].tag for place in places])
    return {places[opening]: places[closing] for opening, closing in found.items()}


def _slot(
    pieces: list[Piece], restore: Restore, inside: Mapping[int, Parts], around: Piece | None = None, depth: int = 0
) -> Parts:
    """Return the parts of a text; tags at its ends and around all of it are none of the slot."""
    closes = _pairs(pieces)
    in_pair = {*closes, *closes.values()}
    start, end = 0, len(pieces)

    def is_outside(number: int) -> bool:
        text = pieces[number].text
        return not text.strip() if text is not None else number not in in_pair

    while start < end:
        if is_outside(start):
            start += 1
        elif is_outside(end - 1):
            end -= 1
        elif closes.get(start) == end - 1:
            around = pieces[start]
            start, end = start + 1, end - 1
        else:
            break
    outside = whole(_raw(pieces[:start]), inside), whole(_raw(pieces[end:]), inside)
    if start and depth < DEEPEST and len(texts := list(_separated(pieces[start:end]))) > 1:
        slots = (_slot(some, restore, inside, around, depth + 1) for some in texts)
        return [*outside[0], *itertools.chain.from_iterable(slots), *outside[1]]
    found = marked(pieces[start:end])
    before, inner, after = apart(found.text)
    if not has_words(inner):
        return whole(_raw(pieces), inside)
    text, kept = in_one_line(inner), _raw(pieces[start:end])

    def write(translation: str) -> str | None:
        return kept if translation == text else restore(found, before + translation + after, around)

    holes = {int(match[1]): inside[int(match[1])] for match in HOLES.finditer(kept)} if inside else {}
    return [*outside[0], Slot(text, write, kept, holes), *outside[1]]


def _raw(pieces: Sequence[Piece]) -> str:
    return "".join(piece.raw for piece in pieces)


def whole(raw: str, inside: Mapping[int, Parts]) -> Parts:
    """Return text of a file with what belongs into its holes. Where there are none, it may have any characters."""
    if not inside:
        return [raw]
    parts: Parts = []
    for number, piece in enumerate(HOLES.split(raw)):
        parts += inside[int(piece)] if number % 2 else [piece]
    return parts

"""Files that are translated as files: what is translated in them, and all else, which stays as it is."""

import collections
import itertools
import re
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

# Text that somebody sends must not take quadratic time: a tag, a comment and the like ends at the latest where the next
# one begins. Python before 3.11.5 fails where a group is repeated possessively (cpython#106052): these are atomic.
TAG = re.compile(
    r"<!--(?>(?:[^<-]+|-(?!->)|<(?!!--))*)-->|<!\[CDATA\[(?>(?:[^]<]+|](?!]>)|<(?!!\[CDATA\[))*)]]>"
    r"|<\?(?>(?:[^?<]+|\?(?!>)|<(?!\?))*)\?>|<![^<>]*>"
    r"|</?[^\s<>/!?](?>(?:\"[^\"]*\"|'[^']*'|[^\"'<>]+)*)>"
)
"""A tag, a comment or the like, in text whose angle brackets stand for nothing else."""
PLACEHOLDER = re.compile(r"%(?:\(\w+\)|\d+\$)?[-+#0]*+\d*+(?:\.\d+)?[hlLqjzt]*[a-zA-Z]\b|\{[^{}]*\}")
"""What a program puts in the place of, as in %d and {name}."""
NAME = re.compile(r"</?([^\s/>]+)")
MARK = re.compile(r"</?(?:[gxt]|mark\d+n)\d+/?>|<br id=\"\d+\"/>")
"""A mark, as `marked` writes them."""
HOLE = "\0{}\0"
"""What stands in the place of an inner part of the file, by its number."""
HOLES = re.compile(HOLE.format(r"(\d+)"))


class Slot(NamedTuple):
    """A place of a file whose text is translated."""

    text: str
    """one line of text, in which tags are marks that `--keep-markup` knows"""
    write: Callable[[str], str | None]
    """returns what stands there after a translation; None if its marks are not those of the text"""
    kept: str
    """what stands there if so, or if the translation is empty"""
    inside: Mapping[int, "Parts"] = types.MappingProxyType({})
    """other parts of the file that stand within tags of the text; in what is written, HOLE is in their place"""


Parts = list[str | Slot]
"""A file in its order. What the slots become and the rest, joined, are the file again."""


BREAK = "<separator/>"
"""The tag of what separates texts."""


class Filled(NamedTuple):
    """A file with translations."""

    text: str
    lost: int
    """how many texts stay as they were, because their translation is empty or has not their tags"""


class Piece(NamedTuple):
    """Text, or a tag or something else that becomes a mark."""

    raw: str
    """as it stands in the file"""
    text: str | None = None
    """what it says; None for a tag"""
    tag: str = "<x/>"
    """the tag, or one for it: `<b>` and `</b>` belong together, `<x/>` stands alone, BREAK separates texts"""
    style: str = ""
    """how a text, or the text in a tag, is written, where the tags do not say it"""


class Marked(NamedTuple):
    """A text with marks in the place of its tags."""

    text: str
    tags: dict[str, Piece]
    """the tags by their marks"""

    def placed(self, translation: str) -> list[tuple[str, str]] | None:
        """Return text and marks of a translation in turn, each with the innermost pair that it is in, or "".

        None if its marks are not those of the text, or not nested.
        """
        found = [match for match in MARK.finditer(translation) if match[0] in self.tags]
        if sorted(match[0] for match in found) != sorted(self.tags):
            return None
        pieces: list[tuple[str, str]] = []
        opened = [""]
        end = 0
        for match in found:
            pieces.append((translation[end : match.start()], opened[-1]))
            mark, end = match[0], match.end()
            if mark.startswith("</") and opened.pop() != f"<{mark[2:]}":
                return None
            pieces.append((mark, opened[-1]))
            if not mark.startswith("</") and not mark.endswith("/>"):
                opened.append(mark)
        return [*pieces, (translation[end:], "")]

    def restored(self, translation: str, escape: Callable[[str], str]) -> str | None:
        """Return a translation with the tags; None as above."""
        placed = self.placed(translation)
        if placed is None:
            return None
        return "".join(
            self.tags[piece].raw if number % 2 else escape(piece) for number, (piece, _) in enumerate(placed)
        )


def cut(raw: str, unescape: Callable[[str], str], tag: re.Pattern[str] = TAG) -> list[Piece]:
    """Return the pieces of a text as it stands in a file.

    Args:
        raw: the text.
        unescape: returns the text of what stands between tags.
        tag: what becomes a mark.
    """
    pieces: list[Piece] = []
    end = 0
    for match in tag.finditer(raw):
        between = raw[end : match.start()]
        pieces += [Piece(between, unescape(between)), Piece(match[0], tag=match[0])]
        end = match.end()
    return [*pieces, Piece(raw[end:], unescape(raw[end:]))]


def marked(pieces: Sequence[Piece]) -> Marked:
    """Return a text with marks for its tags: `<g1>` and `</g1>` for two that belong together, `<g2/>` for others."""
    tags = [piece.tag for piece in pieces if piece.text is None]
    partners = nested_pairs(tags)
    opened_by = {closing: opening for opening, closing in partners.items()}
    said = "".join(piece.text or "" for piece in pieces)
    letters = itertools.chain("gxt", map("mark{}n".format, itertools.count()))
    letter = next(letter for letter in letters if f"<{letter}" not in said and f"</{letter}" not in said)
    has_breaks = "<br" not in said
    text = ""
    of_mark: dict[str, Piece] = {}
    for piece in pieces:
        if piece.text is not None:
            text += piece.text
            continue
        number = len(of_mark)
        name = f"{letter}{opened_by.get(number, number) + 1}"
        mark = f"<{name}>" if number in partners else f"</{name}>" if number in opened_by else f"<{name}/>"
        if piece.tag == BREAK and has_breaks:
            mark = f'<br id="{number + 1}"/>'  # which separates words
        of_mark[mark] = piece
        text += mark
    return Marked(text, of_mark)


def nested_pairs(tags: Sequence[str]) -> dict[int, int]:
    """Return which tags of a text belong together, by the one that opens: the last one open of the same name."""
    partners: dict[int, int] = {}
    opened: list[tuple[str, int]] = []
    counts: collections.Counter[str] = collections.Counter()
    for number, tag in enumerate(tags):
        name = NAME.match(tag)
        if not name or tag.startswith(("<!", "<?")) or tag.endswith("/>") or "</" in tag[1:]:
            continue
        if not tag.startswith("</"):
            opened.append((name[1], number))
            counts[name[1]] += 1
        elif counts[name[1]]:
            inner = ""
            while inner != name[1]:
                inner, opening = opened.pop()
                counts[inner] -= 1
            partners[opening] = number
    return partners


def has_words(text: str) -> bool:
    """Say whether there is anything to translate besides tags, numbers and signs."""
    return any(character.isalpha() for character in PLACEHOLDER.sub("", TAG.sub("", text)))


def apart(text: str) -> tuple[str, str, str]:
    """Return the white space before a text, the text, and the white space after it."""
    inner = text.strip()
    start = text.index(inner) if inner else len(text)
    return text[:start], inner, text[start + len(inner) :]


def texts_of(parts: Parts) -> Iterator[str]:
    """Yield the texts of slots, each before those inside of it."""
    for part in parts:
        if isinstance(part, Slot):
            yield part.text
            for inner in part.inside.values():
                yield from texts_of(inner)


def filled(parts: Parts, translations: Iterator[str]) -> Filled:
    """Return a file with the translations of its slots, in the order of their texts."""
    done: list[str] = []
    lost = 0
    for part in parts:
        if isinstance(part, str):
            done.append(part)
            continue
        translation = next(translations)
        written = part.write(translation) if translation.strip() else None
        if written is None:
            lost, written = lost + 1, part.kept
        inside = {str(number): filled(inner, translations) for number, inner in part.inside.items()}
        lost += sum(inner.lost for inner in inside.values())
        pieces = HOLES.split(written) if inside else [written]
        done += [inside[piece].text if number % 2 else piece for number, piece in enumerate(pieces)]
    return Filled("".join(done), lost)

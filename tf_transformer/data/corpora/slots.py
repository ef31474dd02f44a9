"""Files that are translated as files: what is translated in them, and all else, which stays as it is."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

TAG = re.compile(
    r"<!--.*?-->|<!\[CDATA\[.*?\]\]>|<\?.*?\?>|<!(?:\"[^\"]*\"|'[^']*'|[^\"'>])*>"
    r"|</?[^\s<>/!?](?:\"[^\"]*\"|'[^']*'|[^\"'>])*>",
    re.DOTALL,
)
"""A tag, a comment or the like, in text whose angle brackets stand for nothing else."""
PLACEHOLDER = re.compile(r"%(?:\(\w+\)|\d+\$)?[-+#0]*\d*(?:\.\d+)?[hlLqjzt]*[a-zA-Z]\b|\{[^{}]*\}")
"""What a program puts in the place of, as in %d and {name}."""
NAME = re.compile(r"</?([^\s/>]+)")
LETTERS = ("g", "x", "t", "mark")


class Slot(NamedTuple):
    """A place of a file whose text is translated."""

    text: str
    """one line of text, in which tags are marks that `--keep-markup` knows"""
    write: Callable[[str], str]
    """returns what stands there after a translation"""


Parts = list[str | Slot]
"""A file in its order. What the slots become and the rest, joined, are the file again."""


class Marked(NamedTuple):
    """A text with marks in the place of its tags."""

    text: str
    tags: dict[str, str]
    """the tags by their marks"""

    def restored(self, translation: str, escape: Callable[[str], str]) -> str | None:
        """Return a translation with the tags; None if its marks are not those of the text, or not nested."""
        pattern = re.compile("|".join(map(re.escape, self.tags)) or "(?!)")
        found = list(pattern.finditer(translation))
        if sorted(match[0] for match in found) != sorted(self.tags) or not _is_nested(match[0] for match in found):
            return None
        written, end = "", 0
        for match in found:
            written += escape(translation[end : match.start()]) + self.tags[match[0]]
            end = match.end()
        return written + escape(translation[end:])


def marked(raw: str, unescape: Callable[[str], str], tag: re.Pattern[str] = TAG) -> Marked:
    """Return a text with marks for its tags: `<g1>` and `</g1>` for two that belong together, `<g2/>` for others.

    Args:
        raw: the text as it stands in the file.
        unescape: returns the text of what stands between tags.
        tag: what becomes a mark.
    """
    found = list(tag.finditer(raw))
    partners = nested_pairs([match[0] for match in found])
    opened_by = {closing: opening for opening, closing in partners.items()}
    letter = next(letter for letter in LETTERS if f"<{letter}" not in unescape(tag.sub("", raw)))
    text, end, tags = "", 0, {}
    for number, match in enumerate(found):
        name = f"{letter}{opened_by.get(number, number) + 1}"
        mark = f"<{name}>" if number in partners else f"</{name}>" if number in opened_by else f"<{name}/>"
        tags[mark] = match[0]
        text += unescape(raw[end : match.start()]) + mark
        end = match.end()
    return Marked(text + unescape(raw[end:]), tags)


def nested_pairs(tags: Sequence[str]) -> dict[int, int]:
    """Return which tags of a text belong together, by the one that opens: the last one open of the same name."""
    partners: dict[int, int] = {}
    opened: list[tuple[str, int]] = []
    for number, tag in enumerate(tags):
        name = NAME.match(tag)
        if not name or tag.startswith(("<!", "<?")) or tag.endswith("/>") or "</" in tag[1:]:
            continue
        if not tag.startswith("</"):
            opened.append((name[1], number))
            continue
        place = next((i for i in reversed(range(len(opened))) if opened[i][0] == name[1]), None)
        if place is not None:
            partners[opened[place][1]] = number
            del opened[place:]
    return partners


def _is_nested(marks: Iterable[str]) -> bool:
    """Say whether marks that belong together enclose whole others."""
    opened: list[str] = []
    for mark in marks:
        if mark.endswith("/>"):
            continue
        if not mark.startswith("</"):
            opened.append(mark[1:])
        elif not opened or opened.pop() != mark[2:]:
            return False
    return not opened


def has_words(text: str) -> bool:
    """Say whether there is anything to translate besides tags, numbers and signs."""
    return any(character.isalpha() for character in PLACEHOLDER.sub("", TAG.sub("", text)))


def apart(text: str) -> tuple[str, str, str]:
    """Return the white space before a text, the text, and the white space after it."""
    inner = text.strip()
    start = text.index(inner) if inner else len(text)
    return text[:start], inner, text[start + len(inner) :]


def filled(parts: Parts, translations: Iterator[str]) -> str:
    """Return a file with the translations of its slots, in their order."""
    return "".join(part if isinstance(part, str) else part.write(next(translations)) for part in parts)

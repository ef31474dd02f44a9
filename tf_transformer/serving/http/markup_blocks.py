"""HTML as clients send it to be translated: its texts between the tags that separate them."""

import html
import re
from collections.abc import Iterator, Sequence

from tf_transformer.text.markup import BREAK, TAG

KEPT = re.compile(
    r"<(?:script|style|pre|code|kbd|samp|var|textarea|svg|math)\b|"
    r"<[^<>]*?\s(?:translate\s*=\s*[\"']?no\b|class\s*=\s*[\"'][^\"']*\bnotranslate\b)",
    re.IGNORECASE,
)
"""The beginning of an element that is not translated."""
REFERENCE = re.compile(r"&(?:#\d{1,7}|#[xX][\da-fA-F]{1,6}|\w{1,32});")


class Blocks:
    """A page in its blocks.

    Args:
        page: the page, or a part of one.
    """

    def __init__(self, page: str):
        self._kept: list[str] = []
        self._name = "kept"
        while self._name in page:
            self._name += "-kept"
        self.texts = [_plain(piece) for piece in _pieces(self._without_kept(page)) if piece]
        """The texts, in which tags within sentences are marks, and the tags between them, which have no text."""

    def joined(self, translations: Sequence[str]) -> str:
        """Return the page with translations of its texts."""
        page = "".join(translations)
        return re.sub(rf"<{self._name}(\d+)/>", lambda match: self._kept[int(match[1])], page)

    def _without_kept(self, page: str) -> str:
        """Put one tag in the place of each element that is not translated."""
        done, end = "", 0
        for start, stop in _kept_elements(page):
            done += f"{page[end:start]}<{self._name}{len(self._kept)}/>"
            self._kept.append(page[start:stop])
            end = stop
        return done + page[end:]


def _kept_elements(page: str) -> Iterator[tuple[int, int]]:
    """Yield where elements that are not translated begin and end; one that is not closed ends with the page."""
    name, depth, start = "", 0, 0
    for tag in TAG.finditer(page):
        if not depth and not tag["closing"] and not tag["single"] and KEPT.match(tag[0]):
            name, depth, start = tag["name"].lower(), 1, tag.start()
        elif depth and tag["name"].lower() == name and not tag["single"]:
            depth += -1 if tag["closing"] else 1
            if not depth:
                yield start, tag.end()
    if depth:
        yield start, len(page)


def _pieces(page: str) -> Iterator[str]:
    end = 0
    for tag in TAG.finditer(page):
        if BREAK.match(tag[0]):
            yield from (page[end : tag.start()], tag[0])
            end = tag.end()
    yield page[end:]


def _plain(text: str) -> str:
    """Write as themselves what character references outside of tags stand for, except for signs of HTML and spaces."""

    def written(reference: re.Match[str]) -> str:
        sign = html.unescape(reference[0])
        return sign if sign.isprintable() and not sign.isspace() and not set("<>&") & set(sign) else reference[0]

    done, end = "", 0
    for tag in TAG.finditer(text):
        done += REFERENCE.sub(written, text[end : tag.start()]) + tag[0]
        end = tag.end()
    return done + REFERENCE.sub(written, text[end:])

"""The text of an .odt or .odp as slots: its paragraphs and headings."""

import itertools
import re
from pathlib import Path
from xml.sax.saxutils import escape

from tf_transformer.data.corpora.paragraphs import slots_of
from tf_transformer.data.corpora.slots import BREAK, Marked, Parts, Piece
from tf_transformer.data.corpora.xml_tree import Node, Source, xml_text

PARAGRAPHS = frozenset({"text:p", "text:h"})
HIDDEN = frozenset({"text:tracked-changes", "office:annotation"})
"""What has paragraphs that are not translated."""
CONTAINERS = {"text:span", "text:a", "text:meta", "loext:content-control"}
BREAKS = {"text:tab", "text:line-break"}
UNSEEN = re.compile(r":(?:rsid|language|country|script|rfc-language-tag)(?:-\w+)?$")
MOST_SPACES = 1000


def parts_of(text: str, path: Path) -> Parts:
    """Return the parts of an XML file of an .odt or .odp.

    Raises:
        InputError: it is broken, or declares entities.
    """
    source = Source(text, path)
    plain = {
        style.attributes.get("style:name") for style in source.outermost(frozenset({"style:style"})) if _is_plain(style)
    }
    return source.parts(PARAGRAPHS, HIDDEN, _Paragraphs(source, plain - {None}).parts)


def _is_plain(style: Node) -> bool:
    """Say whether a style of characters only says when they were written, or in which language."""
    said = [name for child in style.children for name in child.attributes]
    return (
        style.attributes.keys() == {"style:name", "style:family"}
        and style.attributes["style:family"] == "text"
        and all(UNSEEN.search(name) for name in said)
    )


class _Paragraphs:
    def __init__(self, source: Source, plain: set[str | None]):
        self._source, self._plain = source, plain
        self._numbers = itertools.count()

    def parts(self, paragraph: Node) -> Parts:
        """Return the parts of a paragraph, and of those in its notes and frames."""
        holes: dict[int, Node] = {}
        pieces = self._pieces(paragraph, holes)
        inside = {number: self.parts(inner) for number, inner in holes.items()}
        opening = self._source.slice(paragraph.start, paragraph.inner)
        prefix = re.match(r"<([\w.-]+:)?", opening)[1] or ""  # type: ignore[index]

        def written(text: str) -> str:
            spaces = rf' <{prefix}s {prefix}c="{{}}"/>'
            return re.sub(" {2,}", lambda found: spaces.format(len(found[0]) - 1), escape(text))

        def restore(found: Marked, translation: str, _: Piece | None) -> str | None:
            return found.restored(translation, written)

        return [opening, *slots_of(pieces, restore, inside), self._source.slice(paragraph.close, paragraph.end)]

    def _pieces(self, node: Node, holes: dict[int, Node]) -> list[Piece]:
        pieces: list[Piece] = []
        end = node.inner
        for child in [*node.children, None]:
            raw = self._source.slice(end, child.start if child else node.close)
            pieces.append(Piece(raw, re.sub(r"[ \t\r\n]+", " ", xml_text(raw))))
            if child is None:
                break
            end = child.end
            whole_raw = self._source.of(child)
            if child.name == "text:s":
                pieces.append(Piece(whole_raw, " " * _count(child)))
            elif child.name == "text:soft-page-break":
                pieces.append(Piece(whole_raw, ""))
            elif child.name in CONTAINERS and child.inner < child.end:
                opening, closing = (child.start, child.inner), (child.close, child.end)
                inner = self._pieces(child, holes)
                tags = [Piece(self._source.slice(*opening), tag=f"<n{child.start}>")]
                tags.append(Piece(self._source.slice(*closing), tag=f"</n{child.start}>"))
                if child.attributes.get("text:style-name") in self._plain and child.name == "text:span":
                    tags = [tag._replace(text="") for tag in tags]
                pieces += [tags[0], *inner, tags[1]]
            else:
                found = {next(self._numbers): inner for inner in child.within(PARAGRAPHS, HIDDEN)}
                hidden = child.name in HIDDEN
                holes |= {} if hidden else found
                raw = whole_raw if hidden else self._source.with_holes(child, found)
                pieces.append(Piece(raw, tag=BREAK if child.name in BREAKS else "<x/>"))
        return pieces


def _count(node: Node) -> int:
    """Return how many spaces an element stands for."""
    count = node.attributes.get("text:c", "1")
    return min(int(count[:9]), MOST_SPACES) if count.isascii() and count.isdigit() else 1

"""Elements of XML with their places, so that all of the file that is not changed stays byte for byte."""

import html
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from xml.sax.saxutils import escape

from tf_transformer.data.corpora.slots import HOLE, TAG, Parts
from tf_transformer.data.corpora.xml_file import READ, broken_xml, refusing_parser
from tf_transformer.errors import InputError

BYTES_TAG = re.compile(TAG.pattern.encode(), re.DOTALL)
REFERENCE = re.compile(r"&(?:#x[0-9a-fA-F]+|#\d+|lt|gt|amp|quot|apos);")
CDATA = re.compile(r"<!\[CDATA\[(.*?)\]\]>", re.DOTALL)
NAMESPACES = {
    "http://schemas.openxmlformats.org/wordprocessingml/2006/main": "w",
    "http://purl.oclc.org/ooxml/wordprocessingml/main": "w",
    "http://schemas.openxmlformats.org/drawingml/2006/main": "a",
    "http://purl.oclc.org/ooxml/drawingml/main": "a",
    "urn:oasis:names:tc:opendocument:xmlns:text:1.0": "text",
    "urn:oasis:names:tc:opendocument:xmlns:office:1.0": "office",
    "urn:oasis:names:tc:opendocument:xmlns:style:1.0": "style",
    "urn:org:documentfoundation:names:experimental:office:xmlns:loext:1.0": "loext",
}
"""The names that we give to those that are read here. Programs that write files choose their own."""
DEEPEST = 200
"""How deep elements are nested in a paragraph, at most."""


class Node:
    """An element, by its places in the file.

    Attributes:
        name: with the namespace as in NAMESPACES, or in full.
        attributes: by their names, alike.
        start: where it begins.
        inner: where its content begins; its end, if it has none.
        close: where the content ends.
        end: where it ends.
        children: the elements in it.
    """

    __slots__ = ("attributes", "children", "close", "end", "inner", "name", "start")

    def __init__(self, name: str, attributes: dict[str, str], start: int):
        self.name, self.attributes, self.start = name, attributes, start
        self.inner = self.close = self.end = start
        self.children: list[Node] = []

    def within(self, names: frozenset[str], hidden: frozenset[str] = frozenset()) -> Iterator["Node"]:
        """Yield the outermost elements of these names in it, but for those in elements of hidden names."""
        for child in self.children:
            if child.name in names:
                yield child
            elif child.name not in hidden:
                yield from child.within(names, hidden)


class Source:
    """The XML that nodes are places of.

    Args:
        text: the file, without a byte order mark.
        path: its name, for errors.
    """

    def __init__(self, text: str, path: Path):
        self._raw = text.encode("utf-8", "surrogatepass")
        self._path = path

    def slice(self, start: int, end: int | None = None) -> str:
        """Return the file from one place to another."""
        return self._raw[start:end].decode("utf-8", "surrogatepass")

    def of(self, node: Node) -> str:
        """Return an element as it stands there."""
        return self.slice(node.start, node.end)

    def text_of(self, node: Node) -> str:
        """Return the text of an element that has no others."""
        return xml_text(self.slice(node.inner, node.close))

    def with_holes(self, node: Node, holes: Mapping[int, Node]) -> str:
        """Return an element with holes in the place of some that are in it, which are given in their order."""
        done, end = "", node.start
        for number, hole in holes.items():
            done += self.slice(end, hole.start) + HOLE.format(number)
            end = hole.end
        return done + self.slice(end, node.end)

    def parts(self, names: frozenset[str], hidden: frozenset[str], of_each: Callable[[Node], Parts]) -> Parts:
        """Return the parts of the file, of which the outermost elements of these names have parts of their own."""
        parts: Parts = []
        end = 0
        for node in self.outermost(names, hidden):
            parts += [self.slice(end, node.start), *of_each(node)]
            end = node.end
        return [*parts, self.slice(end)]

    def outermost(self, names: frozenset[str], hidden: frozenset[str] = frozenset()) -> Iterator[Node]:
        """Yield the elements of these names that are in no other such, nor in one of the hidden names.

        Raises:
            InputError: the XML is broken, or declares entities.
        """
        parser = refusing_parser(self._path, "utf-8", " ")
        found: list[Node] = []
        opened: list[Node] = []
        hides = 0

        def start(name: str, attributes: dict[str, str]) -> None:
            nonlocal hides
            name = _short(name)
            hides += name in hidden and not opened
            if opened or (name in names and not hides):
                named = {_short(key): value for key, value in attributes.items()}
                node = Node(name, named, parser.CurrentByteIndex)
                node.inner = tag_at(self._raw, node.start)[1]
                if opened:
                    opened[-1].children.append(node)
                opened.append(node)
                if len(opened) > DEEPEST:
                    raise InputError(f"{self._path}, line {parser.CurrentLineNumber}: elements are nested too deep")

        def end(name: str) -> None:
            nonlocal hides
            if not opened:
                hides -= _short(name) in hidden
                return
            node = opened.pop()
            if self._raw[node.inner - 2 : node.inner] == b"/>":
                node.close = node.end = node.inner
            else:
                node.close, node.end = tag_at(self._raw, parser.CurrentByteIndex)
            if not opened:
                found.append(node)

        parser.StartElementHandler, parser.EndElementHandler = start, end
        with broken_xml(self._path):
            for place in range(0, len(self._raw), READ):
                parser.Parse(self._raw[place : place + READ])
                yield from found
                found.clear()
            parser.Parse(b"", True)


def tag_at(raw: bytes, place: int) -> tuple[int, int]:
    """Return where the tag that begins at a place begins and ends."""
    found = BYTES_TAG.match(raw, place)
    return place, found.end() if found else place


def xml_text(raw: str) -> str:
    """Return the text of XML that has no elements."""
    plain = TAG.sub("", CDATA.sub(lambda found: escape(found[1]), raw))
    return REFERENCE.sub(lambda found: html.unescape(found[0]), plain)


def _short(name: str) -> str:
    namespace, _, local = name.rpartition(" ")
    return f"{NAMESPACES.get(namespace, namespace)}:{local}" if namespace else local

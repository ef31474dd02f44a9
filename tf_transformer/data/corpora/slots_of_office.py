"""The text of a .docx or .pptx as slots: its paragraphs, in which what looks different becomes marks."""

import bisect
import collections
import itertools
import re
from collections.abc import Sequence
from pathlib import Path
from xml.sax.saxutils import escape

from tf_transformer.data.corpora.paragraphs import slots_of, whole
from tf_transformer.data.corpora.slots import BREAK, Marked, Parts, Piece, apart, has_words
from tf_transformer.data.corpora.xml_tree import Node, Source
from tf_transformer.errors import InputError

PARAGRAPHS = frozenset({"w:p", "a:p"})
CONTAINERS = {"w:hyperlink", "w:ins", "w:moveTo", "w:smartTag", "w:customXml", "w:dir", "w:bdo"}
"""What encloses runs, and stays around their translation."""
DROPPED = {"w:proofErr", "w:lastRenderedPageBreak", "w:softHyphen", "w:noBreakHyphen"}
"""What says nothing of the translation, or stands for a sign."""
BREAKS = {"w:tab", "w:ptab", "w:br", "w:cr", "a:br"}
INSTRUCTION = re.compile(r"<(?:[\w.-]+:)?instrText\b[^<>]*>([^<]*)")
LIKE = re.compile(
    r"<([\w.-]+:)?rPrChange\b[^<>]*(?<!/)>(?>(?:[^<]+|<(?!/?(?:[\w.-]+:)?rPrChange\b))*)</\1?rPrChange>|"
    r"<(?:[\w.-]+:)?(?:lang|noProof|rFonts\s[\w.-]+:hint=\"\w+\")\b[^<>]*/>|"
    r"\s(?:lang|altLang|dirty|err|smtClean|noProof)=\"[^\"]*\"|(?<=>)\s+|(?<!\s)\s+(?=/?>)"
)
"""Where properties may differ though the text looks the same. In a comment, tags need not be closed."""
NOTHING = re.compile(r"<[\w.:-]*rPr(?:/>|></[\w.:-]*rPr>)")
MOST_COPIES = 100
"""How many times as large as the file, at most, properties of text become, which each piece of a run repeats."""
VISIBLE = re.compile(r"<(?:[\w.-]+:)?(?:u|strike|dstrike|highlight|shd|bdr)\s|\su=\"")
"""What shows at white space, too."""


def parts_of(text: str, path: Path) -> Parts:
    """Return the parts of an XML file of a .docx or .pptx.

    Raises:
        InputError: it is broken, or declares entities, or has more properties than memory holds.
    """
    source = Source(text, path)
    return source.parts(PARAGRAPHS, frozenset(), _Paragraphs(source, path, len(text)).parts)


class _Paragraphs:
    def __init__(self, source: Source, path: Path, length: int):
        self._source, self._path = source, path
        self._numbers = itertools.count()
        self._left = MOST_COPIES * length

    def parts(self, paragraph: Node) -> Parts:
        """Return the parts of a paragraph and of those in its text boxes."""
        holes: dict[int, Node] = {}
        first = paragraph.children[:1] if paragraph.children and _local(paragraph.children[0]) == "pPr" else []
        pieces = self._pieces(paragraph.children[len(first) :], holes)
        is_text = has_words("".join(piece.text or "" for piece in pieces))
        if not is_text:
            holes.clear()
            raw = self._holed(paragraph, holes)
        inside = {number: self.parts(inner) for number, inner in holes.items()}
        if not is_text:
            return whole(raw, inside)
        start = first[0].end if first else paragraph.inner
        opening, closing = (
            self._source.slice(paragraph.start, start),
            self._source.slice(paragraph.close, paragraph.end),
        )
        prefix = re.match(r"<([\w.-]+:)?", opening)[1] or ""  # type: ignore[index]
        space = ' xml:space="preserve"' if paragraph.name == "w:p" else ""
        pieces, style = _styled(_fields(pieces))

        def restore(found: Marked, translation: str, around: Piece | None) -> str | None:
            placed = found.placed(translation)
            if placed is None:
                return None
            base = around.style if around else style
            done = ""
            for number, (piece, pair) in enumerate(placed):
                if number % 2:
                    done += found.tags[piece].raw
                elif piece:
                    properties = found.tags[pair].style if pair else base
                    done += f"<{prefix}r>{properties}<{prefix}t{space}>{escape(piece)}</{prefix}t></{prefix}r>"
            return done

        return [opening, *slots_of(pieces, restore, inside), closing]

    def _holed(self, node: Node, holes: dict[int, Node]) -> str:
        """Return an element as it stands, with holes for the paragraphs in it, which are added to `holes`."""
        found = {next(self._numbers): inner for inner in node.within(PARAGRAPHS)}
        holes |= found
        return self._source.with_holes(node, found)

    def _pieces(self, nodes: Sequence[Node], holes: dict[int, Node]) -> list[Piece]:
        pieces: list[Piece] = []
        for node in nodes:
            if _local(node) == "r" and node.name in ("w:r", "a:r"):
                pieces += self._run(node, holes)
            elif node.name in DROPPED:
                pieces.append(Piece(self._source.of(node), ""))
            elif content := _content(node):
                number = next(self._numbers)
                opening, closing = (node.start, content.inner), (content.close, node.end)
                pieces.append(Piece(self._source.slice(*opening), tag=f"<n{number}>"))
                pieces += self._pieces(content.children, holes)
                pieces.append(Piece(self._source.slice(*closing), tag=f"</n{number}>"))
            else:
                tag = BREAK if node.name in BREAKS else "<x/>"
                pieces.append(Piece(self._holed(node, holes), tag=tag))
        return pieces

    def _run(self, run: Node, holes: dict[int, Node]) -> list[Piece]:
        """Return the pieces of a run, each in a run of its own."""
        first = run.children[:1] if run.children and _local(run.children[0]) == "rPr" else []
        style = self._source.of(first[0]) if first else ""
        opening, closing = self._source.slice(run.start, run.inner) + style, self._source.slice(run.close, run.end)
        self._left -= len(opening) * len(run.children)
        if self._left < 0:
            raise InputError(f"{self._path}: its text has too many properties, each of which is repeated: remove them")
        pieces: list[Piece] = []
        for child in run.children[len(first) :]:
            if child.name in ("w:t", "a:t"):
                tag = self._source.slice(child.start, child.inner)
                end = self._source.slice(child.close, child.end)
                for number, text in enumerate(re.split("(\t+)", self._text(child))):
                    raw = f"{opening}{tag}{escape(text)}{end}{closing}" if text else ""
                    pieces.append(Piece(raw, tag=BREAK) if number % 2 else Piece(raw, text, style=style))
                continue
            raw = opening + self._holed(child, holes) + closing
            if child.name in DROPPED:
                text = "\u2011" if child.name == "w:noBreakHyphen" else ""
                pieces.append(Piece(raw, text, style=style))
            elif child.name == "w:fldChar":
                kind = next((value for name, value in child.attributes.items() if name.endswith(":fldCharType")), "")
                pieces.append(Piece(raw, tag=f"<{kind}/>"))
            else:
                pieces.append(Piece(raw, tag=BREAK if child.name in BREAKS else "<x/>"))
        return pieces

    def _text(self, node: Node) -> str:
        """Return a text, without the line breaks of a file that was written to be read."""
        text = self._source.text_of(node)
        if any(name.endswith(":space") and value == "preserve" for name, value in node.attributes.items()):
            return text.replace("\n", " ")
        before, inner, after = apart(text)
        return ("" if "\n" in before else before) + inner.replace("\n", " ") + ("" if "\n" in after else after)


def _local(node: Node) -> str:
    return node.name.rpartition(":")[2]


def _content(node: Node) -> Node | None:
    """Return the element that holds the runs in an element, if its text is translated."""
    if node.name == "w:sdt":
        return next((child for child in node.children if child.name == "w:sdtContent"), None)
    if node.name == "w:fldSimple":
        return node if any("HYPERLINK" in value for value in node.attributes.values()) else None
    return node if node.name in CONTAINERS else None


def _fields(pieces: list[Piece]) -> list[Piece]:
    """Make one mark of each field, because what it shows is computed, but a pair of marks of a link."""
    middles, ends = _parts_of_fields(pieces)
    instructions = ["".join(INSTRUCTION.findall(piece.raw)) for piece in pieces]
    offsets = list(itertools.accumulate(map(len, instructions), initial=0))
    links = [found.start() for found in re.finditer("HYPERLINK", "".join(instructions))]

    def is_link(start: int, end: int) -> bool:
        return bisect.bisect_left(links, offsets[start]) < bisect.bisect_left(links, offsets[end])

    def raw(start: int, end: int) -> str:
        return "".join(piece.raw for piece in pieces[start : end + 1])

    done: list[Piece] = []
    closing: dict[int, str] = {}
    number = 0
    while number < len(pieces):
        middle, end = middles.get(number), ends.get(number)
        last = middle if end is None else end
        if number in closing:
            last, piece = number, Piece(pieces[number].raw, tag=closing[number])
        elif middle is not None and end is not None and is_link(number, end):
            closing[end] = f"</f{number}>"
            last, piece = middle, Piece(raw(number, middle), tag=f"<f{number}>")
        elif last is not None:
            piece = Piece(raw(number, last))
        else:
            last, piece = number, pieces[number]
        done.append(piece)
        number = last + 1
    return done


def _parts_of_fields(pieces: list[Piece]) -> tuple[dict[int, int], dict[int, int]]:
    """Return where the results of fields begin and where fields end, by where they begin.

    What is not there is left out, and so is what is in another container than the beginning.
    """
    homes = _homes(pieces)
    middles: dict[int, int] = {}
    ends: dict[int, int] = {}
    opened: list[int] = []
    for number, piece in enumerate(pieces):
        if piece.tag == "<begin/>":
            opened.append(number)
        elif opened and piece.tag in ("<separate/>", "<end/>"):
            found, begins = (middles, opened[-1]) if piece.tag == "<separate/>" else (ends, opened.pop())
            if homes[number] == homes[begins]:
                found[begins] = number
    return middles, ends


def _styled(pieces: list[Piece]) -> tuple[list[Piece], str]:
    """Put pairs of marks around what looks different from most of the text around it; return how most of it looks."""
    weights: dict[int, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    written: dict[str, str] = {}
    looks = {style: NOTHING.sub("", LIKE.sub("", style)) for style in {piece.style for piece in pieces}}
    keys = [looks[piece.style] for piece in pieces]
    homes = _homes(pieces)
    for piece, key, home in zip(pieces, keys, homes, strict=True):
        if piece.text:
            written.setdefault(key, piece.style)
            weights[home][key] += len(piece.text.strip())
    most = {home: counter.most_common(1)[0][0] for home, counter in weights.items()}
    done: list[Piece] = []
    group, opened, last = None, "", 0
    for number, (piece, key, home) in enumerate(zip(pieces, keys, homes, strict=True)):
        is_seen = piece.text and (piece.text.strip() or VISIBLE.search(key))
        wanted = group
        if piece.text is None and (piece.tag == BREAK or not piece.tag.endswith("/>")):
            wanted = None
        elif is_seen:
            wanted = key if key != most[home] else None
        if wanted != group and group is not None:
            done.insert(last, Piece("", tag=f"</{opened}>"))
        if wanted != group and wanted is not None:
            opened = f"s{number}"
            done.append(Piece("", tag=f"<{opened}>", style=written[wanted]))
        group = wanted
        done.append(piece._replace(style=written[most[number]]) if number in most else piece)
        if is_seen:
            last = len(done)
    if group is not None:
        done.insert(last, Piece("", tag=f"</{opened}>"))
    return done, written[most[-1]] if -1 in most else ""


def _homes(pieces: list[Piece]) -> list[int]:
    """Return for each piece which one opens what it is in, or -1."""
    homes: list[int] = []
    opened = [-1]
    for number, piece in enumerate(pieces):
        is_pair = piece.text is None and not piece.tag.endswith("/>")
        if is_pair and piece.tag.startswith("</"):
            opened.pop()
        homes.append(opened[-1])
        if is_pair and not piece.tag.startswith("</"):
            opened.append(number)
    return homes

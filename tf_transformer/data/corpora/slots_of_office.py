"""The text of a .docx or .pptx as slots: its paragraphs, in which what looks different becomes marks."""

import collections
import itertools
import re
from collections.abc import Sequence
from pathlib import Path
from xml.sax.saxutils import escape

from tf_transformer.data.corpora.paragraphs import slots_of, whole
from tf_transformer.data.corpora.slots import BREAK, Marked, Parts, Piece, apart, has_words, nested_pairs
from tf_transformer.data.corpora.xml_tree import Node, Source

PARAGRAPHS = frozenset({"w:p", "a:p"})
CONTAINERS = {"w:hyperlink", "w:ins", "w:moveTo", "w:smartTag", "w:customXml", "w:dir", "w:bdo"}
"""What encloses runs, and stays around their translation."""
DROPPED = {"w:proofErr", "w:lastRenderedPageBreak", "w:softHyphen", "w:noBreakHyphen"}
"""What says nothing of the translation, or stands for a sign."""
BREAKS = {"w:tab", "w:ptab", "w:br", "w:cr", "a:br"}
INSTRUCTION = re.compile(r"<(?:[\w.-]+:)?instrText\b[^>]*>([^<]*)")
LIKE = re.compile(
    r"<([\w.-]+:)?rPrChange\b[^>]*(?<!/)>.*?</\1?rPrChange>|<(?:[\w.-]+:)?(?:lang|noProof|rFonts\s[\w.-]+:hint=\"\w+\")\b[^>]*/>|"
    r"\s(?:lang|altLang|dirty|err|smtClean|noProof)=\"[^\"]*\"|(?<=>)\s+|(?<!\s)\s+(?=/?>)",
    re.DOTALL,
)
"""Where properties may differ though the text looks the same."""
NOTHING = re.compile(r"<[\w.:-]*rPr(?:/>|></[\w.:-]*rPr>)")
VISIBLE = re.compile(r"<(?:[\w.-]+:)?(?:u|strike|dstrike|highlight|shd|bdr)\s|\su=\"")
"""What shows at white space, too."""


def parts_of(text: str, path: Path) -> Parts:
    """Return the parts of an XML file of a .docx or .pptx.

    Raises:
        InputError: it is broken, or declares entities.
    """
    source = Source(text, path)
    return source.parts(PARAGRAPHS, frozenset(), _Paragraphs(source).parts)


class _Paragraphs:
    def __init__(self, source: Source):
        self._source = source
        self._numbers = itertools.count()

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
    done: list[Piece] = []
    number = 0
    while number < len(pieces):
        middle, end = _field(pieces, number)
        if middle is None and end is None:
            done.append(pieces[number])
            number += 1
            continue
        field = pieces[number : (middle if end is None else end) + 1]  # type: ignore[operator]
        number += len(field)
        raw = "".join(piece.raw for piece in field)
        if end is not None and middle is not None and "HYPERLINK" in "".join(INSTRUCTION.findall(raw)):
            begins = middle - (number - len(field)) + 1
            opening = "".join(piece.raw for piece in field[:begins])
            done += [Piece(opening, tag=f"<f{number}>"), *_fields(field[begins:-1])]
            done.append(Piece(field[-1].raw, tag=f"</f{number}>"))
        else:
            done.append(Piece(raw))
    return done


def _field(pieces: list[Piece], start: int) -> tuple[int | None, int | None]:
    """Return where the result of a field begins that begins at a place, and where it ends, as far as it does."""
    if pieces[start].tag != "<begin/>":
        return None, None
    depth, middle = 0, None
    for number in range(start, len(pieces)):
        tag = pieces[number].tag
        depth += (tag == "<begin/>") - (tag == "<end/>")
        if tag == "<separate/>" and depth == 1:
            middle = number
        if not depth:
            tags = [piece.tag for piece in pieces[start:number] if piece.text is None and not piece.tag.endswith("/>")]
            return (middle, number) if 2 * len(nested_pairs(tags)) == len(tags) else (None, None)
    return middle, None


def _styled(pieces: list[Piece]) -> tuple[list[Piece], str]:
    """Put pairs of marks around what looks different from most of the text around it; return how most of it looks."""
    weights: dict[int, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    written: dict[str, str] = {}
    keys = [NOTHING.sub("", LIKE.sub("", piece.style)) for piece in pieces]
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

"""A Markdown file as a file with slots: its paragraphs, headings, cells of tables and blocks of HTML."""

import bisect
import collections
import itertools
import math
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from tf_transformer.data.corpora.markdown_places import SPAN, parser
from tf_transformer.data.corpora.paragraphs import Restore, slots_of
from tf_transformer.data.corpora.slots import BREAK, Marked, Parts, Piece, Slot
from tf_transformer.data.corpora.slots_of_text import page

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

FRONT_MATTER = re.compile(
    r"\A(---|\+\+\+)[ \t]*\r?\n(?=(?:[ \t]*(?:#.*)?\r?\n)*[\w.\"'-]+[ \t]*[:=])"
    r"(?:.*\r?\n)*?(?:\1|\.\.\.)[ \t]*(?:\r?\n|\Z)"
)
LINE = re.compile(r"\r\n?|\n")
DASHES = re.compile(r"[ \t>]*-+[ \t]*")
"""A line below a text that would make it a heading or a table."""
DELIMITERS = re.compile(r"[ \t|:-]*-[ \t|:-]*")
"""The second line of a table, which in a paragraph is that of a table whose lines do not fit each other."""
HTML_BREAK = re.compile(r"<br\s*/?>", re.IGNORECASE)
SIGN = re.compile(r"[\\`*_\[\]<>~|$&]")
"""What may be taken for markup anywhere in a text."""
BEGIN = re.compile(r"\A(?:\d{1,9}(?=[.)])|(?=[#>+=:-]))")
"""What a backslash after it keeps from being the beginning of a heading, a list or a quotation."""
BLOCKS = {
    "heading_open": ("# {}", 1, 3),
    "th_open": ("|{}|\n|-|", 1, 9),
    "td_open": ("|a|\n|-|\n|{}|", 2, 16),
    "=": ("{}\n=", 1, 3),
    "-": ("{}\n---", 1, 3),  # which may become a table
}
"""A block for a text, its number of texts and of tokens, by what opens or underlines it; others are paragraphs."""
PARAGRAPH = ("{}", 1, 3)
STRESS = ("<em>", "<strong>", "<s>")
ATTEMPTS = [(False, False, False), (False, False, True), (False, True, True), (True, False, True), (True, True, True)]
"""Ways to write a text, the plainest first: with tags for stress, with backslashes in it, with one at its beginning."""
NEXT_LINE = re.compile(r"(?:\r\n?|\n)[ \t>]*")


class Block(NamedTuple):
    """A text of the file, in which the signs of lists and quotations at the beginning of lines are left out."""

    token: "Token"
    starts: list[tuple[int, int]]
    """where parts of it begin, in the text and in the file"""

    def in_file(self, place: int) -> int:
        """Return the place in the file of one in the text."""
        of_text, of_file = self.starts[bisect.bisect_right(self.starts, (place, math.inf)) - 1]
        return of_file + place - of_text


def parts_of(text: str, path: Path) -> Parts:
    """Return the parts of a Markdown file.

    Args:
        text: the file.
        path: its name, for errors.

    Raises:
        InputError: the package that reads Markdown is missing.
    """
    front = FRONT_MATTER.match(text)
    end = front.end() if front else 0
    head, body = text[:end], text[end:]
    markdown = parser(path)
    environment: dict[str, Any] = {}
    tokens = markdown.parse(body, environment)
    reader = _Reader(body, markdown, environment.get("references", {}))
    parts: Parts = [head]
    end = 0
    for start, stop, of_block in reader.blocks(tokens):
        parts += [body[end:start], *of_block]
        end = stop
    return [*parts, body[end:]]


class _Reader:
    def __init__(self, text: str, markdown: "MarkdownIt", references: dict[str, Any]):
        self._text, self._markdown, self._references = text, markdown, references
        self._labels: dict[str, str] = {}
        """how a link is written whose text was its name, by the tag that closes it"""
        self._numbers = itertools.count()
        ends = list(LINE.finditer(text))
        self._starts = [0, *(end.end() for end in ends), len(text)]
        self._ends = [*(end.start() for end in ends), len(text), len(text)]

    def blocks(self, tokens: "Sequence[Token]") -> Iterator[tuple[int, int, Parts]]:
        """Yield where the texts of the file begin and end, with the parts of each."""
        cell = 0
        for number, token in enumerate(tokens):
            if token.type not in ("inline", "html_block") or not token.map:
                cell = self._starts[token.map[0]] if token.type == "tr_open" and token.map else cell
                continue
            first, last = token.map
            if token.type == "html_block":
                start, stop = self._starts[first], self._starts[last]
                if LINE.sub("\n", self._text[start:stop]).rstrip() == token.content.rstrip():
                    yield start, stop, self._still_html(page(self._text[start:stop]))
                continue
            opening = tokens[number - 1]
            is_cell = opening.type in ("th_open", "td_open")
            kind = opening.markup if opening.markup and opening.markup in "=-" else opening.type
            if kind == "paragraph_open" and DASHES.fullmatch(self._text, self._starts[last], self._ends[last]):
                kind = "-"  # below an item of a list; they may become a table too
            starts = self._in_line(token.content, cell) if is_cell else self._in_lines(token.content, first)
            is_torn_table = any(map(DELIMITERS.fullmatch, token.content.split("\n")[1:]))
            if not starts or is_torn_table:
                continue
            block = Block(token, starts)
            stop = block.in_file(len(token.content))
            cell = stop if is_cell else cell
            if pieces := self._pieces(block):
                yield block.in_file(0), stop, slots_of(pieces, self._restorer(kind, pieces))

    def _still_html(self, parts: Parts) -> Parts:
        """Return the parts of a block of HTML, which begins with a tag that may have to stay alone in its line.

        The first text may have that tag; it stays as it is where its translation would make the block a paragraph.
        """
        number, first = next(((i, part) for i, part in enumerate(parts) if isinstance(part, Slot)), (0, None))
        if first is None:
            return parts
        before, write_first = "".join(map(str, parts[:number])), first.write

        def write(translation: str) -> str | None:
            written = write_first(translation)
            if written is None or self._markdown.parse(before + written)[0].type != "html_block":
                return None
            return written

        return [*parts[:number], first._replace(write=write), *parts[number + 1 :]]

    def _in_lines(self, content: str, line: int) -> list[tuple[int, int]]:
        """Return where the lines of a text stand that begins in a line; nothing if they are not there."""
        found = []
        place = 0
        for number, one in enumerate(content.split("\n"), line):
            inner = one.strip()
            at = self._text.rfind(inner, self._starts[number], self._ends[number])
            if at < 0:
                return []
            found.append((place, at - one.index(inner)))
            place += len(one) + 1
        return found

    def _in_line(self, content: str, start: int) -> list[tuple[int, int]]:
        """Return where a cell stands after a place; a backslash before its | is not in its text."""
        found = []
        place = 0
        for number, one in enumerate(content.split("|")):
            written = r"\|" * (number > 0) + one
            start = self._text.find(written, start)
            if start < 0:
                return []
            found.append((place, start))
            if number:
                found.append((place + 1, start + 2))
            start += len(written)
            place += len(one) + (number > 0)
        return found

    def _pieces(self, block: Block) -> list[Piece]:
        """Return the pieces of a text; none if it cannot be cut."""
        content, pieces, end = block.token.content, [], 0

        def raw(start: int, stop: int) -> str:
            return self._text[block.in_file(start) : block.in_file(stop)]

        opened: list[tuple[str, int]] = []
        for token in _without_addresses(block.token.children or []):
            start, stop = token.meta.get(SPAN, (-1, -1))
            if start < 0 or token.type == "text":
                continue
            if token.type == "strong_open":
                start -= 1
            elif token.type == "strong_close":
                stop += 1
            if start < end:
                return []
            piece = _piece(token, raw(start, stop))
            if token.type == "softbreak" and content.startswith(":", stop):  # a definition, or the end of a note
                piece = Piece(piece.raw, tag=BREAK)
            if token.type == "link_open" and token.markup != "autolink":
                opened.append((f"a{next(self._numbers)}", stop))
                piece = piece._replace(tag=f"<{opened[-1][0]}>")
            elif token.type == "link_close":
                name, label = opened.pop()
                piece = piece._replace(tag=f"</{name}>")
                if piece.raw in ("]", "][]"):  # the text was the name of the link
                    self._labels[piece.tag] = f"][{raw(label, start)}]"
            pieces += [Piece(raw(end, start), content[end:start]), piece]
            end = stop
        return [*pieces, Piece(raw(end, len(content)), content[end:])]

    def _restorer(self, kind: str, pieces: Sequence[Piece]) -> Restore:
        r"""Return what writes the texts of a block.

        Each is read again alone, which does not find what is markup only beside the rest of the block. A sign that the
        block has as `\*` or `&lt;` is therefore always written so.
        """
        as_there = {piece.text: piece.raw for piece in pieces if piece.text and piece.raw.startswith(("\\", "&"))}

        def said(text: str, escape: bool) -> str:
            return SIGN.sub(lambda match: f"\\{match[0]}" if escape else as_there.get(match[0], match[0]), text)

        def restore(found: Marked, translation: str, around: Piece | None) -> str | None:
            """Write a translation so that it is read with the same markup."""
            placed = found.placed(translation)
            if placed is None:
                return None
            outer = around.raw if around and around.tag in STRESS else ""
            for in_html, sign, begin in ATTEMPTS:
                done = wanted = ""
                for number, (piece, _) in enumerate(placed):
                    if number % 2:
                        tag = self._written(found.tags[piece], in_html and not piece.endswith("/>"))
                        done, wanted = done + tag.raw, wanted + tag.style
                    else:
                        done, wanted = done + said(piece, sign), wanted + piece
                done = BEGIN.sub(r"\g<0>\\", done) if begin else done
                if self._read(outer + done + outer, kind, bool(outer)) == wanted.strip():
                    return done
            return None

        return restore

    def _written(self, piece: Piece, in_html: bool) -> Piece:
        """Return what is written for a mark. Signs of stress are not read beside a sign of Chinese, but tags are."""
        if in_html and piece.tag.replace("/", "") in STRESS:
            return piece._replace(raw=piece.tag, style=f"\0html_inline  {piece.tag} {{}}\0")
        return piece._replace(raw=self._labels.get(piece.tag, piece.raw))

    def _read(self, written: str, kind: str, is_enclosed: bool) -> str | None:
        """Return the text of a block with the markup that is found in it; None if it is no block of its kind."""
        around, texts, length = BLOCKS.get(kind, PARAGRAPH)
        environment: dict[str, Any] = {"references": collections.ChainMap({}, self._references)}
        tokens = self._markdown.parse(around.format(NEXT_LINE.sub("\n", written)), environment)
        found = [token for token in tokens if token.type == "inline"]
        if len(found) != texts or len(tokens) != length:
            return None
        children = _without_addresses(found[-1].children or [])
        children = [token for token in children if token.type != "text" or token.content]
        return "".join(_said(token) for token in (children[1:-1] if is_enclosed else children)).strip()


def _without_addresses(tokens: "Sequence[Token]") -> "list[Token]":
    """Return the tokens, but of `<https://address>` only the first of three, which then stands for all."""
    starts = {number for number, token in enumerate(tokens) if token.markup == "autolink" and token.nesting > 0}
    return [token for number, token in enumerate(tokens) if not {number - 1, number - 2} & starts]


def _piece(token: "Token", raw: str) -> Piece:
    if token.type in ("softbreak", "text_special"):
        return Piece(raw, _said(token))
    tag = "<x/>"
    if token.type == "hardbreak" or (token.type == "html_inline" and HTML_BREAK.fullmatch(raw)):
        tag = BREAK
    elif token.type == "html_inline":
        tag = raw.lower()
    elif token.nesting and token.markup != "autolink":
        tag = f"<{'/' * (token.nesting < 0)}{token.tag}>"
    return Piece(raw, tag=tag, style=_said(token))


def _said(token: "Token") -> str:
    """Return the text of a token, or what tells it from other markup."""
    if token.type in ("text", "text_special"):
        return token.content
    return " " if token.type == "softbreak" else f"\0{token.type} {token.markup} {token.content} {token.attrs}\0"

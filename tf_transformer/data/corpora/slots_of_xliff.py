"""An .xliff as a file with slots: the targets that are missing."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple
from xml.sax.saxutils import escape

from tf_transformer.data.corpora.drawn import in_one_line
from tf_transformer.data.corpora.languages import warn_of_other
from tf_transformer.data.corpora.slots import NAME, TAG, Parts, Slot, apart, cut, has_words, marked
from tf_transformer.data.corpora.xml_file import broken_xml, refusing_parser
from tf_transformer.data.corpora.xml_tree import tag_at, xml_text

CODED = re.compile(
    r"<((?:\w+:)?(?:bpt|ept|it|ph|sub|ut))\b(?:\"[^\"]*\"|'[^']*'|[^\"'>])*(?<!/)>.*?</\1\s*>|" + TAG.pattern, re.DOTALL
)
"""What becomes one mark: an element whose content is a code, or a tag."""
STATE = {"trans-unit": 'state="needs-review-translation" state-qualifier="mt-suggestion"', "segment": 'state="initial"'}
"""What marks the translation of a machine: of version 1.2 on the target, of version 2 on the segment."""


LOCKED = ("locked", "true")
"""What memoQ and Phrase call a unit that is not to be touched."""
Edit = tuple[int, int, str | Slot]
"""What is written in the place of a part of the file."""


class Span(NamedTuple):
    """An element, by its places in the file."""

    start: int
    inner: int
    """where its content begins; its end, if it has none"""
    close: int
    """where the content ends"""
    end: int


class Unit:
    """What is known of a unit or a segment."""

    def __init__(self, name: str, start: int, skips: bool, is_approved: bool):
        self.name, self.start, self.skips, self.is_approved = name, start, skips, is_approved
        self.spans: dict[str, Span] = {}
        self.segments: dict[str, dict[str, Span]] = {"seg-source": {}, "target": {}}
        """its segments by number, if it is cut into some by `<mrk mtype="seg">`"""


def parts_of(text: str, path: Path, overwrites: bool, language: str | None) -> Parts:
    """Return the parts of an .xliff.

    Args:
        text: the file.
        path: its name, for errors.
        overwrites: whether targets that are there are translated again.
        language: the language of the translations, which a file that names none is given.

    Raises:
        InputError: it is broken, or declares entities.
    """
    raw = text.encode("utf-8", "surrogatepass")
    edits: list[Edit] = []
    for unit in _units(raw, path, edits, language):
        edits += _edits(unit, raw, overwrites)
    parts: Parts = []
    place = 0
    for start, end, part in sorted(edits, key=lambda edit: edit[:2]):
        parts += [raw[place:start].decode("utf-8", "surrogatepass"), part]
        place = end
    return [*parts, raw[place:].decode("utf-8", "surrogatepass")]


def _edits(unit: Unit, raw: bytes, overwrites: bool) -> list[Edit]:
    """Return what is written of a unit, with the places where it goes; nothing if it stays."""
    source, target = unit.spans.get("source"), unit.spans.get("target")
    if source is None or unit.skips or unit.name not in STATE:
        return []
    there = _inside(raw, target) if target else ""
    is_free = overwrites or not _text(there).strip()
    sources, targets = unit.segments["seg-source"], unit.segments["target"]
    opening, indent = "<target>", _indent(raw, source.start)
    if target is not None:
        opening, indent = raw[target.start : target.inner].decode(), ""
        if target.inner == target.end:  # <target/>
            opening = f"{opening.removesuffix('/>').rstrip()}>"
    opening = re.sub(r'(?<!\s)\s+state(?:-qualifier)?\s*=\s*("[^"]*"|\'[^\']*\')', "", opening)
    if unit.name == "trans-unit":
        opening = f"{opening[:-1]} {STATE[unit.name]}>"
    last = unit.spans.get("seg-source", source)
    place = (last.end, last.end) if target is None else (target.start, target.end)

    def target_of(content: str) -> str:
        return f"{indent}{opening}{content}</target>"

    edits: list[Edit] = []
    if target is not None and sources and (sources.keys() <= targets.keys() or not is_free):
        for number in sources.keys() & targets.keys():
            edits += _segment(raw, _inside(raw, sources[number]), targets[number], overwrites)
        edits += [(target.start, target.inner, opening)] if edits else []
    elif is_free and sources:
        pieces = _segments(raw, unit.spans["seg-source"], list(sources.values()))
        if any(isinstance(piece, Slot) for piece in pieces):
            edits = [(*place, f"{indent}{opening}"), *((place[1], place[1], piece) for piece in [*pieces, "</target>"])]
    elif is_free:
        content = _inside(raw, source)
        kept = raw[slice(*place)].decode() if there.strip() else target_of(content)
        edits = [(*place, slot) for slot in _slot(content, target_of, kept)]
    if not edits:
        return []
    tag = tag_at(raw, unit.start)
    if unit.name == "segment":
        edits.append((*tag, _with_attribute(raw, tag, "state", "initial")))
    elif unit.is_approved:
        edits.append((*tag, _with_attribute(raw, tag, "approved", "no")))
    return edits


def _slot(content: str, around: Callable[[str], str], kept: str) -> list[Slot]:
    """Return the slot of a text, if it has words.

    Args:
        content: the text as it stands in the file.
        around: returns what stands there with a translation.
        kept: what stands there if there is none.
    """
    if not has_words(_text(content)):
        return []
    before, inner, after = apart(content)
    found = marked(cut(inner, xml_text, CODED))

    def write(translation: str) -> str | None:
        restored = found.restored(translation, escape)
        return None if restored is None else around(f"{before}{restored}{after}")

    return [Slot(in_one_line(found.text), write, kept)]


def _segment(raw: bytes, content: str, target: Span, overwrites: bool) -> list[Edit]:
    """Return what is written of a segment that a target has; nothing if it has text already."""
    if _text(_inside(raw, target)).strip() and not overwrites:
        return []
    tag = raw[target.start : target.inner].decode()
    opening = f"{tag.removesuffix('/>').rstrip()}>" if target.inner == target.end else tag
    closing = f"</{NAME.match(tag)[1]}>"  # type: ignore[index]
    kept = raw[target.start : target.end].decode()
    found = _slot(content, lambda text: f"{opening}{text}{closing}", kept)
    return [(target.start, target.end, slot) for slot in found]


def _segments(raw: bytes, whole: Span, segments: list[Span]) -> Parts:
    """Return what is in a text, whose segments become slots."""
    parts: Parts = []
    place = whole.inner
    for span in segments:
        content = _inside(raw, span)
        parts.append(raw[place : span.inner].decode())
        parts += _slot(content, str, content) or [content]
        place = span.close
    return [*parts, raw[place : whole.close].decode()]


def _inside(raw: bytes, span: Span) -> str:
    return raw[span.inner : span.close].decode()


def _text(content: str) -> str:
    return xml_text(TAG.sub("", content))


def _units(raw: bytes, path: Path, edits: list[Edit], language: str | None) -> list[Unit]:
    """Return the units of version 1.2, and the segments of version 2; add the missing language to `edits`."""
    parser = refusing_parser(path, "utf-8")
    units: list[Unit] = []
    opened: list[tuple[str, int, Unit | None]] = []
    skipped: list[bool] = [False]
    segments: dict[str, Span] | None = None
    """where the segments at this place are added"""
    segment: tuple[int, str] | None = None
    """how deep the one at this place lies, and its number"""

    def start(name: str, attributes: dict[str, str]) -> None:
        nonlocal segments, segment
        name, place = name.rpartition(":")[2], parser.CurrentByteIndex
        skips = skipped[-1] if attributes.get("translate") is None else attributes["translate"] == "no"
        skipped.append(skips)
        if name in STATE:
            skips |= any(key.endswith(":locked") and value in LOCKED for key, value in attributes.items())
            units.append(Unit(name, place, skips, attributes.get("approved") == "yes"))
        missing = {"file": ("source-language", "target-language"), "xliff": ("srcLang", "trgLang")}.get(name)
        if missing:
            warn_of_other(str(path), attributes.get(missing[1]), language)
        if missing and language and missing[0] in attributes and missing[1] not in attributes:
            tag = tag_at(raw, place)
            edits.append((*tag, _with_attribute(raw, tag, missing[1], language)))
        opened.append((name, place, units[-1] if opened and opened[-1][0] in STATE else None))
        if opened[-1][2] is not None:
            segments = opened[-1][2].segments.get(name)
        elif name == "mrk" and attributes.get("mtype") == "seg" and segment is None:
            segment = len(opened), attributes.get("mid", "")

    def end(_: str) -> None:
        nonlocal segments, segment
        skipped.pop()
        name, place, unit = opened.pop()
        if unit is not None and name in ("source", "seg-source", "target"):
            unit.spans[name] = span_from(place)
            segments = None
        elif segment is not None and segment[0] > len(opened):
            if segments is not None:
                segments[segment[1]] = span_from(place)
            segment = None

    def span_from(place: int) -> Span:
        """Return the span of the element that ends here."""
        inner, close = tag_at(raw, place)[1], parser.CurrentByteIndex
        if raw[inner - 2 : inner] == b"/>":
            return Span(place, inner, inner, inner)
        return Span(place, inner, close, tag_at(raw, close)[1])

    parser.StartElementHandler, parser.EndElementHandler = start, end
    with broken_xml(path):
        parser.Parse(raw, True)
    return units


def _with_attribute(raw: bytes, tag: tuple[int, int], name: str, value: str) -> str:
    """Return a tag with an attribute of a value."""
    text = raw[slice(*tag)].decode()
    end = "/>" if text.endswith("/>") else ">"
    without = re.sub(rf"(?<!\s)\s+{name}\s*=\s*(\"[^\"]*\"|'[^']*')", "", text.removesuffix(end)).rstrip()
    return f'{without} {name}="{escape(value)}"{end}'


def _indent(raw: bytes, place: int) -> str:
    """Return the line break and the blanks before a place; nothing if the place is not the first of its line."""
    start = place
    while raw[start - 1 : start] in (b" ", b"\t"):
        start -= 1
    return raw[start - 1 : place].decode() if raw[start - 1 : start] == b"\n" else ""

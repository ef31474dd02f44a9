"""An .xliff as a file with slots: the targets that are missing."""

import re
from pathlib import Path
from typing import NamedTuple
from xml.sax.saxutils import escape

from tf_transformer.data.corpora.drawn import in_one_line
from tf_transformer.data.corpora.languages import warn_of_other
from tf_transformer.data.corpora.slots import TAG, Parts, Slot, apart, cut, has_words, marked
from tf_transformer.data.corpora.xml_file import broken_xml, refusing_parser
from tf_transformer.data.corpora.xml_tree import tag_at, xml_text

CODED = re.compile(
    r"<((?:\w+:)?(?:bpt|ept|it|ph|sub|ut))\b(?:\"[^\"]*\"|'[^']*'|[^\"'>])*(?<!/)>.*?</\1\s*>|" + TAG.pattern, re.DOTALL
)
"""What becomes one mark: an element whose content is a code, or a tag."""
STATE = {"trans-unit": 'state="needs-review-translation" state-qualifier="mt-suggestion"', "segment": 'state="initial"'}
"""What marks the translation of a machine: of version 1.2 on the target, of version 2 on the segment."""


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
    edits: list[tuple[int, int, str | Slot]] = []
    for unit in _units(raw, path, edits, language):
        edits += _edits(unit, raw, overwrites)
    parts: Parts = []
    place = 0
    for start, end, part in sorted(edits, key=lambda edit: edit[:2]):
        parts += [raw[place:start].decode("utf-8", "surrogatepass"), part]
        place = end
    return [*parts, raw[place:].decode("utf-8", "surrogatepass")]


def _edits(unit: Unit, raw: bytes, overwrites: bool) -> list[tuple[int, int, str | Slot]]:
    """Return what is written of a unit, with the places where it goes; nothing if it stays."""
    source, target = unit.spans.get("source"), unit.spans.get("target")
    if source is None or unit.skips or unit.name not in STATE:
        return []
    there = raw[target.inner : target.close].decode() if target else ""
    content = raw[source.inner : source.close].decode()
    if (there.strip() and not overwrites) or not has_words(xml_text(TAG.sub("", content))):
        return []
    before, inner, after = apart(content)
    found = marked(cut(inner, xml_text, CODED))
    last = unit.spans.get("seg-source", source)
    indent = ""
    if target is None:
        opening, start, end = "<target>", last.end, last.end
        indent = _indent(raw, source.start)
    else:
        opening, start, end = raw[target.start : target.inner].decode(), target.start, target.end
        if target.inner == target.end:  # <target/>
            opening = f"{opening.removesuffix('/>').rstrip()}>"
    opening = re.sub(r'(?<!\s)\s+state(?:-qualifier)?\s*=\s*("[^"]*"|\'[^\']*\')', "", opening)
    if unit.name == "trans-unit":
        opening = f"{opening[:-1]} {STATE[unit.name]}>"

    def target_of(content: str) -> str:
        return f"{indent}{opening}{before}{content}{after}</target>"

    def write(translation: str) -> str | None:
        restored = found.restored(translation, escape)
        return None if restored is None else target_of(restored)

    kept = raw[start:end].decode() if there.strip() else target_of(inner)
    edits: list[tuple[int, int, str | Slot]] = [(start, end, Slot(in_one_line(found.text), write, kept))]
    tag = tag_at(raw, unit.start)
    if unit.name == "segment":
        edits.append((*tag, _with_attribute(raw, tag, "state", "initial")))
    elif unit.is_approved:
        edits.append((*tag, _with_attribute(raw, tag, "approved", "no")))
    return edits


def _units(raw: bytes, path: Path, edits: list[tuple[int, int, str | Slot]], language: str | None) -> list[Unit]:
    """Return the units of version 1.2, and the segments of version 2; add the missing language to `edits`."""
    parser = refusing_parser(path, "utf-8")
    units: list[Unit] = []
    opened: list[tuple[str, int, Unit | None]] = []
    skipped: list[bool] = [False]

    def start(name: str, attributes: dict[str, str]) -> None:
        name, place = name.rpartition(":")[2], parser.CurrentByteIndex
        skips = skipped[-1] if attributes.get("translate") is None else attributes["translate"] == "no"
        skipped.append(skips)
        if name in STATE:
            units.append(Unit(name, place, skips, attributes.get("approved") == "yes"))
        missing = {"file": ("source-language", "target-language"), "xliff": ("srcLang", "trgLang")}.get(name)
        if missing:
            warn_of_other(str(path), attributes.get(missing[1]), language)
        if missing and language and missing[0] in attributes and missing[1] not in attributes:
            tag = tag_at(raw, place)
            edits.append((*tag, _with_attribute(raw, tag, missing[1], language)))
        opened.append((name, place, units[-1] if opened and opened[-1][0] in STATE else None))

    def end(_: str) -> None:
        skipped.pop()
        name, place, unit = opened.pop()
        if unit is not None and name in ("source", "seg-source", "target"):
            inner, close = tag_at(raw, place)[1], parser.CurrentByteIndex
            if raw[inner - 2 : inner] == b"/>":
                unit.spans[name] = Span(place, inner, inner, inner)
            else:
                unit.spans[name] = Span(place, inner, close, tag_at(raw, close)[1])

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

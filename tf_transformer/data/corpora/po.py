"""Catalogues of gettext, .po. https://www.gnu.org/software/gettext/manual/html_node/PO-Files.html."""

import codecs
import gettext
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tf_transformer.data.corpora.drawn import PACKED
from tf_transformer.data.corpora.localization import Localization, Text
from tf_transformer.errors import InputError
from tf_transformer.storage.lines import READ, bounded, encoding_named, opened

LINE = re.compile(r'(?P<key>msgctxt|msgid|msgid_plural|msgstr(?:\[(?P<form>\d+)\])?)?\s*"(?P<text>(?:[^"\\]|\\.)*)"\s*')
CHARSET = re.compile(rb'^"Content-Type:[^"]*charset=([\w.:-]+)', re.MULTILINE)
ESCAPE = re.compile(r"\\(?:([0-7]{1,3})|x([0-9a-fA-F]{1,2})|(.))")
ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "v": "\v", "a": "\a"}
SOME, MANY = 1, 5
"""The numbers whose forms are the translations of singular and plural."""


@dataclass
class Entry:
    """An entry of a catalogue. Lines are counted from 0."""

    first: int
    """its first line"""
    texts: dict[str, str] = field(default_factory=dict)
    """the strings by their keywords, such as `msgid` and `msgstr[0]`"""
    lines: dict[str, tuple[int, int]] = field(default_factory=dict)
    """the first and the last line of each string"""
    flags: set[str] = field(default_factory=set)
    flags_line: int | None = None
    """the last line of flags, if there is one"""
    is_obsolete: bool = False

    def with_texts(self, strings: Mapping[str, Sequence[str]]) -> "Entry":
        """Give it its texts, of which each line of the file has a part, and return it."""
        self.texts = {key: "".join(parts) for key, parts in strings.items()}
        return self


class Po(Localization):
    """The .po or .pot that `data.corpus` names."""

    forms: tuple[str, ...] = ("a .po file that exists",)
    endings = tuple(f".po{packed}" for packed in PACKED)

    def texts(self) -> Iterator[Text]:
        """Yield the texts; singular and plural are two."""
        languages: tuple[str | None, str | None] = (None, None)
        forms_of = _forms("", self.path)
        for entry in entries(self.path):
            source, plural = entry.texts.get("msgid", ""), entry.texts.get("msgid_plural")
            why = "obsolete" if entry.is_obsolete else "fuzzy" if "fuzzy" in entry.flags else ""
            if not source and "msgctxt" not in entry.texts:
                if not entry.is_obsolete:
                    header = header_of(entry.texts)
                    languages = None, header.get("language") or None
                    forms_of = _forms(header.get("plural-forms", ""), self.path)
            elif plural is None:
                yield _text(languages, source, entry.texts.get("msgstr", ""), why)
            else:
                for text, count in ((source, SOME), (plural, MANY)):
                    forms = [key for key in entry.texts if key.startswith("msgstr")]
                    form = f"msgstr[{forms_of[count]}]"
                    yield _text(languages, text, entry.texts.get(form, entry.texts[forms[-1]] if forms else ""), why)


def entries(path: Path) -> Iterator[Entry]:
    """Yield the entries of a catalogue, the header first.

    Raises:
        InputError: a line is none of a catalogue, or has another encoding than the header says; the error names it.
    """
    name, encoding = os.fspath(path), _encoding(path)
    with opened(path) as file:
        found = enumerate(_without_mark(bounded(file, name)), 1)
        lines = (_decoded(raw, encoding, f"{name}, line {number}") for number, raw in found)
        yield from entries_of(lines, name)


def entries_of(lines: Iterable[str], name: str) -> Iterator[Entry]:
    """Yield the entries of the lines of a catalogue.

    Args:
        lines: the lines, with or without their line feeds.
        name: what they are called in errors, such as the file that they are in.

    Raises:
        InputError: a line is none of a catalogue.
    """
    entry, key = Entry(0), ""
    strings: dict[str, list[str]] = {}
    for number, line in enumerate(lines):
        line = line.strip()
        is_obsolete = line.startswith("#~")
        if is_obsolete:
            line = line[2:].removeprefix("|").strip() if not line.startswith("#~|") else ""
        begins = line.startswith(("msgctxt", "msgid")) and not line.startswith("msgid_plural")
        if any(part.startswith("msgstr") for part in strings) and (begins or line.startswith("#")):
            yield entry.with_texts(strings)
            entry, key = Entry(number), ""
            strings = {}
        if line.startswith("#,"):
            entry.flags |= {flag.strip() for flag in line[2:].split(",")}
            entry.flags_line = number
        if not line or line.startswith("#"):
            continue
        found = LINE.fullmatch(line)
        if found is None or not (found["key"] or key):
            raise InputError(f"{name}, line {number + 1} is no line of a .po: {line[:60]!r}")
        key = found["key"] or key
        entry.is_obsolete |= is_obsolete
        strings.setdefault(key, []).append(unescaped(found["text"]))
        entry.lines[key] = entry.lines.get(key, (number,))[0], number
    if strings:
        yield entry.with_texts(strings)


def _without_mark(lines: Iterable[bytes]) -> Iterator[bytes]:
    """Yield lines, the first one without a byte order mark."""
    for number, line in enumerate(lines):
        yield line if number else line.removeprefix(codecs.BOM_UTF8)


def header_of(texts: dict[str, str]) -> dict[str, str]:
    """Return the fields of a header by their names, in small letters."""
    lines = (line.partition(":") for line in texts.get("msgstr", "").splitlines())
    return {name.strip().lower(): value.strip() for name, _, value in lines}


def _encoding(path: Path) -> str:
    """Return the encoding that the header names, or else UTF-8."""
    with opened(path) as file:
        found = CHARSET.search(file.read(READ))
    return encoding_named(found[1]) if found else "utf-8"  # a template has CHARSET there


def _decoded(raw: bytes, encoding: str, where: str) -> str:
    try:
        return raw.decode(encoding)
    except UnicodeDecodeError:
        raise InputError(
            f"{where}: not {encoding.upper()}, which the header names or, if it names none, UTF-8"
        ) from None


def _forms(plural_forms: str, path: Path) -> dict[int, int]:
    """Return the numbers of the forms for SOME and MANY."""
    found = re.search(r"plural\s*=\s*([^;]+)", plural_forms)
    try:
        form_of = gettext.c2py(found[1].strip() if found else "n != 1")
        return {count: form_of(count) for count in (SOME, MANY)}
    except (ValueError, ArithmeticError) as error:
        raise InputError(f"{path}: the header has no expression of plural forms that can be read: {error}") from None


def _text(languages: tuple[str | None, str | None], source: str, target: str, why: str) -> Text:
    return Text(languages, source, target, why if target.strip() or why == "obsolete" else "untranslated")


def escaped(text: str) -> str:
    """Return a text as a string of a catalogue, without the quotation marks around it."""
    written = text.replace("\\", "\\\\").replace('"', '\\"')
    return written.replace("\n", "\\n").replace("\t", "\\t").replace("\r", "\\r")


def unescaped(text: str) -> str:
    """Return the text of a string of C."""

    def character(found: re.Match[str]) -> str:
        octal, hexadecimal, letter = found.groups()
        if letter is not None:
            return ESCAPES.get(letter, letter)
        return chr(int(octal, 8) if octal else int(hexadecimal, 16))

    return ESCAPE.sub(character, text)

"""Opening a file that is translated as a file: its parts, and how they are written again."""

import codecs
import itertools
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from tf_transformer.config import DataConfig
from tf_transformer.data.corpora import (
    slots_of_csv,
    slots_of_markdown,
    slots_of_odf,
    slots_of_office,
    slots_of_po,
    slots_of_text,
    slots_of_xliff,
)
from tf_transformer.data.corpora.package import opened_package, replaced, unpacked
from tf_transformer.data.corpora.slots import Parts, filled, texts_of
from tf_transformer.errors import InputError
from tf_transformer.storage.lines import encoding_named, opened

OWN_XLIFF = (".sdlxliff", ".mqxliff", ".mxliff")
"""Of Trados Studio, memoQ and Phrase, which note in words of their own what is approved."""
XLIFF, PAGES, SUBTITLES = (".xliff", ".xlf", *OWN_XLIFF), (".html", ".htm", ".xhtml"), (".srt", ".vtt")
MARKDOWN = (".md", ".markdown")
PLAIN = ".txt"
"""Text, each of whose lines is translated; `takes` does not name it, because the command translates it as lines."""


class Package(NamedTuple):
    """A kind of package."""

    endings: tuple[str, ...]
    names: re.Pattern[str]
    """the files in it that have text"""
    parts_of: Callable[[str, Path], Parts]


PACKAGES = (
    Package(
        (".docx", ".docm"),
        re.compile(
            r"word/(?:document|header|footer|footnotes|endnotes|charts/chart|diagrams/(?:data|drawing))\d*\.xml"
        ),
        slots_of_office.parts_of,
    ),
    Package(
        (".pptx", ".pptm"),
        re.compile(r"ppt/(?:slides/slide|notesSlides/notesSlide|charts/chart|diagrams/(?:data|drawing))\d*\.xml"),
        slots_of_office.parts_of,
    ),
    Package((".odt",), re.compile(r"(?:content|styles)\.xml"), slots_of_odf.parts_of),
    Package((".odp",), re.compile(r"content\.xml"), slots_of_odf.parts_of),
)
PACKED_TEXT = tuple(ending for kind in PACKAGES for ending in kind.endings)
"""The endings of the packages."""
KINDS = (
    (".xliff", ".xlf"),
    *((ending,) for ending in OWN_XLIFF),
    (".po",),
    PAGES,
    *((ending,) for ending in SUBTITLES),
    (".csv",),
    MARKDOWN,
    *(kind.endings for kind in PACKAGES),
)
"""The endings of the kinds of files: those of one kind may be exchanged."""
ENDINGS = tuple(ending for kind in KINDS for ending in kind)
REFERRING = (*XLIFF, *PAGES, ".xml")
"""Files in which a reference can stand for a character that their encoding does not have."""
LARGEST = 256 << 20
"""The most bytes of a file, all of which is in memory."""
MARKS = {
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF16_LE: "utf-16-le",
    codecs.BOM_UTF16_BE: "utf-16-be",
}
NAMED = re.compile(rb"(?:<\?xml[^>]*encoding\s*=\s*[\"']|charset\s*=\s*[\"']?)([\w.:-]+)", re.IGNORECASE)
"""What names the encoding of XML, of a page and of a .po."""


def kind_of(name: str) -> tuple[str, ...]:
    """Return the endings of the kind of a file, none if it is not translated as a file."""
    return next((endings for endings in KINDS if name.lower().endswith(endings)), ())


class Written(NamedTuple):
    """A file with translations."""

    content: bytes
    lost: int
    """how many texts stay as they were, because their translation is empty or has not their tags"""


class TranslatedFile:
    """A file whose texts are translated, and all of whose rest stays as it is.

    Args:
        path: the file, whose ending says what it is.
        overwrites: whether texts that have a translation are translated again.
        data: the languages of source and target, as far as they are known, and the columns of a .csv.
        raw: what is in the file; None to read it.

    Raises:
        InputError: the file cannot be read, or is broken, or is protected by a password.
    """

    def __init__(self, path: Path, overwrites: bool, data: DataConfig, raw: bytes | None = None):
        self.path = path
        self._raw = _read(path) if raw is None else raw
        self._package = next((kind for kind in PACKAGES if path.name.lower().endswith(kind.endings)), None)
        if self._package:
            with opened_package(self._raw, path) as package:
                self._files = {
                    part.filename: _File(
                        unpacked(package, part), Path(f"{path}: {part.filename}"), self._package.parts_of
                    )
                    for part in package.infolist()
                    if self._package.names.fullmatch(part.filename)
                }
            if not self._files:
                raise InputError(
                    f"{path} has no text where a {path.suffix.lower()} has it: is it another kind of file?"
                )
        else:
            self._files = {path.name: _File(self._raw, path, _reader(path.name, overwrites, data))}
        self.texts = [text for file in self._files.values() for text in file.texts]
        """what is translated, each in one line"""

    @staticmethod
    def takes(name: str) -> bool:
        """Say whether a file is translated as one."""
        return name.lower().endswith(ENDINGS)

    def written(self, translations: Iterable[str]) -> Written:
        """Return the file with the translations of its texts.

        Raises:
            InputError: its encoding has not all of the characters.
        """
        rest = iter(translations)
        done: dict[str, Written] = {}
        for name, file in self._files.items():
            given = list(itertools.islice(rest, len(file.texts)))
            if given != file.texts or not self._package:
                done[name] = file.written(given)
        lost = sum(one.lost for one in done.values())
        if not self._package:
            return Written(done[self.path.name].content, lost)
        if not done:
            return Written(self._raw, 0)
        with opened_package(self._raw, self.path) as package:
            return Written(replaced(package, {name: one.content for name, one in done.items()}), lost)


class TranslatedPage:
    """A page that is no file: its texts are translated as those of an .html.

    Args:
        text: the page, or a part of one.
    """

    def __init__(self, text: str):
        self._parts = slots_of_text.page(text)
        self.texts = list(texts_of(self._parts))
        """what is translated, each in one line"""

    def written(self, translations: Iterable[str]) -> str:
        """Return the page with the translations of its texts."""
        return filled(self._parts, iter(translations)).text


class _File:
    """A file of text, or one in a package.

    Args:
        raw: what is in it.
        path: its name, for errors.
        parts_of: cuts it into parts.
    """

    def __init__(self, raw: bytes, path: Path, parts_of: Callable[[str, Path], Parts]):
        self._path = path
        self._mark = next((mark for mark in MARKS if raw.startswith(mark)), b"")
        self._encoding = MARKS[self._mark] if self._mark else _encoding_of(raw)
        try:
            text = raw[len(self._mark) :].decode(self._encoding)
        except UnicodeDecodeError as error:
            line = raw.count(b"\n", 0, error.start) + 1
            raise InputError(
                f"{path}, line {line}: not {self._encoding.upper()}; convert it, such as by iconv"
            ) from None
        self._parts = parts_of(text, path)
        self.texts = list(texts_of(self._parts))

    def written(self, translations: list[str]) -> Written:
        text, lost = filled(self._parts, iter(translations))
        errors = "xmlcharrefreplace" if self._path.name.lower().endswith(REFERRING) else "strict"
        try:
            return Written(self._mark + text.encode(self._encoding, errors), lost)
        except UnicodeEncodeError as error:
            raise InputError(
                f"{self._path} is in {self._encoding.upper()}, which has no {text[error.start]!r}: convert it to UTF-8"
            ) from None


def _reader(name: str, overwrites: bool, data: DataConfig) -> Callable[[str, Path], Parts]:
    """Return what cuts a file of a name into its parts."""
    name = name.lower()
    if name.endswith(XLIFF):
        return lambda text, path: slots_of_xliff.parts_of(text, path, overwrites, data.target)
    if name.endswith(".po"):
        return lambda text, path: slots_of_po.parts_of(text, path, overwrites, data.target)
    if name.endswith(".csv"):
        return lambda text, path: slots_of_csv.parts_of(text, path, overwrites, data)
    if name.endswith(MARKDOWN):
        return slots_of_markdown.parts_of
    if name.endswith(PLAIN):
        return lambda text, _: slots_of_text.lines(text)
    return lambda text, _: slots_of_text.page(text) if name.endswith(PAGES) else slots_of_text.subtitles(text)


def _read(path: Path) -> bytes:
    with opened(path) as file:
        raw = file.read(LARGEST + 1)
    if len(raw) > LARGEST:
        raise InputError(f"{path} has more than {LARGEST >> 20} MB: cut it into several files")
    return raw


def _encoding_of(raw: bytes) -> str:
    """Return the encoding that a file names within its first lines, or UTF-8."""
    found = NAMED.search(raw[:4096])
    return encoding_named(found[1]) if found else "utf-8"

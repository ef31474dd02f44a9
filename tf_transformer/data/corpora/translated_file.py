"""Opening a file that is translated as a file: its parts, and how they are written again."""

import codecs
import re
from pathlib import Path

from tf_transformer.config import DataConfig
from tf_transformer.data.corpora import slots_of_csv, slots_of_po, slots_of_text, slots_of_xliff
from tf_transformer.data.corpora.slots import Parts
from tf_transformer.errors import InputError
from tf_transformer.storage.lines import opened

XLIFF, PAGES, SUBTITLES = (".xliff", ".xlf"), (".html", ".htm", ".xhtml"), (".srt", ".vtt")
ENDINGS = (*XLIFF, ".po", *PAGES, *SUBTITLES, ".csv")
LARGEST = 256 << 20
"""The most bytes of a file, all of which is in memory."""
MARKS = {
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF16_LE: "utf-16-le",
    codecs.BOM_UTF16_BE: "utf-16-be",
}
NAMED = re.compile(rb"(?:<\?xml[^>]*encoding\s*=\s*[\"']|charset\s*=\s*[\"']?)([\w.:-]+)", re.IGNORECASE)
"""What names the encoding of XML, of a page and of a .po."""


class TranslatedFile:
    """A file whose texts are translated, and all of whose rest stays as it is.

    Args:
        path: the file, whose ending says what it is.
        overwrites: whether texts that have a translation are translated again.
        data: the languages of source and target, as far as they are known, and the columns of a .csv.

    Raises:
        InputError: the file cannot be read, or is broken.
    """

    def __init__(self, path: Path, overwrites: bool, data: DataConfig):
        self.path = path
        with opened(path) as file:
            raw = file.read(LARGEST + 1)
        if len(raw) > LARGEST:
            raise InputError(f"{path} has more than {LARGEST >> 20} MB: cut it into several files")
        self._mark = next((mark for mark in MARKS if raw.startswith(mark)), b"")
        self._encoding = MARKS[self._mark] if self._mark else _encoding_of(raw)
        try:
            text = raw[len(self._mark) :].decode(self._encoding)
        except UnicodeDecodeError as error:
            line = raw.count(b"\n", 0, error.start) + 1
            raise InputError(
                f"{path}, line {line}: not {self._encoding.upper()}; convert it, such as by iconv"
            ) from None
        self.parts: Parts = self._parts(text, overwrites, data)

    def _parts(self, text: str, overwrites: bool, data: DataConfig) -> Parts:
        name = self.path.name.lower()
        if name.endswith(XLIFF):
            return slots_of_xliff.parts_of(text, self.path, overwrites, data.target)
        if name.endswith(".po"):
            return slots_of_po.parts_of(text, self.path, overwrites, data.target)
        if name.endswith(".csv"):
            return slots_of_csv.parts_of(text, self.path, overwrites, data)
        return slots_of_text.page(text) if name.endswith(PAGES) else slots_of_text.subtitles(text)

    @staticmethod
    def takes(name: str) -> bool:
        """Say whether a file is translated as one."""
        return name.lower().endswith(ENDINGS)

    def encoded(self, text: str) -> bytes:
        """Return the bytes of the file.

        Raises:
            InputError: its encoding has not all of the characters.
        """
        errors = "xmlcharrefreplace" if self.path.name.lower().endswith((*XLIFF, *PAGES)) else "strict"
        try:
            return self._mark + text.encode(self._encoding, errors)
        except UnicodeEncodeError as error:
            raise InputError(
                f"{self.path} is in {self._encoding.upper()}, which has no {text[error.start]!r}: convert it to UTF-8"
            ) from None


def _encoding_of(raw: bytes) -> str:
    """Return the encoding that a file names within its first lines, or UTF-8."""
    found = NAMED.search(raw[:4096])
    try:
        return codecs.lookup(found[1].decode()).name if found else "utf-8"
    except LookupError:
        return "utf-8"

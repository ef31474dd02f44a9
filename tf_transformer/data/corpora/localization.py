"""Files of texts and their translations, as programs are localised with: .xliff and .ts."""

import os
from collections import deque
from collections.abc import Iterator
from typing import NamedTuple

from tf_transformer.data.corpora.drawn import PACKED, Drawn, Row, in_one_line
from tf_transformer.data.corpora.inline import Segment
from tf_transformer.data.corpora.languages import is_turned
from tf_transformer.data.corpora.xml_file import parsed

Languages = tuple[str | None, str | None]
"""The languages of source and target, as far as a file names them."""


TS_TYPES = {"unfinished": "unapproved", "vanished": "obsolete", "obsolete": "obsolete"}
"""Why a translation in a .ts is left out, by its type."""

MEMOQ_OPEN = {
    "NotStarted",
    "Pretranslated",
    "MachineTranslated",
    "AssembledFromFragments",
    "PartiallyEdited",
    "Rejected",
}
"""What memoQ calls units that nobody has approved."""
TRADOS_OPEN = {"Draft", "RejectedTranslation", "RejectedSignOff"}
"""What Trados Studio calls such segments."""


class Text(NamedTuple):
    """A text of a file with its translation."""

    languages: Languages
    source: str
    target: str
    why: str
    """the reason for leaving it out, if there is one"""


class Localization(Drawn):
    """A file that `data.corpus` names. Each kind says how its texts are read, in `texts`."""

    def texts(self) -> Iterator[Text]:
        """Yield the texts, also those that are not translated."""
        raise NotImplementedError

    def rows(self) -> Iterator[Row]:
        """Yield the pairs, in the direction that is asked for."""
        turned: dict[Languages, bool] = {}
        for languages, source, target, why in self.texts():
            if languages not in turned:
                turned[languages] = is_turned(self.data, languages, os.fspath(self.path))
            pair = in_one_line(source).strip(), in_one_line(target).strip()
            yield Row(*(pair[::-1] if turned[languages] else pair), why or ("" if pair[1] else "untranslated"))


class Xliff(Localization):
    """The .xliff that `data.corpus` names, of version 1.2 or 2."""

    forms: tuple[str, ...] = ("an .xliff file that exists",)
    endings = tuple(
        f".{name}{packed}" for name in ("xliff", "xlf", "sdlxliff", "mqxliff", "mxliff") for packed in PACKED
    )

    def texts(self) -> Iterator[Text]:
        """Yield the texts."""
        return parsed(self.path, _Xliff(self.data.inline_tags))


class Ts(Localization):
    """The .ts that `data.corpus` names, of Qt Linguist. Of several forms for numbers, the last is the translation."""

    forms: tuple[str, ...] = ("a .ts file that exists",)
    endings = tuple(f".ts{packed}" for packed in PACKED)

    def texts(self) -> Iterator[Text]:
        """Yield the texts."""
        return parsed(self.path, _Ts())


class _Xliff:
    """Collects the texts of .xliff. In version 1.2 they are in units, in version 2 in segments of units.

    Programs for translators cut units of version 1.2 into segments, too, by `<mrk mtype="seg">`, and say of each unit
    or segment, in words of their own, whether somebody has approved it.

    http://docs.oasis-open.org/xliff/v1.2/os/xliff-core.html, https://docs.oasis-open.org/xliff/xliff-core/v2.1.
    """

    def __init__(self, keeps_tags: bool):
        self.found: deque[Text] = deque()
        self._keeps_tags = keeps_tags
        self._languages: Languages = (None, None)
        self._sides: dict[str, str] = {}
        self._segments: dict[str, dict[str, str]] = {}
        """for `seg-source` and `target`, the texts of their segments by number"""
        self._unit_why = self._why = ""
        self._unapproved: set[str] = set()
        """the numbers of segments"""
        self._within: list[str] = []
        """the elements around this place, but for those of a text"""
        self._translate: list[bool] = [True]
        """whether they are translated, which an element that does not say so takes over from the one around it"""
        self._text: Segment | None = None
        self._part: Segment | None = None
        """the segment at this place"""
        self._number = ""
        self._marks: list[bool] = []
        """the `<mrk>` around this place, and whether they are segments"""

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if self._text is not None:
            self._start_inline(name, attributes)
            return
        translate = attributes["translate"] != "no" if "translate" in attributes else self._translate[-1]
        if name == "xliff" and "srcLang" in attributes:
            self._languages = attributes["srcLang"], attributes.get("trgLang")
        elif name == "file" and "source-language" in attributes:
            self._languages = attributes["source-language"], attributes.get("target-language")
        elif name in ("trans-unit", "unit"):
            self._sides, self._segments, self._unapproved = {}, {}, set()
            own = {key.rpartition(":")[2]: value for key, value in attributes.items()}
            is_open = own.get("approved") == "no" or own.get("confirmed") == "0" or own.get("status") in MEMOQ_OPEN
            self._unit_why = "untranslated" if not translate else "unapproved" if is_open else ""
            self._why = self._unit_why
        elif name == "segment":
            self._sides = {}
            self._why = self._unit_why or ("unapproved" if attributes.get("state") == "initial" else "")
        elif name in ("source", "target", "seg-source") and self._within[-1:] in (["trans-unit"], ["segment"]):
            self._text = Segment(self._keeps_tags)
            self._segments[name] = {}
            if attributes.get("state", "").startswith(("needs-", "new")):
                self._why = self._why or "unapproved"
            return
        elif name == "seg" and attributes.get("conf") in TRADOS_OPEN:
            self._unapproved.add(attributes.get("id", ""))
        self._within.append(name)
        self._translate.append(translate)

    def _start_inline(self, name: str, attributes: dict[str, str]) -> None:
        if name == "mrk":
            self._marks.append(attributes.get("mtype") == "seg" and self._part is None)
            if self._marks[-1]:
                self._part, self._number = Segment(self._keeps_tags), attributes.get("mid", "")
        for text in self._open():
            text.start(name, attributes)

    def _open(self) -> list[Segment]:
        return [text for text in (self._text, self._part) if text is not None]

    def data(self, text: str) -> None:
        for one in self._open():
            one.data(text)

    def end(self, name: str) -> None:
        if self._text is not None:
            if name in ("source", "target", "seg-source"):
                self._sides[name] = self._text.text()
                self._text = None
                return
            for text in self._open():
                text.end(name)
            if name == "mrk" and self._marks.pop() and self._part is not None:
                side = next(reversed(self._segments))
                self._segments[side][self._number] = self._part.text()
                self._part = None
            return
        self._within.pop()
        self._translate.pop()
        if name == "segment":
            self._found(self._sides.get("source", ""), self._sides.get("target", ""))
        elif name == "trans-unit":
            segments, targets = (self._segments.get(side, {}) for side in ("seg-source", "target"))
            if not (segments and targets):
                self._found(self._sides.get("source", ""), self._sides.get("target", ""))
                return
            for number, source in segments.items():
                self._found(source, targets.get(number, ""), number in self._unapproved)

    def _found(self, source: str, target: str, is_open: bool = False) -> None:
        why = self._why or ("unapproved" if is_open else "")
        self.found.append(Text(self._languages, source, target, why if target.strip() else "untranslated"))


class _Ts:
    """Collects the texts of .ts. https://doc.qt.io/qt-6/linguist-ts-file-format.html."""

    def __init__(self) -> None:
        self.found: deque[Text] = deque()
        self._languages: Languages = (None, None)
        self._sides: dict[str, str] = {}
        self._why = ""
        self._side: str | None = None

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if name == "TS":
            self._languages = attributes.get("sourcelanguage"), attributes.get("language")
        elif name == "message":
            self._sides = {"source": "", "translation": ""}
        elif name in self._sides:
            self._side = name
            self._why = TS_TYPES.get(attributes.get("type", ""), "")
        elif name in ("numerusform", "lengthvariant") and self._side:
            self._sides[self._side] = ""

    def data(self, text: str) -> None:
        if self._side:
            self._sides[self._side] += text

    def end(self, name: str) -> None:
        if name == self._side:
            self._side = None
        elif name == "message":
            source, target = self._sides["source"], self._sides["translation"]
            why = "untranslated" if not target.strip() and self._why != "obsolete" else self._why
            self.found.append(Text(self._languages, source, target, why))

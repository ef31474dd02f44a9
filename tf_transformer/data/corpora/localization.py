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

    http://docs.oasis-open.org/xliff/v1.2/os/xliff-core.html, https://docs.oasis-open.org/xliff/xliff-core/v2.1.
    """

    def __init__(self, keeps_tags: bool):
        self.found: deque[Text] = deque()
        self._keeps_tags = keeps_tags
        self._languages: Languages = (None, None)
        self._sides: dict[str, str] = {}
        self._why = ""
        self._within: list[str] = []
        """the elements around this place, but for those of a text"""
        self._segment: Segment | None = None

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if self._segment is not None:
            self._segment.start(name, attributes)
            return
        if name == "xliff" and "srcLang" in attributes:
            self._languages = attributes["srcLang"], attributes.get("trgLang")
        elif name == "file" and "source-language" in attributes:
            self._languages = attributes["source-language"], attributes.get("target-language")
        elif name in ("trans-unit", "unit"):
            self._sides, self._why = {}, ""
            if attributes.get("translate") == "no":
                self._why = "untranslated"
            elif attributes.get("approved") == "no":
                self._why = "unapproved"
        elif name == "segment":
            self._sides = {}
            self._why = "unapproved" if attributes.get("state") == "initial" else self._why
        elif name in ("source", "target") and self._within[-1:] in (["trans-unit"], ["segment"]):
            self._segment = Segment(self._keeps_tags)
            if attributes.get("state", "").startswith(("needs-", "new")):
                self._why = self._why or "unapproved"
            return
        self._within.append(name)

    def data(self, text: str) -> None:
        if self._segment is not None:
            self._segment.data(text)

    def end(self, name: str) -> None:
        if self._segment is not None:
            if name not in ("source", "target"):
                self._segment.end(name)
                return
            self._sides[name] = self._segment.text()
            self._segment = None
            return
        self._within.pop()
        if name in ("trans-unit", "segment"):
            source, target = (self._sides.get(side, "") for side in ("source", "target"))
            why = self._why if target.strip() else "untranslated"
            self.found.append(Text(self._languages, source, target, why))


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

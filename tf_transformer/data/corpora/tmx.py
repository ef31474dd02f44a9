"""Translation memories, .tmx. https://www.gala-global.org/tmx-14b."""

import functools
import os
from collections import deque
from collections.abc import Iterator
from pathlib import Path

from tf_transformer.config import DataConfig
from tf_transformer.data.corpora.drawn import PACKED, Drawn, Row, in_one_line
from tf_transformer.data.corpora.inline import Segment
from tf_transformer.data.corpora.languages import language_there, languages_of
from tf_transformer.data.corpora.xml_file import language_of, parsed


class Tmx(Drawn):
    """The .tmx that `data.corpus` names.

    Raises:
        InputError: no languages are given.
    """

    forms: tuple[str, ...] = ("a .tmx file that exists",)
    endings = tuple(f".tmx{packed}" for packed in PACKED)

    def __init__(self, data: DataConfig):
        super().__init__(data)
        self.languages = languages_of(data)

    def rows(self) -> Iterator[Row]:
        """Yield the pairs: of each unit, the first segment in each language."""
        status = self.path.stat()
        there = _languages(self.path, status.st_size, status.st_mtime_ns)
        source, target = (language_there(language, there, os.fspath(self.path)) for language in self.languages)
        for segments in parsed(self.path, _Units(self.data.inline_tags)):
            pair = segments.get(source, ""), segments.get(target, "")
            yield Row(*pair, "" if all(pair) else "untranslated")


@functools.lru_cache(16)
def _languages(path: Path, size: int, changed: int) -> frozenset[str]:
    """Return the languages of a memory, which is read once for them as long as it is the same."""
    return frozenset(parsed(path, _Languages()))


class _Languages:
    """Collects the languages of segments."""

    def __init__(self) -> None:
        self.found: deque[str] = deque()
        self._known: set[str] = set()

    def start(self, name: str, attributes: dict[str, str]) -> None:
        language = language_of(attributes)
        if language and name == "tuv" and language not in self._known:
            self._known.add(language)
            self.found.append(language)

    def data(self, text: str) -> None:
        pass

    def end(self, name: str) -> None:
        pass


class _Units:
    """Collects units, each as its segments by language."""

    def __init__(self, keeps_tags: bool):
        self.found: deque[dict[str, str]] = deque()
        self._keeps_tags = keeps_tags
        self._unit: dict[str, str] = {}
        self._language: str | None = None
        self._segment: Segment | None = None

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if self._segment is not None:
            self._segment.start(name, attributes)
        elif name == "tu":
            self._unit = {}
        elif name == "tuv":
            self._language = language_of(attributes)
        elif name == "seg":
            self._segment = Segment(self._keeps_tags)

    def data(self, text: str) -> None:
        if self._segment is not None:
            self._segment.data(text)

    def end(self, name: str) -> None:
        if name == "seg" and self._segment is not None:
            if self._language:
                self._unit.setdefault(self._language, in_one_line(self._segment.text()).strip())
            self._segment = None
        elif self._segment is not None:
            self._segment.end(name)
        elif name == "tu":
            self.found.append(self._unit)

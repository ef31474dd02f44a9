"""Requests that have a text, for the web page and for `:translate`."""

import dataclasses
import math
import re
import types
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeVar

from starlette.requests import Request

from tf_transformer.runs.descriptions import LANGUAGES
from tf_transformer.runs.signatures import N_BEST, WITH_TERMS
from tf_transformer.serving.http import json_form, origin
from tf_transformer.serving.http.exchange import read, while_connected
from tf_transformer.serving.http.origin import Origins
from tf_transformer.serving.jobs import Arrays, Waiting
from tf_transformer.serving.limits import Refused
from tf_transformer.serving.model import ServedModel
from tf_transformer.serving.tensors import check_size
from tf_transformer.serving.version import Version
from tf_transformer.text.documents import Line, Sentence, halves, joined, parts_of, segmenter
from tf_transformer.text.glossary import Glossary

Row = dict[str, Any]
"""What a signature gives for one sentence."""
Shown = TypeVar("Shown")


@dataclasses.dataclass
class Part:
    """A sentence of a document, or a part of one that is too long."""

    before: str
    """the white space before it"""
    text: str
    row: Row
    """what `translate_n_best` gives for it; empty until then"""

    @property
    def translation(self) -> str:
        """The best translation."""
        return self.row["translations"][0]


@dataclasses.dataclass
class Document:
    """A text in its sentences."""

    lines: list[list[Part]]
    after: list[str]
    """for each line the white space at its end, with the line feed"""

    @property
    def parts(self) -> list[Part]:
        """All sentences."""
        return [part for line in self.lines for part in line]

    @property
    def translation(self) -> str:
        """The text with its sentences translated; everything between these is as it was."""
        lines = (
            joined(Line([Sentence(part.before, part.text) for part in parts], after), [p.translation for p in parts])
            for parts, after in zip(self.lines, self.after, strict=True)
        )
        return "".join(lines)


class Texts:
    """Answers requests that have a text.

    Args:
        model: what translates.

    Raises:
        InputError: the package that cuts text into sentences is missing.
    """

    def __init__(self, model: ServedModel):
        self._model = model
        segmenter(None)  # says now if it is missing

    async def asked(self, request: Request, origins: Origins | None = None) -> tuple[str, dict[str, Any]]:
        """Return the text of a request, and what else it asks for.

        Args:
            request: the request.
            origins: of which pages may ask besides the server's own; None for requests of the latter alone, which must
                say that they are JSON.
        """
        origin.check(request.headers, origins or frozenset())
        kind = request.headers.get("content-type", "")
        if origins is None and kind.partition(";")[0].strip().lower() != "application/json":
            raise Refused(415, f"the body must be of type application/json. Received: {kind[:100]!r}")
        asked = await read(request, self._model.limits)
        text = asked.get("text")
        if not isinstance(text, str) or not text.strip():
            raise Refused(400, "give 'text', a sentence or several lines")
        return text, asked

    async def predict(
        self,
        request: Request,
        version: Version,
        signature: str,
        sentences: list[str],
        asked: dict[str, Any],
        show: Callable[[list[Row]], Shown],
        more: Mapping[str, Sequence[str]] = types.MappingProxyType({}),
    ) -> Shown:
        """Call a signature with sentences, which have languages in common; return what `show` does.

        `more` has further inputs, one for each sentence. `show` is given the rows of what the signature gives, on a
        thread of its own.
        """
        self._model.check_signature(version, signature)
        check_size(len(sentences), self._model.limits.max_sentences)
        inputs = version.signatures.inputs[signature]
        languages = dict(zip(LANGUAGES, version.direction, strict=True))
        named = {name: [asked.get(name, languages[name])] for name in LANGUAGES if name in inputs}
        # Each language is read once, not for every sentence.
        given = {"text": sentences, **named, **{name: list(values) for name, values in more.items()}}
        columns = json_form.columns_of({"inputs": given}, inputs)
        version.admission.check(columns)  # before the request waits for its turn
        columns = {**columns, **{name: columns[name] * len(sentences) for name in named}}

        def answer(outputs: Arrays) -> Shown:
            return show(json_form.answer(outputs, by_rows=True)["predictions"])

        return await while_connected(request, self._model.predict(version, signature, columns, answer))

    async def document(self, request: Request, version: Version, text: str, asked: dict[str, Any]) -> Document:
        """Translate a text sentence by sentence; what is longer than the model takes is cut, and nothing is lost.

        It is cut before any of it is translated, as far as the tokens can be counted beforehand.
        """
        glossary = _glossary_of(asked)
        signature = WITH_TERMS if glossary else N_BEST
        self._model.check_signature(version, signature)
        language = asked.get("source_language", version.direction[0])
        segment = segmenter(language if isinstance(language, str) else None)
        most = self._model.limits.max_sentences

        def cut(over: Waiting) -> list[Line]:
            parts = 0

            def fits(sentence: str) -> bool:
                nonlocal parts
                if over.is_set():
                    raise Refused(504, "nobody waits for the answer")
                is_part = version.fits(sentence)
                parts += is_part
                check_size(parts, most)
                return is_part

            return [parts_of(line, segment, fits) for line in re.findall(r"[^\n]*\n|[^\n]+", text)]

        lines = await while_connected(request, self._model.run(cut))

        async def translate(sentences: list[str]) -> list[Row]:
            more = {"terms": ["\t".join(glossary(sentence)[1]) for sentence in sentences]} if glossary else {}
            rows = await self.predict(request, version, signature, sentences, asked, list, more)
            for sentence, row in zip(sentences, rows, strict=True):
                if not math.isfinite(row["scores"][0]):
                    raise Refused(400, f"no translation can contain all terms of the glossary in {sentence[:100]!r}")
            return rows

        return await translated(lines, translate)


async def translated(lines: list[Line], translate: Callable[[list[str]], Awaitable[list[Row]]]) -> Document:
    """Translate the sentences of lines, and again the halves of those that were cut off, until none is."""
    document = Document(
        [[Part(*sentence, row={}) for sentence in line.sentences] for line in lines], [line.after for line in lines]
    )
    while waiting := [part for part in document.parts if not part.row]:
        for part, row in zip(waiting, await translate([part.text for part in waiting]), strict=True):
            part.row = row
        document.lines = [[half for part in line for half in _halved(part)] for line in document.lines]
    return document


def _glossary_of(asked: dict[str, Any]) -> Glossary | None:
    """Return the glossary that a request gives, if it has terms."""
    given = asked.get("glossary", {})
    if not (isinstance(given, dict) and all(isinstance(term, str) and term.strip() for term in given.values())):
        raise Refused(400, '\'glossary\' must be an object of terms and their translations, such as {"dog": "Hund"}')
    if any("\t" in term for term in given.values()) or not all(map(str.strip, given)):
        raise Refused(400, "a term of 'glossary' must have text, and its translation no tab")
    return Glossary(given) if given else None


def _halved(part: Part) -> list[Part]:
    """Return a sentence, or two without translations if it was cut off and can be halved."""
    cut = halves(part.text) if part.row["is_truncated"] else None
    if cut is None:
        return [part]
    first, second = cut
    between = second[: len(second) - len(second.lstrip())]
    return [Part(part.before, first, {}), Part(between, second.lstrip(), {})]

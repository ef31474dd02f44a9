"""Requests that have a text, for the web page and for `:translate`."""

import dataclasses
import functools
import math
import re
import types
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
from starlette.requests import Request

from tf_transformer.runs.descriptions import LANGUAGES
from tf_transformer.runs.signatures import N_BEST, WITH_ATTENTION, WITH_TERMS
from tf_transformer.serving.http import json_form, origin
from tf_transformer.serving.http.exchange import read, while_connected
from tf_transformer.serving.http.origin import Origins
from tf_transformer.serving.jobs import Arrays, Waiting
from tf_transformer.serving.limits import Refused
from tf_transformer.serving.model import ServedModel
from tf_transformer.serving.tensors import check_size
from tf_transformer.serving.version import Version
from tf_transformer.text.batching import batches_of
from tf_transformer.text.documents import Cutter, Line, Sentence, Spans, halves, joined, segmenter
from tf_transformer.text.glossary import Glossary
from tf_transformer.text.markup import Stripped, markup_spans, stripped
from tf_transformer.text.placing import restored

ALIGNED = 8
"""How many sentences with markup are aligned at once, because the size of an answer with attention is limited."""
LINE = re.compile(r"[^\n]*\n|[^\n]+")

Row = dict[str, Any]
"""What a signature gives for one sentence."""
Shown = TypeVar("Shown")


@dataclasses.dataclass
class Part:
    """A sentence of a document, or a part of one that is too long."""

    sentence: Sentence
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
        """The text with its sentences translated."""
        return self.joined([part.translation for part in self.parts])

    def joined(self, translations: Sequence[str]) -> str:
        """Return the text with translations of its sentences; everything between these is as it was."""
        rest = iter(translations)
        lines = (
            joined(Line([part.sentence for part in parts], after), [next(rest) for _ in parts])
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
        for name in (name for name, values in named.items() if values == [None]):
            raise Refused(400, f"give {name!r}, one of {', '.join(version.admission.languages)}"[:1000])
        # Each language is read once, not for every sentence.
        given = {"text": sentences, **named, **{name: list(values) for name, values in more.items()}}
        columns = json_form.columns_of({"inputs": given}, inputs)
        version.admission.check(columns)  # before the request waits for its turn
        columns = {**columns, **{name: columns[name] * len(sentences) for name in named}}

        def answer(outputs: Arrays) -> Shown:
            return show(json_form.answer(outputs, by_rows=True)["predictions"])

        return await while_connected(request, self._model.predict(version, signature, columns, answer))

    async def document(self, request: Request, version: Version, text: str, asked: dict[str, Any]) -> Document:
        """Translate a text, as `documents` translates several."""
        [document] = await self.documents(request, version, [text], asked)
        return document

    async def documents(
        self, request: Request, version: Version, texts: list[str], asked: dict[str, Any], has_markup: bool = False
    ) -> list[Document]:
        """Translate texts sentence by sentence; what is longer than the model takes is cut, and nothing is lost.

        They are cut before any of them is translated, as far as the tokens can be counted beforehand. If they have
        markup, it stays, and each sentence has one translation.
        """
        glossary = _glossary_of(asked)
        # Half of an emoji is read as invalid UTF-8 is, as in `:predict`.
        texts = [text.encode("utf-8", "surrogatepass").decode("utf-8", "replace") for text in texts]
        signature = WITH_TERMS if glossary else N_BEST
        self._model.check_signature(version, signature)
        language = asked.get("source_language", version.direction[0])
        segment = segmenter(language if isinstance(language, str) else None)
        most = self._model.limits.max_sentences

        kept = markup_spans if has_markup else None

        def cut(over: Waiting) -> list[list[Line]]:
            parts = 0

            def fits(sentence: str) -> bool:
                nonlocal parts
                if over.is_set():
                    raise Refused(504, "nobody waits for the answer")
                is_part = version.fits(sentence)
                parts += is_part
                check_size(parts, most)
                return is_part

            of_each = [(text, Cutter(segment, fits, version.is_code, kept)) for text in texts]
            return [[cut_line(line) for line in LINE.findall(text)] for text, cut_line in of_each]

        lines_of = await while_connected(request, self._model.run(cut))

        async def translate(sentences: list[str]) -> list[Row]:
            if has_markup:
                return await self._with_markup(request, version, sentences, asked)
            more = {"terms": ["\t".join(glossary(sentence)[1]) for sentence in sentences]} if glossary else {}
            rows = await self.predict(request, version, signature, sentences, asked, list, more)
            for sentence, row in zip(sentences, rows, strict=True):
                if not math.isfinite(row["scores"][0]):
                    raise Refused(400, f"no translation can contain all terms of the glossary in {sentence[:100]!r}")
            return rows

        done = await translated([line for lines in lines_of for line in lines], translate, kept)
        lines, after = iter(done.lines), iter(done.after)
        return [Document([next(lines) for _ in of_one], [next(after) for _ in of_one]) for of_one in lines_of]

    async def _with_markup(
        self, request: Request, version: Version, sentences: list[str], asked: dict[str, Any]
    ) -> list[Row]:
        """Return the rows of sentences, whose markup is put back where attention points."""
        sources = [stripped(sentence) for sentence in sentences]
        # What is markup alone stays as it is.
        rows = [{"translations": [sentence], "scores": [0.0], "is_truncated": False} for sentence in sentences]
        plain = [i for i, source in enumerate(sources) if source.text and not source.marks]
        marked = [i for i, source in enumerate(sources) if source.text and source.marks]
        # Each piece has its own time: of a file nobody can send fewer sentences.
        pieces: list[tuple[str, list[int]]] = []
        if plain:
            texts = {"text": [sources[i].text.encode() for i in plain]}
            lengths = await while_connected(request, self._model.run(lambda _: version.admission.tokens(texts)))
            batches = batches_of(lengths, self._model.limits.max_batch_tokens)
            pieces += [(N_BEST, [plain[number] for number in batch]) for batch in batches]
        pieces += [(WITH_ATTENTION, marked[start : start + ALIGNED]) for start in range(0, len(marked), ALIGNED)]
        for signature, places in pieces:
            some = [sources[i] for i in places]
            show: Callable[[list[Row]], list[Row]] = list
            if signature == WITH_ATTENTION:
                show = functools.partial(_restored, some)
            found = await self.predict(request, version, signature, [source.text for source in some], asked, show)
            for i, row in zip(places, found, strict=True):
                rows[i] = row
        return rows


def _restored(sources: list[Stripped], rows: list[Row]) -> list[Row]:
    """Return rows as of N_BEST whose translations have the markup of their sources."""
    return [
        {"translations": [_with_marks(source, row)], "scores": [0.0], "is_truncated": row["is_truncated"]}
        for source, row in zip(sources, rows, strict=True)
    ]


def _with_marks(source: Stripped, row: Row) -> str:
    """Return a translation with the markup of its source; the tokens of a row have empty ones at their end."""
    of_source, of_target = ([token for token in row[name] if token] for name in ("source_tokens", "target_tokens"))
    attention = np.asarray(row["attention"], float)[: len(of_target), : len(of_source)]
    return restored(source, row["translation"], of_source, of_target, attention)


async def translated(
    lines: list[Line], translate: Callable[[list[str]], Awaitable[list[Row]]], kept: Spans | None = None
) -> Document:
    """Translate the sentences of lines, and again the halves of those that were cut off, until none is."""
    document = Document(
        [[Part(sentence, row={}) for sentence in line.sentences] for line in lines], [line.after for line in lines]
    )
    while waiting := [part for part in document.parts if not part.row]:
        for part, row in zip(waiting, await translate([part.sentence.source for part in waiting]), strict=True):
            part.row = row
        document.lines = [[half for part in line for half in _halved(part, kept)] for line in document.lines]
    return document


def _glossary_of(asked: dict[str, Any]) -> Glossary | None:
    """Return the glossary that a request gives, if it has terms."""
    given = asked.get("glossary", {})
    if not (isinstance(given, dict) and all(isinstance(term, str) and term.strip() for term in given.values())):
        raise Refused(400, '\'glossary\' must be an object of terms and their translations, such as {"dog": "Hund"}')
    if any("\t" in term for term in given.values()) or not all(map(str.strip, given)):
        raise Refused(400, "a term of 'glossary' must have text, and its translation no tab")
    return Glossary(given) if given else None


def _halved(part: Part, kept: Spans | None) -> list[Part]:
    """Return a sentence, or two without translations if it was cut off and can be halved."""
    before, text, code = part.sentence
    cut = halves(text, kept) if part.row["is_truncated"] else None
    if cut is None:
        return [part]
    first, second = cut
    between = second[: len(second) - len(second.lstrip())]
    return [Part(Sentence(before, first, code), {}), Part(Sentence(between, second.lstrip(), code), {})]

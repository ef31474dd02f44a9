"""Requests that have a text, for the web page and for `:translate`."""

import asyncio
import itertools
import re
import types
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeVar

from starlette.requests import Request

from tf_transformer.runs.descriptions import LANGUAGES
from tf_transformer.runs.signatures import N_BEST
from tf_transformer.serving.batching import Arrays
from tf_transformer.serving.http import json_form, origin
from tf_transformer.serving.http.exchange import read, while_connected
from tf_transformer.serving.http.origin import Origins
from tf_transformer.serving.limits import Refused
from tf_transformer.serving.model import Model
from tf_transformer.serving.tensors import check_size
from tf_transformer.serving.version import Version
from tf_transformer.text.documents import Line, joined, parts_of, segmenter

Row = dict[str, Any]
"""What a signature gives for one sentence."""
Shown = TypeVar("Shown")


class Document(NamedTuple):
    """A text in its sentences, each with what `translate_n_best` gives for it."""

    lines: list[Line]
    rows: list[Row]

    @property
    def sentences(self) -> list[tuple[str, Row]]:
        """All sentences, and what was found for each."""
        return list(zip((sentence.text for line in self.lines for sentence in line.sentences), self.rows, strict=True))

    @property
    def translation(self) -> str:
        """The text with its sentences translated; everything between these is as it was."""
        best = (row["translations"][0] for row in self.rows)
        return "".join(joined(line, list(itertools.islice(best, len(line.sentences)))) for line in self.lines)


class Texts:
    """Answers requests that have a text.

    Args:
        model: what translates.

    Raises:
        InputError: the package that cuts text into sentences is missing.
    """

    def __init__(self, model: Model):
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
        more: Mapping[str, str] = types.MappingProxyType({}),
    ) -> Shown:
        """Call a signature with sentences, which have languages and further inputs in common; return what `show` does.

        It is given the rows of what the signature gives, on a thread of its own.
        """
        self._model.check_signature(version, signature)
        check_size(len(sentences), self._model.limits.max_sentences)
        inputs = version.signatures.inputs[signature]
        languages = dict(zip(LANGUAGES, version.direction, strict=True))
        named = {name: [asked.get(name, languages[name])] for name in LANGUAGES if name in inputs}
        # Each language is read once, not for every sentence.
        given = {"text": sentences, **named, **{name: [value] for name, value in more.items()}}
        columns = json_form.columns_of({"inputs": given}, inputs)
        version.check_languages(columns)  # before the request waits for its turn
        columns = {**columns, **{name: columns[name] * len(sentences) for name in given if name != "text"}}

        def answer(outputs: Arrays) -> Shown:
            return show(json_form.answer(outputs, by_rows=True)["predictions"])

        return await while_connected(request, self._model.predict(version, signature, columns, answer))

    async def document(self, request: Request, version: Version, text: str, asked: dict[str, Any]) -> Document:
        """Translate a text sentence by sentence; what is longer than the model takes is cut, and nothing is lost."""
        language = asked.get("source_language", version.direction[0])
        segment = segmenter(language if isinstance(language, str) else None)
        lines = await asyncio.to_thread(
            lambda: [parts_of(line, segment, version.fits) for line in re.findall(r"[^\n]*\n|[^\n]+", text)]
        )
        sentences = [sentence.text for line in lines for sentence in line.sentences]
        return Document(lines, await self.predict(request, version, N_BEST, sentences, asked, list))

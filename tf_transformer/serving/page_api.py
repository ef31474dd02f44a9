"""The page, and what it asks for."""

from collections.abc import Callable
from importlib.resources import files
from typing import Any

import numpy as np
from starlette.requests import Request
from starlette.responses import Response

from tf_transformer.serving import json_form, origin
from tf_transformer.serving.batching import Arrays
from tf_transformer.serving.exchange import Handler, read, while_connected, write
from tf_transformer.serving.limits import Refused
from tf_transformer.serving.model import Model
from tf_transformer.serving.version import Version

FILES = {"": "text/html", "page.css": "text/css", "page.js": "text/javascript"}
"""The files of the page, of which the first is index.html."""
HEADERS = {
    # Nothing from elsewhere, and nowhere inside a foreign page.
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; "
    "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}


class PageApi:
    """Answers the page."""

    def __init__(self, model: Model):
        self._model = model

    async def model(self, _: Request) -> Response:
        """Answer which model translates."""
        return write(self._shown(self._model.version))

    async def translate(self, request: Request) -> Response:
        """Translate a text line by line; gives for each line what the search found."""
        text = await self._text(request)
        version = self._model.version
        lines = [line.removesuffix("\r") for line in text.split("\n")]
        shown = self._shown(version)
        return await self._predict(
            *(request, version, "translate_n_best", lines),
            lambda rows: {"model": shown, "lines": [_line(row) for row in rows]},
        )

    async def attention(self, request: Request) -> Response:
        """Show what each token of the translation of a line attended to."""
        text = await self._text(request)
        return await self._predict(
            *(request, self._model.version, "translate_with_attention", [text]),
            lambda rows: {key: rows[0][key] for key in ("source_tokens", "target_tokens", "attention")},
        )

    async def _text(self, request: Request) -> str:
        origin.check(request.headers)
        kind = request.headers.get("content-type", "")
        if kind.partition(";")[0].strip().lower() != "application/json":
            raise Refused(415, f"the body must be of type application/json. Received: {kind[:100]!r}")
        text = (await read(request, self._model.limits)).get("text")
        if not isinstance(text, str) or not text.strip():
            raise Refused(400, "give 'text', a sentence or several lines")
        return text

    async def _predict(
        self,
        request: Request,
        version: Version,
        signature: str,
        lines: list[str],
        show: Callable[[list[dict[str, Any]]], dict[str, Any]],
    ) -> Response:
        self._model.check_signature(version, signature)
        columns = json_form.columns_of({"inputs": lines}, ("text",))

        def answer(outputs: Arrays) -> Response:
            return write(show(json_form.answer(outputs, by_rows=True)["predictions"]))

        return await while_connected(request, self._model.predict(version, signature, columns, answer))

    def _shown(self, version: Version) -> dict[str, Any]:
        source, target = version.languages
        return {"name": self._model.name, "version": version.number, "source": source, "target": target}


def file(name: str, kind: str) -> Handler:
    """Return a handler that gives a file of the page."""
    text = (files("tf_transformer.serving") / "page" / (name or "index.html")).read_bytes()

    async def give(_: Request) -> Response:
        return Response(text, media_type=kind, headers=HEADERS)

    return give


def _line(row: dict[str, Any]) -> dict[str, Any]:
    # Where a search found fewer, the rest is empty.
    found = zip(row["translations"], row["scores"], strict=True)
    n_best = [{"translation": translation, "score": score} for translation, score in found if np.isfinite(score)]
    return {"n_best": n_best, "is_truncated": row["is_truncated"]}

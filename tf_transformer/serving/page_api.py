"""The web page, and the requests that it sends."""

import math
import types
from collections.abc import Callable, Mapping
from importlib.resources import files
from typing import Any

import numpy as np
from starlette.requests import Request
from starlette.responses import Response

from tf_transformer.candidates import search_tree
from tf_transformer.runs.descriptions import LANGUAGES
from tf_transformer.serving import json_form, origin
from tf_transformer.serving.batching import Arrays
from tf_transformer.serving.exchange import Handler, read, while_connected, write
from tf_transformer.serving.limits import Refused
from tf_transformer.serving.model import Model
from tf_transformer.serving.tensors import check_size
from tf_transformer.serving.version import Version

FILES = {"": "text/html", "page.css": "text/css", "page.js": "text/javascript", "steps.js": "text/javascript"}
"""The files of the page, of which the first is index.html."""
ALL_ATTENTION = "attention"
"""The signature of exports that gives the attention of all kinds, layers and heads; older exports lack it."""
STEPS = "search_steps"
"""The signature that shows the steps of a search; older exports lack it, and so do those without a beam search."""
HEADERS = {
    # The page loads nothing from elsewhere, and no other page can embed it.
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; "
    "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}


class PageApi:
    """Answers the requests of the page."""

    def __init__(self, model: Model):
        self._model = model

    async def model(self, _: Request) -> Response:
        """Say which model translates."""
        return write(self._shown(self._model.version))

    async def translate(self, request: Request) -> Response:
        """Translate a text line by line, and return the translations that the search found for each line."""
        text, asked = await self._text(request)
        version = self._model.version
        lines = [line.removesuffix("\r") for line in text.split("\n")]
        shown = self._shown(version)
        return await self._predict(
            *(request, version, "translate_n_best", lines, asked),
            lambda rows: {"model": shown, "lines": [_line(row) for row in rows]},
        )

    async def attention(self, request: Request) -> Response:
        """Show what the tokens of a line and of its translation attended to, as far as the model gives it."""
        text, asked = await self._text(request)
        version = self._model.version
        if ALL_ATTENTION in version.signatures.inputs:
            try:
                return await self._predict(*(request, version, ALL_ATTENTION, [text], asked), _all_attention)
            except Refused as error:
                if error.status != 400:
                    raise
                # Of a long text all layers and heads are too much for an answer; what the text itself has wrong, the
                # other signature refuses as well.
        return await self._predict(
            *(request, version, "translate_with_attention", [text], asked),
            lambda rows: _tokens(rows[0]) | {"kinds": {"cross": [[rows[0]["attention"]]]}},
        )

    async def steps(self, request: Request) -> Response:
        """Show what model and search had to choose from at each step of the translation of a line.

        The translation begins with the tokens `prefix`, if they are given.
        """
        text, asked = await self._text(request)
        prefix = asked.get("prefix", [])
        if not (isinstance(prefix, list) and all(type(token) is int for token in prefix)):
            raise Refused(400, f"'prefix' must be a list of numbers of tokens. Received: {str(prefix)[:100]}")
        more = {"prefix_ids": " ".join(map(str, prefix))}
        return await self._predict(*(request, self._model.version, STEPS, [text], asked), _steps, more)

    async def _text(self, request: Request) -> tuple[str, dict[str, Any]]:
        """Return the text of a request, and what else it asks for."""
        origin.check(request.headers)
        kind = request.headers.get("content-type", "")
        if kind.partition(";")[0].strip().lower() != "application/json":
            raise Refused(415, f"the body must be of type application/json. Received: {kind[:100]!r}")
        asked = await read(request, self._model.limits)
        text = asked.get("text")
        if not isinstance(text, str) or not text.strip():
            raise Refused(400, "give 'text', a sentence or several lines")
        return text, asked

    async def _predict(
        self,
        request: Request,
        version: Version,
        signature: str,
        lines: list[str],
        asked: dict[str, Any],
        show: Callable[[list[dict[str, Any]]], dict[str, Any]],
        more: Mapping[str, str] = types.MappingProxyType({}),
    ) -> Response:
        """Call a signature with lines, which have languages and further inputs in common, and show what it gives."""
        self._model.check_signature(version, signature)
        check_size(len(lines), self._model.limits.max_sentences)
        inputs = version.signatures.inputs[signature]
        languages = dict(zip(LANGUAGES, version.direction, strict=True))
        named = {name: [asked.get(name, languages[name])] for name in LANGUAGES if name in inputs}
        # Each language is read once, not for every line.
        given = {"text": lines, **named, **{name: [value] for name, value in more.items()}}
        columns = json_form.columns_of({"inputs": given}, inputs)
        version.check_languages(columns)  # before the request waits for its turn
        columns = {**columns, **{name: columns[name] * len(lines) for name in given if name != "text"}}

        def answer(outputs: Arrays) -> Response:
            return write(show(json_form.answer(outputs, by_rows=True)["predictions"]))

        return await while_connected(request, self._model.predict(version, signature, columns, answer))

    def _shown(self, version: Version) -> dict[str, Any]:
        source, target = version.direction
        return {
            "name": self._model.name,
            "version": version.number,
            "source": source,
            "target": target,
            "languages": version.languages,
            "has_steps": STEPS in version.signatures.inputs,
        }


def file(name: str, kind: str) -> Handler:
    """Return a handler that serves a file of the page."""
    text = (files("tf_transformer.serving") / "page" / (name or "index.html")).read_bytes()

    async def give(_: Request) -> Response:
        return Response(text, media_type=kind, headers=HEADERS)

    return give


def _tokens(row: dict[str, Any]) -> dict[str, Any]:
    return {key: row[key] for key in ("source_tokens", "target_tokens", "read_tokens") if key in row}


def _all_attention(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return tokens and weights [layers][heads][rows][columns] of each kind, rounded: that is all that is seen."""
    (row,) = rows
    kinds = {kind: np.round(np.asarray(row[kind], float), 3).tolist() for kind in ("cross", "encoder", "decoder")}
    return _tokens(row) | {"kinds": kinds}


def _steps(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return for each token of the translation what could have stood there, and the tree of the search."""
    (row,) = rows
    length = sum(map(bool, row["target_tokens"]))  # the rest is padding
    parents, places, log_probabilities, scores = map(row.get, ("parents", "places", "log_probabilities", "scores"))
    tree = search_tree(row["considered_tokens"], parents, places, log_probabilities, scores, row["target_tokens"])
    return {
        "translation": row["translation"],
        "tokens": row["target_tokens"][:length],
        "ids": row["target_ids"][:length],
        "next": [
            [
                {"id": token, "token": piece, "probability": math.exp(log_probability)}
                for token, piece, log_probability in zip(*of_step, strict=True)
            ]
            for of_step in zip(
                *(row[name][:length] for name in ("next_ids", "next_tokens", "next_log_probabilities")), strict=True
            )
        ],
        "tree": [[node._asdict() for node in step] for step in tree],
    }


def _line(row: dict[str, Any]) -> dict[str, Any]:
    # If a search found fewer translations, the rest are empty.
    found = zip(row["translations"], row["scores"], strict=True)
    n_best = [{"translation": translation, "score": score} for translation, score in found if np.isfinite(score)]
    return {"n_best": n_best, "is_truncated": row["is_truncated"]}

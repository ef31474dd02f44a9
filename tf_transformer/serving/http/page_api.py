"""The web page, and the requests that it sends."""

import math
from importlib.resources import files
from typing import Any

import numpy as np
from starlette.requests import Request
from starlette.responses import Response

from tf_transformer.decoding.search_tree import search_tree
from tf_transformer.runs.signatures import ALL_ATTENTION, STEPS, WITH_ATTENTION, WITH_TERMS
from tf_transformer.serving.http.exchange import Handler, write
from tf_transformer.serving.http.texts import Row, Texts
from tf_transformer.serving.limits import Refused
from tf_transformer.serving.model import ServedModel
from tf_transformer.serving.version import Version

SCRIPTS = ("page.js", "parts.js", "ask.js", "attention.js", "steps.js")
FILES = {"": "text/html", "page.css": "text/css", **dict.fromkeys(SCRIPTS, "text/javascript")}
"""The files of the page, of which the first is index.html."""
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

    def __init__(self, model: ServedModel, texts: Texts):
        self._model, self._texts = model, texts

    async def model(self, _: Request) -> Response:
        """Say which model translates."""
        return write(self._shown(self._model.version))

    async def translate(self, request: Request) -> Response:
        """Translate a text sentence by sentence, and return the translations that the search found for each."""
        text, asked = await self._texts.asked(request)
        version = self._model.version
        document = await self._texts.document(request, version, text, asked)
        sentences = [{"text": part.sentence.source, **_sentence(part.row)} for part in document.parts]
        return write({"model": self._shown(version), "translation": document.translation, "sentences": sentences})

    async def attention(self, request: Request) -> Response:
        """Show what the tokens of a sentence and of its translation attended to, as far as the model gives it."""
        text, asked = await self._texts.asked(request)
        version = self._model.version
        if ALL_ATTENTION in version.signatures.inputs:
            try:
                return await self._texts.predict(*(request, version, ALL_ATTENTION, [text], asked), _all_attention)
            except Refused as error:
                if error.status != 400:
                    raise
                # Of a long text all layers and heads are too much for an answer; what the text itself has wrong, the
                # other signature refuses as well.
        return await self._texts.predict(
            *(request, version, WITH_ATTENTION, [text], asked),
            lambda rows: write(_tokens(rows[0]) | {"kinds": {"cross": [[rows[0]["attention"]]]}}),
        )

    async def steps(self, request: Request) -> Response:
        """Show what model and search had to choose from at each step of the translation of a sentence.

        The translation begins with the tokens `prefix`, if they are given.
        """
        text, asked = await self._texts.asked(request)
        prefix = asked.get("prefix", [])
        if not (isinstance(prefix, list) and all(type(token) is int for token in prefix)):
            raise Refused(400, f"'prefix' must be a list of numbers of tokens. Received: {str(prefix)[:100]}")
        more = {"prefix_ids": [" ".join(map(str, prefix))]}
        return await self._texts.predict(*(request, self._model.version, STEPS, [text], asked), _steps, more)

    def _shown(self, version: Version) -> dict[str, Any]:
        source, target = version.direction
        return {
            "name": self._model.name,
            "version": version.number,
            "source": source,
            "target": target,
            "languages": version.admission.languages,
            "has_steps": STEPS in version.signatures.inputs,
            "has_terms": WITH_TERMS in version.signatures.inputs,
        }


def file(name: str, kind: str) -> Handler:
    """Return a handler that serves a file of the page."""
    text = (files("tf_transformer.serving.http") / "page" / (name or "index.html")).read_bytes()

    async def give(_: Request) -> Response:
        return Response(text, media_type=kind, headers=HEADERS)

    return give


def _tokens(row: Row) -> dict[str, Any]:
    return {key: row[key] for key in ("source_tokens", "target_tokens", "read_tokens") if key in row}


def _all_attention(rows: list[Row]) -> Response:
    """Return tokens and weights [layers][heads][rows][columns] of each kind, rounded: that is all that is seen."""
    (row,) = rows
    kinds = {kind: np.round(np.asarray(row[kind], float), 3).tolist() for kind in ("cross", "encoder", "decoder")}
    return write(_tokens(row) | {"kinds": kinds})


def _steps(rows: list[Row]) -> Response:
    """Return for each token of the translation what could have stood there, and the tree of the search."""
    (row,) = rows
    length = sum(map(bool, row["target_tokens"]))  # the rest is padding
    parents, places, log_probabilities, scores = map(row.get, ("parents", "places", "log_probabilities", "scores"))
    tree = search_tree(row["considered_tokens"], parents, places, log_probabilities, scores, row["target_tokens"])
    shown = {
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
    return write(shown)


def _sentence(row: Row) -> dict[str, Any]:
    # If a search found fewer translations, the rest are empty.
    found = zip(row["translations"], row["scores"], strict=True)
    n_best = [{"translation": translation, "score": score} for translation, score in found if np.isfinite(score)]
    return {"n_best": n_best, "is_truncated": row["is_truncated"]}

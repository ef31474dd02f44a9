"""LibreTranslate's API, which many programs speak."""

import itertools
from collections.abc import Callable
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from tf_transformer.runs.descriptions import LANGUAGES
from tf_transformer.serving.http import origin
from tf_transformer.serving.http.exchange import while_connected, write
from tf_transformer.serving.http.files import Files, OpenPage
from tf_transformer.serving.http.form import FILE, Upload, read_fields
from tf_transformer.serving.http.origin import Origins
from tf_transformer.serving.http.texts import Document, Texts
from tf_transformer.serving.keys import Keys, bearer
from tf_transformer.serving.languages import Detected, Languages, english_name
from tf_transformer.serving.limits import Refused
from tf_transformer.serving.model import ServedModel
from tf_transformer.serving.tensors import check_size
from tf_transformer.serving.version import Version

PATHS = ("/translate", "/detect", "/languages", "/frontend/settings", "/health", "/translate_file", "/suggest")
TEXT, HTML = "text", "html"


class LibreTranslate:
    """Answers requests of clients of LibreTranslate.

    Args:
        model: what translates.
        texts: translates texts by it.
        origins: of which pages may ask.
        keys: the keys that clients must give.
        files: translates files; None refuses them.
        page: opens a page; None refuses pages.
    """

    def __init__(
        self,
        model: ServedModel,
        texts: Texts,
        origins: Origins,
        keys: Keys,
        files: Files | None,
        page: Callable[[str], OpenPage] | None,
    ):
        self._model, self._texts, self._origins, self._keys = model, texts, origins, keys
        self._files, self._page = files, page

    async def translate(self, request: Request) -> Response:
        """Translate a text or a list of them."""
        fields = await self._fields(request)
        version = self._model.version
        languages = _languages(version)
        q, given = fields.get("q"), _text(fields, "source")
        texts = _texts(q)
        check_size(len(texts), self._model.limits.max_sentences)
        target = _known(languages, _text(fields, "target"))
        form = fields.get("format") or TEXT
        formats = (TEXT, HTML) if self._page else (TEXT,)
        if form not in formats:
            raise Refused(400, f"{str(form)[:100]} format is not supported: give one of {', '.join(formats)}")
        most = _count(fields.get("alternatives"))
        detected: list[Detected | None] = [None] * len(texts)
        if given == "auto":
            detected = await while_connected(request, self._model.run(lambda _: languages.detect_all(texts)))
            if None in detected:
                raise Refused(400, "no language of this model can be detected: give 'source'")
        sources = [_known(languages, one.language if one else given) for one in detected]
        page = self._page if form == HTML else None
        answers = await self._translated(request, version, languages, texts, sources, target, page)
        answer: dict[str, Any] = {"translatedText": [text for text, _ in answers]}
        if given == "auto":
            answer["detectedLanguage"] = [_shown(one) for one in detected if one]
        if most is not None:
            answer["alternatives"] = [others[:most] for _, others in answers]
        return write(answer if isinstance(q, list) else {name: one for name, [one] in answer.items()})

    async def detect(self, request: Request) -> Response:
        """Return the languages that a text may be in, the most probable first."""
        fields = await self._fields(request)
        text = "\n".join(_texts(fields.get("q")))
        languages = _languages(self._model.version)
        found = await while_connected(request, self._model.run(lambda _: languages.detect(text)))
        return write([_shown(one) for one in found])

    async def languages(self, _: Request) -> Response:
        """List the languages, and into which others each is translated."""
        languages = Languages(self._model.version)
        return write([_named(code) | {"targets": languages.targets(code)} for code in languages.names])

    async def settings(self, _: Request) -> Response:
        """Say what a page that uses the API must know."""
        languages = Languages(self._model.version)
        source, target = self._model.version.direction
        chosen = {"source": source, "target": target}
        codes = {side: languages.find(name) if name else None for side, name in chosen.items()}
        return write(
            {
                "charLimit": self._model.limits.max_body,
                "frontendTimeout": 500,
                "apiKeys": self._keys.are_wanted,
                "keyRequired": self._keys.are_wanted,
                "suggestions": False,
                "filesTranslation": self._files is not None,
                "supportedFilesFormat": list(self._files.kinds.endings) if self._files else [],
                "language": {side: _named(code) if code else None for side, code in codes.items()},
            }
        )

    async def health(self, _: Request) -> Response:
        """Say that the server is up."""
        return write({"status": "ok"})

    async def translate_file(self, request: Request) -> Response:
        """Translate a file, and say where its translation can be downloaded."""
        if self._files is None:
            raise Refused(
                403, "Files translation are disabled on this server: use tf-transformer translate --input FILE"
            )
        limits = self._model.limits
        fields = await self._fields(request, limits.max_file + limits.max_body)
        version = self._model.version
        languages = _languages(version)
        target, given = _known(languages, _text(fields, "target")), _text(fields, "source")
        upload = fields.get(FILE)
        if not isinstance(upload, Upload) or not upload.name:
            raise Refused(400, "Invalid request: missing file parameter")
        file = await self._files.opened(request, upload, None if given == "auto" else given, target)
        if given == "auto":
            text = "\n".join(file.texts)[: limits.max_body]
            detected = await while_connected(request, self._model.run(lambda _: languages.detect(text)))
            if not detected:
                raise Refused(400, "no language of this model can be detected: give 'source'")
            given = detected[0].language
        source = _known(languages, given)
        _check_direction(languages, source, target)
        content, lost = upload.content, 0
        if source != target:
            asked = dict(zip(LANGUAGES, (languages.names[source], languages.names[target]), strict=True))
            content, lost = await self._files.translated(request, version, file, asked)
        url = self._files.kept(request, upload.name, target, content)
        return write({"translatedFileUrl": url, "textsWithLostTags": lost})

    async def suggest(self, request: Request) -> Response:
        """Refuse a suggestion, as LibreTranslate does where these are turned off."""
        await self._fields(request)
        raise Refused(403, "Suggestions are disabled on this server.")

    async def _fields(self, request: Request, most: int | None = None) -> dict[str, Any]:
        """Return the fields of a request that may ask, and whose body may have `most` bytes, or as many as usual."""
        origin.check(request.headers, self._origins)
        fields = await read_fields(request, self._model.limits, most)
        key = fields.get("api_key")
        self._keys.check(key if isinstance(key, str) and key else bearer(request.headers))
        return fields

    async def _translated(
        self,
        request: Request,
        version: Version,
        languages: Languages,
        texts: list[str],
        sources: list[str],
        target: str,
        page: Callable[[str], OpenPage] | None,
    ) -> list[tuple[str, list[str]]]:
        """Return for each text its translation and the others that were found. What is in the target language stays.

        If the texts are pages, `page` opens them, and there are no others.
        """
        done = [(text, list[str]()) for text in texts]
        for source in dict.fromkeys(sources):
            _check_direction(languages, source, target)
        for source in dict.fromkeys(sources):
            if source == target:
                continue
            places = [i for i, one in enumerate(sources) if one == source]
            asked = dict(zip(LANGUAGES, (languages.names[source], languages.names[target]), strict=True))
            given = [texts[i] for i in places]
            if page:
                found = [(text, list[str]()) for text in await self._pages(request, version, page, given, asked)]
            else:
                documents = await self._texts.documents(request, version, given, asked)
                found = [(document.translation, _alternatives(document)) for document in documents]
            for i, one in zip(places, found, strict=True):
                done[i] = one
        return done

    async def _pages(
        self,
        request: Request,
        version: Version,
        page: Callable[[str], OpenPage],
        texts: list[str],
        asked: dict[str, str],
    ) -> list[str]:
        """Return pages with the translations of their texts. They are cut and written outside the event loop."""
        pages = await while_connected(request, self._model.run(lambda _: [page(text) for text in texts]))
        flat = list(itertools.chain.from_iterable(page.texts for page in pages))
        documents = iter(await self._texts.documents(request, version, flat, asked, has_markup=True))

        def written(_: object) -> list[str]:
            return [
                page.written([document.translation for document in itertools.islice(documents, len(page.texts))])
                for page in pages
            ]

        return await while_connected(request, self._model.run(written))


def _languages(version: Version) -> Languages:
    languages = Languages(version)
    if not languages.names:
        raise Refused(400, "this export does not say its languages: train or import it with --source and --target")
    return languages


def _texts(q: Any) -> list[str]:
    """Return the texts that a request has in `q`."""
    texts = q if isinstance(q, list) else [q] if q else []
    if not texts:
        raise Refused(400, "Invalid request: missing q parameter")
    if not all(isinstance(text, str) for text in texts):
        raise Refused(400, "Invalid request: q must be a text or a list of texts")
    return texts


def _text(fields: dict[str, Any], name: str) -> str:
    value = fields.get(name)
    if not value:
        raise Refused(400, f"Invalid request: missing {name} parameter")
    if not isinstance(value, str):
        raise Refused(400, f"Invalid request: {name} must be the code of a language. Received: {str(value)[:100]}")
    return value


def _known(languages: Languages, asked: str) -> str:
    code = languages.find(asked)
    if code is None:
        raise Refused(400, f"{asked[:100]} is not supported: give one of {', '.join(languages.names)}"[:1000])
    return code


def _check_direction(languages: Languages, source: str, target: str) -> None:
    if target not in languages.targets(source):
        raise Refused(
            400,
            f"{english_name(target)} ({target}) is not available as a target language from "
            f"{english_name(source)} ({source})",
        )


def _count(given: Any) -> int | None:
    """Return how many alternatives are asked for, or None if there is no word of them."""
    if given in (None, ""):
        return None
    text = str(given)
    if isinstance(given, bool) or not (text.isascii() and text.isdigit() and len(text) < 10):
        raise Refused(400, f"Invalid request: alternatives must be a number of at least 0. Received: {text[:100]}")
    return int(text)


def _alternatives(document: Document) -> list[str]:
    """Return the other translations of a text: the n-th has the n-th of each sentence, or the last that there is."""
    found = [
        [one for one, score in zip(part.row["translations"], part.row["scores"], strict=True) if score > float("-inf")]
        for part in document.parts
    ]
    most = max(map(len, found), default=0)
    return [document.joined([of_one[min(n, len(of_one) - 1)] for of_one in found]) for n in range(1, most)]


def _shown(detected: Detected) -> dict[str, Any]:
    return {"confidence": detected.confidence, "language": detected.language}


def _named(code: str) -> dict[str, Any]:
    return {"code": code, "name": english_name(code)}

"""Files that clients send to be translated, as LibreTranslate takes them."""

import asyncio
import itertools
import mimetypes
import secrets
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import PurePath
from typing import NamedTuple, Protocol
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response

from tf_transformer.errors import InputError
from tf_transformer.serving.http.exchange import while_connected, write_error
from tf_transformer.serving.http.form import Upload
from tf_transformer.serving.http.texts import Texts
from tf_transformer.serving.limits import Refused
from tf_transformer.serving.model import ServedModel
from tf_transformer.serving.version import Version

PATH = "/download_file/"
SECONDS = 1800
"""How long a translation can be downloaded."""
MOST = 8
"""All kept translations together may have the size of this many files of the largest allowed size; beyond it the oldest
are deleted."""


class OpenFile(Protocol):
    """A file whose texts are translated."""

    texts: list[str]
    """each in one line, in which tags are marks"""

    def written(self, translations: Iterable[str]) -> tuple[bytes, int]:
        """Return the file with translations, and how many texts stay, because their tags could not be put back."""


class OpenPage(Protocol):
    """A page whose texts are translated."""

    texts: list[str]
    """as those of a file"""

    def written(self, translations: Iterable[str]) -> str:
        """Return the page with translations."""


class FileKinds(NamedTuple):
    """The files and pages that can be translated."""

    endings: tuple[str, ...]
    """of the names of the files; where there are none, files are refused"""
    open: Callable[[str, bytes, str | None, str], OpenFile]
    """is given the name, the content, and the codes of source, if it is known, and target; raises InputError"""
    page: Callable[[str], OpenPage]
    """is given a page, or a part of one, that is sent as text"""


class Files:
    """Translates files, and keeps the translations for a while, in memory.

    Args:
        model: what translates.
        texts: translates texts by it.
        kinds: the files.
    """

    def __init__(self, model: ServedModel, texts: Texts, kinds: FileKinds):
        self.kinds = kinds
        self._model, self._texts = model, texts
        self._done: dict[str, bytes] = {}

    async def opened(self, request: Request, upload: Upload, source: str | None, target: str) -> OpenFile:
        """Open what a client has sent.

        Raises:
            Refused: it is no file that can be translated.
        """
        if not upload.name.lower().endswith(self.kinds.endings):
            raise Refused(
                400, f"Invalid request: file format not supported: give one of {', '.join(self.kinds.endings)}"
            )
        if len(upload.content) > self._model.limits.max_file:
            raise Refused(413, f"a file may have at most {self._model.limits.max_file} bytes")

        def opened(_: object) -> OpenFile:
            try:
                return self.kinds.open(upload.name, upload.content, source, target)
            except InputError as error:
                raise Refused(400, str(error)) from None

        return await while_connected(request, self._model.run(opened))

    async def translated(
        self, request: Request, version: Version, file: OpenFile, asked: dict[str, str]
    ) -> tuple[bytes, int]:
        """Return a file with the translations of its texts, some of which are translated at once."""
        translations: list[str] = []
        limits = self._model.limits
        for some in _chunks(file.texts, limits.max_tokens, max(limits.max_sentences // 4, 1)):
            found = await self._texts.documents(request, version, some, asked, has_markup=True)
            translations += [document.translation for document in found]

        def written(_: object) -> tuple[bytes, int]:
            try:
                return file.written(translations)
            except InputError as error:
                raise Refused(400, str(error)) from None

        return await while_connected(request, self._model.run(written))

    def kept(self, request: Request, name: str, target: str, content: bytes) -> str:
        """Keep a translation of a file of this name, and return where it can be downloaded."""
        path = PurePath(name)
        name = f"{secrets.token_urlsafe(16)}.{path.stem}_{target}{path.suffix}"
        self._done[name] = content
        while len(self._done) > 1 and sum(map(len, self._done.values())) > MOST * self._model.limits.max_file:
            del self._done[next(iter(self._done))]
        asyncio.get_running_loop().call_later(SECONDS, self._done.pop, name, None)
        # A proxy that ends TLS says so. Whoever lies about it gets the link themselves.
        scheme = request.headers.get("x-forwarded-proto", "").partition(",")[0].strip().lower()
        base = request.base_url.replace(scheme=scheme) if scheme in ("http", "https") else request.base_url
        return f"{str(base).rstrip('/')}{PATH}{quote(name)}"

    async def download(self, request: Request) -> Response:
        """Give a translation to whoever knows its name, which nobody guesses."""
        name = request.path_params["name"]
        content = self._done.get(name)
        if content is None:
            return write_error(404, "there is no such file, or no longer")
        shown = quote(name.partition(".")[2])
        headers = {"Content-Disposition": f"attachment; filename*=UTF-8''{shown}", "X-Content-Type-Options": "nosniff"}
        kind = mimetypes.guess_type(name)[0] or "application/octet-stream"
        return Response(content, media_type=kind, headers=headers)


def _chunks(texts: Sequence[str], most_bytes: int, most: int) -> Iterator[list[str]]:
    """Yield texts, so many at once as stay within both limits; a longer one alone."""
    sums = itertools.accumulate(len(text.encode("utf-8", "replace")) for text in texts)
    chunk: list[str] = []
    before = last = 0
    for text, end in zip(texts, sums, strict=True):
        if chunk and (end - before > most_bytes or len(chunk) == most):
            yield chunk
            chunk, before = [], last
        chunk.append(text)
        last = end
    if chunk:
        yield chunk

"""Middleware between the HTTP server and the application."""

import logging
import time

from starlette.datastructures import MutableHeaders
from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tf_transformer.serving.http.files import PATH as DOWNLOADS
from tf_transformer.serving.http.libretranslate import PATHS
from tf_transformer.serving.http.origin import Origins

ACCESS = "tf_transformer.access"
"""The name of the log of requests, which has one line for each."""

access = logging.getLogger(ACCESS)


class AccessLog:
    """Logs each request when it has been answered."""

    def __init__(self, app: ASGIApp):
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""
        started = time.perf_counter()
        status = 500

        async def sent(message: Message) -> None:
            nonlocal status
            status = message.get("status", status)
            await send(message)

        try:
            await self._app(scope, receive, sent)
        finally:
            if scope["type"] == "http":
                # The path as it was sent, because its escapes may stand for line feeds.
                path = scope["raw_path"].decode("ascii", "replace")
                milliseconds = 1000 * (time.perf_counter() - started)
                access.info("rest %s %s %d %.1f ms", scope["method"], path, status, milliseconds)


class Cors:
    """Lets pages of other origins use the API, but nothing else."""

    def __init__(self, app: ASGIApp, origins: Origins):
        self._app = app
        self._allowing = CORSMiddleware(
            app, allow_origins=origins, allow_methods=("GET", "POST"), allow_headers=("Content-Type", "Authorization")
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""
        is_api = scope["type"] == "http" and (scope["path"].startswith(("/v1/", DOWNLOADS)) or scope["path"] in PATHS)
        await (self._allowing if is_api else self._app)(scope, receive, send)


class LastAnswers:
    """Once `is_ending` is set, tells clients that their connection closes after the answer."""

    def __init__(self, app: ASGIApp):
        self._app = app
        self.is_ending = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""

        async def sent(message: Message) -> None:
            if self.is_ending and message["type"] == "http.response.start":
                MutableHeaders(scope=message)["Connection"] = "close"
            await send(message)

        await self._app(scope, receive, sent)

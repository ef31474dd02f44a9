"""TensorFlow Serving's REST API over a model, and the page."""

import asyncio
import json
import logging
import time
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from importlib.resources import files
from typing import Any, TypeVar

import numpy as np
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from tf_transformer.serving import json_form, origin
from tf_transformer.serving.limits import Refused
from tf_transformer.serving.model import Model
from tf_transformer.serving.openapi import description
from tf_transformer.serving.signatures import DEFAULT

Answer = TypeVar("Answer")
Handler = Callable[[Request], Awaitable[Response]]

PAGE = {"": "text/html", "page.css": "text/css", "page.js": "text/javascript"}
"""The files of the page, of which the first is index.html."""
PAGE_HEADERS = {
    # Nothing from elsewhere, and nowhere inside a foreign page.
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; "
    "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}

log = logging.getLogger(__name__)


def make_app(model: Model) -> Starlette:
    """Return the application that serves a model."""
    api = _Api(model)
    one, version = "/v1/models/{name}", "/v1/models/{name}/versions/{number}"
    routes = [Route(f"/{name}", _file(name or "index.html", kind)) for name, kind in PAGE.items()]
    for path in (one, version):
        routes += [
            Route(f"{path}:predict", api.counted(api.predict), methods=["POST"]),
            # Otherwise the path would name a model.
            Route(f"{path}:predict", _post_only, methods=["GET"]),
            Route(f"{path}/metadata", api.counted(api.metadata)),
            Route(path, api.counted(api.status)),
        ]
    routes += [
        Route("/page/translate", api.counted(api.translate), methods=["POST"]),
        Route("/openapi.json", api.openapi),
        Route("/metrics", api.metrics),
        Route("/healthz", api.health),
    ]
    app = Starlette(routes=routes, exception_handlers={HTTPException: _http_error, Exception: _crash})
    # It would send clients on to an address that they have named themselves.
    app.router.redirect_slashes = False
    return app


class _Api:
    def __init__(self, model: Model):
        self._model = model

    def counted(self, handler: Handler) -> Handler:
        """Return a handler that answers what is refused, and is counted."""

        async def handle(request: Request) -> Response:
            started = time.perf_counter()
            status = 500
            try:
                response = await handler(request)
                status = response.status_code
            except Refused as refused:
                status = refused.status
                response = _error(refused.status, str(refused))
            except ClientDisconnect:
                status = 499
                response = _error(400, "the client has gone")  # which nobody reads
            finally:
                self._model.metrics.requests.labels("rest", str(status)).inc()
                self._model.metrics.seconds.labels("rest").observe(time.perf_counter() - started)
            return response

        return handle

    async def predict(self, request: Request) -> Response:
        origin.check(request.headers)
        version = self._model.find(*_servable(request))
        body = json_form.parse(await self._body(request))
        signature = body.get("signature_name", "")
        if not isinstance(signature, str):
            raise Refused(400, f"'signature_name' must be a string. Received: {type(signature).__name__}")
        signature = signature or DEFAULT
        self._model.check_signature(version, signature)
        columns = json_form.columns_of(body, version.signatures.inputs[signature])
        by_rows = "instances" in body
        return await _while_connected(
            request,
            self._model.predict(version, signature, columns, lambda outputs: _json(json_form.answer(outputs, by_rows))),
        )

    async def status(self, request: Request) -> Response:
        version = self._model.find(*_servable(request))
        ok = {"error_code": "OK", "error_message": ""}
        return _json({"model_version_status": [{"version": str(version.number), "state": "AVAILABLE", "status": ok}]})

    async def metadata(self, request: Request) -> Response:
        version = self._model.find(*_servable(request))
        spec = {"name": self._model.name, "signature_name": "", "version": str(version.number)}
        return _json({"model_spec": spec, "metadata": version.signatures.metadata})

    async def translate(self, request: Request) -> Response:
        """Answer the page: one sentence, with all that there is to show of it."""
        origin.check(request.headers)
        kind = request.headers.get("content-type", "")
        if kind.partition(";")[0].strip().lower() != "application/json":
            raise Refused(415, f"the body must be of type application/json. Received: {kind[:100]!r}")
        text = json_form.parse(await self._body(request)).get("text")
        if not isinstance(text, str) or not text.strip():
            raise Refused(400, "give 'text', a sentence")
        columns = json_form.columns_of({"inputs": [text]}, ("text",))
        shown: dict[str, Any] = {}
        version = self._model.version
        for signature in ("translate_n_best", "translate_with_attention"):
            self._model.check_signature(version, signature)
            answering = self._model.predict(version, signature, columns, partial(json_form.answer, by_rows=True))
            shown |= (await _while_connected(request, answering))["predictions"][0]
        # Where a search found fewer, the rest is empty.
        found = zip(shown["translations"], shown["scores"], strict=True)
        n_best = [{"translation": t, "score": s} for t, s in found if np.isfinite(s)]
        keys = ("translation", "source_tokens", "target_tokens", "attention", "is_truncated")
        return _json({key: shown[key] for key in keys} | {"n_best": n_best, "version": version.number})

    async def openapi(self, _: Request) -> Response:
        return _json(description(self._model))

    async def metrics(self, _: Request) -> Response:
        return Response(self._model.metrics.text(), media_type="text/plain; version=0.0.4")

    async def health(self, _: Request) -> Response:
        return Response("ok\n", media_type="text/plain")

    async def _body(self, request: Request) -> bytes:
        most, seconds = self._model.limits.max_body, self._model.limits.timeout
        too_large = Refused(413, f"the body may have {most} bytes")
        if int(request.headers.get("content-length", "0")) > most:
            raise too_large
        body = b""
        try:
            async with asyncio.timeout(seconds):
                async for chunk in request.stream():
                    body += chunk
                    if len(body) > most:
                        raise too_large
        except TimeoutError:
            raise Refused(408, f"the body took more than {seconds:g} s") from None
        return body


async def _while_connected(request: Request, answering: Coroutine[Any, Any, Answer]) -> Answer:
    """Wait for an answer, and give it up when the client goes.

    Raises:
        ClientDisconnect: it has gone.
    """
    answer, gone = asyncio.ensure_future(answering), asyncio.ensure_future(_until_gone(request))
    try:
        await asyncio.wait((answer, gone), return_when=asyncio.FIRST_COMPLETED)
        if answer.done():
            return answer.result()
        raise ClientDisconnect
    finally:
        answer.cancel()
        gone.cancel()


async def _until_gone(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _servable(request: Request) -> tuple[str, int | None]:
    """Return the name and the number that a path has."""
    name, number = request.path_params["name"], request.path_params.get("number")
    if number is None:
        return name, None
    if not (number.isascii() and number.isdigit()):
        raise Refused(400, f"a version is a number. Received: {number[:100]!r}")
    return name, int(number[:20])  # of more digits there is none, and Python refuses to read very many


def _file(name: str, kind: str) -> Handler:
    text = (files("tf_transformer.serving") / "page" / name).read_bytes()

    async def give(_: Request) -> Response:
        return Response(text, media_type=kind, headers=PAGE_HEADERS)

    return give


def _json(answer: dict[str, Any], status: int = 200, headers: Any = None) -> Response:
    # As TensorFlow Serving, it writes -Infinity where a number is that.
    text = json.dumps(answer, ensure_ascii=False, separators=(",", ":"))
    return Response(text.encode("utf-8", "replace"), status, media_type="application/json", headers=headers)


def _error(status: int, message: str, headers: Any = None) -> Response:
    return _json({"error": message}, status, headers)


async def _post_only(_: Request) -> Response:
    raise HTTPException(405, headers={"Allow": "POST"})


async def _http_error(_: Request, error: Any) -> Response:
    return _error(error.status_code, error.detail, error.headers)


async def _crash(request: Request, _: Exception) -> Response:
    return _error(500, f"the server failed at {request.method} {request.url.path[:200]}; its log says why")

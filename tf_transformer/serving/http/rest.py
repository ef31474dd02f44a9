"""TensorFlow Serving's REST API for a model, and the web page."""

import logging
import time
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from tf_transformer.runs.signatures import DEFAULT
from tf_transformer.serving.http import json_form, origin, page_api
from tf_transformer.serving.http.exchange import Handler, read, while_connected, write, write_error
from tf_transformer.serving.http.files import PATH, FileKinds, Files
from tf_transformer.serving.http.libretranslate import LibreTranslate
from tf_transformer.serving.http.middleware import AccessLog, Cors
from tf_transformer.serving.http.openapi import description
from tf_transformer.serving.http.origin import Origins
from tf_transformer.serving.http.texts import Texts
from tf_transformer.serving.keys import Keys
from tf_transformer.serving.limits import Refused
from tf_transformer.serving.model import ServedModel

log = logging.getLogger(__name__)


def make_app(
    model: ServedModel, origins: Origins = frozenset(), keys: Keys | None = None, kinds: FileKinds | None = None
) -> ASGIApp:
    """Return the application that serves a model to programs, to its own page and to pages of the given origins.

    Args:
        model: the model.
        origins: the origins.
        keys: the keys that whoever translates must give; None for none.
        kinds: the files and pages that can be translated; None for none.
    """
    texts, keys = Texts(model), keys or Keys()
    api = _Api(model, origins, texts, keys)
    files = Files(model, texts, kinds) if kinds and kinds.endings else None
    libre = LibreTranslate(model, texts, origins, keys, files, kinds.page if kinds else None)
    one, version = "/v1/models/{name}", "/v1/models/{name}/versions/{number}"
    page = page_api.PageApi(model, texts)
    routes = [Route(f"/{name}", page_api.file(name, kind)) for name, kind in page_api.FILES.items()]
    for path in (one, version):
        routes += [
            Route(f"{path}:predict", api.counted(api.keyed(api.predict)), methods=["POST"]),
            Route(f"{path}:translate", api.counted(api.keyed(api.translate)), methods=["POST"]),
            # Otherwise the paths would be taken for the name of a model.
            Route(f"{path}:predict", _post_only, methods=["GET"]),
            Route(f"{path}:translate", _post_only, methods=["GET"]),
            Route(f"{path}/metadata", api.counted(api.metadata)),
            Route(path, api.counted(api.status)),
        ]
    routes += [
        Route("/page/model", page.model),
        Route("/page/translate", api.counted(api.keyed(page.translate)), methods=["POST"]),
        Route("/page/attention", api.counted(api.keyed(page.attention)), methods=["POST"]),
        Route("/page/steps", api.counted(api.keyed(page.steps)), methods=["POST"]),
        Route("/translate", api.counted(libre.translate), methods=["POST"]),
        Route("/detect", api.counted(libre.detect), methods=["POST"]),
        Route("/languages", libre.languages),
        Route("/frontend/settings", libre.settings),
        Route("/health", libre.health),
        Route("/translate_file", api.counted(libre.translate_file), methods=["POST"]),
        Route("/suggest", api.counted(libre.suggest), methods=["POST"]),
        Route("/openapi.json", api.openapi),
        Route("/metrics", api.metrics),
        Route("/healthz", api.health),
        Route("/readyz", api.readiness),
    ]
    if files:
        routes.append(Route(f"{PATH}{{name}}", api.counted(files.download)))
    app = Starlette(routes=routes, exception_handlers={HTTPException: _http_error, Exception: _crash})
    # A redirect would send clients to an address that they have named themselves.
    app.router.redirect_slashes = False
    return AccessLog(Cors(app, origins) if origins else app)


class _Api:
    def __init__(self, model: ServedModel, origins: Origins, texts: Texts, keys: Keys):
        self._model = model
        self._keys = keys
        self._origins = origins
        self._texts = texts

    def counted(self, handler: Handler) -> Handler:
        """Return a handler that answers refused requests too, and that is counted."""

        async def handle(request: Request) -> Response:
            started = time.perf_counter()
            status = 500
            try:
                response = await handler(request)
                status = response.status_code
            except Refused as refused:
                status = refused.status
                response = write_error(refused.status, str(refused))
            except ClientDisconnect:
                status = 499
                response = write_error(status, "the client has disconnected")  # which nobody reads
            except Exception as error:
                response = await _crash(request, error)
            finally:
                self._model.metrics.count_answer("rest", status, time.perf_counter() - started)
            return response

        return handle

    def keyed(self, handler: Handler) -> Handler:
        """Return a handler for clients with a key in a header."""

        async def handle(request: Request) -> Response:
            self._keys.check_headers(request.headers)
            return await handler(request)

        return handle

    async def predict(self, request: Request) -> Response:
        origin.check(request.headers, self._origins)
        version = self._model.find(*_servable(request))
        body = await read(request, self._model.limits)
        signature = body.get("signature_name", "")
        if not isinstance(signature, str):
            raise Refused(400, f"'signature_name' must be a string. Received: {type(signature).__name__}")
        signature = signature or DEFAULT
        self._model.check_signature(version, signature)
        columns = json_form.columns_of(body, version.signatures.inputs[signature])
        by_rows = "instances" in body
        return await while_connected(
            request,
            self._model.predict(version, signature, columns, lambda outputs: write(json_form.answer(outputs, by_rows))),
        )

    async def translate(self, request: Request) -> Response:
        """Translate a text as it is written; TensorFlow Serving has nothing like it."""
        version = self._model.find(*_servable(request))
        text, asked = await self._texts.asked(request, self._origins)
        document = await self._texts.document(request, version, text, asked)
        parts = [{"text": part.sentence.source, "translation": part.translation} for part in document.parts]
        return write({"translation": document.translation, "sentences": parts})

    async def status(self, request: Request) -> Response:
        version = self._model.find(*_servable(request))
        ok = {"error_code": "OK", "error_message": ""}
        return write({"model_version_status": [{"version": str(version.number), "state": "AVAILABLE", "status": ok}]})

    async def metadata(self, request: Request) -> Response:
        version = self._model.find(*_servable(request))
        spec = {"name": self._model.name, "signature_name": "", "version": str(version.number)}
        return write({"model_spec": spec, "metadata": version.signatures.metadata})

    async def openapi(self, _: Request) -> Response:
        return write(description(self._model))

    async def metrics(self, _: Request) -> Response:
        return Response(self._model.metrics.text(), media_type="text/plain; version=0.0.4")

    async def health(self, _: Request) -> Response:
        return Response("ok\n", media_type="text/plain")

    async def readiness(self, _: Request) -> Response:
        version = self._model.version
        cold = sorted(version.cold)
        warm = sorted(version.signatures.inputs.keys() - cold)
        return write({"version": version.number, "warm": warm, "cold": cold}, 503 if cold else 200)


def _servable(request: Request) -> tuple[str, int | None]:
    """Return the name of the model and the number of the version in a path."""
    name, number = request.path_params["name"], request.path_params.get("number")
    if number is None:
        return name, None
    if not (number.isascii() and number.isdigit()):
        raise Refused(400, f"a version must be a number. Received: {number[:100]!r}")
    return name, int(number[:20])  # no version has more digits, and Python refuses to read very many


async def _post_only(_: Request) -> Response:
    raise HTTPException(405, headers={"Allow": "POST"})


async def _http_error(_: Request, error: Any) -> Response:
    return write_error(error.status_code, error.detail, error.headers)


async def _crash(request: Request, error: Exception) -> Response:
    log.error("the server failed", exc_info=error)
    return write_error(500, f"the server failed at {request.method} {request.url.path[:200]}; its log says why")

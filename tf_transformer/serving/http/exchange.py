"""What all HTTP handlers share: reading a request, watching its client and writing an answer."""

import asyncio
import json
import zlib
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from tf_transformer.serving.http import json_form
from tf_transformer.serving.limits import Limits, Refused

Handler = Callable[[Request], Awaitable[Response]]
Answer = TypeVar("Answer")


async def read(request: Request, limits: Limits) -> dict[str, Any]:
    """Return the JSON object in the body of a request.

    Raises:
        Refused: the body is too large, too slow, or not a JSON object.
        ClientDisconnect: the client has disconnected.
    """
    return json_form.parse(await read_bytes(request, limits))


async def read_bytes(request: Request, limits: Limits, most: int | None = None) -> bytes:
    """Return the body of a request, which may have `most` bytes, or else as many as the limits say.

    As TensorFlow Serving does, it unpacks gzip. The limit is that of the packed and of the unpacked body.

    Raises:
        Refused: the body is too large or too slow, or packed in another way.
        ClientDisconnect: the client has disconnected.
    """
    most, seconds = most or limits.max_body, limits.timeout
    too_large = Refused(413, f"the body may have at most {most} bytes")
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
    packing = request.headers.get("content-encoding", "identity").strip().lower()
    if packing == "identity":
        return body
    if packing not in ("gzip", "x-gzip"):
        raise Refused(415, f"send the body without Content-Encoding, or packed by gzip. Received: {packing[:100]}")
    unpacking = zlib.decompressobj(wbits=16 + zlib.MAX_WBITS)
    try:
        body = unpacking.decompress(body, most + 1)
    except zlib.error:
        raise Refused(400, "the body is not gzip, as its Content-Encoding says") from None
    if len(body) > most:
        raise too_large
    if not unpacking.eof:
        raise Refused(400, "the body is not complete gzip, as its Content-Encoding says")
    return body


async def while_connected(request: Request, answering: Coroutine[Any, Any, Answer]) -> Answer:
    """Wait for an answer, and cancel it if the client disconnects.

    Raises:
        ClientDisconnect: the client has disconnected.
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


def write(answer: dict[str, Any] | list[Any], status: int = 200, headers: Any = None) -> Response:
    """Return an answer in JSON. Like TensorFlow Serving, it writes minus infinity as -Infinity."""
    text = json.dumps(answer, ensure_ascii=False, separators=(",", ":"))
    return Response(text.encode("utf-8", "replace"), status, media_type="application/json", headers=headers)


def write_error(status: int, message: str, headers: Any = None) -> Response:
    """Return an error in the form that TensorFlow Serving uses."""
    return write({"error": message}, status, headers)


async def _until_gone(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass

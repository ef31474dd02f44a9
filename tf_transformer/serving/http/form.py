"""Fields in the forms that clients of LibreTranslate send: JSON, or what a browser sends for an HTML form."""

import asyncio
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import HTTP
from pathlib import PurePath
from typing import Any, NamedTuple
from urllib.parse import parse_qsl

from starlette.requests import Request

from tf_transformer.serving.http import json_form
from tf_transformer.serving.http.exchange import read_bytes
from tf_transformer.serving.limits import Limits, Refused

FILE = "file"
"""The field that may hold a file."""
URLENCODED, MULTIPART = "application/x-www-form-urlencoded", "multipart/form-data"


class Upload(NamedTuple):
    """A file in a form."""

    name: str
    """without folders"""
    content: bytes


async def read_fields(request: Request, limits: Limits, most: int | None = None) -> dict[str, Any]:
    """Return the fields of a request by name. What a form gives several times is a list, and a file an `Upload`.

    The body may have `most` bytes, or else as many as the limits say.

    Raises:
        Refused: as `read_bytes`; or the body has another form, or is not UTF-8.
    """
    body = await read_bytes(request, limits, most)
    given = request.headers.get("content-type", "")
    kind = given.partition(";")[0].strip().lower()
    # curl calls what it is given by -d a form, whatever it is; and no form begins like this.
    is_json = kind == URLENCODED and body.lstrip().startswith(b"{")
    if is_json or kind == "application/json" or (kind.startswith("application/") and kind.endswith("+json")):
        return json_form.parse(body)
    try:
        pairs: list[tuple[str, str | Upload]] = [*parse_qsl(request.url.query, keep_blank_values=True, errors="strict")]
        if kind == URLENCODED:
            pairs += parse_qsl(body.decode("utf-8"), keep_blank_values=True, errors="strict")
        elif kind == MULTIPART:
            pairs += await asyncio.to_thread(_parts, given, body)
        elif body:
            raise Refused(
                400,
                f"the body must be of type application/json, {URLENCODED} or {MULTIPART}. Received: {given[:100]!r}",
            )
    except (ValueError, RecursionError):  # UnicodeDecodeError is a ValueError
        raise Refused(400, "the form cannot be read: it must be UTF-8, with boundaries as its type says") from None
    fields: dict[str, Any] = {}
    for name, value in pairs:
        if name not in fields:
            fields[name] = value
        elif isinstance(fields[name], list):
            fields[name].append(value)
        else:
            fields[name] = [fields[name], value]
    return fields


def _parts(kind: str, body: bytes) -> list[tuple[str, str | Upload]]:
    message = message_from_bytes(f"Content-Type: {kind}\r\n\r\n".encode("latin-1") + body, EmailMessage, policy=HTTP)
    if not message.is_multipart():
        raise ValueError("no boundary")
    found: list[tuple[str, str | Upload]] = []
    for part in message.iter_parts():
        content = part.get_payload(decode=True)
        if not isinstance(content, bytes):
            raise ValueError("a part in parts")
        name, file = str(part.get_param("name", "", "content-disposition")), part.get_filename()
        is_file = name == FILE and file is not None
        found.append((name, Upload(_plain(str(file)), content) if is_file else content.decode("utf-8")))
    return found


def _plain(name: str) -> str:
    """Return the name of a file without folders and what cannot be shown."""
    return "".join(filter(str.isprintable, PurePath(name.replace("\\", "/")).name))[-100:]

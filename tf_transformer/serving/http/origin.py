"""Checking from whose page a request comes, because a browser lets any page send requests to any server."""

from collections.abc import Iterable, Mapping
from urllib.parse import urlsplit

from tf_transformer.errors import InputError
from tf_transformer.serving.limits import Refused

PORTS = {"http": 80, "https": 443}
ANY = "*"

Origins = frozenset[str]
"""The origins whose pages may use a server, such as https://app.example:8443; `ANY` stands for all."""


def origins(given: Iterable[str]) -> Origins:
    """Return the origins that a user names.

    Raises:
        InputError: one of them is not an origin.
    """
    for origin in given:
        if origin != ANY and not _is_origin(origin):
            raise InputError(
                f"an origin must be like https://app.example or http://localhost:3000. Received: {origin!r}"
            )
    return frozenset(given)


def check(headers: Mapping[str, str], allowed: Origins = frozenset()) -> None:
    """Raise Refused if a browser sends a request for a page of another origin that is not allowed.

    Browsers say so in `Sec-Fetch-Site`, which they send to https addresses and to this machine. Without it, `Origin`
    must have the address that the request was sent to. Programs send neither, and are let through.
    """
    origin = headers.get("origin", "")
    site = headers.get("sec-fetch-site", "")
    is_ours = site in ("same-origin", "none") if site else not origin or _is_at(origin, headers.get("host", ""))
    if not is_ours and ANY not in allowed and origin not in allowed:
        received = f"Origin: {origin}" if origin else f"Sec-Fetch-Site: {site}"
        raise Refused(403, f"a page of another origin may not use this server. Received: {received}"[:500])


def _is_origin(text: str) -> bool:
    try:
        parts = urlsplit(text)
        return bool(parts.hostname) and text == f"{parts.scheme}://{parts.netloc}".lower()
    except ValueError:
        return False  # not an address


def _is_at(origin: str, host: str) -> bool:
    """Return whether an origin, such as http://localhost:8501, has the address that `Host` names."""
    try:
        theirs, ours = urlsplit(origin), urlsplit(f"//{host}")
        default = PORTS.get(theirs.scheme)
        same_port = (theirs.port or default) == (ours.port or default)
        return theirs.hostname is not None and theirs.hostname == ours.hostname and same_port
    except ValueError:
        return False  # not an address

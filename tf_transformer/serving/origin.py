"""From whose page a request comes: a browser sends those of any page to any server."""

from collections.abc import Mapping
from urllib.parse import urlsplit

from tf_transformer.serving.limits import Refused

PORTS = {"http": 80, "https": 443}


def check(headers: Mapping[str, str]) -> None:
    """Raise Refused where a browser sends what the page of another origin asks for.

    `Sec-Fetch-Site` says so in browsers that send it, which is to https and to this machine; elsewhere `Origin` must
    have the address that the request was sent to. Programs send neither, and are let through.
    """
    origin = headers.get("origin", "")
    site = headers.get("sec-fetch-site", "")
    is_ours = site in ("same-origin", "none") if site else not origin or _is_at(origin, headers.get("host", ""))
    if not is_ours:
        received = f"Sec-Fetch-Site: {site}" if site else f"Origin: {origin}"
        raise Refused(403, f"a page of another origin may not use this server. Received: {received}"[:500])


def _is_at(origin: str, host: str) -> bool:
    """Return whether an origin, such as http://localhost:8501, has the address that `Host` names."""
    try:
        theirs, ours = urlsplit(origin), urlsplit(f"//{host}")
        default = PORTS.get(theirs.scheme)
        same_port = (theirs.port or default) == (ours.port or default)
        return theirs.hostname is not None and theirs.hostname == ours.hostname and same_port
    except ValueError:
        return False  # no address at all

"""The keys that clients must give, if the server wants any."""

import collections
import hashlib
import re
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from tf_transformer.errors import InputError
from tf_transformer.serving.limits import Refused

MINUTE = 60.0
LIMIT = re.compile("[1-9][0-9]{0,8}")
"""The most requests per minute."""


class Keys:
    """Lets requests through that have a key, as often as the key allows. Without a file, all are let through.

    Args:
        path: a file with a key a line, after which a number may stand: the most requests per minute. Empty lines and
            those that begin with # are skipped.
        now: returns the time, seconds.

    Raises:
        InputError: the file cannot be read, has no key or one twice, or has something else in a line.
    """

    def __init__(self, path: str | Path | None = None, now: Callable[[], float] = time.monotonic):
        self.are_wanted = path is not None
        self._now = now
        # Of a digest, the time of a comparison tells nothing about the key.
        self._most = {_digest(key): most for key, most in (_read(Path(path)) if path else {}).items()}
        self._times: dict[bytes, collections.deque[float]] = collections.defaultdict(collections.deque)

    def check(self, key: str | None) -> None:
        """Let a request with a key through, or raise Refused."""
        if not self.are_wanted:
            return
        if not key:
            raise Refused(403, "this server wants an API key: ask whoever runs it for one")
        digest = _digest(key)
        if digest not in self._most:
            raise Refused(403, "Invalid API key")
        if (most := self._most[digest]) is None:
            return
        times, now = self._times[digest], self._now()
        while times and times[0] <= now - MINUTE:
            times.popleft()
        if len(times) >= most:
            raise Refused(429, f"Slowdown: this API key has {most} requests per minute")
        times.append(now)

    def check_headers(self, headers: Mapping[str, str]) -> None:
        """Do the same with the key of `Authorization: Bearer KEY`."""
        self.check(bearer(headers))


def bearer(headers: Mapping[str, str]) -> str | None:
    """Return the key that stands in the header `Authorization`, if there is one."""
    kind, _, key = headers.get("authorization", "").partition(" ")
    return key.strip() if kind.lower() == "bearer" else None


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest()


def _read(path: Path) -> dict[str, int | None]:
    try:
        lines = path.read_text("utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise InputError(f"{path}: cannot read the API keys: {reason}") from None
    keys: dict[str, int | None] = {}
    for number, line in enumerate(lines, 1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        key, *limit = words
        # A key is a secret, and is not shown in errors.
        if len(limit) > 1 or not all(LIMIT.fullmatch(word) for word in limit):
            raise InputError(
                f"{path}, line {number}: after a key only the most requests per minute may stand, such as 60"
            )
        if key in keys:
            raise InputError(f"{path}, line {number}: the same key stands in an earlier line")
        keys[key] = int(limit[0]) if limit else None
    if not keys:
        raise InputError(f"{path} has no API key: write one a line")
    return keys

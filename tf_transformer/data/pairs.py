"""Pairs of sentences."""

import hashlib
from collections.abc import Iterable
from typing import NamedTuple


class Pairs(NamedTuple):
    """Sentences and their translations, line for line."""

    sources: list[str]
    targets: list[str]

    @classmethod
    def of(cls, pairs: Iterable[tuple[str, str]]) -> "Pairs":
        """Collect pairs that come one by one."""
        rows = list(pairs)
        return cls([source for source, _ in rows], [target for _, target in rows])

    @property
    def fingerprint(self) -> str:
        """A hash of the text. Equal texts have equal fingerprints."""
        digest = hashlib.sha256()
        for side in self:
            digest.update("\n".join(map(escaped, side)).encode("utf-8", "surrogatepass") + b"\0")
        return digest.hexdigest()[:16]


def escaped(text: str) -> str:
    """Return text without line feeds and NULs, so that it can be joined by them before it is hashed.

    Different texts stay different. Text that has no control character stays as it is, and so does its hash.
    """
    if text.isprintable():
        return text
    return text.replace("\x01", "\x01\x01").replace("\n", "\x01n").replace("\0", "\x010")

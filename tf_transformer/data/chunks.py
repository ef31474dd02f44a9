"""Text in chunks of lines, whose bytes are decoded by the process that works on the chunk."""

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Protocol

from tf_transformer.data.pairs import Pairs, escaped
from tf_transformer.storage.lines import decoded

LINES = 131_072
"""The number of lines, or of pairs, in a chunk."""


class Chunk(Protocol):
    """Successive pairs of a corpus, not decoded yet."""

    def read(self) -> tuple[Pairs, dict[str, int]]:
        """Return the pairs, and how many others were left out, by the reason.

        Raises:
            InputError: the text is malformed; the error names file and line.
        """

    def digest(self) -> str:
        """Return a digest of the text."""


@dataclass(frozen=True)
class LinePairs:
    """Successive lines of two files."""

    names: tuple[str, str]
    """names of the files, for errors"""
    first: int
    """number of the first line, from 1"""
    sides: tuple[bytes, bytes]

    def read(self) -> tuple[Pairs, dict[str, int]]:
        """Return the pairs, of which none is left out."""
        sides = [
            list(decoded(split_lines(side), name, self.first))
            for side, name in zip(self.sides, self.names, strict=True)
        ]
        return Pairs(*sides), {}

    def digest(self) -> str:
        """Return a digest of the text."""
        return digest_of(*self.sides)


@dataclass(frozen=True)
class StringPairs:
    """Pairs that are strings already, such as those of a TensorFlow dataset or a translation memory."""

    text: Pairs
    left_out: dict[str, int] = field(default_factory=dict)
    """how many others were left out, by the reason"""

    def read(self) -> tuple[Pairs, dict[str, int]]:
        """Return the pairs, and how many others were left out."""
        return self.text, self.left_out

    def digest(self) -> str:
        """Return a digest of the text."""
        return digest_of(*("\n".join(map(escaped, side)).encode("utf-8", "surrogatepass") for side in self.text))


def sentence_chunks(pairs: Iterable[tuple[str, str]]) -> Iterator[StringPairs]:
    """Yield chunks of pairs that come one by one."""
    rows: list[tuple[str, str]] = []
    for pair in pairs:
        rows.append(pair)
        if len(rows) == LINES:
            yield StringPairs(Pairs.of(rows))
            rows = []
    if rows:
        yield StringPairs(Pairs.of(rows))


def split_lines(block: bytes) -> list[bytes]:
    """Return the lines of a block, without their line feeds."""
    lines = block.split(b"\n")
    return lines if lines[-1] else lines[:-1]


def joined(chunks: Iterable[Chunk]) -> Pairs:
    """Return the pairs of all chunks together."""
    sources: list[str] = []
    targets: list[str] = []
    for chunk in chunks:
        pairs, _ = chunk.read()
        sources += pairs.sources
        targets += pairs.targets
    return Pairs(sources, targets)


def digest_of(*parts: bytes) -> str:
    """Return a digest of byte strings."""
    digest = hashlib.blake2b(digest_size=16)
    for part in parts:
        digest.update(len(part).to_bytes(8) + part)
    return digest.hexdigest()

"""The files of encoded pairs, which are written whole and read block by block through memory maps.

A shard has the pairs of one chunk of a corpus. It begins with their lengths, [n, 2] little-endian uint16. Their ids
follow, uint16 or uint32, with the source and then the target of each pair. A block is up to `BLOCK` successive pairs of
a shard. The table of blocks says where each block is, and has the checksums (CRC-32) of its lengths, its ids and its
text. The text, if it is kept, is one line of JSON per pair, [source, target].
"""

import json
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tf_transformer.data.encoding import EncodedPairs
from tf_transformer.data.pairs import Pairs
from tf_transformer.data.token_pairs import BLOCK, TokenPairs
from tf_transformer.errors import InputError

BLOCKS = np.dtype(
    [
        ("shard", "<u4"),
        ("pair", "<u4"),
        ("pairs", "<u4"),
        ("lengths_crc", "<u4"),
        ("token", "<u8"),
        ("tokens", "<u4"),
        ("ids_crc", "<u4"),
        ("text", "<u8"),
        ("text_bytes", "<u4"),
        ("text_crc", "<u4"),
    ]
)
"""A row of the table of blocks. Besides the checksums it has the number of the shard, the first pair of the block and
the number of pairs, its first token among the ids of the shard and the number of tokens, and its first byte in the text
of the shard and the number of bytes."""
Row = tuple[int, int, int, int, int, int, int, int, int, int]
LENGTH = np.dtype("<u2")
"""The type of the number of tokens of one side of a pair."""


def shard_name(number: int) -> str:
    """Return the name of the file of a shard."""
    return f"{number:05d}.shard"


def text_name(number: int) -> str:
    """Return the name of the file of the text of a shard."""
    return f"{number:05d}.text"


def packed(number: int, encoded: EncodedPairs, text: Pairs | None = None) -> tuple[bytes, bytes, list[Row]]:
    """Return the content of a shard, that of its text, and its rows of the table of blocks.

    Args:
        number: the number of the shard.
        encoded: the pairs of the shard.
        text: the text of these pairs, if it is to be kept.
    """
    lengths = encoded.lengths.astype(LENGTH).reshape(-1, 2)
    ids = encoded.ids.astype(encoded.ids.dtype.newbyteorder("<"))
    ends = np.append(0, np.cumsum(lengths.sum(axis=1, dtype=np.int64)))
    rows, texts, written = [], [], 0
    for first in range(0, len(lengths), BLOCK):
        last = min(first + BLOCK, len(lengths))
        start, end = int(ends[first]), int(ends[last])
        pairs = zip(*(side[first:last] for side in text), strict=True) if text else ()
        lines = "".join(f"{json.dumps(pair, ensure_ascii=False)}\n" for pair in pairs).encode()
        crcs = [zlib.crc32(part) for part in (lengths[first:last].tobytes(), ids[start:end].tobytes(), lines)]
        rows.append((number, first, last - first, crcs[0], start, end - start, crcs[1], written, len(lines), crcs[2]))
        texts.append(lines)
        written += len(lines)
    return lengths.tobytes() + ids.tobytes(), b"".join(texts), rows


class Shards(TokenPairs):
    """The pairs of a prepared corpus. If the corpus is moved, set `folder` to its new place.

    Args:
        folder: the folder of the shards.
        blocks: the table of blocks.
        corpora: the number of the corpus of each shard.
        kind: the type of the ids.
        has_languages: whether each side begins with the token of its language.

    Raises:
        InputError: a file is missing or damaged; raised when a block of it is read.
    """

    def __init__(self, folder: Path, blocks: np.ndarray, corpora: Sequence[int], kind: np.dtype, has_languages: bool):
        numbers = np.array(corpora, np.int64)[blocks["shard"]]
        super().__init__(blocks["pairs"].astype(np.int64), numbers, has_languages=has_languages)
        self.folder = folder
        self._blocks = blocks
        self._kind = kind.newbyteorder("<")
        self._pairs_of = np.bincount(blocks["shard"], blocks["pairs"], len(corpora)).astype(np.int64)

    def lengths(self, block: int) -> np.ndarray:
        """Return the lengths of a block."""
        row = self._blocks[block]
        place = int(row["pair"]) * 2 * LENGTH.itemsize
        values = self._read(row, shard_name, place, int(row["pairs"]) * 2, LENGTH, "lengths_crc")
        return values.reshape(-1, 2)

    def ids(self, block: int) -> np.ndarray:
        """Return the ids of a block."""
        row = self._blocks[block]
        place = int(self._pairs_of[row["shard"]]) * 2 * LENGTH.itemsize + int(row["token"]) * self._kind.itemsize
        return self._read(row, shard_name, place, int(row["tokens"]), self._kind, "ids_crc")

    def text(self, block: int) -> Pairs:
        """Return the text of a block."""
        row = self._blocks[block]
        lines = self._read(row, text_name, int(row["text"]), int(row["text_bytes"]), np.dtype("u1"), "text_crc")
        return Pairs.of(json.loads(line) for line in lines.tobytes().splitlines())

    def _read(self, row: Any, name: Any, place: int, count: int, kind: np.dtype, checksum: str) -> np.ndarray:
        """Return a copy of a part of a file of the block's shard, after comparing its checksum."""
        path = self.folder / name(int(row["shard"]))
        try:
            # The map is released again, because the pages of a mapped file count as memory of the process.
            values = np.array(np.memmap(path, kind, "r", place, (count,)))
        except OSError as error:
            raise InputError(f"cannot read {path}: {error.strerror or error}") from None
        except ValueError:
            values = None
        if values is None or zlib.crc32(values.tobytes()) != row[checksum]:
            raise InputError(
                f"{path} is damaged near byte {place}: copy it again from where it was prepared, or prepare the "
                "corpus again"
            )
        return values

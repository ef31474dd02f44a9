"""The files that encoded pairs lie in: written whole, read block by block through memory maps.

A shard has the pairs of one chunk of a corpus: first their lengths, [n, 2] little-endian uint16, then their ids, uint16
or uint32, of each pair the source and then the target. A block is up to `BLOCK` successive pairs of a shard; the table
of blocks says where it lies, and has the checksums (CRC-32) of its lengths, its ids and its text. The text, where it is
kept, is a line of JSON a pair, [source, target].
"""

import json
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tf_transformer.data.encoding import Encoded
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
"""A row of the table of blocks: the shard; its first pair there, and their number; its first token among the ids of the
shard, and their number; its first byte in the text of the shard, and their number."""
Row = tuple[int, int, int, int, int, int, int, int, int, int]
LENGTH = np.dtype("<u2")
"""Of the tokens of one side of a pair."""


def shard_name(number: int) -> str:
    """Return the name of the file of a shard."""
    return f"{number:05d}.shard"


def text_name(number: int) -> str:
    """Return the name of the file of the text of a shard."""
    return f"{number:05d}.text"


def packed(number: int, encoded: Encoded, text: Pairs | None = None) -> tuple[bytes, bytes, list[Row]]:
    """Return the content of a shard, that of its text, and its rows of the table of blocks.

    Args:
        number: of the shard.
        encoded: its pairs.
        text: of these pairs, if it is to be kept.
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
    """The pairs of a prepared corpus; `folder` may be set to where it has been moved.

    Args:
        folder: of the shards.
        blocks: their table.
        corpora: the number of the corpus that each shard is of.
        kind: type of the ids.
        has_languages: whether each side begins with the token of its language.

    Raises:
        InputError: when a block is read, a file that is missing or damaged.
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
        """Return what lies at a place of a file of the block's shard, as a copy whose checksum is right."""
        path = self.folder / name(int(row["shard"]))
        try:
            # The map is given up again: the pages of a file that stays mapped count as memory of the process.
            values = np.array(np.memmap(path, kind, "r", place, (count,)))
        except OSError as error:
            raise InputError(f"cannot read {path}: {error.strerror or error}") from None
        except ValueError:
            values = None
        if values is None or zlib.crc32(values.tobytes()) != row[checksum]:
            raise InputError(
                f"{path} is damaged, near byte {place}: copy it again from where it was prepared, or prepare the "
                "corpus anew"
            )
        return values

"""Finding the pairs of a whole corpus that equal an earlier pair, in bounded memory."""

import hashlib
import io
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tf_transformer.data.pairs import escaped
from tf_transformer.data.preparing.chosen import Numbered
from tf_transformer.data.preparing.plan import Plan
from tf_transformer.storage.atomic import atomic_write

HASHED = np.dtype([("high", "<u8"), ("low", "<u8"), ("row", "<u4")])
"""A pair: a hash of its text, 128 bits, and its number in the chunk. The pairs of a chunk are sorted by hash."""
AT_ONCE = 4_000_000
"""The approximate number of pairs compared at once, which take 200 MB."""


def directions_of(plan: Plan) -> tuple[str, ...]:
    """Return, for each corpus, a string for its direction, because pairs of different directions are not equal."""
    return tuple(map(str, plan.directions or [()] * len(plan.corpora)))


def hashed(task: Numbered, direction: str) -> np.ndarray:
    """Return the sorted hashes of the pairs of a chunk, as `HASHED`."""
    pairs, _ = task.chunk.read()
    hashes = b"".join(
        hashlib.blake2b(f"{direction}\0{escaped(source)}\0{escaped(target)}".encode(), digest_size=16).digest()
        for source, target in zip(*pairs, strict=True)
    )
    rows = np.empty(len(pairs.sources), HASHED)
    rows["high"], rows["low"] = np.frombuffer(hashes, "<u8").reshape(-1, 2).T
    rows["row"] = np.arange(len(rows))
    return rows[np.argsort(rows["high"], kind="stable")]


def bounds(parts: int) -> np.ndarray:
    """Return the hashes at which parts begin, after the first. Equal hashes are in the same part."""
    return np.array([part * 2**64 // parts for part in range(1, parts)], np.uint64)


def repeated(chunks: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Return, for each chunk, the numbers of its pairs that equal an earlier pair of the same or an earlier chunk.

    Args:
        chunks: for each chunk, its hashes that belong to one part.
    """
    owner = np.repeat(np.arange(len(chunks)), list(map(len, chunks)))
    rows = np.concatenate([np.empty(0, HASHED), *chunks])
    order = np.lexsort((rows["row"], owner, rows["low"], rows["high"]))
    same = (np.diff(rows["high"][order]) == 0) & (np.diff(rows["low"][order]) == 0)
    again = order[1:][same]
    again = again[np.argsort(owner[again], kind="stable")]
    ends = np.searchsorted(owner[again], np.arange(1, len(chunks)))
    return np.split(rows["row"][again], ends)


def packed_bits(count: int, numbers: np.ndarray) -> np.ndarray:
    """Return `count` packed bits, of which those at `numbers` are set."""
    bits = np.zeros(count, bool)
    bits[numbers] = True
    return np.packbits(bits)


@dataclass(frozen=True)
class Hashing:
    """Writes the hashes of the pairs of a chunk."""

    folder: Path
    directions: tuple[str, ...]
    """as `directions_of` returns them"""

    def place(self, number: int) -> Path:
        """Return the file of the hashes of a chunk."""
        return self.folder / f"{number:05d}.hashes.npy"

    def __call__(self, task: Numbered) -> tuple[int, int, str]:
        """Write the hashes of a chunk unless they exist, and return its number, its number of pairs and its digest."""
        place, digest = self.place(task.number), task.chunk.digest()
        facts = place.with_suffix(".json")
        if facts.is_file():
            known = json.loads(facts.read_text())
            if known["text"] == digest:
                return task.number, known["pairs"], digest
        rows = hashed(task, self.directions[task.corpus])
        content = io.BytesIO()
        np.save(content, rows)
        with atomic_write(place) as beside:  # NumPy's own error for a full disk has no reason in it
            beside.write_bytes(content.getbuffer())
        with atomic_write(facts) as beside:
            beside.write_text(json.dumps({"text": digest, "pairs": len(rows)}))
        return task.number, len(rows), digest


def duplicates_in(files: Sequence[Path]) -> list[np.ndarray]:
    """Return, for each chunk, which of its pairs equal an earlier pair of the same or an earlier chunk, as packed bits.

    The hashes are compared in parts, which bounds the memory. One file is open at a time, because a system lets a
    process open a thousand or even fewer.

    Args:
        files: the files of the hashes of the chunks, in the order of the chunks.
    """
    lengths = [len(_mapped(file)) for file in files]
    parts = max(1, sum(lengths) // AT_ONCE)
    inner = [np.searchsorted(_mapped(file)["high"], bounds(parts)) for file in files]
    cuts = [[0, *places, length] for places, length in zip(inner, lengths, strict=True)]
    found = [packed_bits(length, np.empty(0, np.intp)) for length in lengths]
    for part in range(parts):
        slices = [np.array(_mapped(file)[cut[part] : cut[part + 1]]) for file, cut in zip(files, cuts, strict=True)]
        for number, rows in enumerate(repeated(slices)):
            if len(rows):
                found[number] |= packed_bits(lengths[number], rows)
    return found


def _mapped(file: Path) -> np.ndarray:
    """Return the hashes in a file, which is open as long as the array is there."""
    mapped: np.ndarray = np.load(file, mmap_mode="r")
    return mapped

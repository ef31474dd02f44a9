"""Which pairs are equal to one before them, over a whole corpus, in bounded memory."""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tf_transformer.data.preparing.chosen import Numbered
from tf_transformer.files import written_whole

HASHED = np.dtype([("high", "<u8"), ("low", "<u8"), ("row", "<u4")])
"""A pair: 128 bits of a hash of its text, by which those of a chunk are sorted, and its number in the chunk."""
AT_ONCE = 4_000_000
"""Pairs compared at once, about: 200 MB."""


@dataclass(frozen=True)
class Hashing:
    """Writes the hashes of the pairs of a chunk."""

    folder: Path
    directions: tuple[str, ...]
    """what tells the direction of each corpus"""

    def place(self, number: int) -> Path:
        """Return the file of the hashes of a chunk."""
        return self.folder / f"{number:05d}.hashes.npy"

    def __call__(self, task: Numbered) -> tuple[int, int, str]:
        """Return number and pairs of a chunk, and what identifies its text, once its hashes are written."""
        place, digest = self.place(task.number), task.chunk.digest()
        facts = place.with_suffix(".json")
        if facts.is_file():
            known = json.loads(facts.read_text())
            if known["text"] == digest:
                return task.number, known["pairs"], digest
        pairs, _ = task.chunk.read()
        towards = self.directions[task.corpus]
        hashes = b"".join(
            hashlib.blake2b(f"{towards}\0{source}\0{target}".encode(), digest_size=16).digest()
            for source, target in zip(*pairs, strict=True)
        )
        rows = np.empty(len(pairs.sources), HASHED)
        rows["high"], rows["low"] = np.frombuffer(hashes, "<u8").reshape(-1, 2).T
        rows["row"] = np.arange(len(rows))
        with written_whole(place) as beside, beside.open("wb") as file:
            np.save(file, rows[np.argsort(rows["high"], kind="stable")])
        with written_whole(facts) as beside:
            beside.write_text(json.dumps({"text": digest, "pairs": len(rows)}))
        return task.number, len(rows), digest


def equal_to_earlier(files: Iterable[Path]) -> list[np.ndarray]:
    """Return for each chunk which of its pairs are there before, in it or in an earlier chunk, as packed bits.

    The hashes are compared in parts: all that begin alike are in one of them.

    Args:
        files: of the hashes of the chunks, in their order.
    """
    chunks = [np.load(file, mmap_mode="r") for file in files]
    found = [np.zeros(len(chunk), bool) for chunk in chunks]
    found = [np.packbits(bits) for bits in found]
    total = sum(map(len, chunks))
    parts = max(1, total // AT_ONCE)
    bounds = [np.uint64(part * 2**64 // parts) for part in range(1, parts)]
    cuts = [[0, *np.searchsorted(chunk["high"], bounds), len(chunk)] for chunk in chunks]
    for part in range(parts):
        slices = [np.array(chunk[cut[part] : cut[part + 1]]) for chunk, cut in zip(chunks, cuts, strict=True)]
        owner = np.repeat(np.arange(len(slices)), list(map(len, slices)))
        rows = np.concatenate([np.empty(0, HASHED), *slices])
        order = np.lexsort((rows["row"], owner, rows["low"], rows["high"]))
        same = (np.diff(rows["high"][order]) == 0) & (np.diff(rows["low"][order]) == 0)
        again = order[1:][same]
        again = again[np.argsort(owner[again], kind="stable")]
        owners, starts = np.unique(owner[again], return_index=True)
        for chunk, those in zip(owners, np.split(again, starts[1:]), strict=False):
            bits = np.unpackbits(found[chunk], count=len(chunks[chunk])).astype(bool)
            bits[rows["row"][those]] = True
            found[chunk] = np.packbits(bits)
    return found

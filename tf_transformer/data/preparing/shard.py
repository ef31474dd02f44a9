"""Encoding a chunk into a shard."""

import functools
import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tf_transformer.data.chunks import digest_of
from tf_transformer.data.encoding import Limits, encode_packed
from tf_transformer.data.pairs import Pairs
from tf_transformer.data.prepared.shards import packed, shard_name, text_name
from tf_transformer.data.preparing.chosen import Choice, Numbered
from tf_transformer.files import written_whole
from tf_transformer.vocabulary import Vocabulary


@dataclass(frozen=True)
class Models:
    """The vocabularies, as a process is told of them."""

    files: tuple[bytes, ...]
    """the SentencePiece models: one where source and target share it"""
    sizes: tuple[int, ...]
    languages: tuple[str, ...]

    @property
    def digest(self) -> str:
        """What identifies them."""
        return digest_of(*self.files, *(str(size).encode() for size in self.sizes), "\n".join(self.languages).encode())

    def open(self) -> tuple[Vocabulary, Vocabulary]:
        """Return those of source and target."""
        return _opened(self)


@functools.lru_cache(1)
def _opened(models: Models) -> tuple[Vocabulary, Vocabulary]:
    opened = [
        Vocabulary(model, vocab_size=size, languages=models.languages)
        for model, size in zip(models.files, models.sizes, strict=True)
    ]
    return opened[0], opened[-1]


@dataclass(frozen=True)
class Encoding:
    """Writes the shard of a chunk, beside what it says of it; what has been written of the same text stays."""

    work: Path
    """the folder of what is said of shards"""
    folder: Path
    """that of the shards"""
    models: Models
    limits: Limits
    choice: Choice
    fronts: tuple[tuple[int, int], ...] = ()
    """the tokens of the languages of each corpus; () where there is one direction"""
    keeps_text: bool = False

    def facts(self, number: int) -> Path:
        """Return the file of what is said of a shard."""
        return self.work / f"{number:05d}.json"

    def __call__(self, task: tuple[Numbered, np.ndarray | None]) -> dict[str, Any]:
        """Return what is said of the shard of a chunk, once it is written.

        Args:
            task: the chunk, and which of its pairs are equal to earlier ones.
        """
        (number, corpus, chunk), equal = task
        key: dict[str, Any] = {
            "text": chunk.digest(),
            "models": self.models.digest,
            "equal": _digest(equal),
            "corpus": corpus,
        }
        key |= {"limits": list(self.limits), "keeps_text": self.keeps_text} | asdict(self.choice)
        if (place := self.facts(number)).is_file():
            known: dict[str, Any] = json.loads(place.read_text())
            if known["key"] == key and (self.folder / shard_name(number)).stat().st_size == known["bytes"]:
                return known
        pairs, given, dropped = self.choice.of(*task)
        fronts = np.tile(self.fronts[corpus], (len(pairs.sources), 1)) if self.fronts else None
        encoded = encode_packed(pairs, self.models.open(), self.limits, fronts)
        text = None
        if self.keeps_text:
            text = Pairs.of(pair for pair, keep in zip(zip(*pairs, strict=True), encoded.keep, strict=True) if keep)
        shard, lines, blocks = packed(number, encoded, text)
        self._write(shard_name(number), shard)
        if self.keeps_text:
            self._write(text_name(number), lines)
        facts = {
            "key": key,
            "bytes": len(shard),
            "shard": {"corpus": corpus, "pairs": len(encoded.lengths), "text": key["text"]},
            "given": given,
            "dropped": dropped | encoded.dropped,
            "lengths": [np.bincount(side).tolist() for side in encoded.lengths.T],
            "blocks": blocks,
        }
        with written_whole(place) as beside:
            beside.write_text(json.dumps(facts))
        return facts

    def _write(self, name: str, content: bytes) -> None:
        """Write a file of the result whole; until it is, it lies elsewhere: the folder of the result may be moved."""
        beside = self.work / f"{name}.{os.getpid()}"
        beside.write_bytes(content)
        beside.replace(self.folder / name)


def _digest(equal: np.ndarray | None) -> str | None:
    return None if equal is None else digest_of(equal.tobytes())

"""Files of pairs from which the splits are drawn, by the text of each pair."""

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar, NamedTuple

from tf_transformer.config import DataConfig
from tf_transformer.data.chunks import LINES, Chunk, StringPairs
from tf_transformer.data.pairs import Pairs
from tf_transformer.errors import unknown

SPLITS = ("train", "val", "test")
PACKED = ("", ".gz", ".zst")
"""What may follow the ending of a file that can be packed."""
BREAK = re.compile(r"(?<!\s)[^\S\r\n]*[\r\n]\s*")
"""A break of lines with the white space around it; it is looked for only where white space begins."""


class Row(NamedTuple):
    """A pair of a file."""

    source: str
    target: str
    why: str = ""
    """the reason for leaving it out, if there is one; `score` leaves it out of training alone"""


class Drawn:
    """A file that `data.corpus` names. Each kind says how its pairs are read, in `rows`."""

    forms: tuple[str, ...]
    endings: ClassVar[tuple[str, ...]]
    """the endings of its name, of which each kind has its own"""
    is_path = True
    needs_tensorflow = False

    def __init__(self, data: DataConfig):
        self.data = data
        self.path = Path(data.corpus or "")

    @classmethod
    def takes(cls, corpus: str) -> bool:
        """Say whether this is such a file."""
        return corpus.lower().endswith(cls.endings) and Path(corpus).is_file()

    def splits(self) -> tuple[str, ...]:
        """Return the names of the splits."""
        return SPLITS

    def check(self, split: str) -> None:
        """Raise InputError for an unknown split."""
        if split not in SPLITS:
            raise unknown("split", split, SPLITS, where=f" of {self.path}")

    def files(self, split: str) -> list[Path]:
        """Return the file, which has all splits."""
        return [self.path]

    def rows(self) -> Iterator[Row]:
        """Yield the pairs of the file, those to be left out as well."""
        raise NotImplementedError

    def chunks(self, split: str) -> Iterator[Chunk]:
        """Yield the pairs of a split."""
        self.check(split)
        kept: list[tuple[str, str]] = []
        left_out: dict[str, int] = {}
        for source, target, why in self.rows():
            # A blank pair is one of training, which counts it.
            if (split_of(self.data, source, target) if source or target else "train") != split:
                continue
            if why and (why != "score" or split == "train"):
                left_out[why] = left_out.get(why, 0) + 1
            else:
                kept.append((source, target))
            if len(kept) + sum(left_out.values()) == LINES:
                yield StringPairs(Pairs.of(kept), left_out)
                kept, left_out = [], {}
        if kept or left_out:
            yield StringPairs(Pairs.of(kept), left_out)


def split_of(data: DataConfig, source: str, target: str) -> str:
    """Return the split of a pair. It depends only on the seed and the source, which all its translations share.

    Of runs from before `data.held_out_by`, it depends on the target as well.
    """
    text = f"{source}\t{target}" if data.held_out_by == "pair" else source
    digest = hashlib.sha256(f"{data.held_out_seed}\t{text}".encode("utf-8", "surrogatepass")).digest()
    place, held_out = int.from_bytes(digest[:8]) / 2**64, data.held_out
    return "test" if place < held_out else "val" if place < 2 * held_out else "train"


def in_one_line(text: str) -> str:
    """Return a text of several lines as one: a sentence is a line wherever text is translated."""
    return BREAK.sub(" ", text.strip("\r\n"))

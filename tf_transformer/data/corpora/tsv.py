"""A file of lines `source TAB target`; the splits are drawn from it."""

import hashlib
from pathlib import Path

from tf_transformer.config import DataConfig
from tf_transformer.data.pairs import Pairs
from tf_transformer.errors import InputError, unknown
from tf_transformer.files import read_lines

SPLITS = ("train", "val", "test")


class Tsv:
    """The file that `data.corpus` names."""

    forms: tuple[str, ...] = ("a .tsv file that exists",)
    is_path = True
    needs_tensorflow = False

    def __init__(self, data: DataConfig):
        self.data = data
        self.path = Path(data.corpus or "")

    @staticmethod
    def takes(corpus: str) -> bool:
        """Say whether this is such a file."""
        return corpus.endswith((".tsv", ".tsv.gz")) and Path(corpus).is_file()

    def splits(self) -> tuple[str, ...]:
        """Return the names of the splits."""
        return SPLITS

    def check(self, split: str) -> None:
        """Raise InputError for another split."""
        if split not in SPLITS:
            raise unknown("split", split, SPLITS, where=f" of {self.path}")

    def read(self, split: str) -> Pairs:
        """Return the pairs of a split."""
        self.check(split)
        chosen = []
        for number, line in enumerate(read_lines(self.path), 1):
            # A blank line is an empty pair, to be counted with those that are left out of training.
            columns = line.split("\t") if line else ["", ""]
            if len(columns) != 2:
                hint = "; cut -f1,2 keeps the first two" if len(columns) > 2 else ""
                raise InputError(
                    f"{self.path}, line {number}: must be 2 columns, source TAB target{hint}. Received: {len(columns)}"
                )
            if (self._split_of(line) if line else "train") == split:
                chosen.append((columns[0], columns[1]))
        if not chosen:
            why = f"data.held_out={self.data.held_out}, of few lines"
            raise InputError(f"{self.data.corpus}: there is no pair in split {split!r} ({why})")
        return Pairs.of(chosen)

    def _split_of(self, line: str) -> str:
        """Return the split of a line: a function of its text and the seed alone, so that equal pairs share a split."""
        digest = hashlib.sha256(f"{self.data.held_out_seed}\t{line}".encode()).digest()
        place, held_out = int.from_bytes(digest[:8]) / 2**64, self.data.held_out
        return "test" if place < held_out else "val" if place < 2 * held_out else "train"

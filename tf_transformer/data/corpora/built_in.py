"""Built-in corpora: toy and copy."""

from collections.abc import Callable, Iterator
from pathlib import Path

from tf_transformer.config import DataConfig
from tf_transformer.data.chunks import StringPairs, sentence_chunks
from tf_transformer.data.corpora import copy_task, toy
from tf_transformer.data.corpora.languages import Direction
from tf_transformer.errors import InputError, unknown

NAMES: dict[str, tuple[tuple[str, ...], Callable[[str], list[tuple[str, str]]]]] = {
    "toy": (tuple(toy.SIZES), toy.pairs),
    "copy": (tuple(copy_task.SIZES), copy_task.pairs),
}
TOY_LANGUAGES = ("en", "de")


class BuiltIn:
    """The built-in corpus that `data.corpus` names."""

    forms: tuple[str, ...] = tuple(NAMES)
    is_path = False
    needs_tensorflow = False

    def __init__(self, data: DataConfig):
        self.data = data
        self._splits, self._pairs = NAMES[data.corpus or ""]

    @staticmethod
    def takes(corpus: str) -> bool:
        """Say whether this is the name of a built-in corpus."""
        return corpus in NAMES

    def splits(self) -> tuple[str, ...]:
        """Return the names of the splits."""
        return self._splits

    def check(self, split: str) -> None:
        """Raise InputError for an unknown split, or for other languages."""
        if split not in self._splits:
            raise unknown("split", split, self._splits, where=f" of {self.data.corpus}")
        if self.data.corpus == "toy" and self._direction not in (TOY_LANGUAGES, TOY_LANGUAGES[::-1]):
            raise InputError(
                "toy translates en to de, or de to en: leave out --source and --target, or give these. "
                f"Received: {self._direction[0]} to {self._direction[1]}"
            )

    def files(self, split: str) -> list[Path]:
        """Return no files."""
        return []

    def chunks(self, split: str) -> Iterator[StringPairs]:
        """Yield the pairs of a split."""
        self.check(split)
        is_turned = self._direction == TOY_LANGUAGES[::-1]
        yield from sentence_chunks(pair[::-1] if is_turned else pair for pair in self._pairs(split))

    @property
    def _direction(self) -> Direction:
        """The direction that toy is read in, which need not be named."""
        return self.data.source or TOY_LANGUAGES[0], self.data.target or TOY_LANGUAGES[1]

"""A folder of text files, SPLIT.LANGUAGE or SPLIT.LANGUAGE.gz, line for line."""

from pathlib import Path

from tf_transformer.config import DataConfig
from tf_transformer.data.corpora.languages import languages_of
from tf_transformer.data.pairs import Pairs
from tf_transformer.errors import InputError, unknown
from tf_transformer.files import read_lines


class Folder:
    """The folder that `data.corpus` names.

    Raises:
        InputError: no languages are given.
    """

    forms: tuple[str, ...] = ("a folder that exists",)
    is_path = True
    needs_tensorflow = False

    def __init__(self, data: DataConfig):
        self.folder = Path(data.corpus or "")
        self.languages = languages_of(data)

    @staticmethod
    def takes(corpus: str) -> bool:
        """Say whether this is a folder."""
        return Path(corpus).is_dir()

    def splits(self) -> tuple[str, ...]:
        """Return the names of the splits that are there in both languages."""
        files = {path.name.removesuffix(".gz") for path in self.folder.iterdir() if path.is_file()}
        for language in self.languages:
            if not any(name.endswith(f".{language}") for name in files):
                found = {name.rpartition(".")[2] for name in files if "." in name}
                raise unknown("language", language, found, where=f" in {self.folder}")
        endings = [f".{language}" for language in self.languages]
        source, target = ({name.removesuffix(end) for name in files if name.endswith(end)} for end in endings)
        return tuple(sorted(source & target))

    def check(self, split: str) -> None:
        """Raise InputError where there is no such split."""
        self._files(split)

    def read(self, split: str) -> Pairs:
        """Return the pairs of a split."""
        files = self._files(split)
        sides = [read_lines(file) for file in files]
        if len(sides[0]) != len(sides[1]):
            raise InputError(
                f"{files[0]} and {files[1]} must have the same number of lines. "
                f"Received: {len(sides[0])} and {len(sides[1])}"
            )
        return Pairs(*sides)

    def _files(self, split: str) -> list[Path]:
        """Return the files of both sides of a split."""
        known = self.splits()
        files = [self._find(split, language) for language in self.languages]
        there = [file.is_file() for file in files]
        if any(there) and not all(there):
            missing, other = files if there[1] else reversed(files)
            raise InputError(
                f"{missing.with_suffix('') if missing.suffix == '.gz' else missing} is missing beside {other}"
            )
        if not any(there):
            raise unknown("split", split, known, where=f" in {self.folder}")
        return files

    def _find(self, split: str, language: str) -> Path:
        plain, packed = self.folder / f"{split}.{language}", self.folder / f"{split}.{language}.gz"
        return packed if packed.is_file() and not plain.is_file() else plain

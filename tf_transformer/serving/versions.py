"""The version folders of a model, and which of them to try to load."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from tf_transformer.runs.descriptions import is_export


class VersionFolder(NamedTuple):
    """A version that may be loaded."""

    number: int
    folder: Path
    stamp: Any
    """changes when the files of the version change"""


class Versions:
    """The versions in a folder, and which of them failed to load.

    Args:
        path: a folder of version folders, or one model.
    """

    def __init__(self, path: Path):
        self._path = path
        self._failed: dict[int, Any] = {}

    @property
    def is_one(self) -> bool:
        """Whether the path is one model, not a folder of versions."""
        return is_export(self._path)

    def to_try(self, served: int | None) -> Iterator[VersionFolder]:
        """Yield the versions that may replace the one that is served, the newest first.

        These are the versions above it, or all versions if it has been removed. A version that failed is left out until
        its files change, because it may have been only partly copied.
        """
        folders = self._folders()
        for number in sorted(folders, reverse=True):
            if number == served:
                return
            found = VersionFolder(number, folders[number], _stamp(folders[number]))
            if self._failed.get(number) != found.stamp:
                yield found

    def failed(self, found: VersionFolder) -> None:
        """Remember that a version cannot be loaded as it is."""
        self._failed[found.number] = found.stamp

    def _folders(self) -> dict[int, Path]:
        if self.is_one:
            return {int(self._path.name) if self._path.name.isdecimal() else 1: self._path}
        folders = (folder for folder in self._path.glob("*") if folder.name.isdecimal())
        return {int(folder.name): folder for folder in folders if _may_be_export(folder)}


def _may_be_export(folder: Path) -> bool:
    try:
        return is_export(folder)
    except OSError:
        return True  # loading will say what is wrong, and what is served is not taken for removed


def _stamp(folder: Path) -> Any:
    try:
        return sorted((file.name, file.stat().st_mtime_ns) for file in folder.rglob("*"))
    except OSError as error:
        # A file has disappeared meanwhile. Loading will say what is wrong, and the next look finds another stamp.
        return str(error)

"""Files in any place that Beam can reach: on local disks, gs://, s3://, hdfs:// and others."""

import contextlib
import os
import shutil
import uuid
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from apache_beam.io.filesystem import CompressionTypes
from apache_beam.io.filesystems import FileSystems

from tf_transformer.errors import InputError

AS_IT_IS = CompressionTypes.UNCOMPRESSED
"""Files are read and written unchanged, whatever the ending of their names."""


@dataclass(frozen=True)
class StoredFolder:
    """A folder in any place that Beam can reach, as a `tf_transformer.storage.atomic.Folder`."""

    path: str

    def place(self, name: str) -> str:
        """Return the path of a file."""
        return FileSystems.join(self.path, name)

    def size(self, name: str) -> int | None:
        """Return the size of a file in bytes, or None if there is no such file."""
        place = self.place(name)
        if not FileSystems.exists(place):
            return None
        return FileSystems.get_filesystem(place).metadata(place).size_in_bytes

    def read(self, name: str) -> bytes:
        """Return the content of a file."""
        with FileSystems.open(self.place(name), compression_type=AS_IT_IS) as file:
            return file.read()

    def write(self, name: str, content: bytes) -> None:
        """Write a temporary file and rename it."""
        place, beside = self.place(name), self.place(f".{name}.{uuid.uuid4().hex}")
        with FileSystems.create(beside, compression_type=AS_IT_IS) as file:
            file.write(content)
        if FileSystems.exists(place):  # not all file systems replace a file by renaming another
            FileSystems.delete([place])
        FileSystems.rename([beside], [place])

    def keep_only(self, names: Iterable[str]) -> None:
        """Remove all other files, such as those of a pipeline that failed."""
        wanted = {self.place(name) for name in names}
        if files := [path for path in self._files() if path not in wanted]:
            FileSystems.delete(files)

    def remove(self) -> None:
        """Remove the folder and all that is in it."""
        self.keep_only(())
        if FileSystems.exists(self.path):  # only some file systems have folders
            FileSystems.delete([self.path])

    def fetch(self, to: Path) -> None:
        """Copy all files to a local folder."""
        for path in self._files():
            copy(path, to / path.removeprefix(self.path).lstrip("/"))

    def _files(self) -> list[str]:
        (found,) = FileSystems.match([self.place("**")])
        return [file.path for file in found.metadata_list]


def copy(path: str, to: Path) -> None:
    """Copy a file to a local place."""
    to.parent.mkdir(parents=True, exist_ok=True)
    with FileSystems.open(path, compression_type=AS_IT_IS) as file, to.open("wb") as copied:
        shutil.copyfileobj(file, copied, 1 << 20)


@contextlib.contextmanager
def naming(copies: Mapping[str, str]) -> Iterator[None]:
    """Let errors name what was copied, not the local copies, which are gone when a user looks for them.

    Args:
        copies: the paths of the copies, by the names of what was copied.

    Raises:
        InputError: as it was raised, with other names.
    """
    try:
        yield
    except InputError as error:
        message = str(error)
        for name, path in sorted(copies.items(), key=lambda copied: len(copied[1]), reverse=True):  # 10 before 1
            message = message.replace(path, name)
        raise InputError(message) from None


def is_elsewhere(path: str) -> bool:
    """Say whether a path has a scheme, and so is not on a local or mounted file system."""
    return "://" in path


def absolute(path: str) -> str:
    """Return a path that means the same in every process."""
    return path.rstrip("/") if is_elsewhere(path) else os.path.abspath(path)

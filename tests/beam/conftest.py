"""A file system that only Beam reaches."""

import os
from pathlib import Path

import pytest

pytest.importorskip("apache_beam")

from apache_beam.io.filesystem import FileMetadata
from apache_beam.io.localfilesystem import LocalFileSystem


class Elsewhere(LocalFileSystem):
    """Objects of a store, as those of gs:// are: there are no folders. They lie in a local one."""

    root = Path()
    scheme_and_root = "elsewhere://"

    @classmethod
    def scheme(cls) -> str:
        return "elsewhere"

    def _local(self, path: str) -> str:
        assert path.startswith(self.scheme_and_root)
        return os.fspath(self.root / path.removeprefix(self.scheme_and_root))

    def join(self, basepath: str, *paths: str) -> str:
        return "/".join((basepath.rstrip("/"), *paths))

    def has_dirs(self) -> bool:
        return False

    def _url_dirname(self, url_or_path: str) -> str:
        return url_or_path.rpartition("/")[0]

    def _list(self, dir_or_prefix: str):
        for path in sorted(self.root.rglob("*")):
            name = self.scheme_and_root + path.relative_to(self.root).as_posix()
            if path.is_file() and name.startswith(dir_or_prefix):
                yield FileMetadata(name, path.stat().st_size, path.stat().st_mtime)

    def create(self, path, mime_type="", compression_type="auto"):
        return super().create(self._local(path), mime_type, compression_type)

    def open(self, path, mime_type="", compression_type="auto"):
        return super().open(self._local(path), mime_type, compression_type)

    def exists(self, path: str) -> bool:
        return os.path.isfile(self._local(path))

    def metadata(self, path: str) -> FileMetadata:
        found = os.stat(self._local(path))
        return FileMetadata(path, found.st_size, found.st_mtime)

    def rename(self, source_file_names: list[str], destination_file_names: list[str]) -> None:
        for target in destination_file_names:
            assert not self.exists(target), "not all file systems replace a file"
        super().rename(list(map(self._local, source_file_names)), list(map(self._local, destination_file_names)))

    def delete(self, paths: list[str]) -> None:
        for path in paths:
            os.remove(self._local(path))


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The local folder of what has the scheme elsewhere://."""
    root = tmp_path / "elsewhere"
    root.mkdir()
    monkeypatch.setattr(Elsewhere, "root", root)
    return root

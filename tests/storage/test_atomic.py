"""What replaces the contents of a folder leaves the old ones or the new ones, wherever it ends."""

import os
import shutil
import socket
from pathlib import Path

import pytest

from tf_transformer.errors import InputError
from tf_transformer.runs.directory import RunDirectory
from tf_transformer.storage import atomic
from tf_transformer.storage.atomic import (
    LocalFolder,
    atomic_write,
    contents_of,
    contents_replaced,
    is_half_replaced,
    settle,
)

HEAD = "config.json"


class Killed(BaseException):
    """The process ends here."""


def texts(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}


OLD = {HEAD: "old", "history.csv": "old", "checkpoints/1": "old", "average/x": "old"}
NEW = {HEAD: "new", "tokenizer.model": "new", "checkpoints/2": "new"}


def fill(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def replace(folder: Path) -> None:
    with contents_replaced(folder, HEAD) as new:
        fill(new, NEW)


@pytest.mark.parametrize("old", [OLD, {}], ids=["full", "empty"])
def test_wherever_it_ends_the_folder_is_as_before_or_as_after(tmp_path, monkeypatch, old):
    """Every call that changes the file system is the last one, once before and once after it is made."""
    outcomes = []
    for moment in range(1000):
        folder = tmp_path / str(moment)
        folder.mkdir()
        fill(folder, old)
        (folder / "lost+found").mkdir()  # as the root of a file system has it
        left = [moment]

        def dying(real, left=left):
            def call(*arguments, **options):
                left[0] -= 1
                if left[0] == 0:
                    raise Killed
                result = real(*arguments, **options)
                left[0] -= 1
                if left[0] == 0:
                    raise Killed
                return result

            return call

        with monkeypatch.context() as patch:
            for name in ("rename", "mkdir", "rmdir", "write_text"):
                patch.setattr(Path, name, dying(getattr(Path, name)))
            # After an exception, unlike a kill, it tidies up: a kill does not.
            patch.setattr(atomic, "settle", lambda *given, left=left: settle(*given) if left[0] > 0 else None)
            patch.setattr(shutil, "rmtree", dying(shutil.rmtree) if moment else shutil.rmtree)
            try:
                replace(folder)
                died = False
            except Killed:
                died = True
        if is_half_replaced(folder):
            settle(folder, HEAD)
        assert not is_half_replaced(folder)
        found = texts(folder)
        assert found in (old, NEW), f"after {moment} steps"
        assert (folder / "lost+found").is_dir()
        outcomes.append(found == NEW)
        if moment and not died:
            break
    assert not died
    assert outcomes[1:] == sorted(outcomes[1:])  # first as before, from some step on as after
    assert True in outcomes
    assert False in outcomes or old == NEW


def test_after_an_error_all_is_as_it_was(tmp_path):
    def fail() -> None:
        with contents_replaced(tmp_path, HEAD) as new:
            fill(new, {HEAD: "half"})
            raise KeyError

    fill(tmp_path, OLD)
    with pytest.raises(KeyError):
        fail()
    assert texts(tmp_path) == OLD
    assert sorted(path.name for path in tmp_path.iterdir()) == ["average", "checkpoints", HEAD, "history.csv"]


def test_what_cannot_be_moved_is_left_with_all_else(tmp_path, monkeypatch):
    """Such as a folder within, on which another file system is mounted."""
    fill(tmp_path, OLD)
    rename = Path.rename

    def busy(self, target):
        if self.name == "checkpoints" and self.parent == tmp_path:
            raise OSError(16, "Device or resource busy", str(self))
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", busy)
    with pytest.raises(OSError, match="busy"):
        replace(tmp_path)
    assert texts(tmp_path) == OLD
    assert not is_half_replaced(tmp_path)


def test_the_folder_itself_stays(tmp_path):
    fill(tmp_path, OLD)
    before = os.stat(tmp_path).st_ino
    replace(tmp_path)
    assert texts(tmp_path) == NEW
    assert os.stat(tmp_path).st_ino == before
    assert [path.name for path in contents_of(tmp_path)] == ["checkpoints", HEAD, "tokenizer.model"]


def test_who_reads_a_half_replaced_run_is_told_what_finishes_it(tmp_path):
    (tmp_path / atomic.OLD).mkdir()
    with pytest.raises(InputError, match="stopped as it began: run the same train command again"):
        RunDirectory(tmp_path)


@pytest.mark.parametrize("filename", [None, "inside"])
def test_an_error_names_the_place_and_leaves_no_folder(tmp_path, filename):
    place = tmp_path / "new" / "folder" / "file"

    def write():
        with atomic_write(place) as beside:
            beside.mkdir()
            (beside / "inside").write_text("half")
            raise OSError(28, "No space left on device", filename and str(beside / filename))

    with pytest.raises(OSError, match="No space left") as raised:
        write()
    assert raised.value.filename == str(place)
    assert not list(tmp_path.iterdir())


def write_whole(place: Path, text: str) -> None:
    with atomic_write(place) as beside:
        beside.write_text(text)


def write_in_folder(place: Path, text: str) -> None:
    LocalFolder(place.parent, beside=place.parent).write(place.name, text.encode())


@pytest.mark.parametrize("write", [write_whole, write_in_folder])
def test_containers_whose_process_ids_are_equal_write_the_same_file(tmp_path, monkeypatch, write):
    """As the parts of a preparation do. The file of one is there after the other has begun and ended."""
    place = tmp_path / "plan.json"
    monkeypatch.setattr(os, "getpid", lambda: 1)
    monkeypatch.setattr(socket, "gethostname", lambda: "one")
    with atomic_write(place) as beside:
        beside.write_text("of one")
        monkeypatch.setattr(socket, "gethostname", lambda: "other")
        write(place, "of the other")
        assert place.read_text() == "of the other"
        monkeypatch.setattr(socket, "gethostname", lambda: "one")
    assert place.read_text() == "of one"
    assert list(tmp_path.iterdir()) == [place]


@pytest.mark.parametrize("write", [write_whole, write_in_folder])
def test_what_a_killed_process_has_left_is_replaced(tmp_path, write):
    place = tmp_path / "plan.json"
    with atomic_write(place) as beside:
        left = beside.name
        beside.touch()
    (tmp_path / left).write_text("left" * 100)
    write(place, "whole")
    assert place.read_text() == "whole" and list(tmp_path.iterdir()) == [place]


def test_other_errors_are_as_they_were_and_folders_that_were_there_stay(tmp_path):
    (tmp_path / "new").mkdir()
    with pytest.raises(FileNotFoundError) as raised, atomic_write(tmp_path / "new" / "folder" / "file"):
        (tmp_path / "elsewhere").read_bytes()
    assert raised.value.filename == str(tmp_path / "elsewhere")
    assert [path.name for path in tmp_path.rglob("*")] == ["new"]

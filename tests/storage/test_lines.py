"""Tests of lines that would fill the memory."""

import io
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tf_transformer.errors import InputError
from tf_transformer.storage import lines
from tf_transformer.storage.lines import Arriving, decoded, line_blocks, opened


def by_decoding(path: Path) -> list[str]:
    with opened(path) as file:
        return list(decoded(file, str(path)))


def by_blocks(path: Path) -> list[str]:
    return b"".join(line_blocks(path, 2)).decode().splitlines()


def as_they_arrive(path: Path) -> list[str]:
    with path.open("rb") as file:
        return [line.decode().removesuffix("\n") for line in Arriving(file)]


@pytest.mark.parametrize("read", [by_decoding, by_blocks, as_they_arrive])
def test_a_line_that_would_fill_the_memory_is_refused(
    tmp_path: Path, read: Callable[[Path], list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lines, "LONGEST", 11)
    monkeypatch.setattr(lines, "READ", 3)
    path = tmp_path / "text.txt"
    path.write_text("a\nb\nc\n" + "d" * 10 + "\ne")
    assert read(path) == ["a", "b", "c", "d" * 10, "e"]
    for end in ("", "\n", "\nf\n"):
        path.write_text("a\nb\nc\n" + "d" * 30 + end)
        with pytest.raises(InputError, match="a line has at most 0 MB") as error:
            read(path)
        assert read is as_they_arrive or f"{path}, line 4: " in str(error.value)


def test_a_file_without_line_feeds_is_not_read_to_its_end(tmp_path: Path) -> None:
    path = tmp_path / "zeros.txt"
    path.touch()
    os.truncate(path, 1 << 40)
    with pytest.raises(InputError, match="line 1: a line has at most 64 MB"):
        by_decoding(path)


@pytest.mark.parametrize(("wrong", "message"), [(b"\xff", "not UTF-8"), (b"a" * 12, "a line has at most")])
@pytest.mark.parametrize("first", [1, 101])
def test_lines_are_numbered_from_the_first_number(monkeypatch, wrong: bytes, message: str, first: int) -> None:
    monkeypatch.setattr(lines, "LONGEST", 11)
    with pytest.raises(InputError, match=f"^f, line {first + 1}: {message}"):
        list(decoded([b"a\n", wrong], "f", first))


def test_lines_of_other_kinds_are_decoded_as_well() -> None:
    assert list(decoded(io.BytesIO(b"a\r\nb"), "x")) == list(decoded([b"a\n", b"b"], "x")) == ["a", "b"]

"""Tests of `tf-transformer score`: what it reads."""

import gzip
import os
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest
import zstandard

from tf_transformer.commands import score
from tf_transformer.commands.main import main

FILES = {
    "s.txt": b"a\nb c\n",
    "s.txt.gz": gzip.compress(b"a\nb c\n"),
    "t.txt": b"x\ny\n",
    "t.txt.zst": zstandard.compress(b"x\ny\n"),
    "one.txt": b"x\n",
    "latin.txt": b"x\n\xe4\n",
    "cut.txt.gz": gzip.compress(b"x\n" * 99)[:-5],
}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with texts."""
    monkeypatch.chdir(tmp_path)
    for name, raw in FILES.items():
        Path(name).write_bytes(raw)
    return tmp_path


@pytest.fixture
def scored(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """What a model that finds everything certain was given."""
    given: list[tuple[str, str]] = []

    def certain(pairs: list[tuple[str, str]], numbers: object = None) -> list[list[float]]:
        given.extend(pairs)
        return [[0.0] for _ in pairs]

    model = SimpleNamespace(score_strings=certain, count_tokens=lambda texts: [1] * len(texts))
    monkeypatch.setattr(score, "chosen_model", lambda options: SimpleNamespace(open=lambda batch_tokens: model))
    return given


@pytest.mark.parametrize("source", ["s.txt", "s.txt.gz"])
@pytest.mark.parametrize("target", ["t.txt", "t.txt.zst"])
def test_files_may_be_packed(
    here: Path, scored: list[tuple[str, str]], capsys: pytest.CaptureFixture[str], source: str, target: str
) -> None:
    assert main(["score", "--model", "any", source, target]) == 0
    assert scored == [("a", "x"), ("b c", "y")]
    assert capsys.readouterr().out.count("\n") == 2


@pytest.mark.parametrize(
    ("files", "said"),
    [
        (("s.txt", "one.txt"), "s.txt and one.txt must go line by line. Received: 2 and 1 lines"),
        (("s.txt", "none.txt"), "cannot read none.txt: No such file"),
        (("s.txt", "."), "TARGET . is a folder"),
        (("latin.txt", "t.txt"), "latin.txt, line 2: not UTF-8"),
        (("s.txt", "cut.txt.gz"), "cut.txt.gz is not a complete gzip file"),
    ],
)
def test_files_are_refused_before_the_model_is_loaded(
    here: Path, capsys: pytest.CaptureFixture[str], files: tuple[str, str], said: str
) -> None:
    assert main(["score", "--model", "nowhere", *files]) == 2
    out, err = capsys.readouterr()
    assert said in err and err.count("\n") == 1 and not out


def test_a_pipe_is_read_once(here: Path, scored: list[tuple[str, str]], capsys: pytest.CaptureFixture[str]) -> None:
    os.mkfifo("pipe")
    writer = threading.Thread(target=lambda: Path("pipe").write_bytes(b"x\n"))
    writer.start()
    assert main(["score", "--model", "any", "s.txt", "pipe"]) == 2
    writer.join()
    assert "s.txt and pipe must go line by line, but only s.txt has a line 2" in capsys.readouterr().err

"""A pipeline translates as the export does, in the order of the lines, and goes on after a failure."""

import gzip
import io
import random
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("apache_beam")

import apache_beam as beam
from apache_beam import Pipeline
from apache_beam.testing.util import assert_that, equal_to

from tf_transformer.beam import Translate, TranslateFiles, translating
from tf_transformer.beam.__main__ import main
from tf_transformer.beam.translating import TranslationHandler
from tf_transformer.commands.main import main as command_line
from tf_transformer.errors import InputError

COUNT = 53


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Sentences for the model that copies, in several blocks."""
    monkeypatch.setattr(translating, "LINES", 11)
    chosen = random.Random(17)
    found = [" ".join(chosen.choices("abcdefgh", k=chosen.randrange(1, 9))) for _ in range(COUNT)]
    found[7] = ""
    return found


@pytest.fixture
def translated(
    lines: list[str], copy_export: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> list[str]:
    """What `tf-transformer translate` makes of them."""
    text = "".join(f"{line}\n" for line in lines).encode()
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(text), isatty=lambda: False))
    assert command_line(["translate", "--model", str(copy_export)]) == 0
    return capfdbinary.readouterr().out.decode().split("\n")[:-1]


def run(inputs: list[str], output: str, model: str) -> None:
    handler = TranslationHandler(model, max_batch_size=1)
    with Pipeline("FnApiRunner") as pipeline:
        _ = pipeline | TranslateFiles(inputs, output, handler)


def joined(folder: Path) -> list[str]:
    return [line for path in sorted(folder.glob("*.txt")) for line in path.read_text().splitlines()]


def write(folder: Path, lines: list[str]) -> list[str]:
    """Write two files, one of them packed."""
    (folder / "one.txt").write_text("".join(f"{line}\n" for line in lines[:29]))
    (folder / "two.gz").write_bytes(gzip.compress("".join(f"{line}\n" for line in lines[29:]).encode()))
    return [str(folder / "one.txt"), str(folder / "two.gz")]


@pytest.mark.long
def test_an_export_for_litert_translates_likewise(
    lines: list[str], translated: list[str], copy_litert: Callable[[str], Path], tmp_path: Path
) -> None:
    run(write(tmp_path, lines), str(tmp_path / "out"), str(copy_litert("float32")))
    different = sum(one != other for one, other in zip(joined(tmp_path / "out"), translated, strict=True))
    assert different <= 1  # a near-tie


@pytest.mark.long
def test_sentences_keep_their_keys(lines: list[str], translated: list[str], copy_export: Path) -> None:
    with Pipeline("FnApiRunner") as pipeline:
        found = pipeline | beam.Create(list(enumerate(lines))) | Translate(str(copy_export))
        assert_that(found, equal_to(list(enumerate(translated))))


@pytest.mark.long
def test_files_keep_their_order(lines: list[str], translated: list[str], copy_export: Path, tmp_path: Path) -> None:
    run(write(tmp_path, lines), str(tmp_path / "output"), str(copy_export))
    assert joined(tmp_path / "output") == translated
    assert len(list((tmp_path / "output").glob("*.txt"))) == 3 + 3
    assert not list(tmp_path.glob("*.translating"))
    with pytest.raises(InputError, match="already exists"):
        run(write(tmp_path, lines), str(tmp_path / "output"), str(copy_export))


@pytest.mark.long
def test_all_may_be_elsewhere(lines: list[str], translated: list[str], copy_export: Path, elsewhere: Path) -> None:
    shutil.copytree(copy_export, elsewhere / "models" / "copy" / "1")
    write(elsewhere, lines)
    inputs = ["elsewhere://one.txt", "elsewhere://two.gz"]
    run(inputs, "elsewhere://output", "elsewhere://models/copy/1")
    assert joined(elsewhere / "output") == translated


@pytest.mark.long
def test_a_pipeline_that_failed_is_gone_on_with(
    lines: list[str], translated: list[str], copy_export: Path, tmp_path: Path
) -> None:
    inputs, output = write(tmp_path, lines), tmp_path / "output"
    failing = tmp_path / "two.gz"
    packed = failing.read_bytes()
    failing.write_bytes(gzip.compress(gzip.decompress(packed)[:-2] + b"\xff\n"))
    with pytest.raises(Exception, match=r"two\.gz, line 24: not UTF-8"):
        run(inputs, str(output), str(copy_export))
    assert not (output / "translations.json").exists()
    before = {path: path.stat().st_mtime_ns for path in output.glob("*.txt")}
    assert before
    (output / "0000099.txt").write_text("of a pipeline with more text\n")
    failing.write_bytes(packed)
    run(inputs, str(output), str(copy_export))
    assert {path: path.stat().st_mtime_ns for path in before} == before
    assert joined(output) == translated


@pytest.mark.long
def test_the_command(
    lines: list[str],
    translated: list[str],
    copy_run: Path,
    copy_export: Path,
    tmp_path: Path,
    capfdbinary: pytest.CaptureFixture[bytes],
) -> None:
    inputs = write(tmp_path, lines)
    command = ["translate", *(f"--input={path}" for path in inputs), "--output", str(tmp_path / "output")]
    rest = ["--", "--runner", "FnApiRunner"]
    assert main([*command, "--model", str(copy_run), *rest]) == 2
    assert b"is not an exported model" in capfdbinary.readouterr().err
    assert main([*command, "--model", str(copy_export), *rest]) == 0
    assert joined(tmp_path / "output") == translated

"""Tests of `tf-transformer translate`: what it reads and writes."""

import gzip
import io
import os
import re
import select
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from tf_transformer.commands.main import main
from tf_transformer.errors import InputError


def translate(monkeypatch: pytest.MonkeyPatch, raw: bytes, *arguments: str) -> int:
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(raw), isatty=lambda: False))
    return main(["translate", "--model", "any", *arguments])


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (b"", b""),
        (b"\n", b"\n"),
        (b"a", b"A\n"),
        (b"a\n\n\nb\n", b"A\n\n\nB\n"),
        (b"a\r\nb\r\n", b"A\nB\n"),
        (b"\xef\xbb\xbfa\nb\n", b"A\nB\n"),
        ("a\u2028b\u2029c\u0085d\x0be\x0cf\x1cg\rh\x00i\n\ufeffj\n".encode(),) * 2,
        ("\t \u3000\n🐈\n".encode(),) * 2,
        (b"long " * 10_000 + b"\nb\n", b"LONG " * 10_000 + b"\nB\n"),
        (b"".join(b"%d\n" % (i * 7919 % 5003) for i in range(5003)),) * 2,
    ],
)
def test_translate_keeps_order_and_number_of_lines(
    shouting: list[int],
    monkeypatch: pytest.MonkeyPatch,
    capsysbinary: pytest.CaptureFixture[bytes],
    raw: bytes,
    expected: bytes,
) -> None:
    assert translate(monkeypatch, raw, "--batch-tokens", "112") == 0
    out, err = capsysbinary.readouterr()
    letters = bytes.maketrans(b"abcdefghij", b"ABCDEFGHIJ")
    assert out == expected.translate(letters)
    assert re.fullmatch(rb"[\d,]+ sentences? in [\d.]+ s, [\d,.]+ a second, by TensorFlow\n", err)
    assert err.startswith(b"%s sentence" % f"{expected.count(10):,}".encode())
    assert max(shouting, default=0) <= 7


def test_translate_names_the_line_that_is_not_utf8(
    shouting: list[int], monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    assert translate(monkeypatch, b"a\nb\n\xe4\nc\n") == 2
    err = capfd.readouterr().err
    assert err.startswith("tf-transformer: error: standard input, line 3: not UTF-8; convert the text")
    assert err.count("\n") == 1


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with text in it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.txt").write_text("one\ntwo\nthree\n")
    (tmp_path / "b.txt.gz").write_bytes(gzip.compress("vier\nfünf".encode()))
    (tmp_path / "latin.txt").write_bytes(b"a\n\xe4\n")
    return tmp_path


@pytest.mark.parametrize(
    ("outputs", "expected"),
    [
        (["new/ab.txt"], ["ONE\nTWO\nTHREE\nVIER\nFÜNF\n"]),
        (["a.out", "b.out"], ["ONE\nTWO\nTHREE\n", "VIER\nFÜNF\n"]),
    ],
)
def test_files_by_name(
    shouting: list[int], here: Path, capfd: pytest.CaptureFixture[str], outputs: list[str], expected: list[str]
) -> None:
    named = [text for output in outputs for text in ("--output", output)]
    assert main(["translate", "--model", "any", "--input", "a.txt", "--input", "b.txt.gz", *named]) == 0
    assert [(here / output).read_text() for output in outputs] == expected
    out, err = capfd.readouterr()
    assert out == ""
    assert err.startswith("translating a.txt\ntranslating b.txt.gz\n5 sentences in ")
    assert not list(here.rglob("*.part"))


@pytest.mark.parametrize("options", [[], ["--document"]])
def test_a_program_that_waits_gets_its_answer(
    shouting: list[int], monkeypatch: pytest.MonkeyPatch, options: list[str]
) -> None:
    """It writes a line, reads its translation, and only then writes the next."""
    (asked, asks), (answers, answered) = os.pipe(), os.pipe()
    monkeypatch.setattr(sys, "stdin", os.fdopen(asked))
    monkeypatch.setattr(sys, "stdout", os.fdopen(answered, "w"))

    def translate() -> None:
        main(["translate", "--model", "any", "--unbuffered", *options])
        sys.stdout.close()  # so that nobody waits for more

    command = threading.Thread(target=translate)
    command.start()
    with os.fdopen(asks, "wb", buffering=0) as ask, os.fdopen(answers, "rb", buffering=0) as answer:
        for sent, expected in (
            (b"one\n", [b"ONE\n"]),
            (b"\n", [b"\n"]),
            (b"two\nthree\nfo", [b"TWO\n", b"THREE\n"]),
            (b"ur\n", [b"FOUR\n"]),
        ):
            ask.write(sent)
            for line in expected:
                assert select.select([answer], [], [], 20)[0]
                assert answer.readline() == line
        ask.write(b"five")
        ask.close()
        assert answer.read(4) == b"FIVE"
    command.join(20)
    assert not command.is_alive()


def test_standard_input_to_a_file_and_a_file_to_standard_output(
    shouting: list[int], here: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (here / "out.txt").write_text("old\n")
    assert translate(monkeypatch, b"a\n", "--output", "out.txt") == 0
    assert (here / "out.txt").read_text() == "A\n"
    assert main(["translate", "--model", "any", "--input", "out.txt"]) == 0
    assert capfd.readouterr().out == "A\n"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["a.txt"], "give files by name: --input a.txt"),
        (["--input", "no.txt"], "no.txt: No such file"),
        (["--input", "."], "--input . is a folder"),
        (["--input", "latin.txt"], "latin.txt, line 2: not UTF-8"),
        (["--input", "a.txt", "--output", "."], "--output . is a folder"),
        (["--input", "a.txt", "--output", "x/../a.txt"], "--output x/../a.txt is also read, and would be lost"),
        (["--input", "a.txt", "--output", "x/1", "--input", "b.txt.gz", "--output", "x/1"], "x/1 is named twice"),
        (["--constraints", "a.txt", "--output", "a.txt"], "--output a.txt is also read, and would be lost"),
        (["--memory", "m.tsv", "--output", "./m.tsv"], "--output m.tsv is also read, and would be lost"),
        (["--memory", "m.tsv:en-de", "--output", "m.tsv"], "--output m.tsv is also read, and would be lost"),
        (["--input", "p.part", "--output", "p"], "--output p.part is also read, and would be lost"),
        (["--input", "a.txt", "--unbuffered"], "--unbuffered is for standard input"),
        (["--input", "a.txt", "--output", "x", "--output", "y"], "Received: 1 inputs, 2 outputs"),
        (["--input", "a.txt", "--output", "a.txt/x"], "a.txt is not a folder"),
    ],
)
def test_files_are_refused_before_the_model_is_loaded(
    here: Path, capfd: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    (here / "x").mkdir()
    for name in ("m.tsv", "p.part"):
        (here / name).write_text("a\tb\n")
    names = sorted(path.name for path in here.iterdir())
    assert main(["translate", "--model", "nowhere", *arguments]) == 2
    err = capfd.readouterr().err
    assert said in err and err.count("\n") == 1
    assert sorted(path.name for path in here.iterdir()) == names


def test_what_was_translated_before_an_error_is_kept(
    shouting: list[int], here: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    from tf_transformer.commands import translate as command

    def fail(translate: object, lines: Iterator[str], **_: object) -> Iterator[list[str]]:
        yield [next(lines).upper()]
        raise InputError("line 2: too long")

    monkeypatch.setattr(command, "translate_lines", fail)
    (here / "out.txt").write_text("old\n")
    assert main(["translate", "--model", "any", "--input", "a.txt", "--output", "out.txt"]) == 2
    assert "error: line 2: too long; what was done before is in out.txt.part\n" in capfd.readouterr().err
    assert (here / "out.txt").read_text() == "old\n"
    assert (here / "out.txt.part").read_text() == "ONE\n"


def test_n_best_with_line_numbers(
    shouting: list[int], here: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    assert translate(monkeypatch, b"a\nb\n", "--line-numbers", "--scores") == 0
    assert capfd.readouterr().out == "1\t0.0000\tA\n2\t0.0000\tB\n"


def test_what_is_typed_is_translated_line_by_line(
    shouting: list[int], monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    seen = []

    def typed() -> Iterator[bytes]:
        for line in (b"a\n", b"b\n"):
            yield line
            seen.append(capfd.readouterr())  # what the user sees before the next line is typed

    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=typed(), isatty=lambda: True))
    assert main(["translate", "--model", "any"]) == 0
    assert [out for out, _ in seen] == ["A\n", "B\n"]
    assert "Type a sentence and press Enter; Ctrl-D ends" in seen[0].err
    assert shouting == [1, 1]


def test_constraints(
    shouting: list[int], here: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (here / "terms.tsv").write_text("one\teins\ntwo\tzwei\n")
    assert translate(monkeypatch, b"one two\nthree\n", "--constraints", "terms.tsv") == 0
    assert capfd.readouterr().out == "ONE TWO + eins + zwei\nTHREE\n"
    assert translate(monkeypatch, b"one\tein\nthree\n", "--n-best", "2", "--constraints") == 0
    assert capfd.readouterr().out == "ONE + ein\nTHREE\n"
    assert translate(monkeypatch, b"one\t\n", "--constraints") == 2
    assert capfd.readouterr().err.startswith("tf-transformer: error: line 1: a term is empty")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--constraints", "nothing.tsv"], "cannot read nothing.tsv"),
        (["--constraints", ""], "--constraints was given an empty name"),
        (["--constraints", "a.txt"], "a.txt, line 1: write a term, a tab and its translation"),
        (["--constraints", "--document"], "--document takes no terms behind its lines"),
    ],
)
def test_constraints_that_are_wrong(
    shouting: list[int],
    here: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    arguments: list[str],
    message: str,
) -> None:
    assert translate(monkeypatch, b"one\n", *arguments) == 2
    out, err = capfd.readouterr()
    assert err.startswith(f"tf-transformer: error: {message}")
    assert (err.count("\n"), out) == (1, "")

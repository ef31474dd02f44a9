"""Tests of `tf-transformer translate` with files that are translated as files, and with a memory."""

import io
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from tf_transformer.commands.common.whole_files import read_memory
from tf_transformer.commands.main import main
from tf_transformer.config import DataConfig
from tf_transformer.errors import InputError


def page(first: str, second: str) -> str:
    return f"<p>{first}</p>\n<p>{second}</p>\n<pre>no</pre>\n"


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("a.html").write_text(page("Open it.", "Wait a moment. Then go."))
    Path("a.txt").write_text("a b c\n")
    Path("a.docx").write_text("no zip")
    Path("strings.xml").write_text("\ufeff<?xml version='1.0'?>\n<resources/>\n")
    Path("memory.ts").write_text("<?xml version='1.0'?>\n<!DOCTYPE TS>\n<TS/>\n")
    Path("a.csv").write_text("source,target\none,\ntwo,zwei\n")
    Path("memory.tsv").write_text("Open  it.\tÖffnen.\nThen go.\tDann los.\nX\t\n")
    segment = '<tuv xml:lang="{}"><seg>{}</seg></tuv>'
    unit = segment.format("en-US", "Open it.") + segment.format("de", "Mach auf.")
    Path("memory.tmx").write_text(f"<tmx><body><tu>{unit}</tu></body></tmx>")
    return tmp_path


def translate(*arguments: str) -> int:
    return main(["translate", "--model", "any", *arguments])


def test_a_file_is_translated_as_a_file(shouting: list[int], files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert translate("--input", "a.html", "--output", "b.html", "--input", "a.csv", "--output", "b.csv") == 0
    assert Path("b.html").read_text() == page("OPEN IT.", "WAIT A MOMENT. THEN GO.")
    assert Path("b.csv").read_text() == "source,target\none,ONE\ntwo,zwei\n"
    assert "a.html: 2 texts translated\n" in capsys.readouterr().err
    assert translate("--input", "a.csv", "--output", "c.csv", "--overwrite-translations", "--columns", "en=1,de=2") == 0
    assert Path("c.csv").read_text() == "source,target\none,ONE\ntwo,TWO\n"


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--memory", "memory.tsv"], ("Öffnen.", "WAIT A MOMENT. THEN GO.")),
        (["--memory", "memory.tsv", "--document"], ("Öffnen.", "WAIT A MOMENT. Dann los.")),
        (["--memory", "memory.tmx:en-de"], ("Mach auf.", "WAIT A MOMENT. THEN GO.")),
    ],
)
def test_a_memory_goes_before_the_model(
    shouting: list[int], files: Path, capsys: pytest.CaptureFixture[str], options: list[str], expected: tuple[str, str]
) -> None:
    assert translate("--input", "a.html", "--output", "b.html", *options) == 0
    assert Path("b.html").read_text() == page(*expected)
    assert "a.html: 2 texts translated, 1 of them from the memory\n" in capsys.readouterr().err


def test_a_memory_has_texts_with_tags(shouting: list[int], files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = 'Click <bpt i="1" x="2"/>here<ept i="1"/> and <ph x="1"/>wait.'
    target = '<ph x="1"/>Warten und <bpt i="1" x="2"/>hier<ept i="1"/>.'
    unit = f'<tuv xml:lang="en"><seg>{source}</seg></tuv><tuv xml:lang="de"><seg>{target}</seg></tuv>'
    Path("tags.tmx").write_text(f"<tmx><body><tu>{unit}</tu></body></tmx>")
    texts = ["Click <b>here</b> and <img>wait.", "<i>Click here</i> and wait.", "Click here and wait."]
    Path("a.html").write_text("<p>".join(texts))
    assert translate("--input", "a.html", "--output", "b.html", "--memory", "tags.tmx:en-de") == 0
    written = Path("b.html").read_text().split("<p>")
    assert written[0] == "<img>Warten und <b>hier</b>." and written[2] == "Warten und hier."
    assert "<i>" in written[1]
    said = "3 texts translated, 2 of them from the memory; it has 1 more with other tags\n"
    assert said in capsys.readouterr().err


def test_a_memory_has_what_would_be_cut(shouting: list[int], files: Path) -> None:
    Path("whole.tsv").write_text("One. Two.\tEins zwei.\n")
    Path("a.txt").write_text("  One. Two.\nThree. Four.\n")
    assert translate("--input", "a.txt", "--output", "b.txt", "--memory", "whole.tsv", "--document") == 0
    assert Path("b.txt").read_text() == "  Eins zwei.\nTHREE. FOUR.\n"


def test_a_file_may_go_to_standard_output(
    shouting: list[int], files: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    assert translate("--input", "a.html") == 0
    assert capsysbinary.readouterr().out.decode() == page("OPEN IT.", "WAIT A MOMENT. THEN GO.")


def test_a_memory_for_lines(
    shouting: list[int], files: Path, monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    raw = io.BytesIO(b"Open it.\nno\n\nOpen it.\nX\n")
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=raw, isatty=lambda: False))
    assert translate("--memory", "memory.tsv") == 0
    assert capsysbinary.readouterr().out.decode() == "Öffnen.\nNO\n\nÖffnen.\nX\n"


@pytest.mark.parametrize(
    ("options", "part"),
    [
        (["--input", "a.html", "--input", "a.csv"], "give each --input an --output"),
        (["--input", "a.html", "--input", "a.txt", "--output", "b", "--output", "c"], "give it without others"),
        (["--input", "a.html", "--output", "b", "--n-best", "2"], "translated as a file: give it without --n-best"),
        (["--input", "a.html", "--output", "b", "--alignments"], "translated as a file: give it without --n-best"),
        (["--input", "a.html", "--output", "b", "--columns", "en=1,de=2"], "--columns is for a .csv"),
        (["--input", "a.txt", "--output", "b", "--columns", "en=1,de=2"], "--columns is for files such as"),
        (["--input", "a.txt", "--output", "b", "--overwrite-translations"], "--overwrite-translations is for files"),
        (["--input", "a.csv", "--output", "b", "--columns", "en=1"], "columns must name two languages"),
        (["--input", "a.txt", "--output", "b", "--memory", "memory.tsv", "--scores"], "--memory is for the best"),
        (["--input", "a.txt", "--output", "b", "--memory", "copy"], "--memory must be a file of pairs"),
        (["--input", "a.txt", "--output", "b", "--memory", "none.tmx"], "no such file"),
        (["--input", "a.txt", "--output", "b", "--memory", "memory.tmx"], "needs the languages"),
        (["--input", "a.html", "--output", "a.html"], "is also read"),
        (["--input", "none.po", "--output", "b"], "none.po: No such file"),
        (["--input", "a.PDF", "--output", "b"], "a.PDF cannot be translated as a file: save it as .docx"),
        (["--input", "a.json", "--output", "b"], "a.json cannot be translated as a file: save it as .po"),
        (["--input", "a.pot", "--output", "b"], "a.pot cannot be translated as a file: save it as .po"),
        (["--input", "strings.xml", "--output", "b"], "strings.xml is XML of a kind that is not translated as a file"),
        (["--input", "memory.ts", "--output", "b"], "memory.ts is XML of a kind that is not translated as a file"),
        (
            ["--input", "a.sdlxliff", "--output", "b", "--overwrite-translations"],
            "what is approved in a.sdlxliff",
        ),
        (["--input", "a.po.gz", "--output", "b"], "a.po.gz is packed, and a .po is translated as a file: unpack it"),
        (["--input", "a.html", "--output", "b.docx"], "--output b.docx would be a .html, as a.html is: call it b.html"),
        (["--input", "a.html", "--output", "b.txt"], "would be a .html, as a.html is: call it b.html"),
        (["--input", "a.docx", "--output", "b.txt"], "would be a .docx, as a.docx is: call it b.docx"),
        (["--input", "a.txt", "--output", "b.odt"], "--output b.odt would be lines of text: call it b.txt"),
        (["--input", "a.txt", "--output", "b.pdf"], "--output b.pdf would be lines of text: call it b.txt"),
        (["--input", "a.docx", "--output", "b"], "a.docx is damaged, or no .docx: File is not a zip file"),
    ],
)
def test_what_does_not_go_together(
    shouting: list[int], files: Path, capsys: pytest.CaptureFixture[str], options: list[str], part: str
) -> None:
    assert translate(*options) == 2
    out, err = capsys.readouterr()
    assert part in err and err.count("\n") == 1 and out == ""
    assert not Path("b").exists()


def test_a_memory_of_the_other_direction_is_refused(files: Path) -> None:
    with pytest.raises(InputError, match="translates from en to de. Received: --memory memory.tmx:de-en"):
        read_memory("memory.tmx:de-en", DataConfig(source="en", target="de"))


def test_tags_are_where_attention_puts_them(copy_run: Path, tmp_path: Path) -> None:
    text = '<p>a b c <a href="x">d e</a> f g<br>h i j k</p>\n'
    (tmp_path / "a.html").write_text(text)
    files = ["--input", str(tmp_path / "a.html"), "--output", str(tmp_path / "b.html")]
    assert main(["translate", "--model", str(copy_run), *files]) == 0
    written = (tmp_path / "b.html").read_text()
    assert written.count('<a href="x">') == written.count("</a>") == 1 and written.endswith("</p>\n")

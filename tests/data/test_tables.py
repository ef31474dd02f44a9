"""Tests of tables: .csv, .xlsx, and .tsv files that spreadsheets wrote."""

import csv
import datetime
import gzip
import io
import logging
import re
import shlex
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import langcodes
import openpyxl
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from tf_transformer.commands.common.resolve import resolve
from tf_transformer.commands.main import parser
from tf_transformer.config import DataConfig
from tf_transformer.data import Pairs, read
from tf_transformer.data.corpora import open_corpus
from tf_transformer.data.corpora.columns import column_languages, columns_of
from tf_transformer.data.corpora.languages import language_named, names_of_languages
from tf_transformer.data.corpora.separated import is_quoted
from tf_transformer.errors import InputError

ROWS = [
    ("Yes, sir.", "Ja; natürlich."),
    ('He said "Hi".', "Er sagte „Hallo“."),
    ("two\nlines", "zwei\r\nZeilen"),
    ("", "x"),
]
IN_LINES = [tuple(" ".join(side.split()) for side in row) for row in ROWS]
"""What is read of them: a pair has no line breaks."""
NONE = 1e-9
"""A share held out that is no pair."""


def config(path: Path, **settings: Any) -> DataConfig:
    return DataConfig(corpus=str(path), held_out=NONE, **settings)


def rows_of(path: Path, **settings: Any) -> list[tuple[str, str]]:
    return list(zip(*read(config(path, **settings), "train"), strict=True))


def message(path: Path, **settings: Any) -> str:
    with pytest.raises(InputError) as error:
        rows_of(path, **settings)
    assert "\n" not in str(error.value)
    return str(error.value)


def as_csv(rows: list[Any], **how: Any) -> str:
    text = io.StringIO()
    csv.writer(text, **how).writerows(rows)
    return text.getvalue()


def xlsx(path: Path, *sheets: list[Any]) -> Path:
    book = openpyxl.Workbook()
    book.remove(book.active)
    for rows in sheets:
        sheet = book.create_sheet()
        for row in rows:
            sheet.append(row)
    book.save(path)
    return path


PACK: dict[str, Callable[[bytes], bytes]] = {"": bytes, ".gz": gzip.compress, ".zst": zstandard.compress}


@pytest.mark.parametrize("packed", list(PACK))
@pytest.mark.parametrize("header", [(), ("English", "German"), ("en", "de-AT"), ("Source", "Target text")])
@pytest.mark.parametrize("quoting", ["QUOTE_MINIMAL", "QUOTE_ALL"])
@pytest.mark.parametrize("separator", ["comma", "semicolon", "tab"])
@pytest.mark.parametrize("bom", [False, True])
def test_what_a_spreadsheet_writes_is_read(
    tmp_path: Path, separator: str, quoting: str, header: tuple[str, ...], bom: bool, packed: str
) -> None:
    how = {"delimiter": {"comma": ",", "semicolon": ";", "tab": "\t"}[separator], "quoting": getattr(csv, quoting)}
    text = as_csv([header, *ROWS] if header else ROWS, **how)
    for ending in ("csv", "tsv") if separator == "tab" else ("csv",):
        path = tmp_path / f"pairs.{ending}{packed}"
        path.write_bytes(PACK[packed](("\ufeff" * bom + text).encode()))
        assert rows_of(path, source="en", target="de") == IN_LINES
        if header and header[0] != "Source":
            assert rows_of(path, source="de", target="en") == [row[::-1] for row in IN_LINES]


@given(st.lists(st.tuples(*[st.text(st.sampled_from('ab", ;\n\t„'), min_size=1)] * 2), min_size=1), st.booleans())
def test_quotation_marks_of_spreadsheets_are_told_from_those_of_sentences(
    rows: list[tuple[str, str]], quotes_all: bool
) -> None:
    """Whatever csv writes in quotation marks is known where one is needed; and so is every text with others."""
    how: dict[str, Any] = {"delimiter": "\t", "lineterminator": "\n"}
    text = as_csv(rows, **how, quoting=csv.QUOTE_ALL if quotes_all else csv.QUOTE_MINIMAL)
    needs = any(set(side) & set('"\n\t') for row in rows for side in row)
    assert is_quoted([text.encode()], True) == (quotes_all or needs)
    for line in (
        b'"Hi," he said.\t"Hallo", sagte er.\n',
        b'5" wide\tx\n',
        b'"a"\tb, c\n"d"\te\n',
        b'"a\tb\n',
        b'"a" \tb\n',
    ):
        assert not is_quoted([line], True)


@pytest.mark.parametrize(
    "lines",
    [
        ['"Hello," he said.\t„Hallo“, sagte er.', '"Hi."\t"Hallo."', "a\tb"],
        ['"Hello', "and\tand", '"so on"\tund so weiter'],
        ['He is 6" tall.\tEr ist groß.', 'x\t"y'],
        ['"Yes"\tJa', "no, sir\tnein"],
        ["English\tEnglisch", "German\tDeutsch"],
        ["no\tnein", "so\tso"],
        ["text\ttext"],
    ],
)
def test_a_plain_tsv_stays_as_it_is(tmp_path: Path, lines: list[str], caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "pairs.tsv"
    path.write_text("".join(f"{line}\n" for line in lines))
    with caplog.at_level(logging.INFO):
        if all(line.count("\t") == 1 for line in lines):
            assert rows_of(path, source="en", target="de") == [tuple(line.split("\t")) for line in lines]
        else:
            assert "line 1 must have 2 columns" in message(path)
    assert "is a header:" not in caplog.text and "spreadsheets" not in caplog.text


def test_what_is_recognised_is_said_and_can_be_refused(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "pairs.tsv"
    path.write_text('English\tGerman\n"A ""b"""\tc\n')
    with caplog.at_level(logging.INFO):
        assert rows_of(path, source="en", target="de") == [('A "b"', "c")]
    assert "line 1 is a header: English | German" in caplog.text and "--set data.tsv=plain" in caplog.text
    plain = [("English", "German"), ('"A ""b"""', "c")]
    assert rows_of(path, source="en", target="de", tsv="plain") == plain


WIDE = [("id", "Kurz", "Anmerkung", "de_DE", "score"), ("1", "a", "?", "b", "0.5"), ("2", "c", "", "d", "0.25")]


@pytest.mark.parametrize("kind", ["csv", "tsv", "xlsx"])
def test_columns_of_a_wide_table(tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"wide.{kind}"
    if kind == "xlsx":
        xlsx(path, WIDE)
    else:
        path.write_text(as_csv(WIDE, delimiter="\t" if kind == "tsv" else ";"))
    de_fr = message(path, source="en", target="de")
    assert "wide." in de_fr and "--columns en=1,de=2" in de_fr
    assert "line 1: id | Kurz | Anmerkung | de_DE | score; line 2: 1 | a | ? | b | 0.5" in de_fr
    for columns in ("en=2,de=4", "en=kurz,de=de_DE", "de=4,en=2"):
        pairs = [("a", "b"), ("c", "d")]
        named = rows_of(path, source="en", target="de", columns=columns)
        assert named == ([(WIDE[0][1], WIDE[0][3]), *pairs] if columns[-1].isdecimal() else pairs)
    assert rows_of(path, columns="en=Kurz,de=de_DE") == pairs
    assert rows_of(path, source="de", target="en", columns="en=Kurz,de=4") == [pair[::-1] for pair in pairs]
    assert rows_of(path, columns="en=Kurz,de=4,score=5", min_score=0.3) == [("a", "b")]


def test_a_header_names_the_columns(tmp_path: Path) -> None:
    path = tmp_path / "three.csv"
    path.write_text("Français,English (US),Deutsch\na,b,c\n")
    for source, target in (("en", "de"), ("fr", "en"), ("de", "fr")):
        column = {"fr": "a", "en": "b", "de": "c"}
        assert rows_of(path, source=source, target=target) == [(column[source], column[target])]
    assert "no header that names the languages" in message(path, source="en", target="it")


@pytest.mark.parametrize("kind", ["csv", "tsv", "xlsx"])
def test_what_a_table_calls_fuzzy_is_left_out(tmp_path: Path, kind: str) -> None:
    """As translate-toolkit and Weblate write it."""
    path = tmp_path / f"pairs.{kind}"
    rows = [
        ("location", "source", "target", "fuzzy"),
        ("x", "a", "b", ""),
        ("y", "c", "d", "True"),
        ("z", "e", "f", ""),
    ]
    if kind == "xlsx":
        xlsx(path, rows)
    else:
        path.write_text(as_csv(rows, delimiter="\t" if kind == "tsv" else ","))
    [chunk] = open_corpus(config(path)).chunks("train")
    pairs, left_out = chunk.read()
    assert list(zip(*pairs, strict=True)) == [("a", "b"), ("e", "f")] and left_out["fuzzy"] == 1


@pytest.mark.parametrize(
    ("text", "settings", "parts"),
    [
        ("a,b\nc,d,e\n", {}, ["pairs.csv, line 2 must have 2 columns", "Received: 3"]),
        ('a,b\n"c\nd",e\nf\n', {}, ["pairs.csv, line 4", "Received: 1"]),
        ('a,b\n"c,d\n', {}, ["pairs.csv, line 2", "quotation marks"]),
        ('a,b\n"c"d,e\n', {}, ["pairs.csv, line 2", "quotation marks"]),
        ("a\nb\n", {}, ["line 1 has one column", "comma", "Received: 'a'"]),
        ("", {}, ["pairs.csv is empty"]),
        ("a,b,c\n", {}, ["3 columns", "--columns en=1,de=2", "line 1: a | b | c"]),
        ("a,b\n", {"columns": "en=1,de=3"}, ["no column 3"]),
        ("a,b\n", {"columns": "en=1,de=x"}, ["no columns", "'x'"]),
        ("x,x\n", {"columns": "en=x,de=2"}, ["2 columns", "'x'"]),
        ("a,b\n", {"columns": "en=1"}, ["must name two languages", "en=2,de=3", "'en=1'"]),
        ("a,b\n", {"columns": "1,2"}, ["must name two languages"]),
        ("a,b\n", {"columns": "en=1,en=2"}, ["must name two languages"]),
        ("a,b\n", {"columns": "fr=1,de=2", "source": "en", "target": "de"}, ["--source en --target de", "fr=1,de=2"]),
        ("a,b\n", {"columns": "en=1,de=2,score=2"}, ["data.min_score, which is not given"]),
        ("a,b\n", {"columns": "en=1,de=2", "min_score": 1.0}, ["score=3"]),
        ("a,b,x\n", {"min_score": 1.0}, ["line 1: the score must be a number", "'x'"]),
        ("French,German\na,b\n", {"source": "en", "target": "de"}, ["line 1 is a header, French and German"]),
        ("a;b\n".encode("utf-16"), {}, ["pairs.csv is UTF-16"]),
        ("ä;b\n".encode("cp1252"), {}, ["line 1: not UTF-8", "WINDOWS-1252"]),
        ("a\rb,c\rd,e\n", {}, ["line 1"]),
    ],
)
def test_wrong_csv_files(tmp_path: Path, text: str | bytes, settings: dict[str, Any], parts: list[str]) -> None:
    path = tmp_path / "pairs.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    received = message(path, **settings)
    for part in parts:
        assert part in received


EVEN = [("English", "German", "note"), ("a", "b", ""), ("c", "d", "x")]


@pytest.mark.parametrize("kind", ["csv", "tsv", "xlsx"])
@pytest.mark.parametrize(
    "row",
    [
        ("e", "f"),  # Excel leaves out empty cells at the end
        ("e", "f", "", "", ""),
        ("e", "f", "x", " "),
    ],
)
def test_lines_may_end_early_or_in_empty_cells(tmp_path: Path, kind: str, row: tuple[str, ...]) -> None:
    path = tmp_path / f"pairs.{kind}"
    rows = [*EVEN, row, EVEN[1]]
    if kind == "xlsx":
        xlsx(path, rows)
    else:
        path.write_text(as_csv(rows, delimiter="\t" if kind == "tsv" else ","))
    assert rows_of(path, source="en", target="de") == [("a", "b"), ("c", "d"), ("e", "f"), ("a", "b")]


def test_what_stands_beside_the_table_of_a_sheet_is_left_out(tmp_path: Path) -> None:
    """Such as the note of somebody who has checked line 140."""
    many = [(f"a {i}", f"b {i}") for i in range(150)]
    notes = {139: ("", "", "", "checked by Ann")}
    path = xlsx(
        tmp_path / "pairs.xlsx", [("English", "German"), *(row + notes.get(i, ()) for i, row in enumerate(many))]
    )
    assert rows_of(path) == many


def test_csv_may_name_its_separator_and_have_blank_lines(tmp_path: Path) -> None:
    path = tmp_path / "pairs.csv"
    path.write_text("sep=|\r\na|b,c\r\n\r\nd;e|f\r\n|\r\n")
    assert rows_of(path) == [("a", "b,c"), ("", ""), ("d;e", "f"), ("", "")]


def test_the_sheet_that_has_pairs_is_read(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    day = datetime.datetime(2026, 11, 27, 8, 30)
    rows = [("English", "German", None), ("a", 2.0), (True, day), (None, None), ("one\ntwo", 0.1)]
    cover = [("Glossary",), ("Author", "Jane"), ("Date", day), ("See Sheet2",), (None,)]
    path = xlsx(tmp_path / "pairs.xlsx", [], cover, rows, [("not", "this")])
    with caplog.at_level(logging.INFO):
        assert rows_of(path, source="en", target="de") == [
            ("a", "2"),
            ("TRUE", "2026-11-27 08:30:00"),
            ("", ""),
            ("one two", "0.1"),
        ]
    assert "the sheet Sheet2 is read, and not Sheet1, Sheet3; save another one as a .csv" in caplog.text
    assert rows_of(path, source="de", target="en")[0] == ("2", "a")


def test_most_lines_of_a_sheet_without_a_header_are_pairs(tmp_path: Path) -> None:
    path = xlsx(
        tmp_path / "pairs.xlsx", [("Glossary",), ("Author", "Jane"), ("Sheet1",)], [("a b c.", "d"), ("e", "f")]
    )
    assert rows_of(path) == [("a b c.", "d"), ("e", "f")]


def table(path: Path, rows: list[Any]) -> Path:
    """Write rows as a table of the kind that the name says."""
    if path.suffix == ".xlsx":
        return xlsx(path, rows)
    path.write_text(as_csv(rows, delimiter="\t" if path.suffix == ".tsv" else ";"))
    return path


@pytest.mark.parametrize("kind", ["csv", "xlsx", "tsv"])
def test_a_header_may_stand_below_a_title(tmp_path: Path, kind: str, caplog: pytest.LogCaptureFixture) -> None:
    rows = [("Glossary of 2026", ""), ("", ""), ("German", "English"), ("a", "b")]
    path = table(tmp_path / f"pairs.{kind}", rows)
    with caplog.at_level(logging.INFO):
        assert rows_of(path, source="en", target="de") == [("b", "a")]
    assert "line 3 is a header, and what is above it is left out: German | English" in caplog.text


def packed(members: dict[str, str]) -> bytes:
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w") as file:
        for name, content in members.items():
            file.writestr(name, content)
    return written.getvalue()


@pytest.mark.parametrize(
    ("content", "part"),
    [
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(512), "protected by a password"),
        (b"PK\x03\x04 no more", "is damaged, or no .xlsx"),
        (b"a,b\n", "is damaged, or no .xlsx"),
        (
            packed({"[Content_Types].xml": "<Types/>"}),
            "pairs.xlsx is damaged, or no .xlsx: File contains no valid workbook part",
        ),
        (b"", "is damaged, or no .xlsx"),
    ],
)
def test_wrong_xlsx_files(tmp_path: Path, content: bytes, part: str) -> None:
    (tmp_path / "pairs.xlsx").write_bytes(content)
    assert part in message(tmp_path / "pairs.xlsx")


ENTITIES = '<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;">]>'


def test_an_xlsx_with_entities_is_refused(tmp_path: Path) -> None:
    path = xlsx(tmp_path / "good.xlsx", [("a", "b")])
    with zipfile.ZipFile(path) as good, zipfile.ZipFile(tmp_path / "bad.xlsx", "w") as bad:
        for name in good.namelist():
            content = good.read(name).decode().removeprefix("<?xml version='1.0' encoding='UTF-8'?>")
            bad.writestr(name, ENTITIES + content if name.endswith("sheet1.xml") else content)
    assert rows_of(path) == [("a", "b")]
    assert "is damaged, or no .xlsx" in message(tmp_path / "bad.xlsx")


def test_an_xlsx_that_would_fill_the_memory_is_refused(tmp_path: Path) -> None:
    path = xlsx(tmp_path / "bomb.xlsx", [("a", "b")])
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as book, book.open("xl/more.xml", "w") as part:
        for _ in range(80):
            part.write(bytes(1 << 20))
    assert "xl/more.xml would become 83,886,080 bytes" in message(path)


def test_a_missing_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = xlsx(tmp_path / "pairs.xlsx", [("a", "b")])
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    assert "needs the extra files: pip install 'tf-transformer[files]'" in message(path)


def test_names_of_languages() -> None:
    assert language_named("English (United States)") == "en" and language_named("pt_BR") == "pt-br"
    assert language_named("Tiếng Việt") == "vi" and language_named("the") is None
    assert language_named("Anglais") == language_named("英文") == language_named("İngilizce") == "en"
    names = [name for names in names_of_languages().values() for name in names]
    assert len(set(names)) == len(names)
    for code, language in (("de", "it"), ("ja", "ru"), ("pt", "tr")):
        assert language_named(langcodes.get(code).language_name(language)) == code


@pytest.mark.parametrize(
    "header",
    [
        "Englisch;Deutsch",
        "Anglais;Allemand",
        "英文;德文",
        "Original;Übersetzung",
        "原文;译文",
        "Texte source;Traduction",
    ],
)
@pytest.mark.parametrize("kind", ["csv", "tsv", "xlsx"])
def test_headers_in_other_languages(tmp_path: Path, kind: str, header: str, caplog: pytest.LogCaptureFixture) -> None:
    rows = [header.split(";"), ["a", "b"]]
    path = table(tmp_path / f"pairs.{kind}", rows)
    with caplog.at_level(logging.INFO):
        assert rows_of(path, source="en", target="de") == [("a", "b")]
    assert f"line 1 is a header: {header.replace(';', ' | ')}" in caplog.text


@pytest.mark.parametrize(
    ("first", "advice"),
    [
        ("Begriff;Term", "give --columns en=Begriff,de=Term"),
        ("Spalte A;Spalte B", "give --columns 'en=Spalte A,de=Spalte B'"),
        ("Text;Text", "remove it"),
        ("He came.;Er kam.", None),
        ("1;a", None),
        ("a man in a hat;ein Mann mit Hut", None),
    ],
)
def test_a_first_line_that_may_be_a_header_is_said(
    tmp_path: Path, first: str, advice: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "pairs.csv").write_text(f"{first}\nx;y\n")
    with caplog.at_level(logging.INFO):
        assert rows_of(tmp_path / "pairs.csv", source="en", target="de") == [tuple(first.split(";")), ("x", "y")]
    if advice is None:
        assert caplog.text == ""
        return
    said = f"pairs.csv, line 1 is read as a pair: {first.replace(';', ' | ')}. If it is a header, {advice}\n"
    assert caplog.text.endswith(said)
    if "=" in advice:
        columns = shlex.split(advice)[-1]
        assert rows_of(tmp_path / "pairs.csv", source="en", target="de", columns=columns) == [("x", "y")]


def test_columns_are_counted_from_what_the_header_says() -> None:
    lines = [["Notes", "Target", "source"], ["x", "y", "z"]]
    found = columns_of(lines, DataConfig(corpus="x.csv"), "x.csv")
    assert (found.source, found.target, found.above) == (2, 1, 1)


def test_pairs_of_all_kinds_of_tables_are_equal(tmp_path: Path) -> None:
    """And so are their splits."""
    rows = [(f"sentence {i}", f"Satz {i}") for i in range(500)]
    paths = [tmp_path / f"pairs.{kind}" for kind in ("csv", "tsv", "xlsx")]
    paths[0].write_text(as_csv(rows, delimiter=";"))
    paths[1].write_text("".join(f"{source}\t{target}\n" for source, target in rows))
    xlsx(paths[2], rows)
    for split in ("train", "val", "test"):
        first, *others = (read(DataConfig(corpus=str(path)), split) for path in paths)
        assert others == [first, first] and isinstance(first, Pairs)


@pytest.mark.parametrize(
    ("columns", "languages"),
    [
        ("en=2,de=3", ("en", "de")),
        ("English=2,Deutsch=3,score=4", ("en", "de")),
        ("pt-BR=1,zh=2", ("pt-BR", "zh")),
        ("a=1,b=2", (None, None)),
    ],
)
def test_columns_name_the_languages(columns: str, languages: tuple[str | None, str | None]) -> None:
    assert column_languages(columns) == languages
    asked = parser().parse_args(["train", "--run-dir", "r", "--data", "t.xlsx", "--columns", columns])
    data = resolve(asked).config.data
    assert (data.source, data.target) == languages


@pytest.mark.parametrize(
    ("options", "hint"),
    [
        (["--data", "t.csv", "--source", "English", "--target", "de"], "did you mean en? Received: English"),
        (["--data", "t.csv", "--source", "en", "--target", "Tedesco"], "did you mean de? Received: Tedesco"),
        (["--data", "t.tmx:en-german"], "did you mean de? Received: german"),
        (["--data", "t.csv", "--source", "fin", "--target", "pt_BR"], None),
        (["--data", "t.csv", "--source", "eng_Latn", "--target", "x1"], None),
        (["--data", ".", "--source", "English", "--target", "German"], None),
    ],
)
def test_a_language_is_given_by_its_code(options: list[str], hint: str | None) -> None:
    asked = parser().parse_args(["train", "--run-dir", "r", *options])
    if hint is None:
        resolve(asked)
        return
    with pytest.raises(InputError, match="a language is given by its code: " + re.escape(hint)):
        resolve(asked)
    resolve(asked, run_dir="r")  # a run that goes on

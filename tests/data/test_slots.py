"""Tests of files that are translated as files."""

import csv
import io
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree
from translate.filters import checks
from translate.storage import po, xliff

from tf_transformer.config import DataConfig
from tf_transformer.data.corpora import open_corpus, slots_of_text
from tf_transformer.data.corpora.slots import cut, filled, marked, texts_of
from tf_transformer.data.corpora.translated_file import TranslatedFile
from tf_transformer.errors import InputError
from tf_transformer.text.markup import MARKUP, stripped

EN_DE = DataConfig(source="en", target="de")


def translated(
    path: Path, content: str | bytes, translate: Callable[[str], str], overwrites: bool = False, data: Any = EN_DE
) -> tuple[str, list[str]]:
    """What becomes of a file, and the texts that were translated."""
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    file = TranslatedFile(path, overwrites, data)
    assert all("\n" not in text and text == text.strip() for text in file.texts)
    return file.written(map(translate, file.texts)).content.decode(), file.texts


def upper(text: str) -> str:
    """A translator that keeps markup."""
    ends = [match.end() for match in MARKUP.finditer(text)]
    starts = [match.start() for match in MARKUP.finditer(text)]
    between = zip([0, *ends], [*starts, len(text)], strict=True)
    marks = [text[start:end] for start, end in zip(starts, ends, strict=True)]
    return "".join(text[a:b].upper() + mark for (a, b), mark in zip(between, [*marks, ""], strict=True))


def same(text: str) -> str:
    return text


PAGE = """<!DOCTYPE html>
<html lang="en"><head><title>A &amp; B</title><style>p { color: red }</style>
<script>if (a < b) document.write("<p>no</p>")</script></head><body class='a>b'>
<!-- no --><h1>The  first
heading</h1>
<p>Click <a href="x?a=1&amp;b=2">here, <b>please</b></a> &lt;now&gt;<br>and <code>no()</code>&nbsp;wait.</p>
<p translate="no">Acme <b>Inc</b></p><p><img src="x.png"> 12 </p><pre>no  no</pre>
<p>Run <span class="notranslate">Acme</span>
<ul><li>one<li>two</ul></body></html>
"""


def test_a_page(tmp_path: Path) -> None:
    assert translated(tmp_path / "a.html", PAGE, same)[0] == PAGE
    text, texts = translated(tmp_path / "a.html", PAGE, upper)
    assert texts == [
        "A & B",
        "The  first heading",
        "Click <g1>here, <g2>please</g2></g1> <now>",
        "and <g1/>\xa0wait.",
        "Run",
        "one",
        "two",
    ]
    assert (
        '<p>CLICK <a href="x?a=1&amp;b=2">HERE, <b>PLEASE</b></a> &lt;now&gt;<br>AND <code>no()</code>\xa0WAIT.</p>'
        in text
    )
    tags = re.compile(r"<[/!a-z][^>]*>")
    assert tags.findall(text) == tags.findall(PAGE)


PIECES = st.sampled_from(
    ["<p>", "</p>", "<b>", "</b>", "<br/>", "word ", "\n", "&amp;", "<!-- x -->", "<i a='>'>", "<", "é"]
)


@given(st.lists(PIECES).map("".join))
def test_a_page_that_is_not_changed_stays(text: str) -> None:
    parts = slots_of_text.page(text)
    assert filled(parts, texts_of(parts)) == (text, 0)


@given(st.lists(PIECES).map("".join))
def test_marks_become_the_tags_again(text: str) -> None:
    found = marked(cut(text, same))
    assert found.restored(found.text, same) in (text, None)
    if "<" not in stripped(found.text).text:
        assert all(mark in found.text for mark in found.tags)


def test_lost_or_crossed_tags_are_not_written(tmp_path: Path) -> None:
    page = "<p>a <b>b</b> <i>c</i></p>"
    for wrong in ("a <g1>b <g3>c</g1></g3>", "a b <g3>c</g3>", "<g1></g1><g3></g3><g3></g3>", "</g1>a<g1> <g3>c</g3>"):
        assert translated(tmp_path / "a.html", page, lambda _, wrong=wrong: wrong)[0] == page
    swapped = "<p><i>C</i> A <b>B</b></p>"
    assert translated(tmp_path / "a.html", page, lambda _: "<g3>C</g3> A <g1>B</g1>")[0] == swapped


SRT = """1
00:00:01,000 --> 00:00:02,500
{\\an8}<i>The first line
and the second one.</i>

2
00:00:03,000 --> 00:00:04,000
- Who is there?
- It is me.

3
00:00:05,000 --> 00:00:06,000

4
00:00:07,000 --> 00:00:08,000
♪ 12 ♪
5
00:00:09,000 --> 00:00:10,000
No line between.
"""
VTT = """WEBVTT - A title

NOTE no --> no

STYLE
::cue { color: red }

intro
00:01.000 --> 00:02.000 align:start
<v Ann>Hello, <c.loud>you</c>!"""


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_subtitles(tmp_path: Path, end: str) -> None:
    for name, content in (("a.srt", SRT), ("a.vtt", VTT)):
        content = content.replace("\n", end)
        assert translated(tmp_path / name, content, same)[0] == content
    assert translated(tmp_path / "a.srt", "", upper) == ("", []) == translated(tmp_path / "a.vtt", "", upper)
    text, texts = translated(tmp_path / "a.srt", "\ufeff" + SRT.replace("\n", end), upper)
    assert len(texts) == 4 and texts[1:] == ["- Who is there?", "- It is me.", "No line between."]
    changed = SRT.replace("The first line\nand the second one.", "THE FIRST LINE\nAND THE SECOND ONE.")
    for line in texts[1:]:
        changed = changed.replace(line, line.upper())
    assert text == "\ufeff" + changed.replace("\n", end)
    text, texts = translated(tmp_path / "a.vtt", VTT, upper)
    assert text == VTT.replace("Hello", "HELLO").replace("you", "YOU") and len(texts) == 1


XLIFF = """<?xml version='1.0' encoding="utf-8"?>
<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2"><file source-language="en" original='a'><body>
  <trans-unit id="1">
    <source>Open <g id="7">the &lt;file&gt;</g><x id="8"/> <ph id="9">&lt;br/></ph>&amp; more</source>
    <alt-trans><target>no</target></alt-trans>
  </trans-unit>
  <trans-unit id="2" approved="yes"><source>done</source><target state="final">fertig</target></trans-unit>
  <trans-unit id="3"><source>empty</source><target state="new"/></trans-unit>
  <trans-unit id="4" translate="no"><source>Acme</source></trans-unit>
  <trans-unit id="5"><source>12 %</source></trans-unit>
</body></file></xliff>
"""
MT = 'state="needs-review-translation" state-qualifier="mt-suggestion"'


def test_xliff(tmp_path: Path) -> None:
    path = tmp_path / "a.xliff"
    text, texts = translated(path, XLIFF, upper)
    assert texts == ["Open <g1>the <file></g1><g3/> <g4/>& more", "empty"]
    target = f'<target {MT}>OPEN <g id="7">THE &lt;file&gt;</g><x id="8"/> <ph id="9">&lt;br/></ph>&amp; MORE</target>'
    expected = XLIFF.replace("more</source>", f"more</source>\n    {target}").replace(
        "original='a'", "original='a' target-language=\"de\""
    )
    assert text == expected.replace('<target state="new"/>', f"<target {MT}>EMPTY</target>")
    store = xliff.xlifffile.parsestring(text.encode())
    assert [unit.isfuzzy() for unit in store.units if unit.target][:2] == [True, False]
    path.write_text(text)
    rows = list(open_corpus(DataConfig(corpus=str(path), source="en", target="de")).rows())
    assert [row.why for row in rows] == ["unapproved", "", "unapproved", "untranslated", "untranslated"]
    again, texts = translated(path, text, upper)
    assert again == text and texts == []
    text, texts = translated(path, XLIFF, upper, overwrites=True)
    assert f'approved="no"><source>done</source><target {MT}>DONE</target>' in text and len(texts) == 3
    etree.fromstring(text.encode())


SEGMENTS = """<xliff version="1.2"><file target-language="de"><body>
<trans-unit approved="yes"><source>One. Two. 3.</source>
<seg-source><mrk mtype="seg" mid="1">One.</mrk> <g id="1"><mrk mtype="seg" mid="2">Two <g id="2">x</g>.</mrk></g> 3.\
</seg-source>{}</trans-unit></body></file></xliff>
"""
FILLED = '<mrk mtype="seg" mid="1">{}</mrk> <g id="1"><mrk mtype="seg" mid="2">{}</mrk></g>'
NEW = ("ONE.", 'TWO <g id="2">X</g>.')


@pytest.mark.parametrize(
    ("target", "expected", "count"),
    [
        ("", f"<target {MT}>{FILLED.format(*NEW)} 3.</target>", 2),
        ("<target/>", f"<target {MT}>{FILLED.format(*NEW)} 3.</target>", 2),
        (
            '<target><mrk mtype="seg" mid="1"/>-<mrk mid="2" mtype="seg"></mrk></target>',
            f'<target {MT}><mrk mtype="seg" mid="1">ONE.</mrk>-<mrk mid="2" mtype="seg">{NEW[1]}</mrk></target>',
            2,
        ),
        (
            f"<target>{FILLED.format('Eins.', '')}</target>",
            f"<target {MT}>{FILLED.format('Eins.', NEW[1])}</target>",
            1,
        ),
        (f"<target>{FILLED.format('Eins.', 'Zwei')}</target>", None, 0),
        ("<target>Eins. Zwei.</target>", None, 0),
        (
            '<target>Eins. <mrk mtype="seg" mid="2"/></target>',
            f'<target {MT}>Eins. <mrk mtype="seg" mid="2">{NEW[1]}</mrk></target>',
            1,
        ),
        ('<target><mrk mtype="seg" mid="2"/></target>', f"<target {MT}>{FILLED.format(*NEW)} 3.</target>", 2),
    ],
)
def test_segments_of_a_unit_are_translated_one_by_one(
    tmp_path: Path, target: str, expected: str | None, count: int
) -> None:
    text, texts = translated(tmp_path / "a.xliff", SEGMENTS.format(target), upper)
    assert texts == ["One.", "Two <g1>x</g1>."][2 - count :]
    done = SEGMENTS.format(expected or target)
    assert text == (done.replace('approved="yes"', 'approved="no"') if expected else done)
    etree.fromstring(text.encode())


def test_segments_whose_tags_were_lost(tmp_path: Path) -> None:
    """Those that were empty stay empty."""
    content = SEGMENTS.format('<target><mrk mtype="seg" mid="1"/><mrk mtype="seg" mid="2"/></target>')
    text, _ = translated(tmp_path / "a.xliff", content, lambda text: "lost")
    assert '<mrk mtype="seg" mid="1">lost</mrk><mrk mtype="seg" mid="2"/></target>' in text


@pytest.mark.parametrize(
    ("lock", "count"), [('mq:locked="locked"', 0), ('m:locked="true"', 0), ('m:locked="false"', 1)]
)
def test_a_unit_that_is_locked_stays(tmp_path: Path, lock: str, count: int) -> None:
    content = f'<xliff xmlns:m="m" xmlns:mq="mq"><trans-unit {lock}><source>a</source><target/></trans-unit></xliff>'
    assert len(translated(tmp_path / "a.xliff", content, upper)[1]) == count


def test_a_target_of_tags_alone_is_none(tmp_path: Path) -> None:
    unit = '<trans-unit><source>a<x id="1"/></source><target{}>{}<x id="1"/></target></trans-unit>'
    text, _ = translated(tmp_path / "a.xliff", f"<xliff>{unit.format('', '')}</xliff>", upper)
    assert text == f"<xliff>{unit.format(f' {MT}', 'A')}</xliff>"


def test_xliff_2_in_utf_16(tmp_path: Path) -> None:
    content = """<?xml version="1.0" encoding="UTF-16"?>
<xliff xmlns="urn:oasis:names:tc:xliff:document:2.0" version="2.0"
srcLang="en"><file id="f"><unit id="1"><segment><source>Open <pc id="1">é</pc></source></segment>
<segment state="final"><source>done</source><target>fertig</target></segment></unit></file></xliff>"""
    path = tmp_path / "a.xlf"
    path.write_bytes(b"\xfe\xff" + content.encode("utf-16-be"))
    file = TranslatedFile(path, False, EN_DE)
    written = file.written(map(upper, file.texts)).content
    assert written.startswith(b"\xfe\xff")
    expected = content.replace('srcLang="en"', 'srcLang="en" trgLang="de"').replace(
        "<segment>", '<segment state="initial">'
    )
    target = '<target>OPEN <pc id="1">É</pc></target>'
    assert written[2:].decode("utf-16-be") == expected.replace("é</pc></source>", f"é</pc></source>{target}")
    etree.fromstring(written)


CATALOGUE = r"""msgid ""
msgstr ""
"Content-Type: text/plain; charset=UTF-8\n"
"Plural-Forms: nplurals=2; plural=(n != 1);\n"

#: a.c:1
msgid "open \"it\"\n"
"and %s\n"
msgstr ""

#, c-format
msgctxt "menu"
msgid "%d file"
msgid_plural "%d files"
msgstr[0] ""
msgstr[1] ""

msgid "done"
msgstr "fertig"

msgid "%d"
msgstr ""

#~ msgid "old"
#~ msgstr ""
"""
FILLED = r"""msgid ""
msgstr ""
"Content-Type: text/plain; charset=UTF-8\n"
"Plural-Forms: nplurals=2; plural=(n != 1);\n"

#: a.c:1
#, fuzzy
msgid "open \"it\"\n"
"and %s\n"
msgstr ""
"OPEN \"IT\"\n"
"AND %s\n"

#, fuzzy, c-format
msgctxt "menu"
msgid "%d file"
msgid_plural "%d files"
msgstr[0] "%d FILE"
msgstr[1] "%d FILES"

msgid "done"
msgstr "fertig"

msgid "%d"
msgstr ""

#~ msgid "old"
#~ msgstr ""
"""


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_catalogue(tmp_path: Path, end: str) -> None:
    path = tmp_path / "a.po"
    text, texts = translated(path, CATALOGUE.replace("\n", end), upper)
    assert texts == ['open "it"', "and %s", "%d file", "%d files"]
    assert text == FILLED.replace("\n", end)
    assert translated(path, text, upper) == (text, [])
    assert 'msgstr "DONE"' in translated(path, text, upper, overwrites=True)[0]
    assert [unit.isfuzzy() for unit in po.pofile.parsestring(FILLED.encode()).units][1:5] == [True, True, False, False]
    checker = checks.StandardChecker()  # that of pofilter
    for unit in po.pofile.parsestring(text.encode()).units[1:3]:
        assert checker.run_filters(unit).keys() <= {"simplecaps", "startcaps", "unchanged"}  # it is in upper case
    if shutil.which("msgfmt") and end == "\n":
        subprocess.run(["msgfmt", "--check", "-o", "/dev/null", "-"], input=text.encode(), check=True)


@pytest.mark.parametrize("separator", [",", ";", "\t"])
@pytest.mark.parametrize("quoting", [csv.QUOTE_MINIMAL, csv.QUOTE_ALL])
def test_cells_of_a_csv(tmp_path: Path, separator: str, quoting: int) -> None:
    rows = [
        ("id", "English", "German"),
        ("1", 'say "a", b', ""),
        ("2", "c\nd", "fertig"),
        ("3", "12", ""),
        ("4", "e;f\tg", ""),
    ]
    written = io.StringIO()
    csv.writer(written, delimiter=separator, quoting=quoting).writerows(rows)
    path = tmp_path / "a.csv"
    text, texts = translated(path, written.getvalue(), upper)
    assert texts == ['say "a", b', "e;f\tg"]
    found = list(csv.reader(io.StringIO(text, newline=""), delimiter=separator))
    assert found == [[*row[:2], row[2] or (upper(row[1]) if row[0] in "14" else "")] for row in rows]
    assert translated(path, text, upper) == (text, [])
    with pytest.raises(InputError, match="no header that names the languages"):
        translated(path, text, upper, data=DataConfig(source="en", target="fr"))
    data = DataConfig(columns="en=2,de=3")
    assert len(translated(path, text, upper, overwrites=True, data=data)[1]) == 3


@pytest.mark.parametrize(
    ("name", "content", "part"),
    [
        ("a.xliff", XLIFF[:-9], "broken XML"),
        ("a.xliff", '<!DOCTYPE x [<!ENTITY a "b">]><xliff/>', "line 1 has an entity"),
        ("a.html", b"<p>ok</p>\n<p>\xe4</p>", "a.html, line 2: not UTF-8"),
        ("a.po", "msgid a\n", "line 1 is no line of a .po"),
        ("a.csv", "a,b\nc\n", "line 2 must have 2 columns. Received: 1"),
        ("a.csv", "a,b\nc,d,e\n", "line 2 must have 2 columns. Received: 3"),
        ("a.csv", 'a,b\n"c,d\n', "line 2: its quotation marks"),
        ("a.csv", "a,b,c\n", "--columns en=1,de=2"),
    ],
)
def test_files_that_cannot_be_translated(tmp_path: Path, name: str, content: str | bytes, part: str) -> None:
    with pytest.raises(InputError, match=re.escape(part)):
        translated(tmp_path / name, content, same)


def test_what_an_encoding_does_not_have(tmp_path: Path) -> None:
    content = CATALOGUE.replace("UTF-8", "ISO-8859-1").encode("latin-1")
    with pytest.raises(InputError, match="ISO8859-1, which has no '€'"):
        translated(tmp_path / "a.po", content, lambda text: "€")
    page = b'<meta charset="iso-8859-1"><p>\xe4</p>'
    assert translated(tmp_path / "a.html", page, lambda text: "€")[0] == '<meta charset="iso-8859-1"><p>&#8364;</p>'


def test_a_file_that_is_too_large_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tf_transformer.data.corpora.translated_file.LARGEST", 100)
    with pytest.raises(InputError, match="cut it into several files"):
        translated(tmp_path / "a.html", "a" * 101, same)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.html", "<!--" * 50_000),
        ("a.html", '<a "' * 50_000),
        ("a.html", "<svg>" * 40_000),
        ("a.html", "<i>" * 30_000 + "</b>" * 30_000),
        ("a.html", "<b>a<br>" * 3_000 + "</b>" * 3_000),
        ("a.srt", "1\n00:00:01,000 --> 00:00:02,000\n" + "a b\n" * 20_000),
        ("a.md", "a b\n" * 5_000),
        ("a.txt", "%0" + "0" * 100_000),
        ("a.html", "a" + "\t" * 50_000 + "a"),
        ("a.srt", "1 --> 2\na" + "-->" * 60_000),
        ("a.po", 'msgid "' + "\\n " * 20_000 + '"\nmsgstr "x"\n'),
        ("a.po", 'msgid ""\n' + '"abc"\n' * 400_000 + 'msgstr "x"\n'),
        ("a.csv", "en,de\n" + "\n" * 50_000),
    ],
)
def test_the_time_grows_with_the_size_alone(tmp_path: Path, name: str, content: str) -> None:
    """A server may be sent such files to keep it busy. Some of these once took minutes."""
    assert translated(tmp_path / name, content, same)[0] == content


@pytest.mark.parametrize(
    "unit",
    [
        '<trans-unit approved="yes"{}id="1"><source>a</source><target/></trans-unit>',
        '<trans-unit><source>a</source><target{}id="1"/></trans-unit>',
        "<trans-unit><source>a</source><target {}></target></trans-unit>",
        "<trans-unit>{}<source>a</source></trans-unit>",
    ],
)
def test_blanks_in_an_xliff_take_no_time(tmp_path: Path, unit: str) -> None:
    """With patterns that end in blanks, these took a minute each."""
    content = f'<xliff><file source-language="en">{unit.format(" " * 50_000)}</file></xliff>'
    text, texts = translated(tmp_path / "a.xliff", content, upper)
    assert texts == ["a"] and translated(tmp_path / "a.xliff", text, upper) == (text, [])


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.html", "a \x005\x00 b"),
        ("a.html", "a &#" + "1" * 5_000 + "; b"),
        ("a.html", "<meta charset=base64>a"),
        ("a.html", "<meta charset=undefined>a"),
        ("a.html", "<meta charset=utf-8-sig>a"),
        ("a.html", "<meta charset=utf-16>a"),
        ("a.xliff", "<?xml version='1.0' encoding='punycode'?><xliff/>"),
        ("a.po", 'msgid "a"\n'),
        ("a.po", '"Content-Type: text/plain; charset=hex\\n"\n'.join(['msgid ""\nmsgstr ""\n', ""])),
    ],
)
def test_odd_files_stay_as_they_are(tmp_path: Path, name: str, content: str) -> None:
    assert translated(tmp_path / name, content, same)[0] == content


@pytest.mark.parametrize(
    ("name", "content", "text"),
    [("a.po", 'msgid "a\u2028b\x85c\x0c"\nmsgstr ""\n', "a\u2028b\x85c"), ("a.csv", "a\u2028b,\nc,\n", "a\u2028b")],
)
def test_only_line_feeds_end_lines(tmp_path: Path, name: str, content: str, text: str) -> None:
    written, texts = translated(tmp_path / name, content, same)
    assert texts[0] == text and written.count(text) == 2


EMPTY = {
    "a.html": ("<p>one <b>two</b></p>", "<p>one <b>two</b></p>"),
    "a.md": ("# one\n\n- two\n", "# one\n\n- two\n"),
    "a.srt": ("1\n00:00:01,000 --> 00:00:02,000\none\n", "1\n00:00:01,000 --> 00:00:02,000\none\n"),
    "a.csv": ("en,de\none,eins\ntwo,\n", "en,de\none,eins\ntwo,\n"),
    "a.po": (
        'msgid "one"\nmsgstr "eins"\n\nmsgid "two"\nmsgstr ""\n',
        '#, fuzzy\nmsgid "one"\nmsgstr "eins"\n\n#, fuzzy\nmsgid "two"\nmsgstr ""\n',
    ),
    "a.xliff": (
        '<xliff version="1.2"><file><trans-unit><source>one</source><target>eins</target></trans-unit></file></xliff>',
        '<xliff version="1.2"><file><trans-unit><source>one</source><target>eins</target></trans-unit></file></xliff>',
    ),
}
"""What an empty translation makes of a file."""


@pytest.mark.parametrize("name", EMPTY)
@pytest.mark.parametrize("nothing", ["", " "])
def test_an_empty_translation_takes_nothing_away(tmp_path: Path, name: str, nothing: str) -> None:
    content, expected = EMPTY[name]
    assert translated(tmp_path / name, content, lambda text: nothing, overwrites=True)[0] == expected
    file = TranslatedFile(tmp_path / name, True, EN_DE)
    assert file.texts and file.written([nothing] * len(file.texts)).lost == len(file.texts)

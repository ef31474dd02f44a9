"""Tests of translation memories and localisation files: .tmx, .xliff, .po and .ts."""

import gzip
import re
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from translate.storage import po, tmx, ts2, xliff

from tf_transformer.commands.main import main
from tf_transformer.config import DataConfig
from tf_transformer.data import read
from tf_transformer.data.corpora import open_corpus
from tf_transformer.data.corpora.drawn import Row
from tf_transformer.data.corpora.inline import Segment
from tf_transformer.data.prepared import Prepared
from tf_transformer.errors import InputError
from tf_transformer.text.markup import MARKUP, stripped


def rows(path: Path, source: str | None = "en", target: str | None = "de", **settings: Any) -> list[Row]:
    return list(open_corpus(DataConfig(corpus=str(path), source=source, target=target, **settings)).rows())


def message(path: Path, source: str | None = "en", target: str | None = "de") -> str:
    with pytest.raises(InputError) as error:
        rows(path, source, target)
    assert "\n" not in str(error.value)
    return str(error.value)


def memory(*units: dict[str, str], before: str = "", body: str = "") -> str:
    content = "".join(
        "<tu>" + "".join(f'<tuv xml:lang="{code}"><seg>{text}</seg></tuv>' for code, text in unit.items()) + "</tu>\n"
        for unit in units
    )
    return f'<?xml version="1.0"?>\n{before}<tmx version="1.4"><header/>\n<body>\n{content}{body}</body></tmx>'


def written(path: Path, text: str, encoding: str = "utf-8") -> Path:
    raw = text.encode(encoding)
    path.write_bytes(gzip.compress(raw) if path.suffix == ".gz" else raw)
    return path


TEXT = st.text(st.characters(codec="utf-8", exclude_categories=["C"]), min_size=1).map(str.strip).filter(bool)


@given(
    st.lists(st.tuples(TEXT, TEXT), min_size=1, unique_by=lambda pair: pair[0]),
    st.sampled_from(["tmx", "xliff", "po", "ts"]),
)
def test_what_translate_toolkit_writes_is_read(tmp_path_factory: Any, pairs: list[tuple[str, str]], kind: str) -> None:
    path = tmp_path_factory.mktemp("written") / f"pairs.{kind}"
    if kind == "tmx":
        memory_file = tmx.tmxfile()
        for source, target in pairs:
            memory_file.addtranslation(source, "en", target, "de")
        memory_file.savefile(str(path))
    else:
        store: Any = {"xliff": xliff.xlifffile, "po": po.pofile, "ts": ts2.tsfile}[kind]()
        if kind == "xliff":
            store.settargetlanguage("de")
        for source, target in pairs:
            store.addsourceunit(source).target = target
        store.savefile(str(path))
    found = rows(path)
    assert [row[:2] for row in found if row.source] == pairs
    assert not any(row.why for row in found if row.source)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize("name", ["memory.tmx", "memory.tmx.gz"])
def test_a_memory_has_languages_by_code(tmp_path: Path, name: str, encoding: str) -> None:
    units = [
        {"en-US": "one", "de_DE": "eins", "fr": "un"},
        {"DE_de": "", "en-us": "x"},
        {"fr": "deux", "en-US": "two"},
        {"de-AT": "x"},
    ]
    path = written(tmp_path / name, memory(*units), encoding)
    left_out = [("x", "", "untranslated"), ("", "", "untranslated")]
    assert rows(path, "en", "fr") == [("one", "un", ""), left_out[0], ("two", "deux", ""), left_out[1]]
    assert rows(path, "en", "de-DE")[0] == ("one", "eins", "")
    assert rows(path, "fr", "en-US")[2] == ("deux", "two", "")
    assert "has several kinds of de: give one of de-at, de-de" in message(path)
    assert "has no language 'it'. It has: de-at, de-de, en-us, fr" in message(path, "en-US", "it")
    assert "give --source and --target" in message(path, None, None)


def test_an_exact_code_goes_before_its_kinds(tmp_path: Path) -> None:
    path = written(tmp_path / "m.tmx", memory({"en-GB": "colour", "en": "color", "de": "Farbe"}))
    assert rows(path)[0].source == "color" and rows(path, "en-GB")[0].source == "colour"


INLINE = (
    'Click <bpt i="1" x="1">&lt;b&gt;</bpt>here<ept i="1">&lt;/b&gt;</ept><ph x="2">{<sub>no</sub>}</ph> for '
    "<hi>more</hi> &amp; <it pos='begin'>&lt;i&gt;</it>all"
)


def test_inline_tags_are_left_out_or_become_marks(tmp_path: Path) -> None:
    path = written(tmp_path / "m.tmx", memory({"en": INLINE, "de": "Hier"}))
    assert rows(path)[0].source == "Click here for more & all"
    kept = rows(path, inline_tags=True)[0].source
    assert kept == "Click <g1>here</g1><x2/> for <g3>more</g3> & <x4/>all"
    assert stripped(kept).text == rows(path)[0].source
    assert all(MARKUP.fullmatch(tag) for tag in re.findall("<[^>]*>", kept))


def test_marks_correspond_across_languages(tmp_path: Path) -> None:
    """By `x`, where there is one: `i` counts the tags of each language alone."""
    tagged = '<bpt i="1" x="{}"/>{}<ept i="1"/> <bpt i="2" x="{}"/>{}<ept i="2"/>'
    path = written(
        tmp_path / "m.tmx", memory({"en": tagged.format(1, "a", 2, "b"), "de": tagged.format(2, "B", 1, "A")})
    )
    assert rows(path, inline_tags=True)[0][:2] == ("<g1>a</g1> <g2>b</g2>", "<g2>B</g2> <g1>A</g1>")


NAMES = st.sampled_from(["g", "pc", "hi", "mrk", "x", "ph", "bpt", "ept", "it", "sub"])
TREE: Any = st.recursive(st.text("ab"), lambda inner: st.lists(st.tuples(NAMES, st.text('1<" é'), inner)), max_leaves=9)


@given(TREE)
def test_marks_are_markup_whatever_the_tags_are(tree: Any) -> None:
    plain, kept = Segment(False), Segment(True)

    def tell(node: Any, segment: Segment) -> None:
        if isinstance(node, str):
            segment.data(node)
            return
        for name, number, inner in node:
            segment.start(name, {"id": number})
            tell(inner, segment)
            segment.end(name)

    for segment in (plain, kept):
        tell(tree, segment)
    assert MARKUP.sub("", kept.text()) == plain.text()


XLIFF_1 = """<xliff xmlns="urn:oasis:names:tc:xliff:document:1.2" version="1.2">
<file source-language="en-US" target-language="de"><body><group>
<trans-unit id="1"><source>Open <g id="7">file</g><x id="8"/></source><target><g id="7">Datei</g> öffnen</target>
<alt-trans><source>no</source><target>nein</target></alt-trans></trans-unit>
<trans-unit id="2"><source>a</source></trans-unit>
<trans-unit id="3"><source>b</source><target state="needs-review-translation">B</target></trans-unit>
<trans-unit id="4" approved="no"><source>c</source><target>C</target></trans-unit>
<trans-unit id="5" translate="no"><source>d</source><target>d</target></trans-unit>
<trans-unit id="6" approved="yes"><source>e</source><seg-source><mrk mtype="seg" mid="1">e</mrk></seg-source>
<target><mrk mtype="seg" mid="1">E</mrk></target></trans-unit></group></body></file></xliff>"""
XLIFF_2 = """<xliff xmlns="urn:oasis:names:tc:xliff:document:2.0" version="2.0" srcLang="en" trgLang="de-AT">
<file id="f"><unit id="1"><segment><source>Open <pc id="7">file</pc><ph id="8"/></source>
<target><pc id="7">Datei</pc> öffnen</target></segment><ignorable><source> </source></ignorable>
<segment state="initial"><source>b</source><target>B</target></segment>
<segment state="final"><source>c</source><target>C</target></segment></unit>
<unit id="2"><segment><source>a</source></segment></unit>
<unit id="3" translate="no"><segment><source>d</source><target>d</target></segment></unit></file></xliff>"""
TS = """<?xml version="1.0"?><!DOCTYPE TS><TS version="2.1" language="de_DE" sourcelanguage="en"><context><name>N</name>
<message><source>Open &lt;b&gt;</source><oldsource>no</oldsource><comment>no</comment>
<translation>Öffnen</translation></message>
<message numerus="yes"><source>%n file(s)</source><translation><numerusform>%n Datei</numerusform>
<numerusform>%n Dateien</numerusform></translation></message>
<message><source>a</source><translation type="unfinished"></translation></message>
<message><source>b</source><translation type="unfinished">B</translation></message>
<message><source>c</source><translation type="vanished">C</translation></message></context></TS>"""


def test_xliff(tmp_path: Path) -> None:
    first = ("Open file", "Datei öffnen", "")
    path = written(tmp_path / "a.xliff", XLIFF_1)
    others = [("b", "B", "unapproved"), ("c", "C", "unapproved"), ("d", "d", "untranslated"), ("e", "E", "")]
    assert rows(path) == [first, ("a", "", "untranslated"), *others]
    marked = ("Open <g7>file</g7><x8/>", "<g7>Datei</g7> öffnen", "")
    assert rows(path, inline_tags=True)[0] == marked
    second = written(tmp_path / "a.xlf", XLIFF_2)
    assert rows(second) == [first, others[0], ("c", "C", ""), ("a", "", "untranslated"), others[2]]
    assert rows(second, inline_tags=True)[0] == marked
    for each in (path, second):
        assert rows(each, "de", "en")[0] == (first[1], first[0], "") and rows(each, None, None) == rows(each)
        assert "Received: --source en --target fr" in message(each, "en", "fr")


@pytest.mark.parametrize("around", ["group", "file"])
@pytest.mark.parametrize("unit", ["<trans-unit{}>{}</trans-unit>", "<unit{}><segment>{}</segment></unit>"])
def test_what_is_not_translated_is_said_of_a_unit_or_of_what_it_is_in(tmp_path: Path, around: str, unit: str) -> None:
    pair = "<source>a</source><target>b</target>"
    within = unit.format("", pair) + unit.format(' translate="yes"', pair)
    text = f'<xliff><file><{around} translate="no">{within}</{around}>{unit.format("", pair)}</file></xliff>'
    path = written(tmp_path / "a.xliff", text)
    assert [why for *_, why in rows(path)] == ["untranslated", "", ""]


def test_segments_of_units_are_pairs_of_their_own(tmp_path: Path) -> None:
    """As Trados Studio and others write them; a target may have some of them alone."""
    sources = [f'<mrk mtype="seg" mid="{i}">{text}</mrk>' for i, text in enumerate(("One.", "Two.", "Three."))]
    targets = [sources[0].replace("One", "Eins"), '<mrk mtype="seg" mid="1"/>', sources[2].replace("Three", "Drei")]
    states = '<s:seg-defs><s:seg id="0" conf="Translated"/><s:seg id="1"/><s:seg id="2" conf="Draft"/></s:seg-defs>'
    unit = f"<source>One. Two. Three.</source><seg-source><g id='1'>{' '.join(sources)}</g></seg-source>"
    unit = f"<trans-unit>{unit}<target><g id='1'>{' '.join(targets)}</g></target>{states}</trans-unit>"
    path = written(tmp_path / "a.sdlxliff", f'<xliff xmlns:s="s"><file><body>{unit}</body></file></xliff>')
    assert rows(path) == [("One.", "Eins.", ""), ("Two.", "", "untranslated"), ("Three.", "Drei.", "unapproved")]


@pytest.mark.parametrize(
    ("own", "why"),
    [
        ('mq:status="ManuallyConfirmed"', ""),
        ('mq:status="MachineTranslated"', "unapproved"),
        ('m:confirmed="1"', ""),
        ('m:confirmed="0"', "unapproved"),
    ],
)
def test_programs_say_of_units_whether_they_are_approved(tmp_path: Path, own: str, why: str) -> None:
    unit = f"<trans-unit {own}><source>a</source><target>b</target></trans-unit>"
    path = written(tmp_path / "a.xliff", f'<xliff xmlns:m="m" xmlns:mq="mq"><file>{unit}</file></xliff>')
    assert rows(path) == [("a", "b", why)]


def test_ts(tmp_path: Path) -> None:
    path = written(tmp_path / "a.ts", TS)
    assert rows(path) == [
        ("Open <b>", "Öffnen", ""),
        ("%n file(s)", "%n Dateien", ""),
        ("a", "", "untranslated"),
        ("b", "B", "unapproved"),
        ("c", "C", "obsolete"),
    ]
    assert rows(path, "de", "en")[0].source == "Öffnen"
    assert "a.ts is translated from en to de_DE" in message(path, "de", "fr")


HEADER = (
    'msgid ""\nmsgstr ""\n"Last-Translator: Pavlovský\\n"\n"Language: cs\\n"\n'
    '"Content-Type: text/plain; charset={}\\n"\n'
)
PLURALS = '"Plural-Forms: nplurals=3; plural=(n==1) ? 0 : (n>=2 && n<=4) ? 1 : 2;\\n"\n'
PO = """
# A comment
#: file.c:3
#, c-format, fuzzy
#| msgid "old"
msgid "a \\"b\\"\\n"
"c\\x41\\101\\t"
msgstr "příliš"

msgctxt "menu"
msgid "open"
msgstr "otevřít"

msgid "%d file"
msgid_plural "%d files"
msgstr[0] "%d soubor"
msgstr[1] "%d soubory"
msgstr[2] "%d souborů"

msgid "none"
msgstr ""

#~ msgid "old"
#~ msgstr "starý"
"""


@pytest.mark.parametrize("encoding", ["UTF-8", "ISO-8859-2", "base64", "undefined"])
def test_po(tmp_path: Path, encoding: str) -> None:
    """What is the name of no encoding of text is read as UTF-8."""
    is_known = encoding[0].isupper()
    path = written(tmp_path / "a.po", HEADER.format(encoding) + PLURALS + PO, encoding if is_known else "UTF-8")
    assert rows(path, "en", "cs") == [
        ('a "b" cAA', "příliš", "fuzzy"),
        ("open", "otevřít", ""),
        ("%d file", "%d soubor", ""),
        ("%d files", "%d souborů", ""),
        ("none", "", "untranslated"),
        ("old", "starý", "obsolete"),
    ]
    assert rows(path, "cs", "en")[1] == ("otevřít", "open", "")
    assert "a.po is translated to cs" in message(path, "en", "de")


BOMB = '<!DOCTYPE tmx [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;&a;">]>'
OUTSIDE = '<!DOCTYPE tmx [<!ENTITY a SYSTEM "file:///etc/passwd">]>'


@pytest.mark.parametrize(
    ("name", "content", "part"),
    [
        ("a.tmx", memory({"en": "&b;", "de": "b"}, before=BOMB), "a.tmx, line 2 has an entity"),
        ("a.tmx", memory({"en": "&a;", "de": "b"}, before=OUTSIDE), "a.tmx, line 2 has an entity"),
        ("a.tmx", memory({"en": "&a;", "de": "b"}, before='<!DOCTYPE tmx SYSTEM "x.dtd">'), "line 4 has an entity"),
        ("a.tmx", memory({"en": "&a;", "de": "b"}), "line 4, column 29: broken XML, undefined entity"),
        ("a.tmx", memory({"en": "<b>", "de": "b"}), "line 4, column 34: broken XML, mismatched tag"),
        ("a.tmx", memory({"en": "a", "de": "b"})[:-14], "line 4, column 84: broken XML, no element found"),
        ("a.tmx", "", "broken XML, no element found"),
        ("a.tmx", "a\tb\n", "line 1, column 1: broken XML, syntax error"),
        (
            "a.tmx",
            '<?xml version="1.0" encoding="no-such"?><tmx/>',
            "has an encoding that is not read: save it as UTF-8",
        ),
        ("a.tmx", "<html/>", "has no language 'en'. It has: none"),
        ("a.xliff", f"{BOMB}{XLIFF_1}", "line 1 has an entity"),
        ("a.xliff", XLIFF_1[:-9], "broken XML"),
        ("a.ts", TS.replace("<!DOCTYPE TS>", BOMB), "line 1 has an entity"),
        ("a.po", 'msgid "a"\nmsgstr "b\n', "a.po, line 2 is no line of a .po: 'msgstr \"b'"),
        ("a.po", "not a catalogue\n", "a.po, line 1 is no line of a .po"),
        ("a.po", HEADER.format("UTF-8") + '"Plural-Forms: nplurals=2; plural=n ** n;\\n"\n\n', "plural forms"),
        ("a.po", HEADER.format("UTF-8") + '"Plural-Forms: nplurals=2; plural=n % 0;\\n"\n\n', "plural forms"),
    ],
)
def test_files_that_cannot_be_read(tmp_path: Path, name: str, content: str, part: str) -> None:
    assert part in message(written(tmp_path / name, content))


def test_a_catalogue_in_another_encoding_than_it_says(tmp_path: Path) -> None:
    assert "line 3: not UTF-8" in message(written(tmp_path / "a.po", HEADER.format("UTF-8"), "ISO-8859-2"))


def test_a_memory_is_read_as_a_stream(tmp_path: Path) -> None:
    """12 MB of text, packed."""
    unit = {"en": "a" * 300, "de": "b" * 300}
    path = written(tmp_path / "m.tmx.gz", memory(*[unit] * 20_000))
    corpus = open_corpus(DataConfig(corpus=str(path), source="en", target="de"))
    tracemalloc.start()
    assert sum(1 for _ in corpus.rows()) == 20_000
    assert tracemalloc.get_traced_memory()[1] < 2e6
    tracemalloc.stop()


def test_several_kinds_in_one_training_and_what_was_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    units = [{"en": f"unit {i}", "de": f"Einheit {i}"} for i in range(200)]
    files = [
        written(tmp_path / "memory.tmx", memory(*units, {"en": "alone"})),
        written(tmp_path / "manual.xliff", XLIFF_1),
        written(tmp_path / "program.po", PO),
        written(tmp_path / "program.ts", TS),
    ]
    options = [option for file in files for option in ("--data", str(file))]
    languages = ["--source", "en", "--target", "de", "--vocab-size", "350", "--set", "data.held_out=0.05"]
    assert main(["prepare", *options, *languages, "--output", str(tmp_path / "prepared")]) == 0
    dropped = [{why: n for why, n in one["dropped"].items() if n} for one in Prepared(tmp_path / "prepared").corpora]
    assert dropped == [
        {"untranslated": 1},
        {"untranslated": 2, "unapproved": 2},
        {"untranslated": 1, "fuzzy": 1, "obsolete": 1},
        {"untranslated": 1, "unapproved": 1, "obsolete": 1},
    ]
    capsys.readouterr()
    assert main(["info", str(tmp_path / "prepared")]) == 0
    assert "left out: 1 untranslated, 1 fuzzy, 1 obsolete" in capsys.readouterr().out


def test_what_an_error_shows_of_a_file_is_short(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path / "a.po", HEADER.format("UTF-8").replace("cs", "cs" * 50_000) + PLURALS + PO)
    options = ["--source", "en", "--target", "de", "--vocab-size", "350", "--output", str(tmp_path / "prepared")]
    assert main(["prepare", "--data", str(path), *options]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and str(path) in said and len(said) < 2_100


def test_a_catalogue_without_translations(tmp_path: Path) -> None:
    path = written(tmp_path / "a.po", 'msgid "a"\nmsgstr ""\n')
    with pytest.raises(InputError, match="a.po has no pair in split 'train'"):
        read(DataConfig(corpus=str(path)), "train")


def test_a_file_without_translations_says_so(tmp_path: Path) -> None:
    path = tmp_path / "a.po"
    path.write_text('msgid "a"\nmsgstr ""\n\n#, fuzzy\nmsgid "b"\nmsgstr "B"\n')
    for split in ("train", "val"):
        with pytest.raises(InputError, match=r"all that it has is left out \(1 untranslated, 1 fuzzy\)"):
            read(DataConfig(corpus=str(path), source="en", target="de"), split)

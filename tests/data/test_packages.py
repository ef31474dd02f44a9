"""Tests of .docx, .pptx and .odt that are translated as files."""

import io
import re
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from tf_transformer.config import DataConfig
from tf_transformer.data.corpora.translated_file import TranslatedFile
from tf_transformer.errors import InputError
from tf_transformer.text.markup import MARKUP

WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
DRAWING = "http://schemas.openxmlformats.org/drawingml/2006/main"
TEXT = "urn:oasis:names:tc:opendocument:xmlns:text:1.0"


def upper(text: str) -> str:
    """A translator that keeps markup."""
    marks = [match[0] for match in MARKUP.finditer(text)]
    return "".join(a.upper() + b for a, b in zip(MARKUP.split(text)[:: MARKUP.groups + 1], [*marks, ""], strict=True))


def package(members: dict[str, str | bytes]) -> bytes:
    """A ZIP whose first member is not packed, as in an .odt."""
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as file:
        for number, (name, content) in enumerate(members.items()):
            kind = zipfile.ZIP_DEFLATED if number else zipfile.ZIP_STORED
            file.writestr(zipfile.ZipInfo(name, (2026, 1, 2, 3, 4, 6)), content, kind)
    return written.getvalue()


def document(body: str) -> str:
    return f'<?xml version="1.0"?>\n<w:document xmlns:w="{WORD}" xmlns:v="v"><w:body>{body}</w:body></w:document>'


def docx(body: str) -> bytes:
    return package({"[Content_Types].xml": "<Types/>", "word/document.xml": document(body), "word/media/a.png": b"\0"})


def odt(body: str, styles: str = "") -> bytes:
    names = f'xmlns:text="{TEXT}" xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0" xmlns:draw="d"'
    names += ' xmlns:style="urn:oasis:names:tc:opendocument:xmlns:style:1.0" xmlns:x="x" xmlns:fo="f"'
    names += ' xmlns:loext="urn:org:documentfoundation:names:experimental:office:xmlns:loext:1.0"'
    content = f"<office:document-content {names}>{styles}<office:body>{body}</office:body></office:document-content>"
    return package({"mimetype": "application/vnd.oasis.opendocument.text", "content.xml": content})


def translated(name: str, raw: bytes, translate: Callable[[str], str]) -> tuple[bytes, list[str], int]:
    file = TranslatedFile(Path(name), False, DataConfig(), raw)
    assert file.written(file.texts) == (raw, 0)
    content, lost = file.written(map(translate, file.texts))
    return content, file.texts, lost


def member(raw: bytes, name: str) -> str:
    with zipfile.ZipFile(io.BytesIO(raw)) as file:
        assert file.testzip() is None
        etree.fromstring(file.read(name))
        return file.read(name).decode()


def text_and_looks(raw: bytes) -> list[tuple[str, str]]:
    """The letters of a .docx, each with the properties of its run and what encloses it."""
    found = []
    for text in etree.fromstring(member(raw, "word/document.xml").encode()).iter(f"{{{WORD}}}t"):
        around = [etree.QName(above).localname for above in text.iterancestors()]
        properties = text.getparent().find(f"{{{WORD}}}rPr")
        looks = sorted({etree.QName(one).localname for one in (() if properties is None else properties)} - {"lang"})
        found += [(letter, f"{looks} in {around}") for letter in text.text or ""]
    return found


def run(text: str, properties: str = "") -> str:
    return f'<w:r w:rsidR="1">{properties}<w:t xml:space="preserve">{text}</w:t></w:r>'


BOLD, ENGLISH = "<w:rPr><w:b/></w:rPr>", '<w:rPr><w:lang w:val="en-US"/></w:rPr>'
FIELD = '<w:r><w:fldChar w:fldCharType="{}"/></w:r>'


LINK = f"{FIELD.format('begin')}<w:r><w:instrText>HYPERLINK</w:instrText></w:r>{FIELD.format('separate')}"


def field(instruction: str, shown: str) -> str:
    said = f"<w:r><w:instrText>{instruction}</w:instrText></w:r>"
    return FIELD.format("begin") + said + FIELD.format("separate") + shown + FIELD.format("end")


BOX = "<w:r><w:pict><v:box><w:txbxContent><w:p>{}</w:p></w:txbxContent></v:box></w:pict></w:r>".format(run("In {} box"))
PROOF = '<w:proofErr w:type="spellStart"/>'


@pytest.mark.parametrize(
    ("body", "texts"),
    [
        (run("Press ") + run("red", BOLD) + run(" st") + run("art."), ["Press <g1>red</g1> start."]),
        (f"{PROOF}{run('trans', ENGLISH)}{PROOF}{run('former')}", ["transformer"]),
        (
            f"{run('We ')}<w:del><w:r><w:delText>a</w:delText></w:r></w:del><w:ins>{run('love')}</w:ins>{run(' it')}",
            ["We <g1/><g2>love</g2> it"],
        ),
        (
            f"{run('See ')}<w:hyperlink>{run('the site', BOLD)}</w:hyperlink>{run(' now')}",
            ["See <g1>the site</g1> now"],
        ),
        (
            run("See ")
            + field('HYPERLINK "a"', run("this", BOLD))
            + run(" on ")
            + field("PAGE", run("7"))
            + run(" now"),
            ["See <g1>this</g1> on <g3/> now"],
        ),
        (
            f"<w:bookmarkStart/><w:r>{BOLD}<w:t>Name:</w:t><w:tab/><w:t>one</w:t><w:br/><w:t>a &amp; b</w:t></w:r>",
            ["Name:", "one", "a & b"],
        ),
        (f"{run('Note')}<w:r><w:footnoteReference w:id='1'/></w:r>{run(' here')}", ["Note<g1/> here"]),
        (
            run("Before ") + BOX.format("a") + run("after") + BOX.format("b"),
            ["Before <g1/>after", "In a box", "In b box"],
        ),
        (BOX.format("a"), ["In a box"]),
        (
            "<w:r><w:t>e</w:t><w:noBreakHyphen/><w:t>mail un</w:t><w:softHyphen/><w:t>do</w:t></w:r>",
            ["e\u2011mail undo"],
        ),
        (run("All bold", BOLD) + run(" "), ["All bold"]),
        (
            run("Bold", BOLD) + run(" ") + run("and bold", BOLD) + run(" and then much that is not"),
            ["<g1>Bold and bold</g1> and then much that is not"],
        ),
        (f"<w:sdt><w:sdtPr/><w:sdtContent>{run('A')}</w:sdtContent></w:sdt>{run(' here')}", ["<g1>A</g1> here"]),
        (run("12") + run(" %", BOLD), []),
        (f"{LINK}<w:ins>{run('a')}{FIELD.format('end')}</w:ins>{run(' b')}", ["<g1>a<g2/></g1> b"]),
        (
            f"{LINK.replace(FIELD.format('separate'), '')}<w:ins>{FIELD.format('separate')}{run('1')}</w:ins>"
            f"{FIELD.format('end')}{run(' b')}",
            ["b"],
        ),
        (run("a\tb"), ["a", "b"]),
        ("<w:r><w:t>\n   pretty\n  printed\n </w:t></w:r>", ["pretty   printed"]),
    ],
)
def test_paragraphs_of_word(body: str, texts: list[str]) -> None:
    raw = docx(f"<w:p>{body}</w:p><w:sectPr/>")
    content, found, lost = translated("a.docx", raw, upper)
    assert found == texts and lost == 0
    before, after = text_and_looks(raw), text_and_looks(content)
    spaces = re.compile(r"\s")
    kept = [(letter.upper(), looks) for letter, looks in before if not spaces.match(letter)]
    assert [one for one in after if not spaces.match(one[0]) and one[0] != "\u2011"] == (
        kept if texts else [one for one in before if not spaces.match(one[0])]
    )
    signs = re.compile(r"<(?:w:fld|w:instr|w:foot|w:tab|w:br|w:book|w:del|w:sdtPr|v:)[^>]*>")
    assert signs.findall(member(content, "word/document.xml")) == signs.findall(member(raw, "word/document.xml"))


RUNS = st.lists(
    st.tuples(
        st.sampled_from(["word", " ", "a b", "&lt;g1&gt;", "12", "", "é "]),
        st.sampled_from(["", BOLD, ENGLISH, "<w:rPr><w:i/></w:rPr>", "<w:rPr><w:u w:val='single'/></w:rPr>"]),
        st.sampled_from(
            ["{}", "<w:ins>{}</w:ins>", "<w:hyperlink>{}</w:hyperlink>", "<w:bookmarkEnd/>{}", "{}<w:r><w:tab/></w:r>"]
        ),
    ),
    max_size=8,
)


@given(RUNS)
def test_letters_keep_their_looks(runs: list[tuple[str, str, str]]) -> None:
    raw = docx("<w:p>" + "".join(around.format(run(text, looks)) for text, looks, around in runs) + "</w:p>")
    content, _, lost = translated("a.docx", raw, upper)
    seen = [
        [(letter.upper(), looks) for letter, looks in text_and_looks(one) if letter.strip()] for one in (raw, content)
    ]
    assert lost == 0 and seen[0] == seen[1]


def test_words_in_another_order() -> None:
    raw = docx(
        "<w:p>" + run("the ") + run("red", BOLD) + f" <w:hyperlink>{run('house')}</w:hyperlink>" + run(" is") + "</w:p>"
    )
    content, _, lost = translated("a.docx", raw, lambda _: "<g3>maison <g1>rouge</g1></g3> & est")
    assert lost == 0
    assert "".join(letter for letter, _ in text_and_looks(content)) == "maison rouge & est"
    assert {letter for letter, looks in text_and_looks(content) if "['b'] in" in looks} == set("rouge")
    content, _, lost = translated("a.docx", raw, lambda _: "maison <g1>rouge")
    assert lost == 1 and "".join(letter for letter, _ in text_and_looks(content)) == "the redhouse is"


def test_all_else_of_a_package_stays() -> None:
    raw = docx(f"<w:p>{run('one')}</w:p><w:p><w:r><w:t>12</w:t></w:r ></w:p>")
    content, _, _ = translated("a.docx", raw, upper)
    with zipfile.ZipFile(io.BytesIO(raw)) as before, zipfile.ZipFile(io.BytesIO(content)) as after:
        assert [(one.filename, one.compress_type, one.date_time) for one in after.infolist()] == [
            (one.filename, one.compress_type, one.date_time) for one in before.infolist()
        ]
        assert all(
            (before.read(name) == after.read(name)) == (name != "word/document.xml") for name in before.namelist()
        )
    assert member(content, "word/document.xml").endswith("<w:p><w:r><w:t>12</w:t></w:r ></w:p></w:body></w:document>")


def test_a_slide() -> None:
    runs = '<a:r><a:rPr lang="en-US"/><a:t>Second </a:t></a:r><a:r><a:rPr b="1" dirty="0"/><a:t>bold</a:t></a:r>'
    body = f'<p:sld xmlns:a="{DRAWING}" xmlns:p="p"><a:p><a:pPr/>{runs}<a:r><a:t> point</a:t></a:r><a:br/>'
    body += '<a:fld id="1"><a:t>12</a:t></a:fld><a:r><a:t>line</a:t></a:r><a:endParaRPr lang="en"/></a:p></p:sld>'
    content, texts, _ = translated("a.pptx", package({"ppt/slides/slide1.xml": body}), upper)
    assert texts == ["Second <g1>bold</g1> point", "line"]
    written = member(content, "ppt/slides/slide1.xml")
    assert '<a:r><a:rPr b="1" dirty="0"/><a:t>BOLD</a:t></a:r>' in written and "space" not in written
    assert "<a:t>12</a:t>" in written and '<a:endParaRPr lang="en"/></a:p>' in written


RSID = '<style:text-properties x:rsid="1" fo:language="de"/>'
RSID = f'<style:style style:name="T1" style:family="text">{RSID}</style:style>'


@pytest.mark.parametrize(
    ("body", "texts", "expected"),
    [
        (
            'a<text:s text:c="2"/>b <text:span text:style-name="T2">c</text:span>\n d',
            ["a  b <g1>c</g1> d"],
            'A <text:s text:c="1"/>B <text:span text:style-name="T2">C</text:span> D',
        ),
        ('un<text:span text:style-name="T1">do</text:span>ne', ["undone"], "UNDONE"),
        ("<text:a>a<text:tab/>3<text:tab/>b</text:a>", ["a", "b"], "<text:a>A<text:tab/>3<text:tab/>B</text:a>"),
        ("<text:a>a<text:tab/>b</text:a> c", ['<g1>a<br id="2"/>b</g1> c'], "<text:a>A<text:tab/>B</text:a> C"),
        ("<loext:content-control>a</loext:content-control>", ["a"], "<loext:content-control>A</loext:content-control>"),
        ("a<text:tab/>b<text:line-break/>c &amp; d", ["a", "b", "c & d"], "A<text:tab/>B<text:line-break/>C &amp; D"),
        (
            "a<text:note><x:y>1</x:y><text:note-body><text:p>Note</text:p></text:note-body></text:note> b",
            ["a<g1/> b", "Note"],
            "A<text:note><x:y>1</x:y><text:note-body><text:p>NOTE</text:p></text:note-body></text:note> B",
        ),
        (
            "a<office:annotation><text:p>comment</text:p></office:annotation> b",
            ["a<g1/> b"],
            "A<office:annotation><text:p>comment</text:p></office:annotation> B",
        ),
        (
            "page <text:page-number>7</text:page-number> of it",
            ["page <g1/> of it"],
            "PAGE <text:page-number>7</text:page-number> OF IT",
        ),
        (
            "<draw:frame><draw:box><text:p>in <text:a>a</text:a> b</text:p></draw:box></draw:frame>",
            ["in <g1>a</g1> b"],
            "<draw:frame><draw:box><text:p>IN <text:a>A</text:a> B</text:p></draw:box></draw:frame>",
        ),
        ("a<text:soft-page-break/>b <!-- no --><![CDATA[< c]]>", ["ab < c"], "AB &lt; C"),
    ],
)
def test_paragraphs_of_an_odt(body: str, texts: list[str], expected: str) -> None:
    gone = "<text:tracked-changes><text:p>deleted</text:p></text:tracked-changes>"
    raw = odt(f"{gone}<text:p text:style-name='P'>{body}</text:p><text:h>Heading</text:h>", RSID)
    content, found, lost = translated("a.odt", raw, upper)
    assert found == [*texts, "Heading"] and lost == 0
    assert f"{gone}<text:p text:style-name='P'>{expected}</text:p><text:h>HEADING</text:h>" in member(
        content, "content.xml"
    )


@pytest.mark.parametrize(
    ("name", "raw", "part"),
    [
        ("a.docx", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "protected by a password"),
        ("a.docx", b"no zip", "a.docx is damaged, or no .docx"),
        ("a.docx", docx("<w:p/>")[:-30], "damaged"),
        ("a.docx", docx("<w:p/>").replace(b"\x14\0\0\0\x08\0", b"\x14\0\0\0\x0c\0"), "a.docx is damaged"),
        ("a.docx", docx("<w:p>"), "word/document.xml, line 2, column"),
        ("a.docx", odt("<text:p>a</text:p>"), "no text where a .docx has it"),
        ("a.docx", docx("<w:p>" + "<w:ins>" * 300 + "</w:ins>" * 300 + "</w:p>"), "nested too deep"),
        (
            "a.docx",
            docx(f"<w:p><w:r><w:rPr>{'<w:b/>' * 2_000}</w:rPr>{'<w:t>a</w:t>' * 2_000}</w:r></w:p>"),
            "too many properties",
        ),
        ("a.docx", package({"word/document.xml": '<!DOCTYPE x [<!ENTITY a "b">]><x/>'}), "has an entity"),
        (
            "a.odt",
            package({"META-INF/manifest.xml": "<manifest:encryption-data/>", "content.xml": b"\xff"}),
            "password",
        ),
        ("a.odt", package({"content.xml": b"\xff"}), "line 1: not UTF-8"),
    ],
    ids=[
        "ole",
        "no zip",
        "cut",
        "packed otherwise",
        "broken",
        "other kind",
        "deep",
        "properties",
        "entity",
        "encrypted",
        "encoding",
    ],
)
def test_packages_that_cannot_be_translated(name: str, raw: bytes, part: str) -> None:
    with pytest.raises(InputError, match=re.escape(part)):
        TranslatedFile(Path(name), False, DataConfig(), raw)


@pytest.mark.parametrize(
    ("name", "raw"),
    [
        ("a.docx", docx(f"<w:p>{run('a', '<w:rPr>' + '<w:rPrChange/>' * 20_000 + '</w:rPr>')}</w:p>")),
        ("a.docx", docx(f"<w:p>{run('a', '<w:rPr><!--' + '<rPrChange>' * 40_000 + '--></w:rPr>')}</w:p>")),
        ("a.docx", docx(f"<w:p>{run('a', '<w:rPr><!--' + '<lang ' * 60_000 + '--></w:rPr>')}</w:p>")),
        ("a.docx", docx("<w:p><w:r><w:t>a" + "\n" * 2_000 + "b</w:t></w:r></w:p>")),
        ("a.docx", docx(f"<w:p>{run('a')}{FIELD.format('begin') * 10_000}</w:p>")),
        ("a.docx", docx(f"<w:p>{LINK * 2_000}{run('a')}{FIELD.format('end') * 2_000}</w:p>")),
        ("a.odt", odt("<text:p><text:a>a" + "b<text:tab/>" * 20_000 + "</text:a>c</text:p>")),
        ("a.odt", odt("<text:p>a" + "<text:note><text:p>b</text:p></text:note>" * 6_000 + "c</text:p>")),
        ("a.odt", odt(f'<text:p>a<text:s text:c="{"9" * 5_000}"/>b</text:p>')),
    ],
    ids=["changes", "open changes", "open tags", "line feeds", "fields", "links", "tabs", "notes", "spaces"],
)
def test_what_is_long_takes_no_time(name: str, raw: bytes) -> None:
    """Some of these once took minutes, and the links failed."""
    assert "a" in translated(name, raw, upper)[1][0]


def test_a_package_that_is_a_trap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tf_transformer.data.corpora.package.LARGE", 1 << 16)
    for raw in (
        package({"a": "", "b": bytes(1 << 18)}),
        package({"a": ""} | {f"b{i}": bytes(1 << 16) for i in range(9)}),
    ):
        with pytest.raises(InputError, match="would become .* bytes, and is not unpacked"):
            TranslatedFile(Path("a.docx"), False, DataConfig(), raw)


def test_a_file_of_a_package_that_is_larger_than_it_says() -> None:
    size = (10_000_000).to_bytes(4, "little")
    raw = package({"mimetype": "", "word/document.xml": bytes(10_000_000)})
    assert raw.count(size) == 2  # before the file and in the directory
    tracemalloc.start()
    with pytest.raises(InputError, match="Bad CRC-32"):
        TranslatedFile(Path("a.docx"), False, DataConfig(), raw.replace(size, (1_000).to_bytes(4, "little")))
    assert tracemalloc.get_traced_memory()[1] < 2e6
    tracemalloc.stop()

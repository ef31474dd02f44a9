"""The guide: its code runs, what it quotes is in the code, and both languages have the same pages."""

import ast
import re
import shlex
import textwrap
from pathlib import Path

import pytest

from tf_transformer.commands.main import parser

ROOT = Path(__file__).parents[2]
GUIDE = ROOT / "docs" / "guide"
HEADINGS = {
    "en": ("The paper", "The code", "Try it", "Common mistakes", "Questions"),
    "zh": ("论文", "代码", "试一试", "常见错误", "思考题"),
}
FOLDERS = {"en": GUIDE, "zh": GUIDE / "zh"}
PAGES = {language: sorted(folder.glob("[0-9][0-9]-*.md")) for language, folder in FOLDERS.items()}
ALL = [pytest.param(language, page, id=f"{language}-{page.stem}") for language in PAGES for page in PAGES[language]]
BLOCK = re.compile(r"^```(\w*)([^\n]*)\n(.*?)^```$", flags=re.M | re.S)


def blocks(page: Path, kind: str, quoted: bool = False) -> list[str]:
    """The code of a page in a language; quoted is what is said to stand in a file."""
    found = BLOCK.findall(page.read_text("utf-8"))
    return [code for language, rest, code in found if language == kind and ("file=" in rest) == quoted]


@pytest.mark.long
def test_the_code_of_every_page_runs_and_what_it_asserts_holds(tmp_path, in_fresh_process):
    """One process for all, so that TensorFlow is imported once; each page has names of its own."""
    pages = {page.name: "\n".join(blocks(page, "python")) for page in PAGES["en"]}
    assert len(pages) >= 18
    for name, code in pages.items():
        assert "assert" in code, f"{name} asserts nothing"
    code = f"""
import time, traceback
for name, code in {pages!r}.items():
    start = time.perf_counter()
    try:
        exec(compile(code, name, "exec"), {{"__name__": "__main__"}})
    except BaseException:
        raise SystemExit(name + chr(10) + traceback.format_exc())
    print(f"{{name}} {{time.perf_counter() - start:.1f}} s")
"""
    print(in_fresh_process(code, cwd=tmp_path))


@pytest.mark.parametrize(("language", "page"), ALL)
def test_a_page_has_its_parts(language, page):
    text = page.read_text("utf-8")
    headings = re.findall(r"^## (.*)$", text, flags=re.M)
    places = [headings.index(heading) for heading in HEADINGS[language]]
    assert places == sorted(places)
    paper = text.partition(f"## {HEADINGS[language][0]}\n")[2].partition("\n## ")[0]
    assert re.search(r"^> ", paper, flags=re.M), "the paper is not quoted"


@pytest.mark.parametrize(("language", "page"), ALL)
def test_what_a_page_quotes_stands_in_the_file(language, page):
    quotes = [
        (re.search(r"file=(\S+)", rest)[1], code)
        for kind, rest, code in BLOCK.findall(page.read_text("utf-8"))
        if "file=" in rest
    ]
    assert quotes
    for file, code in quotes:
        # Whole statements, or whole entries of a dictionary.
        compile(f"{{\n{code}}}" if code.startswith('"') else code, file, "exec", flags=ast.PyCF_ONLY_AST)
        source = (ROOT / file).read_text("utf-8")
        for passage in filter(str.strip, re.split(r"^ *\.\.\.\n", code, flags=re.M)):
            whole = textwrap.dedent(passage)
            indented = [textwrap.indent(whole, " " * spaces) for spaces in range(0, 25, 4)]
            assert any(f"\n{lines}" in source for lines in indented), f"{file} has no passage {passage!r}"
        assert f"{file})" in page.read_text("utf-8"), f"no link to {file}"


@pytest.mark.parametrize(("language", "page"), ALL)
def test_links_lead_somewhere_and_tests_and_commands_exist(language, page):
    text = page.read_text("utf-8")
    for link in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text):
        if "://" not in link:
            assert (page.parent / link).resolve().exists(), link
    named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", text)
    assert named, "no test is named"
    for file, test in named:
        assert f"def {test}(" in (ROOT / file).read_text("utf-8"), f"{file}::{test}"
    for line in re.findall(r"^tf-transformer +(.*)$", "\n".join(blocks(page, "sh")), flags=re.M):
        parser().parse_args(shlex.split(line, comments=True))


def test_both_languages_have_the_same_pages_with_the_same_code():
    assert [page.name for page in PAGES["zh"]] == [page.name for page in PAGES["en"]]
    for page in PAGES["en"]:
        other = FOLDERS["zh"] / page.name
        for kind in ("python", "sh"):
            for quoted in (False, True):
                assert blocks(other, kind, quoted) == blocks(page, kind, quoted), f"{page.name} {kind}"
        pictures = [re.findall(r"!\[[^\]]*\]\([./]*images/([^)]*)\)", one.read_text("utf-8")) for one in (page, other)]
        assert pictures[0] == pictures[1]


def test_the_index_names_every_page():
    for language, folder in FOLDERS.items():
        index = (folder / "README.md").read_text("utf-8")
        for page in PAGES[language]:
            assert f"]({page.name})" in index

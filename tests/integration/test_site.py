"""The site of the documents builds without a warning, and its pages fetch nothing from elsewhere."""

import functools
import http.server
import re
import subprocess
import sys
import threading
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE, SITE = ROOT / "build" / "site_source", ROOT / "build" / "site"


@pytest.mark.long
def test_the_site_builds_strictly_and_fetches_nothing():
    zensical = Path(sys.executable).with_name("zensical")
    for command in (
        [sys.executable, "scripts/site_source.py", str(SOURCE)],
        [zensical, "build", "--clean", "--strict"],
    ):
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    pages = sorted(SITE.rglob("*.html"))
    assert len(pages) > 50
    frames = {page: re.findall(r'<iframe src="([^"]+)', page.read_text("utf-8")) for page in pages}
    places = [(page.parent / src).resolve() for page, sources in frames.items() for src in sources]
    # The first page in both languages, and pages 15 and 17 of the guide in both.
    assert places == [SITE / "toy_en_de"] * 6
    for page in pages:
        html = page.read_text("utf-8")
        for fetched in re.findall(r"<(?:script|img|iframe)[^>]* src=\"?([^\" >]+)|<link[^>]* href=\"?([^\" >]+)", html):
            assert not re.match(r"(https?:)?//", "".join(fetched)), f"{page}: {fetched}"
    api = (SITE / "api" / "index.html").read_text("utf-8")
    for name in ("Transformer", "MultiHeadAttention", "Translator", "SmoothedCrossEntropy", "BeamSearch"):
        assert re.search(rf'id="[\w.]*\.{name}"', api), name
    assert (SITE / "search.json").exists() or list(SITE.rglob("search*"))


@pytest.mark.long
def test_the_search_finds_words_of_both_languages(context):
    """In a browser. Chinese words are found wherever they stand in a sentence. It needs the site of the test above."""
    if not SITE.exists():
        pytest.skip("there is no site")
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=SITE)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        page = context.new_page()
        page.set_viewport_size({"width": 1100, "height": 800})
        for word, least in (("ensemble", 3), ("\u5b66\u4e60\u7387", 8)):  # the learning rate
            page.goto(f"http://127.0.0.1:{server.server_port}/guide/zh/13-optimiser-and-schedule/")
            page.wait_for_timeout(1000)
            page.keyboard.press("/")
            page.wait_for_timeout(1000)
            page.keyboard.type(word)
            shown = page.get_by_text(re.compile(r"^\d+ results?$"))
            shown.wait_for(timeout=30_000)
            assert int(shown.inner_text().split()[0]) >= least, word
        server.shutdown()


def test_every_page_is_in_the_navigation():
    named = set(re.findall(r'"([\w/-]+\.md)"', (ROOT / "zensical.toml").read_text("utf-8")))
    docs = ROOT / "docs"
    for page in docs.rglob("*.md"):
        name = page.relative_to(docs)
        name = name.parent / "index.md" if name.name == "README.md" else name
        assert name.as_posix() in named, f"{name} is in no section of zensical.toml"


def test_code_in_a_list_belongs_to_it():
    """On the site, what is indented by less than four spaces ends a list, and numbers start at 1 again."""
    for page in (ROOT / "README.md", ROOT / "README.zh.md", *(ROOT / "docs").rglob("*.md")):
        assert not re.findall(r"^ {1,3}```.*", page.read_text("utf-8"), flags=re.M), page

"""The site of the documents builds without a warning, and its pages fetch nothing from elsewhere."""

import re
import subprocess
import sys
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
    for page in pages:
        html = page.read_text("utf-8")
        for fetched in re.findall(r"<(?:script|img|iframe)[^>]* src=\"?([^\" >]+)|<link[^>]* href=\"?([^\" >]+)", html):
            assert not re.match(r"(https?:)?//", "".join(fetched)), f"{page}: {fetched}"
    api = (SITE / "api" / "index.html").read_text("utf-8")
    for name in ("Transformer", "MultiHeadAttention", "Translator", "SmoothedCrossEntropy", "beam_search"):
        assert re.search(rf'id="[\w.]*\.{name}"', api), name
    assert (SITE / "search.json").exists() or list(SITE.rglob("search*"))


def test_every_page_is_in_the_navigation():
    named = set(re.findall(r'"([\w/-]+\.md)"', (ROOT / "zensical.toml").read_text("utf-8")))
    docs = ROOT / "docs"
    for page in docs.rglob("*.md"):
        name = page.relative_to(docs)
        name = name.parent / "index.md" if name.name == "README.md" else name
        assert name.as_posix() in named, f"{name} is in no section of zensical.toml"

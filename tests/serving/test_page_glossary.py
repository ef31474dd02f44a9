"""The glossary of the server's page: how its lines are read. The server's answers are made up."""

import json
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tf_transformer.serving.http import rest

FILES = Path(rest.__file__).parent / "page"
MODEL = {"name": "m", "source": "en", "target": "de", "languages": [], "has_steps": False, "has_terms": True}
ANSWER = {"model": MODEL, "translation": "t", "sentences": [{"text": "a", "n_best": [], "is_truncated": False}]}


@pytest.fixture
def page(context):
    """The page, and in `asked` what it asks the server for."""
    page = context.new_page()
    page.asked = []

    def answer(route):
        path = route.request.url.removeprefix("http://server/")
        if path == "page/model":
            route.fulfill(json=MODEL)
        elif path == "page/translate":
            page.asked.append(json.loads(route.request.post_data))
            route.fulfill(json=ANSWER)
        elif path.startswith("page/"):  # of a panel that is not looked at here
            route.fulfill(status=404)
        else:
            route.fulfill(path=FILES / (path or "index.html"))

    page.route("**/*", answer)
    page.goto("http://server/")
    page.locator("#terms summary").click()
    return page


@pytest.mark.parametrize(
    ("lines", "glossary", "left_out"),
    [
        ("dog = Hund\ncat=Katze", {"dog": "Hund", "cat": "Katze"}, []),
        ("x=1 = x=2", {"x=1": "x=2"}, []),
        ("x = y = z", {"x": "y = z"}, []),
        ("a == b", {"a": "= b"}, []),
        ("n = = m", {"n": "= m"}, []),
        ("a\t=\tb=c", {"a": "b=c"}, []),
        ("\n  \n", {}, []),
        ("unfinished\nb = c\n= d\ne = ", {"b": "c"}, ["unfinished", "= d", "e = "]),
    ],
)
def test_a_line_is_a_term_and_its_translation_or_is_named(page, lines, glossary, left_out):
    page.locator("#glossary").fill(lines)
    page.locator("#text").fill("a")
    page.locator("#text").press("Enter")
    expect(page.locator("#translation")).to_have_text("t")
    assert page.asked == [{"text": "a", "glossary": glossary}]
    said = page.locator("#problem").text_content()
    named = f"Left out of the glossary, whose lines are term = translation: {'; '.join(left_out)}"
    assert said == (named if left_out else "")

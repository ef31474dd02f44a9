"""The page in a real browser: what fails, what can be seen, and what the pictures say."""

import itertools
import json
import re
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import expect

from tf_transformer.serving.http import rest

PAGE = Path(rest.__file__).parent / "page"


def test_the_scripts_of_the_panels_know_only_what_they_share():
    imports = {file.name: set(re.findall(r'from "./(.+)"', file.read_text())) for file in PAGE.glob("*.js")}
    panels = {"attention.js", "steps.js"}
    assert imports == {
        "page.js": {"ask.js", "parts.js", *panels},
        "parts.js": {"ask.js"},
        "ask.js": set(),
        **{name: {"parts.js"} for name in panels},
    }


@pytest.mark.parametrize("panel", ["attention", "steps"])
def test_what_fails_in_a_panel_is_said_there_and_can_be_tried_again(page, panel):
    failing = {"body": "<html>bad gateway</html>", "status": 502}
    page.route(f"**/page/{panel}", lambda route: route.fulfill(**failing))
    page.keyboard.type("a b c")
    page.keyboard.press("Enter")
    expect(page.locator("#result")).to_be_visible()
    box = page.locator(f".{panel}")
    if panel == "steps":
        # Attention above it, which comes later where its signature is still cold, would move it out of sight.
        expect(page.locator(".attention tbody td").first).to_be_visible()
        box.locator("summary").press("Enter")
    expect(box.locator(".said")).to_have_text("The server's answer cannot be read (status 502).")
    expect(box.locator(".said")).to_be_in_viewport()
    expect(box.locator(".drawn")).to_be_hidden()  # no empty tables
    failing["body"], failing["status"] = json.dumps({"error": "try again later"}), 504
    box.locator(".again").press("Enter")
    expect(box.locator(".said")).to_have_text("try again later")
    page.unroute(f"**/page/{panel}")
    box.locator(".again").press("Enter")
    expect(box.locator("tbody td").first).to_be_visible()
    expect(box.locator(".said")).to_be_empty()
    expect(box.locator(".again")).to_be_hidden()
    assert page.evaluate("document.activeElement.tagName") == "SUMMARY"  # the button that had the focus is gone
    expect(page.get_by_role("alert")).to_be_empty()


def test_a_choice_that_fails_leaves_what_was_there(page):
    page.keyboard.type("a b c")
    page.keyboard.press("Enter")
    page.locator(".steps summary").press("Enter")
    tokens = page.locator(".tokens button")
    expect(tokens.first).to_be_visible()
    before = tokens.all_inner_texts()
    page.route("**/page/steps", lambda route: route.abort())
    page.locator(".next button").first.press("Enter")
    expect(page.locator(".steps .said")).to_have_text("The server does not answer. Is it still running?")
    expect(page.locator(".steps .said")).to_be_in_viewport()
    assert tokens.all_inner_texts() == before
    page.unroute("**/page/steps")
    page.locator(".steps .again").press("Enter")
    expect(page.locator(".begun")).to_be_visible()


@pytest.mark.parametrize("text", ["", " \u3000"])
def test_a_blank_text_is_not_sent(page, text):
    page.locator("#text").fill(text)
    page.get_by_role("button", name="Translate").click()
    expect(page.get_by_role("alert")).to_have_text("Write what is to be translated.")
    expect(page.locator("#text")).to_be_focused()
    assert not [url for url in page.asked if url.endswith("page/translate")]
    page.keyboard.type("a b c")
    page.keyboard.press("Enter")
    expect(page.locator("#result")).to_be_visible()
    expect(page.get_by_role("alert")).to_be_empty()


def test_a_sentence_that_was_cut_says_so(page):
    model = {"name": "m", "version": 1, "source": None, "target": None, "languages": [], "has_steps": False}
    sentences = [{"text": t, "n_best": [], "is_truncated": cut} for t, cut in (("a", True), ("b", False))]
    answer = {"model": model, "translation": "x", "sentences": sentences}
    page.route("**/page/translate", lambda route: route.fulfill(json=answer))
    page.keyboard.type("a")
    page.keyboard.press("Enter")
    lines = page.locator("#sentences > details > summary")
    expect(lines).to_have_count(2)  # `all` takes what is there, and waits for nothing
    for line in lines.all():
        line.click()
    expect(page.get_by_text("Its end was left out of the translation.")).to_have_count(2)
    assert [cut.is_visible() for cut in page.locator(".cut").all()] == [True, False]


def test_the_tree_is_as_its_legend_says(page):
    """A frame, its ends and its filling say one thing each, and lines have room between the steps."""
    page.keyboard.type("a b c")
    page.keyboard.press("Enter")
    page.locator(".steps summary").press("Enter")
    expect(page.locator(".tree rect").first).to_be_visible()
    seen = page.locator(".tree rect").evaluate_all(
        """all => all.map(one => {
            const style = getComputedStyle(one);
            const kind = (one.getAttribute("class") ?? "").split(" ");
            return [kind[0], kind.includes("best"), style.strokeDasharray !== "none", one.getAttribute("rx") === "15",
                    style.fill, style.strokeWidth, Number(one.getAttribute("x"))];
        })"""
    )
    assert {kind for kind, *_ in seen} == {"kept", "dropped", "finished"}
    fills = {True: set(), False: set()}
    for kind, is_best, is_dashed, is_round, fill, width, _ in seen:
        assert (is_dashed, is_round, width) == (kind == "dropped", kind == "finished", "1px")
        fills[is_best].add(fill)
    assert len(fills[True]) == len(fills[False]) == 1 and fills[True] != fills[False]
    places = sorted({x for *_, x in seen})
    assert min(after - before - 80 for before, after in itertools.pairwise(places)) >= 48
    values = page.locator("meter").evaluate_all("all => all.map(one => one.value)")
    assert values and all(value == round(value, 3) for value in values)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_controls_and_their_focus_can_be_seen(page, scheme):
    """Borders and the ring around what has the focus have a contrast of 3 to 1 (WCAG 1.4.11)."""
    page.emulate_media(color_scheme=scheme)
    page.keyboard.type("a b c")
    page.keyboard.press("Enter")
    expect(page.locator(".attention select").first).to_be_visible()
    paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
    for selector in ("#text", ".attention select"):
        page.locator(selector).first.focus()
        style = page.locator(selector).first.evaluate(
            "one => [getComputedStyle(one).borderTopColor, getComputedStyle(one).outlineColor]"
        )
        assert all(contrast(colour, paper) >= 3 for colour in style), style
    assert page.locator("#text").get_attribute("dir") == "auto"


def contrast(colour: str, other: str) -> float:
    """The ratio of two colours without transparency, such as rgb(0, 0, 0), by WCAG."""

    def luminance(text: str) -> float:
        channels = np.array([float(number) for number in re.fullmatch(r"rgb\((.*)\)", text)[1].split(",")]) / 255
        linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
        return float(linear @ (0.2126, 0.7152, 0.0722))

    darker, lighter = sorted((luminance(colour), luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


def test_a_sign_alone_stands_in_quotes(page):
    tokens = "['\u2581.', '.', '\u2581a', '</s>', '\u2581']"
    shown = page.evaluate(f"import('/parts.js').then(parts => {tokens}.map(parts.shown))")
    assert shown == ["\u201c\u00b7.\u201d", "\u201c.\u201d", "\u00b7a", "</s>", "\u201c\u00b7\u201d"]

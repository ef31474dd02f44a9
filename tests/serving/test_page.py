"""The page, in a real browser."""

import numpy as np
import pytest
from playwright.sync_api import expect

from tf_transformer import Translator


def test_a_sentence_is_translated_by_the_keyboard_alone(page, served):
    page.keyboard.type("a b c")  # the field has the focus
    page.keyboard.press("Enter")
    expect(page.locator("#result")).to_be_visible()
    translation = page.locator("#translation").inner_text()
    assert translation.startswith("a b c")
    rows = page.locator(".n-best tbody tr")
    assert rows.count() == 4
    assert rows.first.locator("td").nth(1).inner_text() == translation
    scores = [float(text) for text in page.locator(".n-best td:first-child").all_inner_texts()]
    assert scores == sorted(scores, reverse=True)
    expect(page.locator(".attention tbody tr").first).to_be_visible()  # which comes after
    assert page.locator(".attention thead th").all_inner_texts() == ["\u00b7a", "\u00b7b", "\u00b7c", "</s>"]
    squares = page.locator(".attention tbody tr:first-child td")
    assert squares.count() == 4
    weights = [float(title.split(": ")[1]) for title in squares.evaluate_all("all => all.map(one => one.title)")]
    assert sum(weights) == pytest.approx(1, abs=0.03)
    assert squares.all_text_contents() == [f"{weight:.2f}" for weight in weights]  # for who sees no colours
    shades = squares.evaluate_all("all => all.map(one => getComputedStyle(one).backgroundColor)")
    assert len(set(shades)) > 1
    squares.first.click()  # what a finger does
    assert page.locator(".square").inner_text().startswith("\u2581a \u2190 \u2581a: ")
    # The page does not scroll sideways, and asks nobody else.
    assert page.evaluate("document.documentElement.scrollWidth") == 360
    assert all(url.startswith((served.url, "data:")) for url in page.asked)
    assert page.said == []


def test_each_sentence_is_translated_for_itself(page):
    page.keyboard.type("a b c")
    page.keyboard.press("Shift+Enter")
    page.keyboard.press("Shift+Enter")
    page.keyboard.type("d e")
    page.keyboard.press("Enter")
    expect(page.locator("#result")).to_be_visible()
    first, empty, last = page.locator("#translation").inner_text().split("\n")
    assert (first[:5], empty, last[:3]) == ("a b c", "", "d e")
    # What else was found is folded away, line by line; attention is asked for when it is opened.
    lines = page.locator("#sentences > details")
    assert lines.locator("> summary").all_inner_texts() == ["a b c", "d e"]
    assert not page.locator(".n-best").first.is_visible()
    lines.nth(1).locator("> summary").click()
    assert lines.nth(1).locator(".n-best td").nth(1).inner_text() == last
    asked = [url for url in page.asked if url.endswith("page/attention")]
    assert asked == []
    lines.nth(1).get_by_text("Attention", exact=True).click()
    expect(lines.nth(1).locator(".attention thead th").first).to_be_visible()
    assert lines.nth(1).locator(".attention thead th").all_inner_texts() == ["\u00b7d", "\u00b7e", "</s>"]
    assert page.locator(".attention td").count() == page.locator(".attention tbody td").count() + 1  # of one line
    assert page.said == []


def test_the_attention_of_a_long_text_is_folded_away(page):
    page.locator("#text").fill("a " * 101)
    page.keyboard.press("Enter")
    expect(page.locator("#result")).to_be_visible()
    assert not page.locator(".map").is_visible()
    assert page.locator(".attention td").count() == 0
    page.get_by_text("Attention", exact=True).click()
    expect(page.locator(".attention tbody td").first).to_be_visible()
    assert page.locator(".attention thead th").count() == 102


def test_it_says_which_model_translates(page, served):
    expect(page.locator("#model")).to_have_text(f"{served.name}, version 1")


def test_the_button_keeps_the_focus_and_the_answer_is_said(page):
    page.keyboard.type("a b c")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.locator("#said")).to_contain_text("a b c")
    assert page.evaluate("document.activeElement.id") == "send"


def test_markup_is_text(page):
    page.locator("#text").fill("<img src=x onerror=alert(1)> a b")
    page.get_by_role("button", name="Translate").click()
    expect(page.locator("#result")).to_be_visible()
    assert page.locator("#result img").count() == 0


def test_what_is_refused_is_shown(page):
    page.locator("#text").fill("\u20ac" * 350_000)  # 3 bytes each: a browser draws a million letters for long
    page.get_by_role("button", name="Translate").click()
    expect(page.get_by_role("alert")).to_contain_text("the body may have at most 1048576 bytes")
    expect(page.locator("#result")).to_be_hidden()
    page.locator("#text").fill("a b")
    page.keyboard.press("Enter")
    expect(page.locator("#result")).to_be_visible()
    expect(page.get_by_role("alert")).to_be_empty()


def test_another_token_can_be_chosen_by_the_keyboard_alone(page):
    page.keyboard.type("a b c")
    page.keyboard.press("Enter")
    expect(page.locator("#result")).to_be_visible()
    page.locator(".steps summary").press("Enter")
    tokens, rows = page.locator(".tokens button"), page.locator(".next tbody tr")
    expect(tokens.first).to_be_visible()
    assert tokens.all_inner_texts()[:3] == ["\u00b7a", "\u00b7b", "\u00b7c"]
    tokens.nth(1).press("Enter")
    assert rows.count() == 8
    assert next(row for row in rows.all_inner_texts() if row.endswith("written")).startswith("\u00b7b\t")
    values = [float(text) for text in page.locator(".next td:nth-child(2)").all_inner_texts()]
    assert values == sorted(values, reverse=True)
    steps = page.locator(".told li")
    assert "of the translation" in steps.first.inner_text()
    assert page.locator(".tree rect.best").count() == tokens.count()
    other = page.locator(".next button").first
    token = other.get_attribute("aria-label").split()[1]
    other.press("Enter")
    expect(page.locator(".begun")).to_be_visible()
    expect(page.locator(".tokens .chosen")).to_have_text(["\u00b7a", token])
    assert page.evaluate("document.activeElement.textContent") == token  # the focus stays where the choice was made
    page.get_by_text("Undo my choices").press("Enter")
    expect(page.locator(".begun")).to_be_hidden()
    assert tokens.all_inner_texts()[1] == "\u00b7b"
    assert page.evaluate("document.documentElement.scrollWidth") == 360
    assert page.said == []


def test_attention_of_every_kind_layer_and_head_is_shown(page, copy_run):
    """What the squares say is what the run's translator gives."""
    found = Translator.load(copy_run).attention("a b c")
    page.keyboard.type("a b c")
    page.keyboard.press("Enter")
    expect(page.locator(".attention tbody tr").first).to_be_visible()
    kind, layer, head = (page.locator(f".attention select.{name}") for name in ("kind", "layer", "head"))
    layers, heads = found.weights.shape[:2]
    assert layer.locator("option").all_inner_texts() == [str(i + 1) for i in range(layers)]
    assert head.locator("option").all_inner_texts() == ["mean of all", *(str(i + 1) for i in range(heads))]

    def shown():
        texts = page.locator(".attention tbody tr").evaluate_all(
            "rows => rows.map(row => [...row.querySelectorAll('td')].map(one => one.textContent))"
        )
        return np.array([[float(text) for text in row] for row in texts])

    np.testing.assert_allclose(shown(), found.weights[-1].mean(axis=0), atol=0.011)
    for name, weights, columns in (
        ("encoder", found.encoder, found.source_tokens),
        ("decoder", found.decoder, found.read_tokens),
        ("cross", found.weights, found.source_tokens),
    ):
        kind.select_option(name)
        for i, j in ((0, 0), (layers - 1, heads - 1)):
            layer.select_option(index=i)
            head.select_option(index=j + 1)  # after the mean
            np.testing.assert_allclose(shown(), weights[i, j], atol=0.011)
        heads_of_columns = page.locator(".attention thead th").all_inner_texts()
        assert heads_of_columns == [token.replace("\u2581", "\u00b7") for token in columns]
    kind.focus()
    page.keyboard.press("ArrowDown")  # by the keyboard as well
    assert kind.input_value() == "encoder"
    assert page.evaluate("document.documentElement.scrollWidth") == 360
    assert page.said == []


def test_a_glossary_is_a_field_of_the_page(page):
    page.locator("#text").fill("a b c")
    page.locator("#text").press("Enter")
    expect(page.locator("#translation")).not_to_be_empty()
    plain = page.locator("#translation").text_content()
    assert "h g" not in plain
    page.locator("#terms summary").click()
    page.locator("#glossary").fill("b = h g\n\nunfinished\n")
    page.locator("#text").press("Enter")
    expect(page.locator("#translation")).to_contain_text("h g")
    expect(page.locator(".attention")).to_be_hidden()
    page.locator("#glossary").fill("")
    page.locator("#text").press("Enter")
    expect(page.locator("#translation")).to_have_text(plain)
    expect(page.locator(".attention")).to_be_visible()
    assert page.said == []

"""Markup is taken out, and put back where attention points."""

import re

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tf_transformer.text.markup import MARKUP, restored, stripped

MARKS = ["<b>", "</b>", "<i>", "</i>", "<br/>", '<a href="x y">', "</a>", "{name}", "{{x}}", "%s", "https://a.b/c?d=e"]


def tokens_of(text: str) -> list[str]:
    """Words, each cut into two tokens, and punctuation, as SentencePiece might; then the end token."""
    found = re.findall(r"(^|\s?)(\w{1,3})(\w*)|(\s?[^\w\s])", text)
    pieces = [piece for space, head, rest, sign in found for piece in (space + head + sign, rest) if piece]
    marked = [re.sub(r"^\s", "▁", piece) for piece in pieces] + [""]
    return ["▁" + marked[0].removeprefix("▁"), *marked[1:]]  # a text begins a word


def translated(text: str, translation: str, links: dict[int, int]) -> str:
    """Restore the markup of a text whose target tokens attend to the source tokens that `links` say."""
    source = stripped(text)
    source_tokens, target_tokens = tokens_of(source.text), tokens_of(translation)
    attention = np.full([len(target_tokens), len(source_tokens)], 0.1)
    for row, column in links.items():
        attention[row, column] = 1.0
    return restored(source, translation, source_tokens, target_tokens, attention)


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ("This is <b>bold</b> text.", "This is bold text."),
        ("Hello {name}!", "Hello!"),
        ("{count} files", "files"),
        ("see https://a.b/c. Then", "see. Then"),
        ("a <b> c </b> d", "a c d"),
        ("a<br/>b", "ab"),
        ("1 < 2 & 3 > 2", "1 < 2 & 3 > 2"),
        ("50% sure", "50% sure"),
        ("<b></b>", ""),
        ("  plain  ", "plain"),
    ],
)
def test_text_without_markup(text: str, rest: str) -> None:
    assert stripped(text).text == rest


def test_tags_follow_the_words_that_they_enclose() -> None:
    # ▁the ▁red ▁hou se ▁is ▁old -> ▁alt ▁ist ▁das ▁rot e ▁Hau s
    links = {0: 5, 1: 4, 2: 0, 3: 1, 4: 1, 5: 2, 6: 3}
    assert translated("the <b>red house</b> is old", "alt ist das rote Haus", links) == "alt ist das <b>rote Haus</b>"
    assert (
        translated("the <b>red <i>house</i></b> is <u>old</u>", "alt ist das rote Haus", links)
        == "<u>alt</u> ist das <b>rote <i>Haus</i></b>"
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("the red house {x} is old", "alt ist das rote Haus {x}"),
        ("{x} the red house is old", "alt ist {x} das rote Haus"),
        ("the red house is {x} old", "alt ist {x} das rote Haus"),
        ("the red<br> house is old", "alt ist das rote<br> Haus"),
        ("the </b>red house is old", "alt ist das </b> rote Haus"),
        ("the red house is old https://a.b", "alt https://a.b ist das rote Haus"),
    ],
)
def test_other_markup_stays_beside_its_neighbour(text: str, expected: str) -> None:
    links = {0: 5, 1: 4, 2: 0, 3: 1, 4: 1, 5: 2, 6: 3}
    assert translated(text, "alt ist das rote Haus", links) == expected


@given(
    st.lists(st.sampled_from([*MARKS, " ", "word", "eleven", ".", "ö", "字", "\U0001f600"]), max_size=17),
    st.text(max_size=23),
    st.integers(0, 10_000),
)
@example(["%s", "%s", "https://a.b/c?d=e", "%s"], "0:0", 1177)
def test_markup_is_never_lost_nor_changed_and_nothing_else_is(parts: list[str], translation: str, seed: int) -> None:
    text, translation = "".join(parts), MARKUP.sub("", translation).replace("<", "").replace("{", "")
    source = stripped(text)
    source_tokens, target_tokens = tokens_of(source.text), tokens_of(translation)
    attention = np.random.default_rng(seed).random([len(target_tokens), len(source_tokens)])
    found = restored(source, translation, source_tokens, target_tokens, attention)
    for mark in MARKS[:8]:
        assert found.count(mark) == text.count(mark)
    left = found
    # The longest first: an address may contain what is elsewhere a placeholder.
    for mark in sorted(MARKUP.findall(text), key=len, reverse=True):
        assert mark in left
        left = left.replace(mark, "", 1)
    assert "".join(left.split()) == "".join(translation.split())
    assert MARKUP.search(source.text) is None or "<" in source.text or "{" in source.text or "%" in source.text


def test_pairs_stay_nested_whatever_the_attention() -> None:
    text = "<b>one <i>two</i> three</b> <u>four</u> five"
    for seed in range(50):
        source = stripped(text)
        attention = np.random.default_rng(seed).random([6, len(tokens_of(source.text))])
        found = restored(source, "eins zwei", tokens_of(source.text), ["▁ei", "ns", "▁zw", "ei", "", ""], attention)
        opened: list[str] = []
        for closing, name in re.findall(r"<(/?)(\w)>", found):
            if closing:
                assert opened.pop() == name
            else:
                opened.append(name)
        assert not opened


def test_bytes_are_counted_as_characters() -> None:
    source = stripped("\u2603<b>a</b>")
    source_tokens = ["▁", "<0xE2>", "<0x98>", "<0x83>", "a", ""]
    attention = np.eye(6)
    assert restored(source, "\u2603a", source_tokens, source_tokens, attention) == "\u2603<b>a</b>"


def test_languages_are_no_text() -> None:
    """The tokens of a model of several languages begin with that of the source."""
    source = stripped("a <b>b</b> c")
    source_tokens, target_tokens = ["__en__", "▁a", "▁b", "▁c", "</s>"], ["▁a", "▁b", "▁c", "</s>"]
    found = restored(source, "a b c", source_tokens, target_tokens, np.eye(5)[1:])
    assert found == "a <b>b</b> c"

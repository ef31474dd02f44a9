"""Markup is found, taken out, and put back where attention points."""

import itertools
import random
import re
import unicodedata
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tf_transformer.text.markup import markup_spans, stripped
from tf_transformer.text.placing import restored, token_ends

MARKS = [
    *("<b>", "</b>", "<i>", "</i>", "<br/>", '<a href="x y" title="a > b">', "</a>", "<0>", "</0>", "<!-- x < y -->"),
    *("{name}", "{{x}}", "${y}", "{n, plural, one {# file} other {# files}}", "%s", "%1$s", "%.2f", "%(name)05d"),
    *("&nbsp;", "&#xA0;", "&amp;", "https://a.b/c?d=e", "www.a.b", "mailto:x@y.de", "me@example.com"),
]
AROUND = [
    " ",
    ",",
    ".",
    ":",
    "word",
    "eleven",
    "ö",
    "e\u0301",
    "字",
    "\u0915\u094d\u0937",
    "\U0001f469\u200d\U0001f680",
    "½",
    "…",
]


def marks_of(text: str) -> list[str]:
    return [text[start:end] for start, end in markup_spans(text)]


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


def with_random_attention(text: str, translation: str, seed: int, form: str = "NFC") -> str:
    """Restore the markup of a text that a tokenizer normalises, with random attention."""
    source = stripped(text)
    source_tokens = tokens_of(unicodedata.normalize(form, source.text))  # type: ignore[arg-type]
    target_tokens = tokens_of(translation)
    attention = np.random.default_rng(seed).random([len(target_tokens), len(source_tokens)])
    return restored(source, translation, source_tokens, target_tokens, attention)


KEPT = """
<b>  </b>  <br/>  <br />  <x-tag>  <g id="1">  <ph id='1' x="a > b"/>  <a href=https://a.b/c?d=e&f>  <input disabled>
<0>  </0>  <1/>  <a {attributes}>  <a {{ x }} b="c">  <svg:rect width="3"/>  <p v-on:click="go" @x="y" :z="1">
<!-- a <b> comment -->  <!---->  <![CDATA[ a < b ]]>  <?php echo "x > y"; ?>  <?xml version="1.0"?>  <!DOCTYPE html>
&nbsp;  &#160;  &#xA0;  &#x1F600;  &frac12;  &CounterClockwiseContourIntegral;  &sup2;  &brandShortName;
{name}  {0}  {}  {name!r:>5}  {{name}}  {{ user.name }}  ${name}  #{name}  %{name}  {a:{width}}  {% if x %}
{count, plural, one {# file} other {# files}}  {g, select, male {{n} is his} other {}}
%s  %d  %i  %1$s  %2$d  %.2f  %5.1f  %-10s  %05d  %+d  %@  %ld  %lu  %zu  %llu  %x  %%  %*d  %1  %L1  %n
%(name)s  %(name)05d  %(n).2f
https://a.b  http://a.b/c?d=e&f=g#h  HTTPS://A.B  FTP://a.b/c  https://en.wikipedia.org/wiki/Ape_(machine)
https://a.b/{id}/c  https://a.b/%20c  git+ssh://a@b.c/d.git  https://de.wikipedia.org/wiki/Straße  file:///etc/hosts
%sitename%  %1$,d  %<count>d  %,d  %I64d  <td nowrap>  <div v-else>  <img alt src="x">  <Foo a={() => go({x})} />
{n, plural, one {it''s '}' ok} other {#}}  <?= $x ?>  <%= name %>  <![endif]>  <a href="{{ url_for("x") }}">
jürgen@example.com  https://a.b/F_(b_(c))  <a href="x"title="y">
https://[::1]:80/x  https://a.b/~c/*d  www.example.com  WWW.A.B/c
mailto:x@y.de  me@example.com  first.last+tag@sub.a-b.co.uk
"""


@pytest.mark.parametrize("mark", re.split(r"\n|  ", KEPT.strip()))
def test_what_is_markup(mark: str) -> None:
    for before, after in (("", ""), ("see ", " here"), ("(", ")"), ("see ", ", and"), ("see ", ". And"), ("“", "”")):
        assert marks_of(before + mark + after) == [mark]


NOT_KEPT = """
if a<b and c>d  1 < 2 & 3 > 2  x<5 and y>3  a <3 b  50% sure  50%sure  100%s  AT&T R&D  5 %  and }}{  a { b  at 5@home
@name  <Enter your name>  <!-- never closed  <b  <a b="c  C://x  https://  (www.)  a: //b
"""


@pytest.mark.parametrize("text", re.split(r"\n|  ", NOT_KEPT.strip()))
def test_what_is_no_markup(text: str) -> None:
    assert marks_of(text) == []


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ("This is <b>bold</b> text.", "This is bold text."),
        ("Hello {name}!", "Hello!"),
        ("{count} files", "files"),
        ("see https://a.b/c. Then", "see. Then"),
        ("访问https://a.b/c获取。", "访问获取。"),
        ("a <b> c </b> d", "a c d"),
        ("un<b>believ</b>able", "unbelievable"),
        ("one<br/>two<br><br>three &nbsp; four", "one two three four"),
        ("10&nbsp;km, 5&#8239;&frac12;", "10 km, 5"),
        ("<b></b>", ""),
        ("  plain  ", "plain"),
    ],
)
def test_text_without_markup(text: str, rest: str) -> None:
    assert stripped(text).text == rest


@pytest.mark.parametrize("name", ["title", "main", "blockquote", "figcaption", "button", "summary", "h1", "td", "form"])
def test_tags_of_blocks_separate_words(name: str) -> None:
    assert stripped(f"<{name}>Save</{name}><{name} x=1>Cancel</{name}>").text == "Save Cancel"
    assert stripped(f"<{name}x>un</{name}x>able").text == "unable"


LINKS = {0: 5, 1: 4, 2: 0, 3: 1, 4: 1, 5: 2, 6: 3}
"""▁the ▁red ▁hou se ▁is ▁old -> ▁alt ▁ist ▁das ▁rot e ▁Hau s"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("the <b>red house</b> is old", "alt ist das <b>rote Haus</b>"),
        ("the <b>red <i>house</i></b> is <u>old</u>", "<u>alt</u> ist das <b>rote <i>Haus</i></b>"),
        ("the red house {x} is old", "alt ist das rote Haus {x}"),
        ("{x} the red house is old", "alt ist {x} das rote Haus"),
        ("the red house is {x} old", "alt ist {x} das rote Haus"),
        ("the red<br> house is old", "alt ist das rote<br> Haus"),
        ("the red<br>house is old", "alt ist das rote<br>Haus"),
        ("the red&nbsp;house is old", "alt ist das rote&nbsp;Haus"),
        ("the </b>red house is old", "alt ist das </b>rote Haus"),
        ("the red house is old https://a.b", "alt https://a.b ist das rote Haus"),
        ("https://a.b: the red house is old", "alt ist https://a.b das rote Haus"),
        ("%s%d the red house is old", "alt ist %s%d das rote Haus"),
        ("the red{n} house is old", "alt ist das rote{n} Haus"),
        ("the red <b>hou</b>se is old", "alt ist das rote <b>Haus</b>"),
        ("the red &quot;house&quot; is old", "alt ist das rote &quot;Haus&quot;"),
        ("<p>the red house is old</p>", "<p>alt ist das rote Haus</p>"),
        ("<li>the red house is old", "<li>alt ist das rote Haus"),
        ("the red house is old<br>", "alt ist das rote Haus<br>"),
    ],
)
def test_markup_goes_where_attention_points(text: str, expected: str) -> None:
    assert translated(text, "alt ist das rote Haus", LINKS) == expected


@given(
    st.lists(st.sampled_from([*MARKS, *AROUND]), max_size=17),
    st.lists(st.sampled_from([*AROUND, "5", "a"]), max_size=23),
    st.integers(0, 10_000),
    st.sampled_from(["NFC", "NFD", "NFKC"]),
)
@example(["https://a.b/c?d=e", ":", " ", "word"], ["word", "/", "eleven"], 0, "NFC")
@example(["%s", "https://a.b/c?d=e", "%1$s"], ["word"], 0, "NFC")
def test_each_mark_comes_out_once_unglued_and_nothing_else_changes(
    parts: list[str], words: list[str], seed: int, form: str
) -> None:
    text, translation = "".join(parts), "".join(words).strip()
    found = with_random_attention(text, translation, seed, form)
    assert sorted(marks_of(found)) == sorted(marks_of(text))
    assert "".join(_without_marks(found).split()) == "".join(translation.split())
    assert unicodedata.normalize("NFC", found).count("e\u0301") == 0  # no mark is between a letter and its accent


def _without_marks(text: str) -> str:
    for start, end in reversed(markup_spans(text)):
        text = text[:start] + text[end:]
    return text


@pytest.mark.parametrize(
    ("text", "translation"),
    [
        ("in 3.5 {x} is out", "in 3.5 ist da"),
        ("it is <b>10</b> long", "sie ist 10,5 lang"),
        ("he does <b>not</b> go", "he doesn't go"),
        ("England <b>wins</b> now", "\U0001f3f4\U000e0067\U000e0062\U000e007f x"),
        ("%d%% (%d of %s)", "100% ()"),
        ("Rate: {x} %s", "% $ # &"),
    ],
)
def test_no_number_word_or_sign_is_cut_and_no_mark_becomes_another(text: str, translation: str) -> None:
    for seed in range(20):
        found = with_random_attention(text, translation, seed)
        assert sorted(marks_of(found)) == sorted(marks_of(text))
        assert all(
            word in _without_marks(found) for word in re.findall(r"\S*\w\S*", translation.replace("100%", "100"))
        )


def test_scripts_without_spaces_have_marks_within_and_no_spaces_around_them() -> None:
    target = ["▁我", "爱", "猫", ""]
    found = restored(stripped("I <b>love</b> cats"), "我爱猫", ["▁I", "▁love", "▁cats", ""], target, np.eye(4))
    assert found == "我<b>爱</b>猫"
    target = ["▁\u0e1c\u0e21", "\u0e23\u0e31\u0e01", "\u0e41\u0e21\u0e27", ""]
    found = restored(
        stripped("I <b>love</b> cats"), "".join(target)[1:], ["▁I", "▁love", "▁cats", ""], target, np.eye(4)
    )
    assert found == "\u0e1c\u0e21<b>\u0e23\u0e31\u0e01</b>\u0e41\u0e21\u0e27"


def test_pairs_stay_nested_whatever_the_attention() -> None:
    text = "<b>one <i>two</i> three</b> <u>four</u> five"
    for seed in range(50):
        opened: list[str] = []
        for closing, name in re.findall(r"<(/?)(\w)>", with_random_attention(text, "eins zwei", seed)):
            if closing:
                assert opened.pop() == name
            else:
                opened.append(name)
        assert not opened


@pytest.mark.parametrize(
    "text",
    [
        "<b>" * 1_000 + "word" + "</b>" * 1_000,
        "<b>" * 10_000 + "word",
        "<b> <i>" * 5_000 + "word" + "</b>" * 5_000,
        "<b> word </b> " * 5_000,
        "<!--" * 10_000,
        "<a b='" * 10_000,
        "<a b " * 10_000,
        "{" * 50_000 + "}" * 10,
        "{x} " * 10_000,
        "a" * 100_000 + "@",
        "https://" * 5_000,
        "https://a.b/" + "(" * 50_000,
        "a://" + "." * 50_000,
        "&" + "a" * 50_000,
        "%" + "1" * 50_000,
        "https://a.b/c字" * 5_000,
        "&#" + "1" * 5_000 + ";",
    ],
    ids=lambda text: f"{text[:6]}, {len(text)}",
)
def test_long_and_deep_markup_is_done_in_linear_time(text: str) -> None:
    """If it were not, this would take minutes, or end in a RecursionError."""
    found = with_random_attention(text, "ein Wort", 3)
    assert len(marks_of(found)) == len(marks_of(text))


@pytest.mark.parametrize(
    ("text", "tokens", "ends"),
    [
        ("\u2603a", ["▁", "<0xE2>", "<0x98>", "<0x83>", "a", ""], [0, 0, 0, 1, 2, 2]),
        ("a b c", ["__en__", "▁a", "▁b", "▁c", "</s>"], [0, 1, 2, 3, 3]),
        ("… a½b", ["▁...", "▁a1", "\u2044", "2", "b", ""], [1, 2, 2, 3, 4, 4]),
        ("e\u0301t\u00ade", ["▁\u00e9", "te", ""], [2, 5, 5]),
        ("A \U0001f600 b", ["▁a", "▁", "<unk>", "▁b", ""], [1, 1, 2, 3, 3]),
        ("ﬁne ™", ["▁fi", "ne", "▁TM", ""], [1, 3, 4, 4]),
        ("a b " * 50, ["▁a", "▁b", ""], [1, 2, 2]),
    ],
)
def test_characters_are_counted_as_they_were_before_normalisation(
    text: str, tokens: list[str], ends: list[int]
) -> None:
    assert token_ends(tokens, text) == ends


@pytest.mark.parametrize("seed", range(11))
def test_characters_of_long_texts_are_counted_up_to_the_ends_of_words(seed: int) -> None:
    of_word = random.Random(seed)
    words = []
    for _ in range(97):
        letters = of_word.choices("etaoinshrdlu", k=of_word.randint(1, 11))
        if of_word.random() < 0.3:
            letters.insert(of_word.randint(0, len(letters)), of_word.choice("ﬁﬃ…½™①㎏ﷺ"))
        words.append("".join(letters))
    tokens = ["▁" + "".join(unicodedata.normalize("NFKC", word).split()) for word in words]
    ends = list(itertools.accumulate(map(len, words)))
    found = token_ends(tokens, " ".join(words))
    # Beside what becomes several letters, as in "ﬃn", it may be one of several places.
    assert all(abs(one - other) < 4 for one, other in zip(found, ends, strict=True))
    assert sum(map(int.__ne__, found, ends)) < 5


@pytest.mark.parametrize("text", ["ﬁ aaaaaaa aaaa ", "① 10000000000000000 ", "ﷺ ", "ﬁ"])
def test_texts_that_repeat_themselves_are_counted_in_linear_time(text: str) -> None:
    """If they were not, this would take hours."""
    text *= 50_000 // len(text)
    tokens = ["▁" + "".join(unicodedata.normalize("NFKC", word).split()) for word in text.split()]
    assert token_ends(tokens, text)[-1] == len("".join(text.split()))


def test_no_pattern_repeats_a_group_possessively():
    """Python 3.11.2, which Debian 12 has, then finds nothing (cpython#106052)."""
    package = Path(__file__).parents[2] / "tf_transformer"
    assert not [file for file in package.rglob("*.py") if re.search(r"\)[*+?]\+[^ =]", file.read_text("utf-8"))]

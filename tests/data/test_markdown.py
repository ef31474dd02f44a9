"""Tests of Markdown that is translated as a file."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from tf_transformer.config import DataConfig
from tf_transformer.data.corpora.translated_file import TranslatedFile
from tf_transformer.text.markup import MARKUP

PAGE = """---
title: "A title"
---

# Use `code` and *stress* #

Setext heading
==============

A paragraph that is
hard-wrapped with a [link](http://a.b/c?d=1&e=2 "Title") and **bold text**,
and a note[^1]. It costs $5 and 10 \\* 2 &lt; 3.

> A quotation  with
> *two lines*
>
> > nested [Ref link][ref] and [ref].

- first item
  goes on
    - nested ~~old~~ item
- [ ] a task

1. one
2. two{}
   after a hard break

| Name | What it *does* |
|------|:--------------:|
| `a \\| b` | opens a \\| b |
|| 12 |

```python
print("no")
```

    indented code

<div align="center">
  <b>Some</b> HTML
</div>

Press <kbd>Ctrl</kbd> at <https://auto.link> and ![an image](x.png) :smile: now.

Term
: Definition

!!! note "Title"
    Admonition

$$a_1 + b_2$$

Inline $x_1$ and {{ code }}.

[ref]: http://x.y "A title"
[^1]: The note.

No end of line""".replace("{}", "  ")
TEXTS = [
    "Use <g1/> and <g2>stress</g2>",
    "Setext heading",
    "A paragraph that is hard-wrapped with a <g1>link</g1> and <g3>bold text</g3>, and a note<g5/>. "
    "It costs $5 and 10 * 2 < 3.",
    "A quotation  with <g1>two lines</g1>",
    "nested <g1>Ref link</g1> and <g3>ref</g3>.",
    "first item goes on",
    "nested <g1>old</g1> item",
    "a task",
    "one",
    "two",
    "after a hard break",
    "Name",
    "What it <g1>does</g1>",
    "opens a | b",
    "<g1>Some</g1> HTML",
    "Press <g1>Ctrl</g1> at <g3/> and <g4/> <g5/> now.",
    "Term",
    "Definition",
    "Admonition",
    "Inline <g1/> and <g2/>.",
    "The note.",
    "No end of line",
]


def upper(text: str) -> str:
    """A translator that keeps markup."""
    marks = [match[0] for match in MARKUP.finditer(text)]
    return "".join(a.upper() + b for a, b in zip(MARKUP.split(text)[:: MARKUP.groups + 1], [*marks, ""], strict=True))


def translated(content: str, translate: Callable[[str], str]) -> tuple[str, list[str], int]:
    file = TranslatedFile(Path("a.md"), False, DataConfig(), content.encode())
    written = file.written(map(translate, file.texts))
    return written.content.decode(), file.texts, written.lost


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_page(end: str) -> None:
    page = PAGE.replace("\n", end)
    assert translated(page, str) == (page, TEXTS, 0)
    text, _, lost = translated(page, upper)
    assert lost == 0
    for line in (
        "# USE `code` AND *STRESS* #",
        '[LINK](http://a.b/c?d=1&e=2 "Title") AND **BOLD TEXT**, AND A NOTE[^1]. IT COSTS $5 AND 10 \\* 2 &lt; 3.',
        "> A QUOTATION  WITH *TWO LINES*",
        "> > NESTED [REF LINK][ref] AND [REF][ref].",
        "    - NESTED ~~OLD~~ ITEM",
        "- [ ] A TASK",
        "2. TWO  ",
        "   AFTER A HARD BREAK",
        "| NAME | WHAT IT *DOES* |",
        "| `a \\| b` | OPENS A \\| B |",
        ": DEFINITION",
        "    ADMONITION",
        "  <b>SOME</b> HTML",
    ):
        assert line in text
    kept = re.compile(r"---\ntitle.*?---\n|```.*?```|    indented code|\[ref\]: .*?\n|\$\$.*?\$\$|!!! .*?\n", re.DOTALL)
    assert kept.findall(text.replace(end, "\n")) == kept.findall(PAGE) != []


WORDS = ["word", "two words", "a", " ", "\n", "\n\n", "  \n", "1. ", "- ", "> ", "# ", "|", "\n|-|\n", "    "]
SIGNS = [
    "*",
    "**",
    "_",
    "`",
    "[x]",
    "[a](b)",
    "[w",
    "](u)",
    "<b>",
    "</b>",
    "<http://a.b>",
    "\\*",
    "&amp;",
    "~~",
    "$",
    ":",
]


@given(st.lists(st.sampled_from([*WORDS, *SIGNS, "\n[x]: /u\n", "\n---\n", "\n```\n", "é"]), max_size=25).map("".join))
def test_markup_is_the_same_after_a_translation(content: str) -> None:
    """As another reading of both files finds it, which knows no formulas; a block of HTML may have &gt; for >."""
    assert translated(content, str)[0] == content
    assume(not re.search(r"\$[^$\n]*[*_~`<\[\\][^$\n]*\$", content))
    render = MarkdownIt("commonmark").enable(["table", "strikethrough"]).render
    text, _, _ = translated(content, upper)
    before, after = (" ".join(render(each).upper().replace("&GT;", ">").split()) for each in (content, text))
    assert after == before


@pytest.mark.parametrize(
    ("source", "translation", "expected"),
    [
        ("The year", "1999. Das Jahr", "1999\\. Das Jahr"),
        ("One thing", "- ein Ding", "\\- ein Ding"),
        ("One thing", "# Ding", "\\# Ding"),
        ("One thing", "*ein* [Ding](x) <b>", "\\*ein\\* \\[Ding\\](x) \\<b\\>"),
        ("One thing\n===", "| ein Ding", "| ein Ding\n==="),
        ("One thing\n---", "| ein Ding", "One thing\n---"),  # which would be a table, with a backslash as well
        ("| a |\n|-|\n| One thing |", "ein | Ding", "| a |\n|-|\n| ein \\| Ding |"),
        ("See **it** now", "Jetzt <g1>es</g1> sehen", "Jetzt **es** sehen"),
        ("See **it** now", "请看<g1>这个。</g1>谢谢", "请看<strong>这个。</strong>谢谢"),
        ("- One thing\n---", "ein Ding |", "- One thing\n---"),
        ("| a\nOne thing  \n|-|", "ein Ding", "| a\nOne thing  \n|-|"),
        ("- One thing\n---", "ein *Ding", "- ein *Ding\n---"),
        ("word<b>~~</b>~~", "Wort<g1><g2/></g1>", "word<b>~~</b>~~"),
        ("<b>\n</b>word", "<g1></g1>Wort", "<b>\n</b>word"),  # which would be a paragraph
        ("<b>\nword</b>", "Wort", "<b>\nWort</b>"),
        ("$*$word\\*", "Wort*", "$*$Wort\\*"),  # which other readers than ours would take for stress
        ("AT&amp;T & <b>x</b>", "<g1>y</g1> & AT&T", "<b>y</b> &amp; AT&amp;T"),
        ("See [it] now\n\n[it]: /u", "<g1>es</g1> sehen", "[es][it] sehen\n\n[it]: /u"),
    ],
)
def test_what_would_be_taken_for_markup(source: str, translation: str, expected: str) -> None:
    assert translated(source, lambda text: text if text == "a" else translation)[0] == expected


def test_what_is_no_stress_in_a_block_is_none_in_its_translation() -> None:
    assert translated("one *word<br>two\\*", upper)[0] == "ONE \\*WORD<br>TWO\\*"


def test_lost_marks_are_counted() -> None:
    assert translated("a **b** c\n\nd *e* f", lambda text: text.replace("<g1>b", "b")) == (
        "a **b** c\n\nd *e* f",
        ["a <g1>b</g1> c", "d <g1>e</g1> f"],
        1,
    )

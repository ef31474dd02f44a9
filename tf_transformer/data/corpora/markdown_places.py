"""Reading Markdown with the place of everything that is not text."""

import functools
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from tf_transformer.errors import missing_extra

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.rules_inline import StateInline

    Rule = Callable[[StateInline, bool], bool]

KEPT = re.compile(
    r"\$\$[^$]+\$\$|\$(?=[^\s$])[^$\n]*(?<=\S)\$(?!\d)"  # formulas
    r"|\{\{.{,500}?\}\}|\{%.{,500}?%\}|\{[#:.][^{}\n]*\}"  # templates of sites, and attributes
    r"|\[\^[^\]\s]{1,200}\]:?"  # footnotes
    r"|\A(?:\[![A-Za-z]+\]|\[[ xX]\](?=\s)|(?:!!!|\?\?\?)[^\n]*)"  # kinds of notes, and tasks
    r"|(?:\A|(?<=\n))(?::::[^\n]*|: )"  # notes and definitions
    r"|(?<![\w:]):[a-z][\w+-]*:(?![\w:])",  # emoji
    re.DOTALL,
)
"""What is no text in the Markdown of sites and programs, though CommonMark does not know it."""
SPAN = "span"
"""The key of a token's `meta` at which its place in the text of its block stands: from, to."""


@functools.cache
def _parser() -> "MarkdownIt":
    from markdown_it import MarkdownIt, rules_inline

    markdown = MarkdownIt("commonmark").enable(["table", "strikethrough"])
    markdown.core.ruler.disable("text_join")  # which would forget how signs were written
    markdown.inline.ruler2.disable("fragments_join")
    rules: dict[str, Rule] = {
        "newline": rules_inline.newline,
        "escape": rules_inline.escape,
        "backticks": rules_inline.backtick,
        "strikethrough": rules_inline.strikethrough.tokenize,
        "emphasis": rules_inline.emphasis.tokenize,
        "link": rules_inline.link,
        "image": rules_inline.image,
        "autolink": rules_inline.autolink,
        "html_inline": rules_inline.html_inline,
        "entity": rules_inline.entity,
    }
    for name, rule in rules.items():
        markdown.inline.ruler.at(name, _placing(rule))
    markdown.inline.ruler.before("text", "kept", _placing(_kept))
    return markdown


def parser(path: Path) -> "MarkdownIt":
    """Return a parser of CommonMark with tables, whose inline tokens have SPAN in their `meta`, but for text.

    Raises:
        InputError: the package is missing.
    """
    try:
        return _parser()
    except ImportError as error:
        raise missing_extra(f"{path}: .md", "files", error) from None


def _kept(state: "StateInline", silent: bool) -> bool:
    found = KEPT.match(state.src, state.pos, state.posMax)
    if found is None:
        return False
    if not silent:
        state.push("kept", "", 0).content = found[0]
    state.pos = found.end()
    return True


def _placing(rule: "Rule") -> "Rule":
    """Return a rule that notes where the tokens stand that it finds."""

    def placed(state: "StateInline", silent: bool) -> bool:
        start, count, has_text = state.pos, len(state.tokens), bool(state.pending)
        if not rule(state, silent):
            return False
        if silent:
            return True
        has_text = has_text and len(state.tokens) > count and state.tokens[count].type == "text"
        found = state.tokens[count + has_text :]
        if found and found[0].type == "link_open" and found[0].markup != "autolink":
            after, state.pos = state.pos, start
            close = state.md.helpers.parseLinkLabel(state, start)
            state.pos = after
            found[0].meta[SPAN], found[-1].meta[SPAN] = (start, start + 1), (close, after)
            return True
        if found and found[0].type in ("softbreak", "hardbreak"):
            while start and state.src[start - 1] == " ":
                start -= 1
        is_many = len(found) > 1 and found[0].type == "text"  # signs of emphasis, each of which may be one of its own
        for token in found:
            width = len(token.content) if is_many else state.pos - start
            token.meta[SPAN] = (start, start + width)
            start += width if is_many else 0
        return True

    return placed

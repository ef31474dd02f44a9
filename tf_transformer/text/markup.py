"""Markup in text: tags, placeholders and addresses, which a translation keeps as they are."""

import html
import re
from collections.abc import Iterator
from typing import NamedTuple

_NAME = r"(?:[A-Za-z][\w:.-]*+|\d++)"
_BOOLEAN = "allowfullscreen|async|autofocus|autoplay|checked|compact|controls|default|defer|disabled|download|hidden|"
_BOOLEAN += (
    "ismap|itemscope|loop|multiple|muted|nomodule|novalidate|nowrap|open|playsinline|readonly|required|reversed|"
)
_BOOLEAN += r"selected|[\w*]*[-:@][\w:.-]*"
# Python before 3.11.5 fails where a group is repeated possessively (cpython#106052), so these groups are atomic.
_BRACES = r"\{(?>(?:[^{}]|\{[^{}]*+\})*)\}"
_VALUE = rf"""(?:"(?>(?:\{{\{{[^{{}}]*+\}}\}}|[^"])*)"|'[^']*+'|{_BRACES}|[^\s"'<>`]++)"""
# HTML would take `<b and c>` for a tag with two attributes. Without a value, only those are attributes that it knows,
# or that stand beside one with a value.
_ATTRIBUTE = (
    rf"""(?:\s++|(?<=["']))(?:[^\s"'<>/={{}}]++\s*+=\s*+{_VALUE}|{_BRACES}|\{{%[^{{}}]*+%\}}|(?i:{_BOOLEAN})(?=[\s/>])"""
    r"""|[A-Za-z]++(?=\s++[\w:-]++=["'{]))"""
)
_TAG = rf"<(?P<closing>/?)(?P<name>{_NAME})(?>(?:{_ATTRIBUTE})*)\s*+(?P<single>/?)>"
_OTHER_TAGS = (  # comments, CDATA, processing instructions, declarations; none contains the beginning of another
    r"<!--(?:(?!<!--).)*?-->|<!\[CDATA\[(?:(?!<!\[CDATA\[).)*?\]\]>|<!\[[^\[\]<>]*+\]>|<\?[\w=](?:(?!<\?).)*?\?>"
    r"|<%(?:(?!<%).)*?%>|<!(?i:DOCTYPE)\s[^<>]*+>"
)
_REFERENCE = r"&(?:#[0-9]++|#[xX][0-9A-Fa-f]++|[A-Za-z][\w.-]*+);"
_WIDTH = r"(?:\d++|\*)?(?:\.(?:\d++|\*))?(?:hh?|ll?|I64|[Lqjzt])?"
_FORMAT = (  # of C, Objective-C, Java, Python, Ruby and Qt. A percentage is none: `50%sure`.
    r"%[A-Za-z_]\w{2,}+%(?![sdif@%])"  # %name%
    rf"|%\([\w.]++\)[-+#0 ]*+{_WIDTH}[A-Za-z]|%<\w++>[-+0]*+{_WIDTH}[A-Za-z]"  # %(name)05d, %<name>s
    rf"|%\d++\$[-+#0 ,']*+{_WIDTH}[A-Za-z@]"  # %1$s
    rf"|(?<!\d)%[-+#,']*+{_WIDTH}(?:[sSd@]|[biuoxXfFeEgGaAcp](?![A-Za-z0-9_]))(?<![A-Za-z]%\d\d[a-zA-Z])"  # %s, %.2f
    r"|(?:(?<!\d)|(?<=%\d)|(?<=%L\d))%L?[1-9](?![A-Za-z0-9_])|(?<!\d)%n(?![A-Za-z0-9_])|%%"  # %1
)
# Neither brackets, unless both are there, nor character references, nor a script without spaces belong to an address.
_IN_ADDRESS = (
    r"""(?:(?!&(?!amp;)#?\w++;)[^\s<>{}()\[\]"`|\\^\u00ab\u00bb\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff"""
    r"""\u2000-\u206f\u3000-\u9fff\uac00-\ud7af\uff00-\uffef\U00020000-\U0003ffff])"""
)
_GROUP = rf"(?:\((?>(?:{_IN_ADDRESS}|\((?>{_IN_ADDRESS}*)\))*)\)|\[(?>{_IN_ADDRESS}*)\]|\{{[^\s<>{{}}]*+\}})"
_LOCAL = r"[A-Za-z0-9.+_%\u00c0-\u024f\u0370-\u052f-]"
_ADDRESS = (
    rf"(?<![A-Za-z0-9+.-])(?i:[a-z][a-z0-9+.-]{{1,20}}://|www\.|mailto:)"
    rf"(?:{_IN_ADDRESS}|{_GROUP})*(?:(?![.,;:!?'*]){_IN_ADDRESS}|{_GROUP})"
    rf"|(?<!{_LOCAL}){_LOCAL}{{1,64}}@(?:[A-Za-z0-9-]{{1,63}}\.)+[A-Za-z]{{2,24}}(?![A-Za-z0-9])"
)
TAG = re.compile(_TAG)
MARKUP = re.compile(
    "|".join([re.sub(r"\?P<\w+>", "", _TAG), _OTHER_TAGS, _REFERENCE, r"[$%#]?(?P<brace>\{)", _FORMAT, _ADDRESS])
)
"""What may be markup; a brace is, if it is closed."""
BRACE = re.compile(r"'(?=[{}])|[{}]")
BREAK = re.compile(
    r"</?(?:address|article|aside|blockquote|body|br|button|caption|dd|details|dialog|div|dl|dt|fieldset|figcaption|"
    r"figure|footer|form|h[1-6]|head|header|hgroup|hr|html|legend|li|main|menu|nav|ol|optgroup|option|p|pre|search|"
    r"section|select|summary|table|tbody|td|textarea|tfoot|th|thead|title|tr|ul)(?=[\s/>])",
    re.IGNORECASE,
)
"""Tags that separate words even if there is no space beside them."""


LONGEST_REFERENCE = 40
"""The most characters of a reference that is looked up; longer ones stand for no space, and Python may refuse to read
their number."""
CLOSING = ".,;:!?)]}\u201d\u2019\u00bb"
"""What does not begin what follows a break."""


class Mark(NamedTuple):
    """Something that is kept, or a pair of tags with what is kept between them."""

    opening: str
    """the markup itself, or the first tag of the pair"""
    place: int
    """how many characters of the text, other than white space, stand before it"""
    sides: tuple[str, str]
    """the characters of the text before and after it; empty at an end of the text and beside another mark"""
    is_space: bool = False
    """whether the text has a space in its place, because it separates words"""
    closing: "Mark | None" = None
    """the second tag of the pair"""
    inside: "tuple[Mark, ...]" = ()
    """what the pair encloses"""


class Stripped(NamedTuple):
    """A text without its markup."""

    text: str
    marks: tuple[Mark, ...]
    """what was taken out, in its order"""


def markup_spans(text: str) -> list[tuple[int, int]]:
    """Return where markup begins and ends in a text."""
    return list(_spans(text))


def _spans(text: str) -> Iterator[tuple[int, int]]:
    closing = _closing_braces(text)
    at = 0
    while match := MARKUP.search(text, at):
        start, at = match.span()
        if match["brace"]:
            if at - 1 not in closing:
                continue
            at = closing[at - 1] + 1
        yield start, at


def _closing_braces(text: str) -> dict[int, int]:
    """Return for each brace that is closed the place of the one that closes it."""
    opened: list[int] = []
    closing: dict[int, int] = {}
    at = 0
    while match := BRACE.search(text, at):
        at = match.end()
        if match[0] == "'":  # within a message, ICU takes what follows up to the next one as it is
            at = max(at, text.find("'", at) + 1) if opened else at
        elif match[0] == "{":
            opened.append(match.start())
        elif opened:
            closing[opened.pop()] = match.start()
    return closing


def stripped(text: str) -> Stripped:
    """Take the markup out of a text."""
    spans = markup_spans(text)
    pairs = partners([text[start:end] for start, end in spans])
    kept: list[str] = []
    place, end = 0, 0
    levels: list[list[Mark]] = [[]]
    for number, (start, next_end) in enumerate(spans):
        before, after = text[end:start], text[next_end : next_end + 1]
        precedes_mark = number + 1 < len(spans) and spans[number + 1][0] == next_end
        if before:
            kept.append(before)
            place += sum(not character.isspace() for character in before)
        partner = pairs.get(number)
        # Of two spaces one goes, and so does that before what leaves nothing or a full stop behind.
        if after.isspace() or (partner is None and not after.isalnum() and not precedes_mark):
            while kept and kept[-1].isspace():
                kept.pop()
            kept[-1:] = [part.rstrip() for part in kept[-1:]]
        opening, end = text[start:next_end], next_end
        is_space = bool(kept) and not kept[-1][-1].isspace() and _separates(opening, after, precedes_mark)
        if is_space:
            kept.append(" ")
        mark = Mark(opening, place, (before[-1:], "" if precedes_mark else after), is_space)
        if partner is None or partner > number:
            levels[-1].append(mark)
        if partner is not None and partner > number:
            levels.append([])
        elif partner is not None:
            inside = tuple(levels.pop())
            levels[-1][-1] = levels[-1][-1]._replace(closing=mark, inside=inside)
    return Stripped(("".join(kept) + text[end:]).strip(), tuple(levels[0]))


def _separates(mark: str, after: str, precedes_mark: bool) -> bool:
    """Say whether a mark separates words that touch it: a break of lines, or a reference to a space."""
    if BREAK.match(mark):
        return precedes_mark or (after != "" and not after.isspace() and after not in CLOSING)
    is_space = mark[0] == "&" and len(mark) <= LONGEST_REFERENCE and html.unescape(mark).isspace()
    return is_space and (precedes_mark or after.isalnum())


def partners(marks: list[str]) -> dict[int, int]:
    """Return for each tag of a pair which mark the other one is."""
    found: dict[int, int] = {}
    opened: list[tuple[str, int]] = []
    levels: dict[str, list[int]] = {}
    """for each name, where it stands in `opened`"""
    for number, text in enumerate(marks):
        tag = TAG.fullmatch(text)
        if not tag or tag["single"]:
            continue
        name = tag["name"].lower()
        if not tag["closing"]:
            levels.setdefault(name, []).append(len(opened))
            opened.append((name, number))
        elif levels.get(name):
            level = levels[name][-1]
            partner = opened[level][1]
            found |= {partner: number, number: partner}
            # Tags that were opened after it are never closed, or elsewhere: they stand alone.
            while len(opened) > level:
                levels[opened.pop()[0]].pop()
    return found

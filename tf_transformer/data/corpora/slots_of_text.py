"""Subtitles and pages as files with slots: all of their text."""

import bisect
import html
import itertools
import re
from collections.abc import Iterator

from tf_transformer.data.corpora.drawn import in_one_line
from tf_transformer.data.corpora.paragraphs import slots_of
from tf_transformer.data.corpora.slots import (
    TAG,
    Marked,
    Parts,
    Piece,
    Slot,
    apart,
    cut,
    has_words,
    marked,
    nested_pairs,
)

TIME = re.compile(r"^(?>[^\n]*?-->)[^\n]*\n", re.MULTILINE)
BLANK, NUMBER = re.compile(r"\n[ \t]*\r?\n"), re.compile(r"\n\d+[ \t]*\r?\n\Z")
CUE_TAG = re.compile(r"</?[A-Za-z][^<>]*>|<\d[\d:.]*>|\{\\[^{}]*\}|\{[^{}]*\}")
"""A tag of subtitles; a style such as {\\an8}."""
INLINE = re.compile(
    r"</?(?:a|abbr|acronym|b|bdi|bdo|big|cite|code|data|del|dfn|em|font|i|img|ins|kbd|label|mark|q|rp|rt|ruby|s|samp|"
    r"small|span|strike|strong|sub|sup|time|tt|u|var|wbr)(?=[\s/>])|<!--",
    re.IGNORECASE,
)
"""The tags of a page that stand within sentences, and comments; all others separate texts."""
HIDDEN = re.compile(
    r"<(?P<hidden>script|style|pre|code|kbd|samp|var|textarea|svg|math)\b[^>]*>.*?</(?P=hidden)\s*>",
    re.DOTALL | re.IGNORECASE,
)
"""What is no text of a page, whatever it contains."""
HIDING = re.compile(HIDDEN.pattern.partition(">.*?")[0], re.IGNORECASE)
"""What begins it."""
KEPT = re.compile(r"\btranslate\s*=\s*[\"']?no\b|\bclass\s*=\s*[\"'][^\"']*\bnotranslate\b", re.IGNORECASE)
"""What says of an element that it is not translated."""
ENDLESS = re.compile(r"&#\d{9,};?")
"""A reference to a number that is no character, and may have more digits than Python converts."""


def lines(text: str) -> Parts:
    """Return the parts of a .txt: each line that has words."""
    parts: Parts = []
    for line in text.splitlines(keepends=True):
        before, inner, after = apart(line)
        parts += [before, Slot(inner, str, inner), after] if has_words(inner) else [line]
    return parts


def subtitles(text: str) -> Parts:
    """Return the parts of an .srt or .vtt: the text of each cue is a slot."""
    parts: Parts = []
    place = 0
    times = list(TIME.finditer(text))
    for time, following in itertools.zip_longest(times, times[1:]):
        # A cue ends at a blank line, and if there is none, before the number of the next one.
        end = BLANK.search(text, time.end() - 1, following.start() if following else len(text))
        stop = following.start() if following else len(text)
        if end:
            stop = max(end.start(), time.end())
        elif following and (number := NUMBER.search(text, time.end() - 1, stop)):
            stop = max(number.start() + 1, time.end())
        content = text[time.end() : stop]
        if has_words(CUE_TAG.sub("", content)):
            parts += [text[place : time.end()], *_cue(content)]
            place = stop
    return [*parts, text[place:]]


def _cue(content: str) -> Parts:
    """Return the slots of a cue: each line where each is of another speaker, or else all of its lines."""
    lines = content.splitlines(keepends=True)
    if len(lines) > 1 and all(re.match(r"(?:<[^<>]*>)*\s*[-–—]", line) for line in lines):
        return [part for line in lines for part in _lines(line)]
    return _lines(content)


def _lines(content: str) -> Parts:
    before, inner, after = apart(content)
    found = marked(cut(inner, str, CUE_TAG))
    lines, new_line = inner.count("\n") + 1, "\r\n" if "\r\n" in inner else "\n"
    text = in_one_line(found.text)

    def write(translation: str) -> str | None:
        restored = inner if translation == text else found.restored(translation, str)
        return restored if restored in (None, inner) else new_line.join(_in_lines(restored, lines))

    return [before, Slot(text, write, inner), after]


def _in_lines(text: str, count: int) -> list[str]:
    """Cut a text at spaces outside of tags into lines of about the same length."""
    spaces = [(found.start(), found.end()) for found in re.finditer(r"<[^<>]*>|\s+", text) if found[0].isspace()]
    lines = []
    start = 0
    for left in range(count, 1, -1):
        middle = start + (len(text) - start) // left
        after = bisect.bisect_left(spaces, (middle,))
        near = [space for space in spaces[max(after - 1, 0) : after + 1] if space[0] > start]
        if not near:
            break
        end, following = min(near, key=lambda space: abs(space[0] - middle))
        lines.append(text[start:end])
        start = following
    return [*lines, text[start:]]


def page(text: str) -> Parts:
    """Return the parts of an .html: each text between tags that separate texts is a slot."""
    parts: Parts = []
    waiting: list[Piece] = []
    for piece in _pieces(text):
        if piece.text is not None or INLINE.match(piece.raw):
            waiting.append(piece)
            continue
        parts += [*slots_of(waiting, _restored), piece.raw]
        waiting = []
    return [*parts, *slots_of(waiting, _restored)]


def _pieces(text: str) -> Iterator[Piece]:
    """Yield a page in pieces: text, tags, and elements that are not translated."""
    tags = list(TAG.finditer(text))
    closes = nested_pairs([tag[0].lower() for tag in tags])
    place = 0
    unclosed: set[str] = set()
    for number, tag in enumerate(tags):
        if tag.start() < place:
            continue
        between = text[place : tag.start()]
        yield Piece(between, _unescaped(between))
        place = tag.end()
        name = tag[0][1:].partition(">")[0].split()[:1]
        if name and name[0].lower() not in unclosed and HIDING.match(tag[0]):
            if hidden := HIDDEN.match(text, tag.start()):
                place = hidden.end()
            else:
                unclosed.add(name[0].lower())  # nor is any after it, and each search would go to the end
        elif KEPT.search(tag[0]) and number in closes:
            place = tags[closes[number]].end()
        whole = text[tag.start() : place]
        yield Piece(whole, tag=whole)
    yield Piece(text[place:], _unescaped(text[place:]))


def _restored(found: Marked, translation: str, _: Piece | None) -> str | None:
    return found.restored(translation, _escaped)


def _unescaped(text: str) -> str:
    return html.unescape(ENDLESS.sub("\ufffd", text))


def _escaped(text: str) -> str:
    return html.escape(text, quote=False)

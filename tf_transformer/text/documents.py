"""Text as it is written: its sentences are translated, and its lines and white space stay."""

import bisect
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from tf_transformer.errors import missing_extra
from tf_transformer.text.words import WIDE, is_within_sign
from tf_transformer.tokenizers.vocabulary import AT_FRONT

CLAUSE_END = re.compile(r"(?<=[,;:\u2013\u2014\u3001\uff0c\uff1a\uff1b])\s*(?=\S)")
"""Where a sentence that is too long is cut at best."""
SPACE = re.compile(r"(?<!\s)\s++(?=\S)")
TWO_LETTERS = dict(
    re.findall(
        r"(\w+)=(\w+)",
        "amh=am ara=ar arb=ar arm=hy bak=ba ben=bn bul=bg bur=my cat=ca ces=cs cze=cs dan=da deu=de dut=nl ell=el "
        "eng=en fin=fi fra=fr fre=fr ger=de glg=gl gre=el grn=gn guj=gu hat=ht hin=hi hye=hy ita=it jpn=ja kan=kn "
        "kaz=kk lim=li lin=ln ltz=lb mal=ml mar=mr mya=my nld=nl oci=oc pan=pa plt=mg pol=pl por=pt rus=ru "
        "sag=sg san=sa slk=sk slo=sk spa=es tam=ta tat=tt tel=te ukr=uk wol=wo",
    )
)
"""The codes by which sentencex knows the languages for which it has rules, by those of three letters."""
SEEN_AT_ONCE = 10_000
"""How many characters of a line sentencex is given: for some text, it takes quadratic time."""


class Sentence(NamedTuple):
    """A sentence, or a part of one that is too long."""

    before: str
    """the white space before it"""
    text: str
    """without white space around it"""
    code: str = ""
    """the language to translate to, such as `>>de<<`, if the model reads it at the front of a text"""

    @property
    def source(self) -> str:
        """What the model reads."""
        return f"{self.code} {self.text}" if self.code else self.text


class Line(NamedTuple):
    """A line in its parts."""

    sentences: list[Sentence]
    after: str
    """the white space at its end, with the line feed"""


Segment = Callable[[str], Iterable[str]]
"""Cuts a line into sentences, which are the line when put together."""
Spans = Callable[[str], list[tuple[int, int]]]
"""Returns where the parts of a text begin and end that must not be cut, in their order."""


def segmenter(language: str | None) -> Segment:
    """Return a function that cuts text of a language into sentences, by Wikimedia's sentencex.

    Text that sentencex fails at is one sentence.

    Args:
        language: its code, such as `de`, `de-AT` or `deu_Latn`; the rules of English if it is None or unknown.

    Raises:
        InputError: the package is missing.
    """
    try:
        from sentencex import segment
    except ImportError as error:
        raise missing_extra("cutting text into sentences", "documents", error) from None
    first = re.split("[^a-z]", (language or "").lower())[0] or "en"
    code = TWO_LETTERS.get(first, first)

    def cut_window(text: str) -> list[str]:
        try:
            parts = list(segment(code, text))
        except BaseException as error:
            # A panic of Rust is no Exception: one of "A\u00a0." would end a run of hours.
            if type(error).__name__ != "PanicException":
                raise
            parts = []
        return parts if "".join(parts) == text else [text]

    def cut(text: str) -> list[str]:
        done: list[str] = []
        begun, place = "", 0
        while place < len(text):
            parts = cut_window(text[place : place + SEEN_AT_ONCE])
            place += sum(map(len, parts))
            if place < len(text):  # the last sentence may go on
                last = parts.pop()
                if parts:
                    place -= len(last)
                else:
                    begun += last
                    continue
            done += [begun + parts[0], *parts[1:]]
            begun = ""
        return done

    return cut


def fits_by(count: Callable[[list[str]], list[int]], most: int) -> Callable[[str], bool]:
    """Return a function that says whether a model takes all of a sentence.

    Args:
        count: returns how many tokens of each sentence the model takes, including the end token.
        most: the most that it takes.
    """

    def fits(text: str) -> bool:
        # Short sentences need not be counted: a token has at least one byte. Outside ASCII, NFKC makes up to 11 of one.
        bytes_at_most = len(text) if text.isascii() else 11 * len(text.encode())
        return bytes_at_most + 2 < most or count([text])[0] < most

    return fits


def codes_by(count: Callable[[list[str]], list[int]]) -> Callable[[str], bool]:
    """Return a function that says whether a model reads a code such as `>>de<<` as one token, and not as text.

    Args:
        count: as for `fits_by`.
    """
    return lambda code: count([code])[0] - count([""])[0] == 1


class Cutter:
    """Cuts the lines of a text into sentences that fit into the model, and the white space between them.

    A code such as `>>de<<` at the front of a line says the language of all sentences up to the next code.

    Args:
        segment: cuts a line into sentences.
        fits: says whether the model takes all of a sentence.
        is_code: says whether the model reads a code; if not, it is text like other text.
        kept: as in `parts_of`.
    """

    def __init__(
        self, segment: Segment, fits: Callable[[str], bool], is_code: Callable[[str], bool], kept: Spans | None = None
    ):
        self._segment, self._fits, self._is_code, self._kept = segment, fits, is_code, kept
        self._code = ""

    def __call__(self, line: str) -> Line:
        """Cut the next line of the text."""
        rest = line.lstrip()
        space = line[: len(line) - len(rest)]
        if (code := re.match(AT_FRONT, rest)) and self._is_code(code[0]):
            self._code, rest = code[0], rest[code.end() :]
            line = space + (rest.lstrip() or rest)
        return parts_of(line, self._segment, self._fits, self._kept, self._code)


def parts_of(
    line: str, segment: Segment, fits: Callable[[str], bool], kept: Spans | None = None, code: str = ""
) -> Line:
    """Cut a line into sentences that fit into the model, and the white space between them.

    A sentence that does not fit is cut where a clause ends, or else at a space, or else anywhere; but nowhere within
    one of the spans that `kept` returns. Each sentence has the `code`.
    """
    sentences: list[Sentence] = []
    space = ""
    for found in _joined(segment(line), kept(line) if kept else []):
        for part in _fitting(found, lambda text: fits(Sentence("", text, code).source), kept):
            text = part.strip()
            if not text:
                space += part
                continue
            start = part.index(text)
            sentences.append(Sentence(space + part[:start], text, code))
            space = part[start + len(text) :]
    return Line(sentences, space)


def translated_lines(
    lines: Iterable[str], translate: Callable[[Iterator[str]], Iterable[str]], cut: Callable[[str], Line]
) -> Iterator[str]:
    """Yield lines with their sentences translated; everything between these stays as it is.

    Args:
        lines: the lines, each with its line feed.
        translate: translates sentences in their order; it may read ahead.
        cut: cuts a line into sentences.
    """
    waiting: deque[Line] = deque()

    def sentences() -> Iterator[str]:
        for line in lines:
            waiting.append(cut(line))
            yield from (sentence.source for sentence in waiting[-1].sentences)

    done: list[str] = []
    for translation in translate(sentences()):
        while not waiting[0].sentences:
            yield waiting.popleft().after
        done.append(translation)
        if len(done) == len(waiting[0].sentences):
            yield joined(waiting.popleft(), done)
            done = []
    for line in waiting:  # which have no sentences
        yield line.after


def joined(line: Line, translations: Sequence[str]) -> str:
    """Return a line with translations in the place of its sentences.

    Where its script has no space between two sentences, as Chinese, one is added if the translation needs it.
    """
    text, last = "", ""
    for (before, original, _), translation in zip(line.sentences, translations, strict=True):
        if not before and WIDE.match(last) and text and translation:
            before = "" if WIDE.match(text[-1]) or WIDE.match(translation[0]) else " "
        text += before + translation
        last = original[-1]
    return text + line.after


def _joined(parts: Iterable[str], spans: list[tuple[int, int]]) -> Iterator[str]:
    """Join parts of a text that were cut apart within one of the spans, which are in their order."""
    waiting, end, number = "", 0, 0
    for part in parts:
        waiting, end = waiting + part, end + len(part)
        while number < len(spans) and spans[number][1] <= end:
            number += 1
        if number == len(spans) or end <= spans[number][0]:
            yield waiting
            waiting = ""


def halves(text: str, kept: Spans | None = None) -> tuple[str, str] | None:
    """Cut a text in two where a clause ends, or else at a space, or else between any two signs, nearest to the middle.

    White space is at the beginning of the second part. None if there is no such place outside of the spans that `kept`
    returns.
    """
    spans = kept(text) if kept else []
    begins, middle = len(text) - len(text.lstrip()), len(text) // 2
    clauses, spaces = (
        [match.start() for match in kind.finditer(text) if match.start() > begins] for kind in (CLAUSE_END, SPACE)
    )
    for places in (clauses, spaces, range(1, len(text))):
        for place in _nearest(places, middle):
            number = bisect.bisect_left(spans, (place,)) - 1
            is_within = number >= 0 and place < spans[number][1]
            if not is_within and not is_within_sign(text, place):
                return text[:place], text[place:]
    return None


def _nearest(places: Sequence[int], middle: int) -> Iterator[int]:
    """Yield places, which are in their order, the nearest to a place first."""
    after = bisect.bisect_left(places, middle)
    before = after - 1
    while before >= 0 or after < len(places):
        if before < 0 or (after < len(places) and places[after] - middle < middle - places[before]):
            yield places[after]
            after += 1
        else:
            yield places[before]
            before -= 1


def _fitting(text: str, fits: Callable[[str], bool], kept: Spans | None) -> Iterator[str]:
    """Cut a text in halves until all parts fit; put together they are the text."""
    waiting = [text]
    while waiting:
        part = waiting.pop()
        cut = None if fits(part.strip()) else halves(part, kept)
        if cut is None:
            yield part
        else:
            waiting += reversed(cut)

"""Terms that a translation must contain: those of a glossary, or those that stand in the line itself."""

import logging
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping

from tf_transformer.errors import InputError
from tf_transformer.text.documents import WIDE

WORD = re.compile(r"\w")

log = logging.getLogger(__name__)

TermsOf = Callable[[str], tuple[str, list[str]]]
"""Returns the text of a line, and the terms that its translation must contain."""


def terms_of_line(line: str) -> tuple[str, list[str]]:
    """Cut a line into its text and the terms after it, with tabs between them, as fairseq takes them.

    Raises:
        InputError: a term is empty.
    """
    text, *terms = line.split("\t")
    if not all(term.strip() for term in terms):
        raise InputError(f"a term is empty: write a sentence, a tab, and terms with tabs between. Received: {line!r}")
    return text, terms


class Glossary:
    """How terms must be translated.

    A term is found where it stands as whole words, whether its letters and their marks are composed or not. Of terms
    that overlap, the one that begins first counts; of those that begin together, the longest, and of these the one
    with a capital.

    Args:
        translations: by the source term, the target term.
        case: "smart": a term in lower case is found in any case, and one with a capital only as it is written (`us`
            finds "Us", but `US` does not find "us"); "exact": every term only as it is written; "ignore": every term
            in any case.
    """

    def __init__(self, translations: Mapping[str, str], case: str = "smart"):
        self._forms = _FORMS[case]
        self._translations = {_key(term, case): translation for term, translation in translations.items()}
        self._lengths = sorted({len(term) for term in self._translations}, reverse=True)

    @classmethod
    def of_lines(cls, lines: Iterable[str], name: str, case: str = "smart") -> "Glossary":
        """Return the glossary of lines with a source term, a tab and its translation; empty lines are skipped.

        Lines without terms are warned of.

        Args:
            lines: the lines.
            name: what they are called in errors, such as the file that they are in.
            case: as for the class.

        Raises:
            InputError: a line is no such pair, or has a term of a line before.
        """
        translations: dict[str, str] = {}
        first: dict[str, str] = {}
        for number, line in enumerate(lines, 1):
            source, *targets = (part.strip() for part in line.split("\t"))
            if not source and not any(targets):
                continue
            if len(targets) != 1 or not source or not targets[0]:
                raise InputError(f"{name}, line {number}: write a term, a tab and its translation. Received: {line!r}")
            translations[source] = targets[0]
            if (other := first.setdefault(_key(source, case), targets[0])) != targets[0]:
                raise InputError(
                    f"{name}, line {number}: {source!r} has two translations, {other!r} and {targets[0]!r}: keep one"
                )
        if not translations:
            log.warning("%s has no terms: nothing is demanded", name)
        return cls(translations, case)

    def __call__(self, text: str) -> tuple[str, list[str]]:
        """Return the text, and the translations of the terms in it, each once."""
        found: dict[str, None] = {}
        composed = unicodedata.normalize("NFC", text)
        place = 0
        while place < len(composed):
            written, term = self._longest(composed, place)
            if term:
                found[self._translations[term]] = None
            place += len(written) or 1
        return text, list(found)

    def _longest(self, text: str, place: int) -> tuple[str, str]:
        """Return what stands at a place of a text and the longest term that it is; both are empty if it is none."""
        for length in self._lengths:
            written = text[place : place + length]
            for term in [form(written) for form in self._forms]:
                if term in self._translations and _is_whole(text, place, place + len(written)):
                    return written, term
        return "", ""


def _as_written(text: str) -> str:
    return text


def _lowered(text: str) -> str:
    """Return a text in lower case, with as many characters as before."""
    return "".join(lower if len(lower := character.lower()) == 1 else character for character in text)


def _key(term: str, case: str) -> str:
    """Return a term in the form in which text is compared with it."""
    composed = unicodedata.normalize("NFC", term)
    return _lowered(composed) if case == "ignore" else composed


_FORMS = {"smart": (_as_written, _lowered), "exact": (_as_written,), "ignore": (_lowered,)}
"""In which forms text is looked for among the terms."""
CASES = tuple(_FORMS)


def _is_whole(text: str, start: int, end: int) -> bool:
    """Say whether a part of a text is whole words, where its script has words."""
    begins = not start or not (_is_of_words(text[start]) and WORD.match(text[start - 1]))
    return begins and (end == len(text) or not (_is_of_words(text[end - 1]) and WORD.match(text[end])))


def _is_of_words(character: str) -> bool:
    return WORD.match(character) is not None and not WIDE.match(character)

"""Terms that a translation must contain: those of a glossary, or those that stand in the line itself."""

import logging
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence

from tf_transformer.errors import InputError
from tf_transformer.text.words import is_within_word, lowered
from tf_transformer.tokenizers.normalization import REMOVED

HIDDEN = re.compile("[" + "".join(f"\\U{first:08X}-\\U{last:08X}" for first, last in REMOVED) + "]")
BEGINNING = 3
"""Characters by which terms are looked up."""

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
        self._lengths: dict[str, list[int]] = {}
        """by the beginnings of terms, their lengths, the longest first"""
        for length, beginning in sorted({(len(term), term[:BEGINNING]) for term in self._translations}, reverse=True):
            self._lengths.setdefault(beginning, []).append(length)

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
        shown = HIDDEN.sub("", unicodedata.normalize("NFC", text)) or text
        forms = [form(shown) for form in self._forms]
        place = 0
        while place < len(shown):
            term = None if is_within_word(shown, place) else self._longest(shown, forms, place)
            if term:
                found[self._translations[term]] = None
            place += len(term or " ")
        return text, list(found)

    def _longest(self, text: str, forms: Sequence[str], place: int) -> str | None:
        """Return the longest term at a place of a text, which ends where a word does."""
        beginnings = [form[place : place + length] for form in forms for length in range(1, BEGINNING + 1)]
        lengths = {length for beginning in beginnings for length in self._lengths.get(beginning, ())}
        for end in sorted((place + length for length in lengths), reverse=True):
            for form in forms:
                if end <= len(text) and form[place:end] in self._translations and not is_within_word(text, end):
                    return form[place:end]
        return None


def _as_written(text: str) -> str:
    return text


def _key(term: str, case: str) -> str:
    """Return a term in the form in which text is compared with it."""
    composed = HIDDEN.sub("", unicodedata.normalize("NFC", term)) or term
    is_as_written = case == "exact" or (case == "smart" and composed != composed.lower())
    return composed if is_as_written else lowered(composed)


_FORMS = {"smart": (_as_written, lowered), "exact": (_as_written,), "ignore": (lowered,)}
"""In which forms text is looked for among the terms."""
CASES = tuple(_FORMS)

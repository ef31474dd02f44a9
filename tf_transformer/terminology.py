"""Terms that a translation must contain: those of a glossary, or those that stand in the line itself."""

import re
from collections.abc import Callable, Mapping
from pathlib import Path

from tf_transformer.documents import WIDE
from tf_transformer.errors import InputError
from tf_transformer.lines import read_lines

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

    A term is found where it stands as whole words. Written in lower case, it is found in any case; with a capital, only
    as it is written (`us` finds "Us", but `US` does not find "us"). Of terms that overlap, the longest counts.

    Args:
        translations: by the source term, the target term.
    """

    def __init__(self, translations: Mapping[str, str]):
        terms = sorted(translations, key=len, reverse=True)
        self._translations = [translations[term] for term in terms]
        self._pattern = re.compile("|".join(f"({_pattern(term)})" for term in terms)) if terms else None

    @classmethod
    def read(cls, path: Path) -> "Glossary":
        """Read a file with a source term, a tab and its translation on each line; empty lines are skipped.

        Raises:
            InputError: the file cannot be read; a line is no such pair, or has a term of a line before.
        """
        translations: dict[str, str] = {}
        for number, line in enumerate(read_lines(path), 1):
            source, *targets = (part.strip() for part in line.split("\t"))
            if not source and not any(targets):
                continue
            if len(targets) != 1 or not source or not targets[0]:
                raise InputError(f"{path}, line {number}: write a term, a tab and its translation. Received: {line!r}")
            if translations.setdefault(source, targets[0]) != targets[0]:
                raise InputError(
                    f"{path}, line {number}: {source!r} has two translations, {translations[source]!r} and "
                    f"{targets[0]!r}: keep one"
                )
        return cls(translations)

    def __call__(self, text: str) -> tuple[str, list[str]]:
        """Return the text, and the translations of the terms in it, each once."""
        if self._pattern is None:
            return text, []
        found = (self._translations[match.lastindex - 1] for match in self._pattern.finditer(text) if match.lastindex)
        return text, list(dict.fromkeys(found))


def _pattern(term: str) -> str:
    """Return a regular expression for a term as whole words, where its script has words."""
    before, after = (_is_of_words(term[place]) for place in (0, -1))
    found = re.escape(term)
    if term == term.lower():
        found = f"(?i:{found})"
    return (r"(?<!\w)" if before else "") + found + (r"(?!\w)" if after else "")


def _is_of_words(character: str) -> bool:
    return re.match(r"\w", character) is not None and not WIDE.match(character)

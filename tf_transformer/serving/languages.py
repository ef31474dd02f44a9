"""The languages of a model by the codes that programs use, and which of them a text is in."""

import functools
from typing import Any, NamedTuple

import langcodes
from py3langid.langid import MODEL_FILE, LanguageIdentifier  # type: ignore[import-untyped]

from tf_transformer.serving.version import Version

SAME = 9
"""The greatest distance, as CLDR measures it, of two codes for one language, such as de-AT and de."""
SHORT = 40
"""Texts of at most so many characters say too little of their language to be looked at alone."""


class Detected(NamedTuple):
    """A language that a text may be in."""

    language: str
    confidence: float
    """in percent; those of all languages of the model add up to 100"""


class Languages:
    """The languages of a version of a model.

    Args:
        version: the version.
    """

    def __init__(self, version: Version):
        source, target = version.direction
        many = version.admission.languages
        self._directions = None if many else {(source, target)}
        self.names: dict[str, str] = {}
        """the model's own names by their codes: `en` for `eng_Latn`"""
        for name in many or ((source, target) if source and target else ()):
            code = _code(name)
            self.names[name if code in self.names else code] = name

    def find(self, asked: str) -> str | None:
        """Return the code of a language that a client names by this code, a kind of it or the model's own name."""
        for code, name in self.names.items():
            if asked.replace("_", "-").lower() in (code.lower(), name.replace("_", "-").lower()):
                return code
        try:
            return langcodes.closest_supported_match(asked, list(self.names), SAME)
        except ValueError:  # not the form of a code
            return None

    def targets(self, source: str) -> list[str]:
        """Return the codes of the languages that a language is translated into. Into itself, every text stays."""
        return [target for target in self.names if target == source or self._is_direction(source, target)]

    def detect(self, text: str) -> list[Detected]:
        """Return the languages that a text may be in, the most probable first.

        Only the languages of the model that the detector knows are considered. Of several kinds of one, such as
        Chinese in its two scripts, that is the first.
        """
        codes: dict[str, str] = {}
        for code in self.names:
            codes.setdefault(_base(code), code)
        found = [(codes[label], float(share)) for label, share in _identifier().rank(text) if label in codes]
        total = sum(share for _, share in found)
        known = total > 0 and any(map(str.isalpha, text))
        return [Detected(code, round(100 * share / total, 1) if known else 0.0) for code, share in found]

    def detect_all(self, texts: list[str]) -> list[Detected | None]:
        """Return the most probable language of each text; short ones are taken to be in that of all together."""
        together = next(iter(self.detect("\n".join(texts))), None)
        return [next(iter(self.detect(text)), None) if len(text) > SHORT else together for text in texts]

    def _is_direction(self, source: str, target: str) -> bool:
        return self._directions is None or (self.names[source], self.names[target]) in self._directions


def english_name(code: str) -> str:
    """Return the English name of a language, or its code if there is none."""
    try:
        language = langcodes.Language.get(code)
    except ValueError:
        return code
    return language.display_name() if language.is_valid() else code


@functools.cache
def _code(name: str) -> str:
    """Return the shortest standard code of a language (BCP 47), or the name as it is if it names none."""
    try:
        language = langcodes.Language.get(name)
    except ValueError:
        return name
    return language.prefer_macrolanguage().simplify_script().to_tag() if language.is_valid() else name


@functools.cache
def _base(code: str) -> str:
    try:
        return langcodes.Language.get(code).language or code
    except ValueError:
        return code


@functools.cache
def _identifier() -> Any:
    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)

"""What vocabularies have in common: the ids that each begins with, and how one names a language."""

PAD, UNKNOWN, START, END = range(4)
SPECIAL_TOKENS = 4
"""How many they are."""
LANGUAGE_CODE = r">>\S+<<"
"""How OPUS-MT writes the language to translate to, before the text."""


def language_pieces(language: str) -> tuple[str, str]:
    """Return how a vocabulary may write the token of a language: as M2M100 and our own do, or as NLLB does."""
    return f"__{language}__", language

"""What all vocabularies have in common: their first ids, and the tokens of languages."""

PAD, UNKNOWN, START, END = range(4)
SPECIAL_TOKENS = 4
"""The number of special tokens."""
UNLIKELY = -100.0
"""The bias of a token that is never written: its probability is 0 in float32, and a smoothed loss is finite."""
LANGUAGE_CODE = r">>\S+<<"
"""How OPUS-MT writes the language to translate to, before the text."""


def language_pieces(language: str) -> tuple[str, str]:
    """Return the two ways to write the token of a language: that of M2M100 and our own, and that of NLLB."""
    return f"__{language}__", language

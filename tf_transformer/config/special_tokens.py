"""What vocabularies have in common: the ids that each begins with, and how one names a language."""

PAD, UNKNOWN, START, END = range(4)
SPECIAL_TOKENS = 4
"""How many they are."""
LANGUAGE_CODE = r">>\S+<<"
"""How OPUS-MT writes the language to translate to, before the text."""

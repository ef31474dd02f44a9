"""Where words begin and end, in scripts with and without spaces between them."""

import re
import unicodedata

WIDE = re.compile("[\u3000-\u30ff\u3400-\u9fff\uff00-\uffef\U00020000-\U0003ffff]")
"""Characters of scripts that put no space between sentences."""
UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3000-\u30ff\u3400-\u9fff\uff00-\uffef\U00020000-\U0003ffff]"
)
"""Characters of scripts that put no space between words: those and Thai, Lao, Burmese and Khmer."""
ZERO_WIDTH_JOINER = "\u200d"
CONTINUING = re.compile("[\u0e33\u0eb3\u200c\u200d\U0001f3fb-\U0001f3ff\U000e0020-\U000e007f]")
"""What continues a sign and is no mark of Unicode: a vowel of Thai and Lao, joiners, the colours of skin, the letters
of a flag."""
FLAGS = re.compile("[\U0001f1e6-\U0001f1ff]*")
"""Letters of which each two are a flag."""
WITHIN_NUMBER, WITHIN_WORD = ".,", "'\u2019"
"""What belongs to a number between two digits, and to a word between two letters (Unicode's annex 29)."""


def is_word(character: str) -> bool:
    """Say whether a character belongs to a word, in a script that has spaces between words."""
    return (character.isalnum() or character == "_") and not UNSPACED.match(character)


def is_within_word(text: str, place: int) -> bool:
    """Say whether a place of a text is between two characters of one word, or within one sign of several characters."""
    if not 0 < place < len(text):
        return False
    if is_within_sign(text, place) or (_is_of_word(text, place - 1) and _is_of_word(text, place)):
        return True
    return _joins(text, place - 1) or _joins(text, place)


def is_within_sign(text: str, place: int) -> bool:
    """Say whether a place between two characters is within one sign: a letter and its accent, a flag, an emoji."""
    if _continues(text[place]) or text[place - 1] == ZERO_WIDTH_JOINER:
        return True
    if not FLAGS.fullmatch(text[place]):
        return False
    nearest = text[max(place - 1000, 0) : place]  # all before would make long lines of flags quadratic
    letters = FLAGS.match(nearest[::-1])
    return letters is not None and letters.end() % 2 == 1


def lowered(text: str) -> str:
    """Return a text in lower case, with as many characters as before; the two small forms of sigma are one."""
    letters = (lower if len(lower := character.lower()) == 1 else character for character in text)
    return "".join(letters).replace("\u03c2", "\u03c3")


def _joins(text: str, place: int) -> bool:
    """Say whether a sign is between two digits, or between two letters, that are one number or word with it."""
    if not 0 < place < len(text) - 1:
        return False
    sides = text[place - 1], text[place + 1]
    if text[place] in WITHIN_NUMBER:
        return all(side.isdigit() for side in sides)
    return text[place] in WITHIN_WORD and all(side.isalpha() and is_word(side) for side in sides)


def _is_of_word(text: str, place: int) -> bool:
    """Say whether a character, or that which a mark of it is upon, belongs to a word."""
    while place and _continues(text[place]):
        place -= 1
    return is_word(text[place])


def _continues(character: str) -> bool:
    """Say whether a character is one sign with the character before it."""
    return unicodedata.category(character)[0] == "M" or CONTINUING.match(character) is not None

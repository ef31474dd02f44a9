"""Normalisation by NFC, as rules that SentencePiece compiles into a tokenizer.

SentencePiece's own rules are based on NFKC, which replaces characters by others that look or mean something else: `10²`
becomes `102`, `½` becomes `1⁄2`, and `，` becomes `,`. A model cannot write what its tokenizer never shows it.
"""

import functools
import hashlib
import itertools
import re
import sys
import unicodedata
from pathlib import Path

from tf_transformer.config.tokenizer import NORMALIZATIONS
from tf_transformer.errors import InputError

REMOVED = (
    *((0x00, 0x08), (0x0E, 0x1F), (0x7F, 0x84), (0x86, 0x9F)),  # control characters that are no white space
    (0x00AD, 0x00AD),  # soft hyphen
    (0x061C, 0x061C),  # marks of direction, here and below
    (0x180E, 0x180E),  # Mongolian vowel separator
    (0x200B, 0x200B),  # zero-width space
    *((0x200E, 0x200F), (0x202A, 0x202E), (0x2066, 0x206F)),
    (0x2060, 0x2060),  # word joiner
    (0xFEFF, 0xFEFF),  # byte order mark
    (0xFFF9, 0xFFFB),  # interlinear annotation
)
"""Characters that nobody sees and that carry no meaning. The joiners U+200C and U+200D stay: Persian and Indian scripts
and emoji are written with them; so do the variation selectors."""
SPACES = "\t\n\v\f\r\x85\u2581"
"""What becomes a space, besides Unicode's spaces and separators; U+2581 is what SentencePiece writes for a space."""
INVISIBLE = (
    *REMOVED,
    *((0x09, 0x0D), (0x20, 0x20), (0x85, 0x85), (0xA0, 0xA0), (0x1680, 0x1680), (0x2000, 0x200A)),  # white space
    *((0x2028, 0x2029), (0x202F, 0x202F), (0x205F, 0x205F), (0x3000, 0x3000), (0x1C, 0x1F)),
    *((0x200C, 0x200D), (0x180B, 0x180D), (0xFE00, 0xFE0F)),  # joiners and variation selectors
)
"""Characters of which a line has nothing that could be translated."""
INVISIBLE_CLASS = "".join(f"\\x{{{first:X}}}-\\x{{{last:X}}}" for first, last in INVISIBLE)
"""These characters in an expression of RE2 (`tf.strings.regex_full_match`)."""
BLANK = f"[{INVISIBLE_CLASS}]*"
"""A line that is blank, as such an expression."""
_LEFT_OUT = re.compile("[\\s\u2581" + "".join(f"\\U{first:08X}-\\U{last:08X}" for first, last in REMOVED) + "]+")
_BLANK = re.compile("[" + "".join(f"\\U{first:08X}-\\U{last:08X}" for first, last in INVISIBLE) + "]*")


def is_blank(text: str) -> bool:
    """Say whether a sentence has nothing visible and counts as empty."""
    return _BLANK.fullmatch(text) is not None


def rules_of(normalization: str) -> str | None:
    """Return the rules of a normalisation, or None for one that SentencePiece has itself.

    They are in SentencePiece's format: lines of code points, a tab, and the code points that replace them.

    Args:
        normalization: as the setting of `TokenizerConfig`. The rules of a file are for text that `nfc` has composed.

    Raises:
        InputError: a file cannot be read, or has a line that is no rule.
    """
    if normalization == "nfc":
        return _written(_nfc_rules())
    if normalization in NORMALIZATIONS:
        return None
    own = _rules_of_file(Path(normalization))
    rules = {before: own.get(after, after) for before, after in _nfc_rules().items()} | own
    return _written({before: after for before, after in rules.items() if before != after})


def name_of(normalization: str) -> str:
    """Return what a normalisation is called where it is compared: a file has the digest of its rules in its name."""
    rules = None if normalization in NORMALIZATIONS else rules_of(normalization)
    return f"{Path(normalization).name} ({hashlib.sha256(rules.encode()).hexdigest()[:16]})" if rules else normalization


def _rules_of_file(path: Path) -> dict[str, str]:
    try:
        lines = path.read_text("utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read the rules of normalisation {path}: {error}") from None
    rules: dict[str, str] = {}
    for number, line in enumerate(lines, 1):
        rule = line.partition("#")[0]
        if not rule.strip():
            continue
        try:
            before, after, *_ = rule.split("\t")
            source, target = ("".join(map(_character, side.split())) for side in (before, after))
        except (ValueError, OverflowError):
            source = ""
        if not source or rules.setdefault(source, target) != target:
            raise InputError(
                f"{path}, line {number}: write code points in hexadecimal, a tab, and those that replace them, such as "
                f"'2019\\t27', and each rule once. Received: {line!r}"
            )
    return rules


def _character(code: str) -> str:
    """Return the character of a hexadecimal number; neither NUL nor half a character is one."""
    number = int(code, 16)
    if number == 0 or 0xD800 <= number < 0xE000:
        raise ValueError(code)
    return chr(number)


@functools.cache
def _nfc_rules() -> dict[str, str]:
    """Return what replaces what.

    The rules compose characters as NFC does, remove `REMOVED`, and make all white space spaces.
    """
    rules: dict[str, str] = {}
    for character in map(chr, itertools.chain(range(0xD800), range(0xE000, sys.maxunicode + 1))):
        if unicodedata.category(character) in ("Zs", "Zl", "Zp"):
            rules[character] = " "
        elif unicodedata.normalize("NFD", character) != character:
            composed = unicodedata.normalize("NFC", character)
            rules |= dict.fromkeys(_spellings(character), composed)
            rules.pop(composed, None)
    rules |= dict.fromkeys(SPACES, " ")
    rules |= {chr(code): "" for first, last in REMOVED for code in range(first, last + 1) if chr(code) not in rules}
    del rules["\0"], rules[" "]  # SentencePiece's format has no NUL; a space stays one
    return rules


def kept(text: str) -> str:
    """Return what a normalisation should keep of a text: all but white space and `REMOVED`, composed."""
    return _LEFT_OUT.sub("", unicodedata.normalize("NFC", text))


@functools.cache
def all_visible() -> str:
    """Return all letters, digits, punctuation and symbols that there are, with spaces between them."""
    return " ".join(one for one in map(chr, range(sys.maxunicode + 1)) if unicodedata.category(one)[0] in "LNPS")


def _spellings(character: str) -> set[str]:
    """Return all strings that are canonically equivalent to a character: its marks in any order, composed in part."""
    decomposed = unicodedata.normalize("NFD", character)
    base, marks = decomposed[0], decomposed[1:]
    waiting = {base + "".join(order) for order in itertools.permutations(marks)}
    waiting = {text for text in waiting if unicodedata.normalize("NFD", text) == decomposed}
    found = {character}
    while waiting:
        text = waiting.pop()
        found.add(text)
        pairs = ((i, unicodedata.normalize("NFC", text[i : i + 2])) for i in range(len(text) - 1))
        waiting |= {text[:i] + one + text[i + 2 :] for i, one in pairs if len(one) == 1} - found
    return found


def _written(rules: dict[str, str]) -> str:
    """Write rules in an order of their own, because that of sets differs from process to process."""
    return "".join(f"{_codes(before)}\t{_codes(after)}\n" for before, after in sorted(rules.items()))


def _codes(text: str) -> str:
    return " ".join(f"{ord(character):X}" for character in text)

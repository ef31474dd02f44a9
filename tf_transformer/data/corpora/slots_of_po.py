"""A .po as a file with slots: the translations that are missing."""

import re
from pathlib import Path

from tf_transformer.data.corpora.languages import warn_of_other
from tf_transformer.data.corpora.po import entries_of, escaped, header_of
from tf_transformer.data.corpora.slots import Parts, Slot, apart, has_words


def parts_of(text: str, path: Path, overwrites: bool, language: str | None) -> Parts:
    """Return the parts of a .po.

    Args:
        text: the file.
        path: its name, for errors.
        overwrites: whether translations that are there are made again.
        language: the language of the translations, if it is known.

    Raises:
        InputError: a line is none of a catalogue.
    """
    lines = re.findall(r"[^\n]*\n|[^\n]+", text)
    parts: list[str | Slot | list[str | Slot]] = list(lines)
    for entry in entries_of(lines, str(path)):
        if entry.is_obsolete:
            continue
        if not entry.texts.get("msgid"):
            warn_of_other(str(path), header_of(entry.texts).get("language"), language)
            continue
        strings = [key for key in entry.texts if key.startswith("msgstr")]
        if not strings or (any(entry.texts[key] for key in strings) and not overwrites):
            continue
        if not has_words(entry.texts["msgid"]):
            continue
        end = re.search(r"\r?\n?$", lines[entry.first])[0] or "\n"  # type: ignore[index]
        for key in strings:
            is_plural = "msgid_plural" in entry.texts and (key != "msgstr[0]" or len(strings) == 1)
            first, last = entry.lines[key]
            parts[first] = _string(key, entry.texts["msgid_plural" if is_plural else "msgid"], end, entry.texts[key])
            for number in range(first + 1, last + 1):
                parts[number] = ""
        if entry.flags_line is None:
            place = min(number for number, _ in entry.lines.values())
            parts[place] = [f"#, fuzzy{end}", *_listed(parts[place])]
        elif "fuzzy" not in entry.flags:
            parts[entry.flags_line] = lines[entry.flags_line].replace("#,", "#, fuzzy,", 1)
    return [one for part in parts for one in _listed(part)]


def _listed(part: str | Slot | list[str | Slot]) -> list[str | Slot]:
    return part if isinstance(part, list) else [part]


def _string(key: str, text: str, end: str, there: str) -> list[str | Slot]:
    """Return the lines of a string, whose lines of text are slots of their own, and `there` what it was before."""
    pieces = re.findall(r"[^\n]*\n|[^\n]+", text)
    parts: list[str | Slot] = [f"{key} " if len(pieces) == 1 else f'{key} ""{end}']
    for piece in pieces:
        before, inner, after = apart(piece)
        if not has_words(inner):
            parts.append(f'"{escaped(piece)}"{end}')
            continue

        def write(translation: str, before: str = before, after: str = after) -> str:
            return f'"{escaped(before + translation + after)}"{end}'

        parts.append(Slot(inner, write, f'"{escaped(there if len(pieces) == 1 else piece)}"{end}'))
    return parts

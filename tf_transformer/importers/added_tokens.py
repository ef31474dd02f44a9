"""The tokens that a folder of transformers has besides the pieces of its SentencePiece model, and their ids.

Their ids are read where transformers writes them, and never counted up from a list: versions of transformers have put
`<mask>` before or after the languages.
"""

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from tf_transformer.errors import InputError
from tf_transformer.importers.folder import LARGEST, optional_object, shown

ROLES = ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token")
"""What a token may be for, as the files of a tokenizer name it."""
LISTS = ("additional_special_tokens", "extra_special_tokens")
"""How transformers 4 and 5 call the list of the other special tokens."""


class AddedToken(NamedTuple):
    """A token that is added to a vocabulary."""

    id: int
    is_special: bool
    """whether it is left out of translations; words that were added are not"""
    file: Path
    """where its id is written"""


def added_tokens(folder: Path, known: Collection[str] = ()) -> dict[str, AddedToken]:
    """Return the added tokens of a folder by their text.

    Args:
        folder: the folder of the model.
        known: tokens that may be listed without an id.

    Raises:
        InputError: files contradict each other or are damaged, or a special token is listed without an id.
    """
    found: dict[str, AddedToken] = {}
    texts: dict[int, str] = {}
    listed = _listed(folder)
    for file, text, id, is_special in _written(folder):
        if not (isinstance(text, str) and text) or isinstance(id, bool) or not isinstance(id, int):
            raise InputError(f"{file}: an added token must have a text and an id. Received: {shown(text)}, {shown(id)}")
        if not 0 <= id <= LARGEST:
            raise InputError(f"{file}: the id of the added token {text!r} cannot be {id}")
        token = AddedToken(id, listed.get(text) is not None if is_special is None else bool(is_special), file)
        first = found.setdefault(text, token)
        if first.id != id:
            raise InputError(f"{folder}: {text!r} has the id {first.id} in {first.file.name} and {id} in {file.name}")
        if texts.setdefault(id, text) != text:
            other = found[texts[id]].file.name
            raise InputError(f"{folder}: the id {id} is {texts[id]!r} in {other} and {text!r} in {file.name}")
    if missing := sorted({text for text, kind in listed.items() if kind == "other"} - found.keys() - set(known)):
        raise InputError(
            f"{folder} lists {missing[0]!r} as a token, but no file says which id it has. Copy tokenizer.json, or "
            "tokenizer_config.json with added_tokens_decoder, from the model that this one was made of"
        )
    return found


def listed_tokens(content: Mapping[str, Any], file: Path) -> list[dict[str, Any]]:
    """Return the added tokens that the content of a tokenizer.json lists.

    Raises:
        InputError: it is damaged.
    """
    tokens = content.get("added_tokens") or []
    if not (isinstance(tokens, list) and all(isinstance(token, dict) for token in tokens)):
        raise InputError(f"{file}: added_tokens must be a list of objects. Received: {shown(tokens)}")
    return tokens


def roles_of(folder: Path) -> set[str]:
    """Return the texts of the tokens for beginning, end, padding, mask and the like."""
    return {text for text, kind in _listed(folder).items() if kind == "role"}


def _listed(folder: Path) -> dict[str, str]:
    """Return the special tokens that a folder names, each with "role" or "other"."""
    found: dict[str, str] = {}
    for name in ("special_tokens_map.json", "tokenizer_config.json"):
        settings = optional_object(folder / name)
        for key in LISTS:
            tokens = settings.get(key) or []
            if not isinstance(tokens, list):  # transformers 5 may name tokens here, as it names roles
                continue
            found |= {text: "other" for text in map(_text, tokens) if text}
        found |= {text: "role" for text in (_text(settings.get(role)) for role in ROLES) if text}
    return found


def _text(token: Any) -> str | None:
    """Return the text of a token, which is a string, or an object with its content."""
    text = token.get("content") if isinstance(token, dict) else token
    return text if isinstance(text, str) else None


def _written(folder: Path) -> Iterator[tuple[Path, Any, Any, Any]]:
    """Yield file, text and id of each token, and whether it is special; None if the file does not say that."""
    file = folder / "tokenizer.json"
    for token in listed_tokens(optional_object(file), file):
        yield file, token.get("content"), token.get("id"), token.get("special", False)
    file = folder / "tokenizer_config.json"
    tokens = optional_object(file).get("added_tokens_decoder") or {}
    if not isinstance(tokens, dict):
        raise InputError(f"{file}: added_tokens_decoder must be an object. Received: {shown(tokens)}")
    for id, token in tokens.items():
        special = token.get("special", False) if isinstance(token, dict) else None
        yield file, _text(token), int(id) if id.isdecimal() and len(id) <= len(str(LARGEST)) else id, special
    file = folder / "added_tokens.json"
    for text, id in optional_object(file).items():
        yield file, text, id, None

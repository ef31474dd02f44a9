"""The direction in which a corpus is read, and the languages that a file names."""

import dataclasses
import functools
import logging
import re
from collections.abc import Iterable
from pathlib import Path

from tf_transformer.config import DataConfig
from tf_transformer.errors import InputError

log = logging.getLogger(__name__)

Direction = tuple[str, str]
"""The languages of source and target."""
SUFFIX = re.compile(r"(.+):([^:/\\-]+)-([^:/\\-]+)")
"""A corpus with its direction after it, such as `corpus:en-de`."""
LONGEST_CODE = 3
"""The letters of a code alone; `fin` is one of Finnish, and its name in another language."""
NAMES_FILE = Path(__file__).with_name("language_names.txt")


def without_direction(corpus: str) -> tuple[str, Direction | None]:
    """Return the name of a corpus without the direction after it, and the direction, or None as for most corpora."""
    found = SUFFIX.fullmatch(corpus)
    if found is None or found[1] == "tfds" or Path(corpus).exists():
        return corpus, None
    return found[1], (found[2], found[3])


def directed(data: DataConfig) -> DataConfig:
    """Return the same data, with the direction after the name of the corpus, if there is one, as source and target."""
    if data.corpus is None:
        return data
    name, direction = without_direction(data.corpus)
    source, target = direction or (data.source, data.target)
    return dataclasses.replace(data, corpus=name, source=source, target=target)


def direction_of(data: DataConfig) -> Direction | None:
    """Return the direction in which a corpus is read, or None if the languages are not named."""
    data = directed(data)
    return (data.source, data.target) if data.source and data.target else None


def check_codes(data: DataConfig) -> None:
    """Raise InputError for a language that is named in place of its code, which programs ask a model for.

    Files in a folder may have any names.
    """
    named = [without_direction(name) for name in (data.corpus, *data.extra_corpora, data.validation_corpus) if name]
    if any(Path(name).is_dir() for name, _ in named):
        return
    for language in (data.source, data.target, *(one for _, direction in named for one in direction or ())):
        code = language_named(language or "")
        if code and language and normal_code(language) != code and len(language) > LONGEST_CODE:
            raise InputError(f"a language is given by its code: did you mean {code}? Received: {language}")


def languages_of(data: DataConfig) -> Direction:
    """Return the languages of source and target.

    Raises:
        InputError: the languages are not given, or are the same.
    """
    if not (data.source and data.target):
        raise InputError(
            f"--data {data.corpus} needs the languages: write {data.corpus}:en-de, or give --source and "
            "--target, such as en and de"
        )
    if data.source == data.target:
        raise InputError(f"--source and --target must differ. Received: {data.source} twice")
    return data.source, data.target


def is_language(wanted: str, code: str) -> bool:
    """Say whether a code that a file has, such as `en-US` or `de_DE.UTF-8`, is the wanted language, or a kind of it."""
    wanted, code = normal_code(wanted), normal_code(code)
    return code == wanted or code.startswith(f"{wanted}-")


def language_there(wanted: str, there: Iterable[str], name: str) -> str:
    """Return the code that a file has for a language: the same one, or the only one that is a kind of it.

    Args:
        wanted: the language.
        there: the codes that the file has, as `normal_code` returns them.
        name: the name of the file, for errors.

    Raises:
        InputError: it has none, or several kinds.
    """
    codes = sorted(there)
    if normal_code(wanted) in codes:
        return normal_code(wanted)
    found = [code for code in codes if is_language(wanted, code)]
    if len(found) == 1:
        return found[0]
    listed = ", ".join(found or codes) or "none"
    if found:
        raise InputError(f"{name} has several kinds of {wanted}: give one of {listed}. Received: {wanted}")
    raise InputError(f"{name} has no language {wanted!r}. It has: {listed}")


def is_turned(data: DataConfig, own: tuple[str | None, str | None], name: str) -> bool:
    """Say whether a file whose languages are `own`, as far as it names them, is to be read from target to source.

    Raises:
        InputError: it has other languages than those that are asked for.
    """
    wanted = (data.source, data.target)

    def fits(pair: tuple[str | None, str | None]) -> bool:
        return all(is_language(one, code) for one, code in zip(wanted, pair, strict=True) if one and code)

    if fits(own):
        return False
    if fits(own[::-1]):
        return True
    source, target = own
    shown = f"translated from {source} to {target}" if source and target else f"translated to {source or target}"
    raise InputError(f"{name} is {shown}. Received: --source {data.source} --target {data.target}")


def warn_of_other(name: str, code: str | None, wanted: str | None) -> None:
    """Warn of a file whose translations are in another language than those of the model, as far as both are known."""
    if code and wanted and not (is_language(wanted, code) or is_language(code, wanted)):
        log.warning("%s says that its translations are in %s, and they are made in %s", name, code, wanted)


def language_named(text: str) -> str | None:
    """Return the code of a language that is named by its code or its name, in any language; None for others."""
    name = text.partition("(")[0].strip().casefold()
    code = normal_code(name)
    return _codes_by_names().get(name) or (code if code.partition("-")[0] in names_of_languages() else None)


def normal_code(code: str) -> str:
    """Return a code in the form in which codes are compared: `de_DE.UTF-8` is `de-de`."""
    return code.strip().partition(".")[0].partition("@")[0].replace("_", "-").lower()


@functools.cache
def names_of_languages() -> dict[str, list[str]]:
    """Return the languages that headers may name, by code, with their names in each of them, in small letters."""
    lines = NAMES_FILE.read_text(encoding="utf-8").splitlines()
    return {code: names for code, *names in (line.split("\t") for line in lines if not line.startswith("#"))}


@functools.cache
def _codes_by_names() -> dict[str, str]:
    return {name: code for code, names in names_of_languages().items() for name in names}

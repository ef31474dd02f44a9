"""Files that `translate` translates as files, and the memory that goes before the model."""

import argparse
import codecs
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from tf_transformer.commands.common.text_files import write_whole
from tf_transformer.config import DataConfig
from tf_transformer.data.corpora import direction_of, open_corpus
from tf_transformer.data.corpora.drawn import Drawn
from tf_transformer.data.corpora.translated_file import ENDINGS, OWN_XLIFF, PACKED_TEXT, TranslatedFile, kind_of
from tf_transformer.errors import InputError
from tf_transformer.text.with_memory import Memory

NOT_OF_FILES = ("n_best", "scores", "line_numbers", "alignments", "mbr")
"""What writes lists instead of a text."""
OTHERS = {
    **dict.fromkeys((".xlsx", ".xlsm", ".xls", ".ods"), ".csv"),
    **dict.fromkeys((".doc", ".rtf", ".pdf", ".pages"), ".docx"),
    **dict.fromkeys((".ppt", ".key"), ".pptx"),
    ".epub": ".html",
    **dict.fromkeys((".ass", ".ssa", ".sub"), ".srt"),
    ".pot": ".po",
    **dict.fromkeys((".json", ".arb", ".yaml", ".yml", ".properties", ".strings"), ".po"),
}
"""Files that people have and that are neither text nor translated as files, and what they can be saved as."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what is for such files alone, and the memory."""
    parser.add_argument(
        "--overwrite-translations",
        action="store_true",
        help="also translate what already has a translation in an .xliff, .po or .csv (default: keep it)",
    )
    parser.add_argument(
        "--columns",
        metavar="LANG=COLUMN,LANG=COLUMN",
        help="the columns of a .csv that hold source and translation, such as en=2,de=3 (default: as its header says)",
    )
    parser.add_argument(
        "--memory",
        metavar="FILE",
        help="a translation memory: a .tmx or another file of pairs, such as memory.tmx or memory.tmx:en-de; sentences "
        "that it has are not translated anew but taken from it",
    )


def are_whole(options: argparse.Namespace) -> bool:
    """Say whether the inputs are translated as files.

    Raises:
        InputError: some are; or the options do not fit.
    """
    whole = [name for name in options.input if TranslatedFile.takes(name)]
    for name in options.input:
        plain = Path(name).with_suffix("") if name.lower().endswith((".gz", ".zst")) else Path(name)
        if other := OTHERS.get(plain.suffix.lower()):
            raise InputError(f"{name} cannot be translated as a file: save it as {other}")
        if plain != Path(name) and TranslatedFile.takes(plain.name):
            raise InputError(f"{name} is packed, and a {plain.suffix} is translated as a file: unpack it first")
        if name not in whole and _is_xml(Path(name)):
            raise InputError(
                f"{name} is XML of a kind that is not translated as a file: save it as .xliff or .po, or give its "
                "lines to standard input"
            )
    for name, output in zip(options.input, options.output, strict=False):
        _check_kind(name, output)
    if whole and not options.output and sys.stdout.isatty() and whole[0].lower().endswith(PACKED_TEXT):
        raise InputError(f"{whole[0]} is no plain text, and neither is its translation: give an --output")
    if options.memory is not None and any(_given(options, name) for name in NOT_OF_FILES):
        raise InputError(f"--memory is for the best translations: give it without {_listed()}")
    if not whole:
        for option in ("overwrite_translations", "columns"):
            if getattr(options, option):
                raise InputError(
                    f"--{option.replace('_', '-')} is for files such as {', '.join(ENDINGS)}: leave it out"
                )
        return False
    if len(whole) < len(options.input):
        raise InputError(f"{whole[0]} is translated as a file: give it without others. Received: {options.input}")
    if any(_given(options, name) for name in NOT_OF_FILES):
        raise InputError(f"{whole[0]} is translated as a file: give it without {_listed()}")
    if len(options.output or [None]) != len(whole):
        raise InputError(
            f"{whole[0]} is translated as a file: give each --input an --output. Received: {len(options.output)}"
        )
    own = next((name for name in whole if name.lower().endswith(OWN_XLIFF)), None)
    if own and options.overwrite_translations:
        raise InputError(
            f"--overwrite-translations would leave what is approved in {own} as approved: translate it without"
        )
    if options.columns and not any(name.lower().endswith(".csv") for name in whole):
        raise InputError(f"--columns is for a .csv. Received: --columns {options.columns} with {whole[0]}")
    return True


def _is_xml(path: Path) -> bool:
    """Say whether a file begins as XML does; a pipe is not read for it."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(8).removeprefix(codecs.BOM_UTF8).startswith(b"<?xml")


def _check_kind(name: str, output: str) -> None:
    """Raise InputError for an output that is called like another kind of file than it would be."""
    kind, ending = kind_of(name), Path(output).suffix.lower()
    if kind and ending not in kind and ending in (*ENDINGS, *OTHERS, ".txt", ".tsv"):
        raise InputError(
            f"--output {output} would be a {kind[0]}, as {name} is: call it {Path(output).with_suffix(kind[0])}"
        )
    if not kind and ending in (*PACKED_TEXT, *OTHERS):
        raise InputError(f"--output {output} would be lines of text: call it {Path(output).with_suffix('.txt')}")


def _given(options: argparse.Namespace, name: str) -> bool:
    value = getattr(options, name)
    return value > 1 if name == "n_best" else bool(value)


def _listed() -> str:
    return ", ".join(f"--{name.replace('_', '-')}" for name in NOT_OF_FILES)


def read_memory(name: str, data: DataConfig) -> Memory:
    """Return a memory of a file of pairs.

    Raises:
        InputError: it is no file of pairs, or cannot be read.
    """
    try:
        corpus = open_corpus(DataConfig(corpus=name, source=data.source, target=data.target, inline_tags=True))
    except InputError as error:
        raise InputError(str(error).replace("--data ", "--memory ", 1)) from None
    direction = direction_of(DataConfig(corpus=name))
    if direction and direction == (data.target, data.source):
        raise InputError(f"the model translates from {data.source} to {data.target}. Received: --memory {name}")
    if not isinstance(corpus, Drawn):
        raise InputError(f"--memory must be a file of pairs, such as a .tmx. Received: {name}")
    return Memory((row.source, row.target) for row in corpus.rows() if row.target and not row.why)


def translate_file(
    file: TranslatedFile,
    output: str | None,
    translate: Callable[[Iterable[str]], Iterator[str]],
    memory: Memory | None,
) -> int:
    """Translate a file, and return how many texts of it were translated.

    Args:
        file: the file.
        output: where its translation goes; None for standard output.
        translate: translates texts, one after the other.
        memory: the memory from which translations come, if there is one.
    """
    texts = file.texts
    content, lost = file.written(translate(texts))
    if output is None:
        sys.stdout.buffer.write(content)
    else:
        write_whole(Path(output), content)
    from_memory = _from_memory(texts, memory) if memory else ""
    left = f"; {lost:,} of them stay as they were, as the model wrote nothing or lost their tags" if lost else ""
    print(f"{file.path}: {len(texts):,} texts translated{from_memory}{left}", file=sys.stderr)
    return len(texts)


def _from_memory(texts: Iterable[str], memory: Memory) -> str:
    """Return how many texts a memory has, and how many it has with other tags."""
    found = sum(memory.get(text) is not None for text in texts)
    others = sum(map(memory.has_other_tags, texts))
    is_other = f"; it has {others:,} more with other tags" if others else ""
    return f", {found:,} of them from the memory{is_other}"

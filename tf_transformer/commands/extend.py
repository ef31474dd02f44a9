"""`tf-transformer extend`."""

import argparse
import dataclasses
import itertools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from tf_transformer.commands.common.checks import check_place
from tf_transformer.commands.common.options import DATA_HELP, add_settings, positive, settings_given
from tf_transformer.commands.common.quiet_tensorflow import import_tensorflow
from tf_transformer.config import DataConfig
from tf_transformer.data.corpora import open_corpus
from tf_transformer.errors import InputError
from tf_transformer.storage.lines import read_lines

if TYPE_CHECKING:
    from tf_transformer.runs.directory import RunDirectory

SUMMARY = "Add languages or pieces to a model, which further training can teach it."
EXAMPLE = "tf-transformer extend --run-dir runs/nllb --add-language tyv_Cyrl=kaz_Cyrl --output runs/nllb_tyv"
MOST_PAIRS = 1_000_000
"""The pairs that pieces are learned from: more would give the same pieces."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what the command takes."""
    parser.add_argument("--run-dir", required=True, metavar="DIR", help="a trained or imported run")
    parser.add_argument(
        "--add-language",
        action="append",
        default=[],
        metavar="NEW=OLD",
        help="a new language, and the one of the model that it starts as; may be repeated",
    )
    parser.add_argument(
        "--add-pieces",
        metavar="N|FILE",
        help="learn N new pieces from the text of --data, which is then cut into fewer; N for each side, if each has a "
        "tokenizer of its own. Or a file of words, one a line: each becomes one piece, where a space is before it",
    )
    parser.add_argument("--data", metavar="DATA", help=f"{DATA_HELP}; its training text is read")
    add_settings(parser, "data", "source", "target", "columns")
    parser.add_argument("--output", required=True, metavar="DIR", help="a new folder")


def run(options: argparse.Namespace) -> None:
    """Write a run with more languages or pieces."""
    languages = dict(map(_pair, options.add_language))
    if not languages and not options.add_pieces:
        raise InputError("nothing to add: give --add-language or --add-pieces")
    number = _number(options.add_pieces)
    if (options.data is None) != (number is None):
        raise InputError("--add-pieces N learns from text, and --data names it: give both or none")
    if options.data is None and (given := settings_given(options)):
        raise InputError(f"{min(given)} is for the text of --data: give both or none")
    check_place("--output", options.output)
    words = _words(Path(options.add_pieces)) if options.add_pieces and number is None else []
    from tf_transformer.runs.directory import RunDirectory
    from tf_transformer.runs.extension import check_extension, new_pieces, pieces_for

    # Refused before TensorFlow is imported.
    run = RunDirectory(options.run_dir)
    check_extension(run, options.output, languages)
    pieces = pieces_for(run, words) if words else new_pieces(run, lambda: _pairs_of(_data(run, options)), number or 0)
    import_tensorflow()
    from tf_transformer.runs.extending import extend

    extended = extend(run.path, options.output, languages=languages, pieces=pieces)
    print(f"extended: {extended.path}")


def _number(given: str | None) -> int | None:
    """Return the number that --add-pieces gives, if it does not name a file."""
    if given is None or not re.fullmatch(r"[+-]?\d+", given):
        return None
    try:
        return positive(given)
    except argparse.ArgumentTypeError as error:
        raise InputError(f"--add-pieces: {error}") from None


def _words(path: Path) -> list[str]:
    """Return the words of a file, each once."""
    if not path.is_file():
        raise InputError(f"--add-pieces takes a number, or a file of words, one a line. Received: {str(path)!r}")
    words = list(dict.fromkeys(word for line in read_lines(path) if (word := line.strip())))
    if not words:
        raise InputError(f"{path} has no words: give one a line")
    return words


def _data(run: "RunDirectory", options: argparse.Namespace) -> DataConfig:
    """Return the text that the options name; what they leave out is as the run was trained."""
    given = {key: value for layer in settings_given(options).values() for key, value in layer["data"].items()}
    alone = {"corpus": options.data, "extra_corpora": (), "validation_corpus": None, "weights": (), "prepared": None}
    data = dataclasses.replace(run.config.data, **alone | given)
    if open_corpus(data).needs_tensorflow:
        import_tensorflow()
    return data


def _pairs_of(data: DataConfig) -> Iterator[tuple[str, str]]:
    """Yield the pairs that pieces are learned from."""
    texts = (chunk.read()[0] for chunk in open_corpus(data).chunks(data.train_split))
    return itertools.islice((pair for text in texts for pair in zip(*text, strict=True)), MOST_PAIRS)


def _pair(text: str) -> tuple[str, str]:
    new, _, old = text.partition("=")
    if not (new and old):
        raise InputError(f"--add-language takes NEW=OLD, such as tyv_Cyrl=kaz_Cyrl. Received: {text!r}")
    return new, old

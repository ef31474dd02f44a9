"""`tf-transformer translate`."""

import argparse
import contextlib
import functools
import itertools
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, NamedTuple

from tf_transformer.commands.common.chosen_model import add_model, add_search, chosen_model
from tf_transformer.commands.common.options import add_batch_tokens
from tf_transformer.commands.common.text_files import PART, check_input, check_output, written_line_by_line
from tf_transformer.commands.common.whole_files import add_options as add_whole_files
from tf_transformer.commands.common.whole_files import are_whole, read_memory, translate_file
from tf_transformer.commands.common.written_lines import Written, terms_by, written_by
from tf_transformer.commands.common.written_lines import add_options as add_kinds
from tf_transformer.commands.common.written_lines import check as check_kinds
from tf_transformer.config import DataConfig
from tf_transformer.data.corpora import without_direction
from tf_transformer.data.corpora.translated_file import TranslatedFile
from tf_transformer.errors import InputError
from tf_transformer.progress import progress_bar, waiting_for
from tf_transformer.runs.descriptions import is_litert
from tf_transformer.runs.runtimes import faster_than
from tf_transformer.storage.lines import Arriving, decoded, opened
from tf_transformer.text.batching import WINDOW, translate_lines
from tf_transformer.text.documents import (
    Cutter,
    Line,
    Segment,
    codes_by,
    fits_by,
    parts_of,
    segmenter,
    translated_lines,
)
from tf_transformer.text.markup import markup_spans, stripped
from tf_transformer.text.with_memory import Memory

if TYPE_CHECKING:
    from tf_transformer.text.translator import TextTranslator

SUMMARY = "Translate text line by line, from standard input or from files."
EXAMPLE = "tf-transformer translate --model runs/toy --input source.txt --output translation.txt"
CutLine = Callable[[str], Line]
"""Cuts a line into sentences."""


class Input(NamedTuple):
    """Lines to translate."""

    name: str
    lines: Iterable[str]
    length: int | None
    """how many, if that is known"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what the command takes."""
    parser.add_argument(
        "--input",
        metavar="FILE",
        action="append",
        default=[],
        help="text to translate, one sentence in each line, also as .gz or .zst; or a file with a structure, which is "
        "kept: .docx, .pptx, .odt, .odp, .md, .html, .xliff, .po, .srt, .vtt or .csv; may be repeated (default: "
        "standard input)",
    )
    parser.add_argument(
        "--output",
        metavar="FILE",
        action="append",
        default=[],
        help="where the translations go: one file for all inputs, or one for each (default: standard output)",
    )
    parser.add_argument(
        "--unbuffered",
        action="store_true",
        help="answer each line of standard input at once, for a program that waits for it; what has arrived by then is "
        "translated together (default: 2,048 lines are read first)",
    )
    parser.add_argument("files", metavar="FILE", nargs="*", help=argparse.SUPPRESS)
    add_kinds(parser)
    add_whole_files(parser)
    add_model(parser)
    add_batch_tokens(parser)
    add_search(parser)


def run(options: argparse.Namespace) -> None:
    """Translate lines, as far ahead as a window of them; what is typed at a terminal, line by line."""
    is_whole = are_whole(options)
    options.keep_markup |= is_whole
    counts = _check_files(options, is_whole)
    chosen = chosen_model(options)
    data = DataConfig(source=chosen.source_language, target=chosen.target_language, columns=options.columns)
    files = [TranslatedFile(Path(name), options.overwrite_translations, data) for name in options.input if is_whole]
    memory = read_memory(options.memory, data) if options.memory is not None else None
    count = check_kinds(options, chosen.decoding)
    terms = terms_by(options)
    if terms and is_litert(chosen.described.path):
        raise InputError(
            f"{chosen.described.path} is an export for LiteRT, which takes no --constraints: give a run or a SavedModel"
        )
    segment = segmenter(chosen.source_language) if options.document else None
    is_typed = not options.input and sys.stdin.isatty()
    at_once = is_typed or options.unbuffered
    if is_typed:
        print("Type a sentence and press Enter; Ctrl-D ends. --input FILE translates a file.", file=sys.stderr)
    if faster := faster_than(chosen.described.path):
        print(faster, file=sys.stderr)
    model = chosen.open(options.batch_tokens)
    written = written_by(model, options, count, terms=terms, language=chosen.target_language, memory=memory)
    cutter = _cutter(model, segment, options.keep_markup, memory) if segment else None
    outputs = options.output or [None]
    of_each = 1 if len(outputs) > 1 else max(len(options.input), 1)
    arriving = Arriving(sys.stdin.buffer) if options.unbuffered else None
    inputs = _inputs(options.input, counts, arriving or sys.stdin.buffer, keep_ends=options.document)
    unit = "lines" if options.document else "sentences"
    start, done = time.perf_counter(), 0
    if is_whole:
        unit = "texts"
        of_texts = functools.partial(_texts, model, options, cutter, written)
        for whole, place in zip(files, outputs, strict=True):
            done += translate_file(whole, place, of_texts, memory)
    for output in () if is_whole else outputs:
        with written_line_by_line(Path(output)) if output else contextlib.nullcontext(sys.stdout.buffer) as file:
            for text in itertools.islice(inputs, of_each):
                if len(options.input) > 1:
                    print(f"translating {text.name}", file=sys.stderr)
                translate = functools.partial(
                    translate_lines,
                    written,
                    count=model.count_tokens,
                    batch_tokens=options.batch_tokens,
                    window=1 if is_typed else WINDOW,
                    has_more=arriving.has_more if arriving else lambda: True,
                )
                chunks = _chunks(translate, text.lines, cutter, options.line_numbers, at_once)
                done += _write(chunks, text.length, unit, file, at_once)
    sys.stdout.buffer.flush()
    if not is_typed:
        seconds = time.perf_counter() - start
        counted = unit.removesuffix("s") if done == 1 else unit
        print(
            f"{done:,} {counted} in {seconds:.1f} s, {done / seconds:,.1f} a second, by {chosen.runtime}",
            file=sys.stderr,
        )


def _cutter(
    model: "TextTranslator", segment: Segment, keeps_markup: bool, memory: Memory | None
) -> Callable[[], CutLine]:
    """Return what gives for each text what cuts its lines, but for those that a memory knows as they are."""
    kept = markup_spans if keeps_markup else None
    # The model does not see what is kept.
    seen = (lambda texts: [stripped(text).text for text in texts]) if keeps_markup else list
    fits = fits_by(lambda texts: model.count_tokens(seen(texts)), model.most_source)
    is_code = codes_by(model.count_tokens)
    if memory is None:
        return lambda: Cutter(segment, fits, is_code, kept)
    is_known = lambda text: memory.get(text) is not None  # noqa: E731

    def cutter() -> CutLine:
        cut = Cutter(segment, lambda text: is_known(text) or fits(text), is_code, kept)
        return lambda line: parts_of(line, lambda known: [known], is_known) if is_known(line) else cut(line)

    return cutter


def _texts(
    model: "TextTranslator",
    options: argparse.Namespace,
    cutter: Callable[[], CutLine] | None,
    written: Written,
    texts: Iterable[str],
) -> Iterator[str]:
    """Yield the translations of the texts of a file."""
    translate = functools.partial(translate_lines, written, count=model.count_tokens, batch_tokens=options.batch_tokens)
    lines = (f"{text}\n" for text in texts) if cutter else texts
    for chunk in _chunks(translate, lines, cutter, has_numbers=False, at_once=False):
        yield chunk.removesuffix("\n")


def _chunks(
    translate: Callable[[Iterable[str]], Iterator[list[str]]],
    lines: Iterable[str],
    cutter: Callable[[], CutLine] | None,
    has_numbers: bool,
    at_once: bool,
) -> Iterator[str]:
    """Yield what is written of each line, with its line feeds.

    Args:
        translate: gives for each line what is written of it.
        lines: the lines.
        cutter: gives what cuts lines into sentences, which are translated; None translates lines as they are.
        has_numbers: whether the number of its line stands before each translation.
        at_once: whether a line waits for no other one.
    """
    if cutter:
        cut = cutter()
        of_sentences = lambda sentences: (text for [text] in translate(sentences))  # noqa: E731
        for some in ([line] for line in lines) if at_once else [lines]:
            yield from translated_lines(some, of_sentences, cut)
        return
    for number, texts in enumerate(translate(lines), 1):
        before = f"{number}\t" if has_numbers else ""
        yield "".join(f"{before}{text}\n" for text in texts)


def _write(chunks: Iterator[str], length: int | None, unit: str, file: IO[bytes], at_once: bool) -> int:
    """Write what each line became, and return how many lines there were."""
    is_shown = not (at_once or (file is sys.stdout.buffer and sys.stdout.isatty()))  # a bar would cut through lines
    done = 0
    with progress_bar("translating", unit, length, leave=False, disable=not is_shown) as bar:
        for chunk in _waited_for(chunks, is_shown):
            file.write(chunk.encode())
            if at_once:
                file.flush()
            bar.update()
            done += 1
    return done


def _waited_for(found: Iterator[str], is_shown: bool) -> Iterator[str]:
    """Pass translations on, and show the time until the first of them: the search is traced for it."""
    with waiting_for("translating the first sentences") if is_shown else contextlib.nullcontext():
        first = next(found, None)
    if first is not None:
        yield first
        yield from found


def _check_files(options: argparse.Namespace, is_whole: bool) -> list[int | None]:
    """Return the lines of each input, if they are known; raise InputError for what the options show to be wrong."""
    if options.files:
        raise InputError(f"give files by name: --input {options.files[0]}. Received: {' '.join(options.files)}")
    if options.unbuffered and options.input:
        raise InputError(f"--unbuffered is for standard input. Received: --input {options.input[0]}")
    if len(options.output) not in (0, 1, len(options.input)):
        raise InputError(
            f"give one --output for all inputs, or one for each. Received: {len(options.input)} inputs, "
            f"{len(options.output)} outputs"
        )
    read = [*options.input, options.constraints, without_direction(options.memory or "")[0]]
    for output in options.output:
        for written in (output, output + PART):
            check_output("--output", Path(written), read)
        if [*map(os.path.realpath, options.output)].count(os.path.realpath(output)) > 1:
            raise InputError(f"--output {output} is named twice: give another file")
    # All of them are read before the model is loaded: a bad line is named now, and not after hours.
    return [] if is_whole else [check_input("--input", Path(name)) for name in options.input]


def _inputs(
    names: list[str], counts: list[int | None], standard_input: Iterable[bytes], keep_ends: bool
) -> Iterator[Input]:
    """Open the inputs, one after the other; each is read before the next is opened."""
    if not names:
        yield Input("standard input", decoded(standard_input, "standard input", keep_ends=keep_ends), None)
    for name, count in zip(names, counts, strict=True):
        with opened(Path(name)) as file:
            yield Input(name, decoded(file, os.fspath(name), keep_ends=keep_ends), count)

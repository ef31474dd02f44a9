"""`tf-transformer translate`."""

import argparse
import contextlib
import itertools
import math
import os
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, NamedTuple

from tf_transformer.alignment import UNITS, pharaoh
from tf_transformer.commands.chosen_model import add_model, add_search, chosen_model
from tf_transformer.commands.options import add_batch_tokens, positive
from tf_transformer.commands.text_files import check_input, check_output, written_line_by_line
from tf_transformer.errors import InputError
from tf_transformer.in_batches import translate_lines
from tf_transformer.lines import decoded, opened
from tf_transformer.minimum_bayes_risk import METRICS, most_like_all
from tf_transformer.progress import progress_bar, waiting_for

if TYPE_CHECKING:
    from tf_transformer.translation.results import TextTranslator

DRAWS = 16
"""How many draws `--mbr` chooses from by default."""
SUMMARY = "Translate text line by line, from standard input or from files."
EXAMPLE = "tf-transformer translate --model runs/toy --input source.txt --output translation.txt"


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
        help="text to translate, a sentence a line, also as .gz or .zst; may be repeated (default: standard input)",
    )
    parser.add_argument(
        "--output",
        metavar="FILE",
        action="append",
        default=[],
        help="where the translations go: one file for all inputs, or one for each (default: standard output)",
    )
    parser.add_argument("files", metavar="FILE", nargs="*", help=argparse.SUPPRESS)
    parser.add_argument("--n-best", type=positive, default=1, metavar="N", help="translations a line (default: 1)")
    parser.add_argument("--scores", action="store_true", help="before each translation its score and a tab")
    parser.add_argument(
        "--line-numbers", action="store_true", help="before each translation the number of its line and a tab"
    )
    parser.add_argument(
        "--alignments",
        nargs="?",
        const="words",
        choices=UNITS,
        help="after each translation ' ||| ' and which source word each of its words attends to most, such as 0-0 1-2; "
        "or by tokens (default: none; words, if nothing follows)",
    )
    parser.add_argument(
        "--mbr",
        choices=tuple(METRICS),
        help="write the candidate that is most like all candidates (minimum Bayes risk) by this metric of sacreBLEU, "
        "instead of the most probable one (default: none)",
    )
    parser.add_argument(
        "--samples",
        type=positive,
        metavar="N",
        help="candidates for --mbr: the N best, or N draws with --sampling-temperature (default: the beam size, or 16)",
    )
    add_model(parser)
    add_batch_tokens(parser)
    add_search(parser)


def run(options: argparse.Namespace) -> None:
    """Translate lines, as far ahead as a window of them; what is typed at a terminal, line by line."""
    counts = _check_files(options)
    chosen = chosen_model(options)
    chosen.decoding.check_n_best(options.n_best)
    if options.samples and not options.mbr:
        raise InputError(f"--samples is for --mbr: give both. Received: --samples {options.samples}")
    if options.mbr:
        if options.scores or options.alignments or options.n_best > 1:
            raise InputError("--mbr writes one translation: give it without --scores, --n-best and --alignments")
        options.samples = options.samples or (DRAWS if chosen.decoding.temperature else chosen.decoding.beam_size)
        chosen.decoding.check_n_best(options.samples)
    if options.alignments and (options.scores or options.n_best > 1):
        raise InputError("--alignments is for the best translations alone: give it without --scores and --n-best")
    is_typed = not options.input and sys.stdin.isatty()
    if is_typed:
        print("Type a sentence and press Enter; Ctrl-D ends. --input FILE translates a file.", file=sys.stderr)
    model = chosen.open()
    model.check_n_best(options.samples or options.n_best)
    outputs = options.output or [None]
    of_each = 1 if len(outputs) > 1 else max(len(options.input), 1)
    inputs = _inputs(options.input, counts)
    start, done = time.perf_counter(), 0
    for output in outputs:
        with written_line_by_line(Path(output)) if output else contextlib.nullcontext(sys.stdout.buffer) as file:
            for text in itertools.islice(inputs, of_each):
                if len(options.input) > 1:
                    print(f"translating {text.name}", file=sys.stderr)
                done += _translate(model, text, file, options, is_typed)
    sys.stdout.buffer.flush()
    if not is_typed:
        seconds = time.perf_counter() - start
        sentences = "sentence" if done == 1 else "sentences"
        print(f"{done:,} {sentences} in {seconds:.1f} s, {done / seconds:,.1f} a second", file=sys.stderr)


def _translate(
    model: "TextTranslator", text: Input, file: IO[bytes], options: argparse.Namespace, is_typed: bool
) -> int:
    """Write the translations of one input, and return how many lines it had."""
    metric = METRICS[options.mbr]() if options.mbr else None

    def translated(lines: list[str], numbers: Sequence[int]) -> list[list[tuple[str, float]]]:
        if metric:
            candidates = model.n_best_strings(lines, options.samples, numbers)
            found = [[text for text, score in row if score > -math.inf] for row in candidates]
            return [[(most_like_all(texts, metric), math.nan)] for texts in found]
        if options.alignments:
            aligned = model.aligned_strings(lines, numbers)
            return [[(f"{one.translation} ||| {pharaoh(one.links(options.alignments))}", math.nan)] for one in aligned]
        if options.scores or options.n_best > 1:
            return model.n_best_strings(lines, options.n_best, numbers)
        return [[(translation, math.nan)] for translation in model.translate_strings(lines, numbers)]

    window = {"window": 1} if is_typed else {}
    found = translate_lines(
        translated, text.lines, count=model.count_tokens, batch_tokens=options.batch_tokens, **window
    )
    is_shown = not (is_typed or (file is sys.stdout.buffer and sys.stdout.isatty()))  # a bar would cut through lines
    number = 0
    with progress_bar("translating", "sentences", text.length, leave=False, disable=not is_shown) as bar:
        for number, translations in enumerate(_waited_for(found, is_shown), 1):
            for translation, score in translations:
                before = f"{number}\t" if options.line_numbers else ""
                before += f"{score:.4f}\t" if options.scores else ""
                file.write(f"{before}{translation}\n".encode())
            if is_typed:
                file.flush()
            bar.update()
    return number


def _waited_for(found: Iterator[list[tuple[str, float]]], is_shown: bool) -> Iterator[list[tuple[str, float]]]:
    """Pass translations on, and show the time until the first of them: the search is traced for it."""
    with waiting_for("translating the first sentences") if is_shown else contextlib.nullcontext():
        first = next(found, None)
    if first is not None:
        yield first
        yield from found


def _check_files(options: argparse.Namespace) -> list[int | None]:
    """Return the lines of each input, if they are known; raise InputError for what the options show to be wrong."""
    if options.files:
        raise InputError(f"give files by name: --input {options.files[0]}. Received: {' '.join(options.files)}")
    if len(options.output) not in (0, 1, len(options.input)):
        raise InputError(
            f"give one --output for all inputs, or one for each. Received: {len(options.input)} inputs, "
            f"{len(options.output)} outputs"
        )
    for output in options.output:
        check_output("--output", Path(output))
        if [*map(os.path.realpath, (*options.input, *options.output))].count(os.path.realpath(output)) > 1:
            raise InputError(f"--output {output} is named twice: give another file")
    # All of them are read before the model is loaded: a bad line is named now, and not after hours.
    return [check_input("--input", Path(name)) for name in options.input]


def _inputs(names: list[str], counts: list[int | None]) -> Iterator[Input]:
    """Open the inputs, one after the other; each is read before the next is opened."""
    if not names:
        yield Input("standard input", decoded(sys.stdin.buffer, "standard input"), None)
    for name, count in zip(names, counts, strict=True):
        with opened(Path(name)) as file:
            yield Input(name, decoded(file, os.fspath(name)), count)

"""What `translate` writes of each line: the best translation, several, or one with more beside it."""

import argparse
import functools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tf_transformer.commands.common.options import positive
from tf_transformer.config import DecodingConfig
from tf_transformer.errors import InputError
from tf_transformer.evaluation.minimum_bayes_risk import METRICS, Metric, most_like_all
from tf_transformer.storage.lines import read_lines
from tf_transformer.text.alignment import UNITS, pharaoh
from tf_transformer.text.glossary import CASES, Glossary, TermsOf, terms_of_line
from tf_transformer.text.translator import LineTranslator
from tf_transformer.text.with_markup import WithMarkup
from tf_transformer.text.with_memory import Memory, WithMemory
from tf_transformer.text.with_terms import WithTerms

if TYPE_CHECKING:
    from tf_transformer.text.translator import TextTranslator

Written = Callable[[list[str], Sequence[int]], list[list[str]]]
"""Returns for each sentence the lines to write, all without a number; the second argument is the numbers."""
IN_LINES = "\t"
"""What stands for the name of a glossary where terms follow the text of each line, with tabs between."""
DRAWS = 16
"""How many draws `--mbr` chooses from by default."""
LISTS = "--n-best, --scores, --alignments and --mbr"
PLAIN = "--n-best, --scores, --line-numbers and --alignments"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what chooses between the kinds."""
    parser.add_argument(
        "--n-best",
        type=positive,
        default=1,
        metavar="N",
        help="write the N best translations of each line, one below the other (default: 1)",
    )
    parser.add_argument("--scores", action="store_true", help="write the score and a tab before each translation")
    parser.add_argument(
        "--line-numbers", action="store_true", help="write the number of its line and a tab before each translation"
    )
    parser.add_argument(
        "--alignments",
        nargs="?",
        const="words",
        choices=UNITS,
        help="write ' ||| ' after each translation, and which source word each of its words attends to most, such as "
        "0-0 1-2; by words unless tokens follows",
    )
    parser.add_argument(
        "--constraints",
        nargs="?",
        const=IN_LINES,
        metavar="FILE",
        help="terms that a translation must contain: FILE has a source term, a tab and its translation on each line; "
        "without FILE, the terms follow the text in each line, after tabs",
    )
    parser.add_argument(
        "--glossary-case",
        choices=CASES,
        help="where a source term of --constraints FILE is found: exact: as it is written; ignore: in any case; smart: "
        "in any case if it is in lower case, and otherwise as it is written (default: smart)",
    )
    parser.add_argument(
        "--keep-markup",
        action="store_true",
        help="keep tags, placeholders such as {name} and addresses as they are; attention says where they go",
    )
    parser.add_argument(
        "--document",
        action="store_true",
        help="translate running text: lines are cut into sentences, and white space and empty lines stay as they are "
        "(needs the extra documents)",
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


def check(options: argparse.Namespace, decoding: DecodingConfig) -> int:
    """Return how many translations of a sentence must be found.

    Raises:
        InputError: options that exclude each other; more translations than the search finds.
    """
    several = options.scores or options.n_best > 1
    if options.samples and not options.mbr:
        raise InputError(f"--samples is for --mbr: give both. Received: --samples {options.samples}")
    if options.mbr and (several or options.alignments):
        raise InputError("--mbr writes one translation: give it without --scores, --n-best and --alignments")
    if options.alignments and several:
        raise InputError("--alignments is for the best translations alone: give it without --scores and --n-best")
    if options.constraints is not None:
        if not options.constraints:
            raise InputError("--constraints was given an empty name: name a file, or leave the name out")
        decoding.check_constraints()
    if options.glossary_case and options.constraints in (None, IN_LINES):
        raise InputError(
            "--glossary-case is for a glossary: give it with --constraints FILE. Received: --glossary-case "
            f"{options.glossary_case}"
        )
    for option in ("document", "keep_markup"):
        if options.constraints == IN_LINES and getattr(options, option):
            name = f"--{option.replace('_', '-')}"
            raise InputError(f"{name} takes no terms behind its lines: give them in a file, --constraints FILE")
    if options.keep_markup and (several or options.alignments or options.mbr):
        raise InputError(f"--keep-markup is for the best translations: give it without {LISTS}")
    if options.document and (several or options.alignments or options.line_numbers):
        raise InputError(f"--document writes text, not lists: give it without {PLAIN}")
    count = options.n_best
    if options.mbr:
        count = options.samples or (DRAWS if decoding.temperature else decoding.beam_size)
    decoding.check_n_best(count)
    return count


def terms_by(options: argparse.Namespace) -> TermsOf | None:
    """Return what finds the terms of a line; None without `--constraints`.

    Raises:
        InputError: the file of terms is missing or wrong.
    """
    if options.constraints is None:
        return None
    if options.constraints == IN_LINES:
        return terms_of_line
    return Glossary.of_lines(
        read_lines(Path(options.constraints)), options.constraints, options.glossary_case or "smart"
    )


def written_by(
    model: "TextTranslator",
    options: argparse.Namespace,
    count: int,
    *,
    terms: TermsOf | None = None,
    language: str | None = None,
    memory: Memory | None = None,
) -> Written:
    """Return the kind that the options choose.

    Args:
        model: what translates.
        options: as parsed.
        count: what `check` returned.
        terms: what `terms_by` returned.
        language: the language of the translations, as far as it is known.
        memory: translations that go before those of the model.
    """
    of_lines: LineTranslator = WithTerms(model, terms) if terms else model
    if options.mbr:
        return functools.partial(_least_risk, of_lines, METRICS[options.mbr](language), count)
    if options.alignments:
        return functools.partial(_aligned, of_lines, options.alignments)
    if options.scores or count > 1:
        return functools.partial(_n_best, of_lines, count, options.scores)
    translate = WithMarkup(of_lines).translate_strings if options.keep_markup else of_lines.translate_strings
    if memory:
        translate = WithMemory(translate, memory).translate_strings
    return lambda lines, numbers: [[translation] for translation in translate(lines, numbers)]


def _least_risk(
    model: LineTranslator, metric: Metric, count: int, lines: list[str], numbers: Sequence[int]
) -> list[list[str]]:
    rows = model.n_best_strings(lines, count, numbers)
    return [[most_like_all([text for text, score in row if score > -float("inf")], metric)] for row in rows]


def _aligned(model: LineTranslator, unit: str, lines: list[str], numbers: Sequence[int]) -> list[list[str]]:
    return [[f"{one.translation} ||| {pharaoh(one.links(unit))}"] for one in model.aligned_strings(lines, numbers)]


def _n_best(
    model: LineTranslator, count: int, has_scores: bool, lines: list[str], numbers: Sequence[int]
) -> list[list[str]]:
    rows = model.n_best_strings(lines, count, numbers)
    return [[f"{score:.4f}\t{text}" if has_scores else text for text, score in row] for row in rows]

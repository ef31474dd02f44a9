"""`tf-transformer translate`."""

import argparse
import math
import sys
from collections.abc import Sequence

from tf_transformer.commands.chosen_model import add_model, add_search, chosen_model
from tf_transformer.commands.options import add_batch_tokens, positive
from tf_transformer.commands.progress import counted
from tf_transformer.lines import decoded

SUMMARY = "Translate standard input, line by line, to standard output."


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what the command takes."""
    parser.add_argument("--n-best", type=positive, default=1, metavar="N", help="translations a line (default: 1)")
    parser.add_argument("--scores", action="store_true", help="before each translation its score and a tab")
    add_model(parser)
    add_batch_tokens(parser)
    add_search(parser)


def run(options: argparse.Namespace) -> None:
    """Translate standard input to standard output, as far ahead as a window of lines."""
    chosen = chosen_model(options)
    chosen.decoding.check_n_best(options.n_best)
    model = chosen.open()
    from tf_transformer.in_batches import translate_lines

    def translated(lines: list[str], numbers: Sequence[int]) -> list[list[tuple[str, float]]]:
        if options.scores or options.n_best > 1:
            return model.n_best_strings(lines, options.n_best, numbers)
        return [[(text, math.nan)] for text in model.translate_strings(lines, numbers)]

    lines = decoded(sys.stdin.buffer, "standard input")
    found = translate_lines(translated, lines, count=model.count_tokens, batch_tokens=options.batch_tokens)
    for translations in counted(found):
        for translation, score in translations:
            shown = f"{score:.4f}\t{translation}" if options.scores else translation
            sys.stdout.buffer.write(shown.encode() + b"\n")
    sys.stdout.buffer.flush()

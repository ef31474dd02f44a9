"""`tf-transformer score`."""

import argparse
import itertools
import math
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from tf_transformer.commands.common.chosen_model import add_model, add_set, chosen_model
from tf_transformer.commands.common.options import add_batch_tokens
from tf_transformer.commands.common.text_files import check_input
from tf_transformer.errors import InputError
from tf_transformer.progress import progress_bar
from tf_transformer.storage.lines import decoded, opened
from tf_transformer.text.batching import translate_lines

SUMMARY = "Print how probable given translations are: log-probability and perplexity of each line."
EXAMPLE = "tf-transformer score --model runs/toy source.txt translation.txt"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what the command takes."""
    add_model(parser)
    add_batch_tokens(parser)
    add_set(parser)
    parser.add_argument("source", metavar="SOURCE", help="file of sentences, also as .gz or .zst")
    parser.add_argument("target", metavar="TARGET", help="file of their translations, line for line, packed or not")
    parser.add_argument("--tokens", action="store_true", help="also print the log-probability of each token")


def run(options: argparse.Namespace) -> None:
    """Print how probable given translations are."""
    files = source, target = Path(options.source), Path(options.target)
    # All of both is read before the model is loaded: a bad line is named now, and not after hours.
    counts = check_input("SOURCE", source), check_input("TARGET", target)
    if None not in counts and counts[0] != counts[1]:
        raise InputError(f"{source} and {target} must go line by line. Received: {counts[0]} and {counts[1]} lines")
    model = chosen_model(options).open(options.batch_tokens)

    def count(pairs: list[tuple[str, str]]) -> list[int]:
        return list(map(max, *(model.count_tokens(list(side)) for side in zip(*pairs, strict=True))))

    scored = translate_lines(model.score_strings, _pairs_of(*files), count=count, batch_tokens=options.batch_tokens)
    total, tokens = 0.0, 0
    for of_tokens in progress_bar("scoring", "pairs", iterable=scored, leave=False, disable=sys.stdout.isatty()):
        mean = sum(of_tokens) / len(of_tokens)
        numbers = [sum(of_tokens), math.exp(-mean), *(of_tokens if options.tokens else ())]
        print("\t".join(f"{number:.4f}" for number in numbers))
        total, tokens = total + sum(of_tokens), tokens + len(of_tokens)
    if tokens:
        print(f"{tokens} tokens, perplexity {math.exp(-total / tokens):.4f}", file=sys.stderr)


def _pairs_of(source: Path, target: Path) -> Iterator[tuple[str, str]]:
    """Read two files side by side, a line at a time."""
    with opened(source) as sources, opened(target) as targets:
        sides = (decoded(lines, os.fspath(file)) for file, lines in ((source, sources), (target, targets)))
        for number, (one, other) in enumerate(itertools.zip_longest(*sides), 1):
            if one is None or other is None:
                longer, shorter = (target, source) if one is None else (source, target)
                raise InputError(f"{longer} and {shorter} must go line by line, but only {longer} has a line {number}")
            yield one, other

"""The commands that put text through a model: translate, score, evaluate."""

import argparse
import dataclasses
import itertools
import json
import math
import os
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from tf_transformer.commands.models import ModelChoice, chosen_model
from tf_transformer.commands.places import check_place
from tf_transformer.data import Pairs, read
from tf_transformer.errors import InputError
from tf_transformer.quiet import import_tensorflow
from tf_transformer.whole import written_whole

if TYPE_CHECKING:
    from tf_transformer.export import ExportedTranslator
    from tf_transformer.translator import Translator

Line = TypeVar("Line")


def translate(options: argparse.Namespace) -> None:
    """Translate standard input to standard output, as far ahead as a window of lines."""
    chosen = chosen_model(options)
    chosen.decoding.check_n_best(options.n_best)
    model = chosen.open()
    from tf_transformer.corpus import translate_lines

    def translated(lines: list[str], numbers: Sequence[int]) -> list[list[tuple[str, float]]]:
        if options.scores or options.n_best > 1:
            return model.n_best_strings(lines, options.n_best, numbers)
        return [[(text, math.nan)] for text in model.translate_strings(lines, numbers)]

    lines = _decoded(sys.stdin.buffer)
    found = translate_lines(translated, lines, count=model.count_tokens, batch_tokens=options.batch_tokens)
    for translations in _counted(found):
        for translation, score in translations:
            shown = f"{score:.4f}\t{translation}" if options.scores else translation
            sys.stdout.buffer.write(shown.encode() + b"\n")
    sys.stdout.buffer.flush()


def score(options: argparse.Namespace) -> None:
    """Print how probable given translations are."""
    files = [Path(options.source), Path(options.target)]
    for file in files:
        file.open("rb").close()  # refused before the model is loaded
    model = chosen_model(options).open()
    from tf_transformer.corpus import translate_lines

    def count(pairs: list[tuple[str, str]]) -> list[int]:
        return list(map(max, *(model.count_tokens(list(side)) for side in zip(*pairs, strict=True))))

    total, tokens = 0.0, 0
    for of_tokens in translate_lines(
        model.score_strings, _pairs_of(*files), count=count, batch_tokens=options.batch_tokens
    ):
        numbers = [sum(of_tokens), math.exp(-sum(of_tokens) / len(of_tokens)), *(of_tokens if options.tokens else ())]
        print("\t".join(f"{number:.4f}" for number in numbers))
        total, tokens = total + sum(of_tokens), tokens + len(of_tokens)
    if tokens:
        print(f"{tokens} tokens, perplexity {math.exp(-total / tokens):.4f}", file=sys.stderr)


def _pairs_of(source: Path, target: Path) -> Iterator[tuple[str, str]]:
    """Read two files side by side, a line at a time."""
    with source.open("rb") as sources, target.open("rb") as targets:
        sides = (_decoded(lines, os.fspath(file)) for file, lines in ((source, sources), (target, targets)))
        for number, (one, other) in enumerate(itertools.zip_longest(*sides), 1):
            if one is None or other is None:
                longer, shorter = (target, source) if one is None else (source, target)
                raise InputError(f"{longer} and {shorter} must go line by line, but only {longer} has a line {number}")
            yield one, other


def evaluate(options: argparse.Namespace) -> None:
    """Translate a test set and print BLEU and chrF; compare with another system."""
    from tf_transformer import evaluation

    evaluation.bleu_metric(options.tokenize)  # refused before anything is translated
    output = Path(options.output) if options.output else None
    if output and output.is_dir():
        raise InputError(f"--output {output} is a folder: give a file")
    if options.json and options.examples:
        raise InputError(f"--json shows no examples: give one of both. Received: --examples {options.examples}")
    if output:
        check_place("--output", os.fspath(output.parent))
    if options.compare and not Path(options.compare).exists():
        raise InputError(f"--compare {options.compare}: there is no such file or folder")
    chosen = chosen_model(options)
    pairs = _split(chosen, options)
    model = chosen.open()
    others = _others(options, pairs) if options.compare else None  # first: it may be refused
    start = time.perf_counter()
    translations = _translations(model, pairs, options)
    seconds = time.perf_counter() - start
    scores = evaluation.score(translations, pairs.targets, options.tokenize)
    if output:
        text = "".join(f"{translation}\n" for translation in translations)
        if output.is_symlink() or (output.exists() and not output.is_file()):
            output.write_text(text, "utf-8")  # such as /dev/stdout, and a pipe: not to be replaced by a file
        else:
            with written_whole(output) as beside:
                beside.write_text(text, "utf-8")
    comparisons = []
    if others is not None:
        comparisons = evaluation.compare(translations, others, pairs.targets, options.tokenize)
    if options.json:
        compared = {"compared": [dataclasses.asdict(one) for one in comparisons]} if comparisons else {}
        print(json.dumps(dataclasses.asdict(scores) | {"seconds": round(seconds, 2)} | compared))
        return
    shown = zip(pairs.sources, translations, pairs.targets, strict=True)
    for source, translation, reference in itertools.islice(shown, options.examples):
        print(f"source       {source}\ntranslation  {translation}\nreference    {reference}\n")
    exact = sum(map(str.__eq__, translations, pairs.targets))
    print(f"BLEU  {scores.bleu:.2f}  {scores.signature}")
    print(f"chrF2 {scores.chrf:.2f}  {scores.chrf_signature}")
    print(f"{scores.sentences} sentences in {seconds:.1f} s, {exact} exactly as the reference")
    for one in comparisons:
        print(
            f"{one.metric:5} {one.score - one.other:+.2f} against {one.other:.2f} of {options.compare}, "
            f"p = {one.p_value:.4f}  {one.signature}"
        )


def _split(model: ModelChoice, options: argparse.Namespace) -> Pairs:
    """Read the split that the options name; what they leave out is as the model was trained."""
    given = {"corpus": options.data, "source": options.source, "target": options.target}
    data = dataclasses.replace(model.data, **{name: value for name, value in given.items() if value is not None})
    if (data.corpus or "").startswith("tfds:"):
        import_tensorflow()  # without its greetings: TensorFlow Datasets imports it as well
    return read(data, options.split)


def _translations(model: "Translator | ExportedTranslator", pairs: Pairs, options: argparse.Namespace) -> list[str]:
    """Translate the sources of a split."""
    from tf_transformer.corpus import translate_lines

    lines = translate_lines(
        model.translate_strings, pairs.sources, count=model.count_tokens, batch_tokens=options.batch_tokens
    )
    return list(_counted(lines, total=len(pairs.sources)))


def _others(options: argparse.Namespace, pairs: Pairs) -> list[str]:
    """Return the translations that are compared with: a file of them, or those of another model."""
    other = Path(options.compare)
    if other.is_dir():
        chosen = chosen_model(argparse.Namespace(**vars(options) | {"model": str(other)}))
        if _split(chosen, options) != pairs:
            raise InputError(f"--compare {other} was trained on other data: give --data, --source and --target")
        return _translations(chosen.open(), pairs, options)
    with other.open("rb") as file:
        translations = list(_decoded(file, str(other)))
    if len(translations) != len(pairs.targets):
        raise InputError(f"--compare {other} has {len(translations)} lines, the split {len(pairs.targets)} sentences")
    return translations


def _decoded(lines: Iterable[bytes], name: str = "standard input") -> Iterator[str]:
    """Decode lines as UTF-8; only a line feed, with or without a carriage return, ends a line.

    A byte order mark at the beginning is left out, as in what is trained on.
    """
    for number, line in enumerate(lines, 1):
        try:
            yield line.decode("utf-8-sig" if number == 1 else "utf-8").removesuffix("\n").removesuffix("\r")
        except UnicodeDecodeError:
            raise InputError(f"{name}, line {number}: not UTF-8") from None


def _counted(lines: Iterable[Line], total: int | None = None) -> Iterator[Line]:
    """Pass lines on, counting them on standard error where that is a terminal."""
    shown = sys.stderr.isatty()
    number = 0
    for number, line in enumerate(lines, 1):
        yield line
        if shown and number % 16 == 0:
            print(f"\r{number}{f' of {total}' if total else ''} sentences", end="", file=sys.stderr, flush=True)
    if shown:
        print(f"\r{number} sentences{' ' * 20}", file=sys.stderr)

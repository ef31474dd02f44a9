"""`tf-transformer evaluate`."""

import argparse
import dataclasses
import itertools
import json
import logging
import time
from pathlib import Path
from typing import TYPE_CHECKING

from tf_transformer.commands.common.chosen_model import ChosenModel, add_model, add_search, chosen_model
from tf_transformer.commands.common.options import DATA_HELP, add_batch_tokens, add_settings, count, settings_given
from tf_transformer.commands.common.quiet_tensorflow import import_tensorflow
from tf_transformer.commands.common.text_files import check_output, write_whole
from tf_transformer.config import DataConfig
from tf_transformer.data.corpora import direction_of, is_drawn, open_corpus, read
from tf_transformer.data.pairs import Pairs
from tf_transformer.errors import InputError
from tf_transformer.progress import progress_bar
from tf_transformer.runs.descriptions import LANGUAGES
from tf_transformer.storage.lines import read_lines
from tf_transformer.text.batching import translate_lines

if TYPE_CHECKING:
    from tf_transformer.evaluation import Comparison, Scores
    from tf_transformer.text.translator import TextTranslator

log = logging.getLogger(__name__)

SUMMARY = "Translate a test set and score it by sacreBLEU: BLEU and chrF."
EXAMPLE = "tf-transformer evaluate --model runs/toy --split test --examples 5"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what the command takes."""
    add_model(parser)
    add_batch_tokens(parser)
    parser.add_argument("--data", metavar="DATA", help=f"{DATA_HELP} (default: what the model was trained on)")
    parser.add_argument("--split", default="test", metavar="NAME", help="split of the data (default: %(default)s)")
    add_settings(parser, "data", "source", "target", default="the model's")
    parser.add_argument(
        "--tokenize",
        default="auto",
        metavar="NAME",
        help="sacreBLEU's tokenizer; none for tokenised text (default: auto, by the target language: 13a for most)",
    )
    parser.add_argument("--output", metavar="FILE", help="write the translations to this file")
    parser.add_argument(
        "--compare",
        metavar="OTHER",
        help="another model, or a file of translations: whether they differ, by sacreBLEU's paired bootstrap",
    )
    parser.add_argument(
        "--examples",
        type=count,
        default=0,
        metavar="N",
        help="sentences to show beside their references (default: 0)",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object (default: lines to read)")
    add_search(parser)


def run(options: argparse.Namespace) -> None:
    """Translate a test set and print BLEU and chrF; compare with another system."""
    from tf_transformer import evaluation

    _check_files(options)
    chosen = chosen_model(options)
    data = _data(chosen, options)
    language = data.target or chosen.target_language
    evaluation.bleu_metric(options.tokenize, language)  # refused before anything is translated
    pairs = _split(data, options)
    if options.output:
        check_output("--output", Path(options.output), [options.compare, *open_corpus(data).files(options.split)])
    model = chosen.between(data).open(options.batch_tokens)
    others = _others(options, data, pairs) if options.compare else None  # first: it may be refused
    start = time.perf_counter()
    translations = _translations(model, pairs, options)
    seconds = time.perf_counter() - start
    scores = evaluation.score(translations, pairs.targets, options.tokenize, language)
    if options.output:
        write_whole(Path(options.output), "".join(f"{translation}\n" for translation in translations).encode())
    comparisons = []
    if others is not None:
        comparisons = evaluation.compare(translations, others, pairs.targets, options.tokenize, language)
    if options.json:
        compared = {"compared": [dataclasses.asdict(one) for one in comparisons]} if comparisons else {}
        print(json.dumps(dataclasses.asdict(scores) | {"seconds": round(seconds, 2)} | compared))
    else:
        shown = zip(pairs.sources, translations, pairs.targets, strict=True)
        for source, translation, reference in itertools.islice(shown, options.examples):
            print(f"source       {source}\ntranslation  {translation}\nreference    {reference}\n")
        exact = sum(map(str.__eq__, translations, pairs.targets))
        _print(scores, seconds, exact, comparisons, options.compare)


def _check_files(options: argparse.Namespace) -> None:
    """Raise InputError for what the options alone show to be wrong."""
    if options.output:
        check_output("--output", Path(options.output))
    if options.json and options.examples:
        raise InputError(f"--json shows no examples: give one of both. Received: --examples {options.examples}")
    if options.compare and not Path(options.compare).exists():
        raise InputError(f"--compare {options.compare}: there is no such file or folder")


def _data(model: ChosenModel, options: argparse.Namespace) -> DataConfig:
    """Return the data that the options name; what they leave out is as the model was trained."""
    given = {key: value for layer in settings_given(options).values() for key, value in layer.get("data", {}).items()}
    if options.data is not None:
        given["corpus"] = options.data
    data, own = dataclasses.replace(model.data, **given), direction_of(model.data)
    if own and not model.described.languages and direction_of(data) == own[::-1]:
        raise InputError(
            f"{model.described.path} translates from {own[0]} to {own[1]}, not the other way. Received: --source "
            f"{data.source} --target {data.target}"
        )
    return data


def _split(data: DataConfig, options: argparse.Namespace) -> Pairs:
    """Read the split that the options name."""
    if open_corpus(data).needs_tensorflow:
        import_tensorflow()  # without its greetings: TensorFlow Datasets imports it as well
    return read(data, options.split)


def _translations(model: "TextTranslator", pairs: Pairs, options: argparse.Namespace) -> list[str]:
    """Translate the sources of a split."""
    lines = translate_lines(
        model.translate_strings, pairs.sources, count=model.count_tokens, batch_tokens=options.batch_tokens
    )
    return list(progress_bar("translating", "sentences", len(pairs.sources), iterable=lines, leave=False))


def _others(options: argparse.Namespace, data: DataConfig, pairs: Pairs) -> list[str]:
    """Return the translations that are compared with: a file of them, or those of another model.

    Args:
        options: as parsed.
        data: the corpus of the split that the model is scored on.
        pairs: the split.
    """
    other = Path(options.compare)
    if other.is_dir():
        # The languages were named for the model; the other may call them otherwise, or have one direction.
        named = {f"decoding.{name}": None for name in LANGUAGES}
        chosen = chosen_model(argparse.Namespace(**vars(options) | {"model": [str(other)]} | named))
        own = {name: getattr(options, f"decoding.{name}") for name in LANGUAGES}
        if all(language in chosen.described.languages for language in own.values()):
            chosen = dataclasses.replace(
                chosen, decoding=dataclasses.replace(chosen.decoding, **own), given=frozenset(own)
            )
        own_data = _data(chosen, options)
        split = {name: getattr(data, name) for name in ("held_out", "held_out_seed", "held_out_by", "tsv")}
        has_trained = chosen.described.config.data.corpus is not None  # an imported model has not
        if has_trained and is_drawn(data) and any(getattr(own_data, name) != value for name, value in split.items()):
            log.warning("%s was trained with another split of the file, so it may have seen these sentences", other)
        data = dataclasses.replace(own_data, **split)
        if _split(data, options) != pairs:
            raise InputError(f"--compare {other} was trained on other data: give --data, --source and --target")
        return _translations(chosen.between(data).open(options.batch_tokens), pairs, options)
    translations = read_lines(other)
    if len(translations) != len(pairs.targets):
        raise InputError(f"--compare {other} has {len(translations)} lines, the split {len(pairs.targets)} sentences")
    return translations


def _print(scores: "Scores", seconds: float, exact: int, comparisons: list["Comparison"], other: str) -> None:
    print(f"BLEU  {scores.bleu:.2f}  {scores.signature}")
    print(f"chrF2 {scores.chrf:.2f}  {scores.chrf_signature}")
    print(f"{scores.sentences} sentences in {seconds:.1f} s, {exact} exactly as the reference")
    for one in comparisons:
        print(
            f"{one.metric:5} {one.score - one.other:+.2f} against {one.other:.2f} of {other}, "
            f"p = {one.p_value:.4f}  {one.signature}"
        )

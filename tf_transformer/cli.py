"""The command `tf-transformer`: parse, call, print."""

import argparse
import dataclasses
import itertools
import json
import logging
import math
import os
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from tf_transformer import config, settings
from tf_transformer.arguments import DATA_HELP, parser
from tf_transformer.errors import InputError
from tf_transformer.quiet import import_tensorflow

if TYPE_CHECKING:
    from tf_transformer.export import ExportedTranslator
    from tf_transformer.translator import Translator

Line = TypeVar("Line")


def main(arguments: list[str] | None = None) -> int:
    """Run the command and return its exit code: 0, or 2 for input that the user can mend."""
    commands = {
        "train": _train,
        "translate": _translate,
        "evaluate": _evaluate,
        "export": _export,
        "average": _average,
        "score": _score,
        "info": _info,
    }
    options = parser(commands).parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    logging.getLogger("absl").setLevel(logging.ERROR)
    try:
        options.run(options)
        sys.stdout.flush()
    except InputError as error:
        return _fail(str(error))
    except BrokenPipeError:
        # The reader has gone, as `head` does.
        _discard_output()
    except OSError as error:
        # No space, no permission: named by the system, with the file.
        _discard_output()
        reason = error.strerror or str(error)
        return _fail(f"{error.filename}: {reason}" if error.filename else reason)
    except KeyboardInterrupt:
        return 130
    return 0


def _fail(message: str) -> int:
    print(f"tf-transformer: error: {' '.join(message.splitlines())}", file=sys.stderr)
    return 2


def _discard_output() -> None:
    """Send what standard output cannot take nowhere: Python would complain when it flushes its buffer at the end."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _train(options: argparse.Namespace) -> None:
    resolved = _resolve(options)
    if resolved.data.corpus is None:
        raise InputError(f"no data: give --data {DATA_HELP}")
    _check_place("--run-dir", options.run_dir)
    import_tensorflow()
    from tf_transformer.training.fit import train
    from tf_transformer.training.strategy import make_strategy

    strategy = make_strategy(options.strategy, options.devices)
    run = train(resolved, options.run_dir, overwrite=options.overwrite, strategy=strategy)
    print(f"trained: {run.path}")


def _resolve(options: argparse.Namespace) -> config.Config:
    """Lay preset, sizes of the run to start from, TOML file, settings and named options over each other."""
    file = settings.read_toml(options.config) if options.config else {}
    name = str(file.pop("preset", "tiny"))
    corpus, *extra = options.data or [None]
    named = (
        ("data", "corpus", corpus),
        ("data", "extra_corpora", extra or None),
        ("data", "weights", options.weights),
        ("data", "validation_corpus", options.validation_data),
        ("training", "init_from", options.init_from),
        ("training", "mixed_precision", options.mixed_precision),
        ("training", "deterministic", options.deterministic),
        ("data", "source", options.source),
        ("data", "target", options.target),
        ("training", "max_steps", options.max_steps),
        ("training", "seed", options.seed),
        ("tokenizer", "file", options.tokenizer),
    )
    layers = (
        file,
        *map(settings.parse_setting, options.set),
        *({section: {key: value}} for section, key, value in named if value is not None),
    )
    preset = config.preset(options.preset or name)
    resolved = settings.override(preset, *layers)
    if (start := resolved.training.init_from) is not None:
        goes_on = not options.overwrite and Path(options.run_dir, "config.json").exists()
        resolved = settings.override(preset, _sizes_of(options.run_dir if goes_on else start), *layers)
    for key in ("input_vocab_size", "target_vocab_size"):
        if (size := getattr(resolved.model, key)) is not None:
            raise InputError(f"model.{key} comes from the tokenizer: set tokenizer.vocab_size. Received: {size}")
    return resolved


def _sizes_of(run_dir: str) -> dict[str, Any]:
    """Return the model of a run to start from, as `override` takes it; its vocabulary comes with its tokenizer."""
    import_tensorflow()
    from tf_transformer.run_directory import RunDirectory

    model = dataclasses.asdict(RunDirectory(run_dir).config.model)
    return {"model": model | {"input_vocab_size": None, "target_vocab_size": None}}


def _check_place(option: str, path: str) -> None:
    """Raise InputError where a new folder cannot be made at `path`, parents included."""
    above = Path(path).absolute()
    while not above.exists():
        above = above.parent
    if not above.is_dir():
        raise InputError(f"{option} {path}: {above} is not a folder")
    if not os.access(above, os.W_OK | os.X_OK):
        raise InputError(f"{option} {path}: no permission to write in {above}")


def _translate(options: argparse.Namespace) -> None:
    model, _ = _open_model(options)
    from tf_transformer.translator import translate_lines

    found = translate_lines(
        lambda lines: model.n_best_strings(lines, options.n_best),
        _decoded(sys.stdin.buffer),
        batch_size=options.batch_size,
    )
    for translations in _counted(found):
        for translation, score in translations:
            shown = f"{score:.4f}\t{translation}" if options.scores else translation
            sys.stdout.buffer.write(shown.encode() + b"\n")
    sys.stdout.buffer.flush()


def _score(options: argparse.Namespace) -> None:
    sides = [_lines_of(Path(file)) for file in (options.source, options.target)]
    if len(sides[0]) != len(sides[1]):
        raise InputError(
            f"{options.source} and {options.target} must have the same number of lines. "
            f"Received: {len(sides[0])} and {len(sides[1])}"
        )
    import_tensorflow()
    import numpy as np
    import tensorflow as tf

    from tf_transformer.translator import Translator, sentences_fit, translate_lines

    translator = Translator.load(options.model)

    def score(pairs: list[tuple[str, str]]) -> list[np.ndarray]:
        with sentences_fit():
            scored = translator.score(*(tf.constant(side, tf.string) for side in zip(*pairs, strict=True)))
        rows = zip(scored.token_log_probabilities.numpy(), scored.lengths.numpy(), strict=True)
        return [of_tokens[:length] for of_tokens, length in rows]

    total, tokens = 0.0, 0
    for of_tokens in translate_lines(score, zip(*sides, strict=True), length=lambda pair: max(map(len, pair))):
        numbers = [of_tokens.sum(), np.exp(-of_tokens.mean()), *(of_tokens if options.tokens else ())]
        print("\t".join(f"{number:.4f}" for number in numbers))
        total, tokens = total + float(of_tokens.sum()), tokens + len(of_tokens)
    if tokens:
        print(f"{tokens} tokens, perplexity {math.exp(-total / tokens):.4f}", file=sys.stderr)


def _lines_of(file: Path) -> list[str]:
    with file.open("rb") as lines:
        return list(_decoded(lines, os.fspath(file)))


def _evaluate(options: argparse.Namespace) -> None:
    from tf_transformer.evaluation import bleu_metric, score

    bleu_metric(options.tokenize)  # refused before anything is translated
    output = Path(options.output) if options.output else None
    if output and output.is_dir():
        raise InputError(f"--output {output} is a folder: give a file")
    if output:
        _check_place("--output", os.fspath(output.parent))
    model, description = _open_model(options)
    from tf_transformer.data import read
    from tf_transformer.translator import translate_lines

    trained = settings.override(config.Config(), description["config"]).data
    given = {"corpus": options.data, "source": options.source, "target": options.target}
    data = dataclasses.replace(trained, **{name: value for name, value in given.items() if value is not None})
    pairs = read(data, options.split)
    start = time.perf_counter()
    lines = translate_lines(model.translate_strings, pairs.sources, batch_size=options.batch_size)
    translations = list(_counted(lines, total=len(pairs.sources)))
    seconds = time.perf_counter() - start
    scores = score(translations, pairs.targets, options.tokenize)
    if output:
        output.parent.mkdir(parents=True, exist_ok=True)
        beside = output.with_name(f".{output.name}.{os.getpid()}")
        try:
            beside.write_text("".join(f"{translation}\n" for translation in translations), "utf-8")
            beside.rename(output)
        finally:
            beside.unlink(missing_ok=True)
    if options.json:
        print(json.dumps(dataclasses.asdict(scores) | {"seconds": round(seconds, 2)}))
        return
    shown = zip(pairs.sources, translations, pairs.targets, strict=True)
    for source, translation, reference in itertools.islice(shown, options.examples):
        print(f"source       {source}\ntranslation  {translation}\nreference    {reference}\n")
    exact = sum(map(str.__eq__, translations, pairs.targets))
    print(f"BLEU  {scores.bleu:.2f}  {scores.signature}")
    print(f"chrF2 {scores.chrf:.2f}  {scores.chrf_signature}")
    print(f"{scores.sentences} sentences in {seconds:.1f} s, {exact} exactly as the reference")


def _export(options: argparse.Namespace) -> None:
    if Path(options.output).exists():
        raise InputError(f"{options.output} exists: give another --output, such as the next version, or remove it")
    _check_place("--output", options.output)
    import_tensorflow()
    from tf_transformer.export import export

    decoding = _decoding(options, options.run_dir) if _given(options) else None
    print(f"exported: {export(options.run_dir, options.output, decoding)}")


def _average(options: argparse.Namespace) -> None:
    import_tensorflow()
    from tf_transformer.averaging import average_run

    run = average_run(options.run_dir, options.output, last=options.last, best=options.best)
    print(f"averaged: {run.path}")


def _info(options: argparse.Namespace) -> None:
    import_tensorflow()
    from tf_transformer import checkpoints
    from tf_transformer.export import describe, is_export
    from tf_transformer.run_directory import RunDirectory

    path = Path(options.path)
    if is_export(path):
        description = describe(path)
    else:
        run = RunDirectory(path)
        description = dict(run.description)
        if checkpoints.all_of(run.checkpoints):
            description["checkpoint"] = checkpoints.state_of(run.best_checkpoint())
    print(json.dumps(description, indent=1))


def _decoding(options: argparse.Namespace, run_dir: str) -> config.DecodingConfig:
    """Return how a run searches, with what the options say laid over it."""
    from tf_transformer.run_directory import RunDirectory

    return settings.override(RunDirectory(run_dir).config, {"decoding": _given(options)}).decoding


def _given(options: argparse.Namespace) -> dict[str, Any]:
    names = (field.name for field in dataclasses.fields(config.DecodingConfig))
    return {name: value for name in names if (value := getattr(options, name, None)) is not None}


def _open_model(options: argparse.Namespace) -> "tuple[Translator | ExportedTranslator, dict[str, Any]]":
    """Return what translates, and the description of the model."""
    path = options.model
    if not Path(path).is_dir():
        raise InputError(f"--model {path}: there is no such folder")
    import_tensorflow()
    from tf_transformer.export import ExportedTranslator, is_export
    from tf_transformer.run_directory import RunDirectory
    from tf_transformer.translator import Translator

    if is_export(path):
        if given := _given(options):
            raise InputError(
                f"{path} is an export: how it searches was chosen when it was written. Give --{min(given)} and the "
                "like to export, or a run directory here".replace("_", "-")
            )
        exported = ExportedTranslator(path)
        return exported, exported.description
    return Translator.load(path, _decoding(options, path)), RunDirectory(path).description


def _decoded(lines: Iterable[bytes], name: str = "standard input") -> Iterator[str]:
    """Decode lines as UTF-8; only a line feed, with or without a carriage return, ends a line."""
    for number, line in enumerate(lines, 1):
        try:
            yield line.decode("utf-8").removesuffix("\n").removesuffix("\r")
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

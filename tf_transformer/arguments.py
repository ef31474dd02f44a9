"""What the command `tf-transformer` understands."""

import argparse
import dataclasses
import math
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from tf_transformer import __version__
from tf_transformer.config import PRESETS
from tf_transformer.serving.limits import Limits
from tf_transformer.settings import settings_help

DATA_HELP = "a folder of SPLIT.LANG[.gz] files, a .tsv[.gz] of source TAB target, tfds:NAME[/CONFIG], toy or copy"
MODEL_HELP = "a run directory or an exported SavedModel"


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are one line, and that takes no option for a longer one."""

    def __init__(self, **settings: Any):
        super().__init__(**settings, allow_abbrev=False)

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: error: {message} (see {self.prog} --help)\n")


def parser(run: Mapping[str, Callable[[argparse.Namespace], None]]) -> argparse.ArgumentParser:
    """Return the parser; the parsed options hold as `run` what `run` has for their command."""
    parser = _Parser(
        prog="tf-transformer",
        description="Train a Transformer on parallel text, translate with it, and export it.",
    )
    parser.add_argument("--version", action="version", version=f"tf-transformer {__version__}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")

    def command(name: str, description: str, epilog: str | None = None) -> argparse.ArgumentParser:
        sub = commands.add_parser(
            name,
            help=description,
            description=description,
            epilog=epilog,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        sub.set_defaults(run=run[name])
        return sub

    presets = ", ".join(PRESETS)
    train = command(
        "train",
        "Train a translator, or go on with a run that was started by the same command.",
        "settings for --set and for the TOML file, with the defaults that a preset changes:\n" + settings_help(),
    )
    train.add_argument("--run-dir", required=True, metavar="DIR", help="where the run is written, or goes on")
    train.add_argument(
        "--data",
        metavar="DATA",
        action="append",
        help=f"{DATA_HELP}; required, here or in the TOML file; further ones are trained on as well",
    )
    train.add_argument(
        "--weights",
        metavar="W,W",
        type=_numbers,
        help="for each --data, times an epoch that its pairs are seen, such as 3,0.5 (default: 1 each)",
    )
    train.add_argument("--validation-data", metavar="DATA", help="where the validation split is (default: --data)")
    train.add_argument("--source", metavar="LANG", help="source language, as in the file names")
    train.add_argument("--target", metavar="LANG", help="target language, as in the file names")
    train.add_argument("--preset", metavar="NAME", help=f"model and training values: {presets} (default: tiny)")
    train.add_argument("--config", metavar="FILE", help="TOML file laid over the preset")
    train.add_argument(
        "--set", metavar="SECTION.KEY=VALUE", action="append", default=[], help="a setting; may be repeated"
    )
    train.add_argument("--max-steps", type=int, metavar="N", help="optimizer updates in all (default: the preset's)")
    train.add_argument("--seed", type=int, metavar="N", help="of weights, dropout and data order (default: 0)")
    train.add_argument("--tokenizer", metavar="FILE", help="an existing SentencePiece model instead of a new one")
    train.add_argument(
        "--init-from", metavar="RUN", help="start from the weights, sizes and tokenizer of another run (default: anew)"
    )
    train.add_argument(
        "--mixed-precision",
        metavar="TYPE",
        help="bfloat16 or float16 inside the layers; weights, logits and loss stay float32 (default: float32)",
    )
    train.add_argument(
        "--deterministic", action="store_true", default=None, help="the same bits in every run (default: faster)"
    )
    train.add_argument(
        "--strategy",
        choices=("auto", "mirrored", "one-device", "multiworker"),
        default="auto",
        help="mirrored on the devices of this machine, or multiworker on those that TF_CONFIG names "
        "(default: auto, multiworker where TF_CONFIG is set)",
    )
    train.add_argument(
        "--devices", type=_positive, metavar="N", help="GPUs, or logical CPU devices (default: all GPUs, or one CPU)"
    )
    train.add_argument("--overwrite", action="store_true", help="start anew where a run exists (default: go on)")

    translate = command("translate", "Translate standard input, line by line, to standard output.")
    translate.add_argument("--n-best", type=_positive, default=1, metavar="N", help="translations a line (default: 1)")
    translate.add_argument("--scores", action="store_true", help="before each translation its score and a tab")
    evaluate = command("evaluate", "Translate a test set and score it by sacreBLEU: BLEU and chrF.")
    for sub in (translate, evaluate):
        sub.add_argument("--model", required=True, metavar="DIR", help=MODEL_HELP)
        _add_batch_tokens(sub)
    evaluate.add_argument("--data", metavar="DATA", help=f"{DATA_HELP} (default: what the model was trained on)")
    evaluate.add_argument("--split", default="test", metavar="NAME", help="split of the data (default: %(default)s)")
    evaluate.add_argument("--source", metavar="LANG", help="source language (default: the model's)")
    evaluate.add_argument("--target", metavar="LANG", help="target language (default: the model's)")
    evaluate.add_argument(
        "--tokenize",
        default="13a",
        metavar="NAME",
        help="sacreBLEU's tokenizer; none for tokenised text (default: 13a)",
    )
    evaluate.add_argument("--output", metavar="FILE", help="keep the translations here (default: nowhere)")
    evaluate.add_argument(
        "--compare",
        metavar="OTHER",
        help="another model, or a file of translations: whether they differ, by sacreBLEU's paired bootstrap",
    )
    evaluate.add_argument(
        "--examples",
        type=_count,
        default=0,
        metavar="N",
        help="sentences to show beside their references (default: 0)",
    )
    evaluate.add_argument("--json", action="store_true", help="print one JSON object (default: lines to read)")

    export = command("export", "Write a run as a SavedModel that takes and gives strings.")
    export.add_argument("--run-dir", required=True, metavar="DIR", help="a trained run")
    export.add_argument("--output", required=True, metavar="DIR", help="a new folder, such as saved_models/NAME/1")
    export.add_argument(
        "--format",
        choices=("saved_model", "ctranslate2"),
        default="saved_model",
        help="what it is written for: TensorFlow, or CTranslate2 (needs the extra ctranslate2) (default: saved_model)",
    )
    export.add_argument(
        "--dtype",
        choices=("float32", "bfloat16"),
        default="float32",
        help="of the weights and of what is computed with them; bfloat16 is half as large, translates not quite the "
        "same, and is faster on CPUs that have it (default: float32)",
    )
    for sub in (translate, evaluate, export):
        _add_decoding(sub)

    score = command("score", "Print for each pair of lines the log-probability of the target, and its perplexity.")
    score.add_argument("--model", required=True, metavar="DIR", help=MODEL_HELP)
    _add_batch_tokens(score)
    _add_set(score)
    score.add_argument("source", metavar="SOURCE", help="file of sentences")
    score.add_argument("target", metavar="TARGET", help="file of their translations, line for line")
    score.add_argument("--tokens", action="store_true", help="besides, the log-probability of each token")

    average = command("average", "Write the mean of several checkpoints of a run as a model (paper 6.1).")
    average.add_argument("--run-dir", required=True, metavar="DIR", help="a trained run")
    which = average.add_mutually_exclusive_group(required=True)
    which.add_argument("--last", type=_positive, metavar="N", help="of the last N checkpoints")
    which.add_argument("--best", type=_positive, metavar="N", help="of the N best in validation")
    average.add_argument(
        "--output", metavar="DIR", help="a new folder (default: average-last-N or average-best-N in the run)"
    )

    info = command("info", "Print what a run or an export is made of, as JSON.")
    info.add_argument("path", metavar="DIR", help=MODEL_HELP)

    serve = command(
        "serve",
        "Serve an export by TensorFlow Serving's REST and gRPC APIs, with a page to try it (needs the extra serve).",
    )
    serve.add_argument("path", metavar="DIR", help="an exported SavedModel, or a folder of versions, such as 1 and 2")
    serve.add_argument("--name", metavar="NAME", help="what clients call the model (default: that of the folder)")
    serve.add_argument("--host", default="127.0.0.1", metavar="ADDRESS", help="where to listen (default: %(default)s)")
    for name, port, what in (("--port", 8501, "REST and the page"), ("--grpc-port", 8500, "gRPC")):
        serve.add_argument(
            name, type=_port, default=port, metavar="N", help=f"of {what}; 0 takes a free one (default: %(default)s)"
        )
    serve.add_argument(
        "--poll-seconds",
        type=_seconds,
        default=2.0,
        metavar="S",
        help="between looks for a newer version, which then takes over (default: %(default)g)",
    )
    serve.add_argument(
        "--allow-origin",
        action="append",
        default=[],
        metavar="ORIGIN",
        help="whose pages may use the API from a browser, such as https://app.example, or * for all; may be repeated "
        "(default: none but its own)",
    )
    serve.add_argument(
        "--access-log",
        action="store_true",
        help="a line a request on standard error: API, what is called, status, milliseconds (default: none)",
    )
    limits = serve.add_argument_group("limits")
    for field in dataclasses.fields(Limits):
        kind: type = float if isinstance(field.default, float) else int
        option, what = f"--{field.name.replace('_', '-')}", field.metadata["help"]
        limits.add_argument(
            option, type=kind, default=field.default, metavar="N", help=f"{what} (default: {field.default})"
        )
    return parser


def _add_decoding(sub: argparse.ArgumentParser) -> None:
    """Add the options of the search; what they are called in the config is their `dest`."""
    names = {}
    group = sub.add_argument_group("search", "of a run directory; that of an export was chosen when it was written")
    for name, key, kind, what in (
        ("--beam-size", "beam_size", int, "hypotheses kept at every step; 1 is greedy search"),
        ("--length-penalty", "length_penalty", float, "alpha: scores are divided by ((5 + length) / 6)^alpha"),
        ("--max-length", "max_length", int, "most target tokens, besides 50 more than the source has"),
        ("--sampling-temperature", "temperature", float, "draw tokens by softmax(logits / it) instead of searching"),
        ("--top-k", "top_k", int, "most tokens to draw from"),
        ("--top-p", "top_p", float, "draw from the fewest tokens of this probability"),
        ("--seed", "seed", int, "of drawing"),
    ):
        names[key] = name
        group.add_argument(name, dest=key, type=kind, metavar="N", help=f"{what} (default: the run's)")
    names["jit_compile"] = "--jit-compile"
    group.add_argument(
        "--jit-compile",
        action="store_true",
        default=None,
        help="compile by XLA: the first batch of each size takes long, the others less (default: the run's)",
    )
    _add_set(group)
    sub.set_defaults(names=names)


def _add_set(sub: Any) -> None:
    sub.add_argument(
        "--set",
        metavar="decoding.KEY=VALUE",
        action="append",
        default=[],
        help="any other setting of decoding, of those that `train --help` lists; may be repeated",
    )


def _add_batch_tokens(sub: argparse.ArgumentParser) -> None:
    sub.add_argument(
        "--batch-tokens",
        type=_positive,
        default=2048,
        metavar="N",
        help="most source tokens at once, each sentence counted as long as the longest, and as 16 at least "
        "(default: %(default)s)",
    )


def _port(text: str) -> int:
    if not (text.isdecimal() and int(text) < 65_536):
        raise argparse.ArgumentTypeError(f"must be an integer below 65536. Received: {text!r}")
    return int(text)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < math.inf:
        raise argparse.ArgumentTypeError(f"must be a number of seconds above 0. Received: {text!r}")
    return seconds


def _numbers(text: str) -> tuple[float, ...]:
    try:
        return tuple(float(number) for number in text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be numbers with commas between. Received: {text!r}") from None


def _count(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"must be an integer of at least 0. Received: {text!r}")
    return int(text)


def _positive(text: str) -> int:
    if not (text.isdecimal() and int(text)):
        raise argparse.ArgumentTypeError(f"must be an integer of at least 1. Received: {text!r}")
    return int(text)

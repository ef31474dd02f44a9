"""Ours and its peers, side by side in one run: `python scripts/benchmark.py --work train-step`.

Every peer is a process of its own with the same number of threads, started and warmed up before anything is measured;
the peers take turns (A B C, A B C, ...). Printed are the median of the rounds, the least and the most, and how many
times better than it ours is. Needs the extra `bench`; `serving`, which has no peers, needs the extra `serve`.

`--quick` takes at most 5 minutes on 2 cores, and the peers that are there: one table, beside the documented figures.

transformers.js takes npm, `npm install --prefix FOLDER @huggingface/transformers@4.3.2`, and in the environment of
`--transformers` what converts the model: `VENV/bin/pip install optimum-onnx onnxruntime torch sentencepiece protobuf`.

OpenNMT-tf ends at TensorFlow 2.13 and takes an environment of its own: `python3.11 -m venv VENV`, then
`VENV/bin/pip install OpenNMT-tf==2.32.0 tensorflow==2.13.1`, and here `--opennmt-tf VENV`.
"""

import argparse
import json
import os
import time
from pathlib import Path

from benchmarks import (
    browser,
    corpus,
    decode,
    epoch,
    limit,
    pretrained,
    quick,
    scaling,
    serving,
    start_up,
    strategy,
    train_step,
)
from benchmarks.machine import machine

WORK = {
    "limit": limit.measure,
    "train-step": train_step.measure,
    "epoch": epoch.measure,
    "corpus": corpus.measure,
    "decode": decode.forced,
    "decode-real": decode.real,
    "decode-browser": browser.measure,
    "decode-pretrained": pretrained.measure,
    "start-up": start_up.measure,
    "scaling": scaling.measure,
    "strategy": strategy.measure,
    "serving": serving.measure,
}


def main() -> None:
    """Measure what is asked for."""
    options, start = arguments(), time.perf_counter()
    rows, figures, limits = [], [], {}
    for measure in [quick.measure] if options.quick else [WORK[work] for work in options.work]:
        for row in measure(options):
            if row.work.startswith("limit: "):
                limits[row.work.removeprefix("limit: ")] = row.median("machine")
            if not options.quick:
                row.show(limits)
            rows.append(row)
            figures.append(row.as_dict() | {"share_of_limit": row.shares(limits)})
            if options.json:
                options.json.write_text(json.dumps(figures, indent=1) + "\n")
    if options.quick:
        print(quick.report(rows, machine(), options.threads, time.perf_counter() - start))


def arguments() -> argparse.Namespace:
    """Return what the command line asks for."""
    parser = argparse.ArgumentParser(
        usage="%(prog)s [-h] [--work WORK [WORK ...] | --quick] [option ...]",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    chosen = parser.add_mutually_exclusive_group()
    chosen.add_argument("--work", nargs="+", default=list(WORK), choices=WORK, help="default: all")
    chosen.add_argument("--quick", action="store_true", help="one table; takes --rounds, --threads and --json besides")
    parser.add_argument("--rounds", type=int, help=f"default: 5; {quick.ROUNDS} with --quick")
    parser.add_argument("--threads", type=int, default=os.cpu_count(), help="of every peer (default: all cores)")
    parser.add_argument("--json", type=Path, help="write all figures here as well")
    parser.add_argument("--opennmt-tf", type=Path, metavar="VENV", help="train-step and decode: an environment with it")
    dtypes = ["float32", "bfloat16"]
    parser.add_argument("--dtypes", nargs="+", default=dtypes, choices=dtypes, help="train-step and decode: of ours")
    chosen = parser.add_argument_group("train-step")
    chosen.add_argument("--presets", nargs="+", default=list(train_step.SIZES), choices=train_step.SIZES)
    backends = ["tensorflow", "jax", "torch"]
    chosen.add_argument("--backend", default=backends[0], choices=backends, help="of Keras, of ours (%(default)s)")
    chosen.add_argument("--peers", nargs="+", default=list(train_step.WORKERS), choices=train_step.WORKERS)
    chosen = parser.add_argument_group("epoch and corpus")
    chosen.add_argument("--data", type=Path, help="folder of train.LANGUAGE files; corpus: it takes their words")
    chosen.add_argument("--source", default="en", help="default: %(default)s")
    chosen.add_argument("--target", default="de", help="default: %(default)s")
    chosen = parser.add_argument_group("corpus")
    chosen.add_argument("--pairs", type=int, default=5_000_000, help="that are made up (default: %(default)s)")
    chosen = parser.add_argument_group("decode-real, decode-browser, decode-pretrained and serving")
    chosen.add_argument("--run-dir", type=Path, help="a trained model")
    chosen.add_argument("--sentences", type=Path, help="what it translates, a line each")
    chosen = parser.add_argument_group("decode-pretrained, and decode-browser beside transformers.js")
    chosen.add_argument("--pretrained", type=Path, metavar="FOLDER", help="of MarianMT, as transformers saves it")
    chosen.add_argument("--transformers", type=Path, metavar="VENV", help="an environment with it, and with torch")
    chosen.add_argument("--tokens", type=int, metavar="N", help="decode-pretrained: of every translation")
    chosen.add_argument("--transformers-js", type=Path, metavar="FOLDER", help="decode-browser: where npm installed it")
    options = parser.parse_args()
    if options.quick:
        with_quick = {"quick", "work", "rounds", "threads", "json"}
        given = {name for name, value in vars(options).items() if value != parser.get_default(name)}
        if given - with_quick:
            others = (f"--{name.replace('_', '-')}" for name in sorted(given - with_quick))
            parser.error(f"not allowed with --quick: {', '.join(others)}")
    options.rounds = options.rounds or (quick.ROUNDS if options.quick else 5)
    return options


if __name__ == "__main__":
    main()

"""Ours and its peers, side by side in one run: `python scripts/benchmark.py --work train-step`.

Every peer is a process of its own with the same number of threads, started and warmed up before anything is measured;
the peers take turns (A B C, A B C, ...). Printed are the median of the rounds, the least and the most, and how many
times better than it ours is. Needs the extra `bench`; `serving`, which has no peers, needs the extra `serve`.

OpenNMT-tf ends at TensorFlow 2.13 and takes an environment of its own: `python3.11 -m venv VENV`, then
`VENV/bin/pip install OpenNMT-tf==2.32.0 tensorflow==2.13.1`, and here `--opennmt-tf VENV`.
"""

import argparse
import json
import os
from pathlib import Path

from benchmarks import decode, epoch, limit, scaling, serving, start_up, strategy, train_step

WORK = {
    "limit": limit.measure,
    "train-step": train_step.measure,
    "epoch": epoch.measure,
    "decode": decode.forced,
    "decode-real": decode.real,
    "start-up": start_up.measure,
    "scaling": scaling.measure,
    "strategy": strategy.measure,
    "serving": serving.measure,
}


def main() -> None:
    """Measure what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", nargs="+", default=list(WORK), choices=WORK, help="default: all")
    parser.add_argument("--rounds", type=int, default=5, help="default: %(default)s")
    parser.add_argument("--threads", type=int, default=os.cpu_count(), help="of every peer (default: all cores)")
    parser.add_argument("--json", type=Path, help="write all figures here as well")
    parser.add_argument("--opennmt-tf", type=Path, metavar="VENV", help="train-step and decode: an environment with it")
    dtypes = ["float32", "bfloat16"]
    parser.add_argument("--dtypes", nargs="+", default=dtypes, choices=dtypes, help="train-step and decode: of ours")
    chosen = parser.add_argument_group("train-step")
    chosen.add_argument("--presets", nargs="+", default=list(train_step.SIZES), choices=train_step.SIZES)
    chosen.add_argument("--peers", nargs="+", default=list(train_step.WORKERS), choices=train_step.WORKERS)
    chosen = parser.add_argument_group("epoch")
    chosen.add_argument("--data", type=Path, help="folder of train.LANGUAGE files")
    chosen.add_argument("--source", default="en", help="default: %(default)s")
    chosen.add_argument("--target", default="de", help="default: %(default)s")
    chosen = parser.add_argument_group("decode-real and serving")
    chosen.add_argument("--run-dir", type=Path, help="a trained model")
    chosen.add_argument("--sentences", type=Path, help="what it translates, a line each")
    options = parser.parse_args()
    rows, limits = [], {}
    for work in options.work:
        for row in WORK[work](options):
            if work == "limit":
                limits[row.work.removeprefix("limit: ")] = row.median("machine")
            row.show(limits)
            rows.append(row.as_dict() | {"share_of_limit": row.shares(limits)})
            if options.json:
                options.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()

"""What a training step and a decoded token cost, against length, batch, vocabulary and layers."""

import argparse
from collections.abc import Iterator
from typing import Any

import numpy as np
from benchmarks.decode import random_base
from benchmarks.peer import Peer, Row, end, take_turns

STEP = {"batch": 8, "length": 32, "vocabulary": 8000, "num_layers": 4}
STEPS = {
    "length": (16, 64, 256, 1024),
    "batch": (8, 32, 128),
    "vocabulary": (8_000, 16_000, 32_000, 64_000),
    "num_layers": (2, 4, 8, 16),
}
"""Which sizes of a step of `small` are varied, and how; all others stay the same."""
TARGETS = (16, 32, 64, 128, 256)
DECODED = (1, 8)


def measure(options: argparse.Namespace) -> Iterator[Row]:
    """Yield a row for each size that is varied, with the exponent that its medians follow."""
    for axis, values in STEPS.items():
        tasks = {str(value): STEP | {axis: value} for value in values}
        peer = Peer("scaling_train.py", {"threads": options.threads}, onednn=True)
        figures = _seconds(dict.fromkeys(tasks, peer), tasks, options.rounds)
        end({"all": peer})
        yield _row(f"scaling: training step of `small`, {axis}", "seconds", figures)
    limits = ("min_length", "max_length", "max_extra_length")
    lengths = {str(length): dict.fromkeys(limits, length) for length in TARGETS}
    with random_base(options.threads, lengths) as (spec, _):
        peers = {name: Peer("decode_ours.py", spec | {"export": name, "beams": [1]}) for name in lengths}
        for size in DECODED:
            tasks = {name: {"batch": size, "batches": 1, "beam": 1} for name in lengths}
            figures = _seconds(peers, tasks, options.rounds)
            steps = {name: [second / int(name) for second in seconds] for name, seconds in figures.items()}
            yield _row(f"scaling: greedy decoding of `base`, batch {size}, target length", "seconds a step", steps)
        end(peers)


def _seconds(peers: dict[str, Peer], tasks: dict[str, dict[str, Any]], rounds: int) -> dict[str, list[float]]:
    """Return the seconds that each task took in every round."""
    return {name: [turn["seconds"] for turn in turns] for name, turns in take_turns(peers, rounds, tasks).items()}


def _row(work: str, unit: str, figures: dict[str, list[float]]) -> Row:
    row = Row(work, unit, figures, {})
    sizes, medians = zip(*((int(name), row.median(name)) for name in figures), strict=True)
    logs = np.log(sizes), np.log(medians)
    overall = np.polyfit(*logs, 1)[0]
    last = np.diff(logs[1])[-1] / np.diff(logs[0])[-1]
    return row._replace(notes={"exponent": f"{overall:.2f} overall, {last:.2f} between the last two"})

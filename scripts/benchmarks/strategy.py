"""What a strategy and `--deterministic` cost a training step."""

import argparse
from collections.abc import Iterator

from benchmarks.peer import Peer, Row, end, rates
from benchmarks.train_step import BATCH

WAYS = {
    "no strategy": {"strategy": None},
    "one-device": {"strategy": "one-device"},
    "mirrored": {"strategy": "mirrored"},
    "mirrored, deterministic": {"strategy": "mirrored", "deterministic": True},
}
STEPS = 10


def measure(options: argparse.Namespace) -> Iterator[Row]:
    """Yield a row for the `tiny` preset."""
    spec = BATCH | {"preset": "tiny", "dtype": "float32", "threads": options.threads}
    peers = {name: Peer("train_ours.py", spec | way, onednn=True) for name, way in WAYS.items()}
    figures = rates(peers, options.rounds, STEPS * spec["batch"] * spec["target"], count=STEPS)
    end(peers)
    yield Row("strategy: training step of `tiny`", "target tokens/s", figures, {})

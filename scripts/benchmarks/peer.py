"""Processes that take turns, and the rows of what they measured."""

import functools
import importlib.metadata
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

WORKERS = Path(__file__).parent / "workers"
ENVIRONMENT = os.environ | {"TF_CPP_MIN_LOG_LEVEL": "3"}
PACKAGES = {
    "torch": "torch",
    "KerasHub": "keras-hub",
    "CTranslate2 float32": "ctranslate2",
    "CTranslate2 int8": "ctranslate2",
}
"""The package that each peer needs; the extra `bench` installs all of them."""


class Row(NamedTuple):
    """The figures of one piece of work."""

    work: str
    unit: str
    """a rate per second, of which more is better, or "seconds", of which less is better"""
    figures: dict[str, list[float]]
    """for ours (the first) and for every peer, one figure per round"""
    notes: dict[str, Any]
    reached: dict[str, float] | None = None
    """how much of each limit of the machine the first reaches, in its unit, by the names of `limit.py`"""

    def median(self, name: str) -> float:
        """Return the median of the rounds."""
        return statistics.median(self.figures[name])

    def ratio(self, name: str) -> float:
        """Return how many times better the first is than `name`."""
        first = self.median(next(iter(self.figures))) / self.median(name)
        return first if self.unit.endswith("/s") else 1 / first

    def told(self, name: str) -> str:
        """Return the median, the least and the most of the rounds as text."""
        values = self.figures[name]
        return f"{_figure(self.median(name)):>6} ({_figure(min(values))} to {_figure(max(values))})"

    def shares(self, limits: dict[str, float]) -> dict[str, float]:
        """Return the share of each measured limit that the first reaches."""
        return {name: amount / limits[name] for name, amount in (self.reached or {}).items() if name in limits}

    def show(self, limits: dict[str, float]) -> None:
        """Print the row."""
        print(f"\n{self.work} ({self.unit})")
        for name in self.figures:
            print(f"  {name:28} {self.told(name)}  {self.ratio(name):.2f}x")
        for name, value in self.notes.items():
            print(f"  {name}: {value}")
        shares = self.shares(limits)
        for name, amount in (self.reached or {}).items():
            print(f"  of {name}: {_figure(amount)}" + (f", {shares[name]:.0%} of the limit" if name in shares else ""))
        sys.stdout.flush()

    def as_dict(self) -> dict[str, Any]:
        """Return the row for JSON, with medians and ratios."""
        medians = {name: self.median(name) for name in self.figures}
        ratios = {name: round(self.ratio(name), 3) for name in self.figures}
        return self._asdict() | {"medians": medians, "first_is_times_better": ratios}


def _figure(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def version(package: str) -> str | None:
    """Return the version of a package, or None if it is not installed."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def installed(peers: Iterable[str]) -> list[str]:
    """Return the peers whose packages are installed."""
    return [name for name in peers if version(PACKAGES[name])]


class Peer:
    """A process that works when it is told to; see `workers/protocol.py`.

    Processes start at the same time. The first task waits until its process has started.

    Args:
        script: the script of the worker.
        spec: what to measure, including `threads`.
        python: the interpreter that runs the script.
        onednn: whether TensorFlow uses oneDNN on CPUs without AVX-512 too, which is faster in training only.
        backend: the backend of Keras.
    """

    def __init__(
        self,
        script: str,
        spec: dict[str, Any],
        *,
        python: str | Path = sys.executable,
        onednn: bool = False,
        backend: str = "tensorflow",
    ):
        threads = str(spec["threads"])
        settings = {"OMP_NUM_THREADS": threads, "TF_NUM_INTRAOP_THREADS": threads, "KERAS_BACKEND": backend}
        if onednn:
            settings["TF_ENABLE_ONEDNN_OPTS"] = "1"
        self.process = subprocess.Popen(
            [str(python), str(WORKERS / script), json.dumps(spec)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=ENVIRONMENT | settings,
        )

    @functools.cached_property
    def facts(self) -> dict[str, Any]:
        """What the process says when it has started."""
        return self.answer()

    def answer(self) -> dict[str, Any]:
        """Return what the process says next."""
        while line := self.process.stdout.readline():
            if line.startswith("{"):
                return json.loads(line)
        raise RuntimeError(f"{self.process.args[1]} ended with status {self.process.wait()}")

    def ask(self, task: dict[str, Any]) -> None:
        """Tell the process to do a task, once it has started."""
        _ = self.facts
        self.process.stdin.write(json.dumps(task) + "\n")
        self.process.stdin.flush()

    def work(self, task: dict[str, Any]) -> dict[str, Any]:
        """Let the process do a task, and return what it says, including `seconds`."""
        time.sleep(0.2)  # the threads of the one before may still spin
        self.ask(task)
        return self.answer()


def take_turns(
    peers: dict[str, Peer], rounds: int, tasks: dict[str, dict[str, Any]], warm_up: dict[str, Any] | None = None
) -> dict[str, list[dict[str, Any]]]:
    """Let each peer do its task in turn, A B C, A B C, ..., and return what each said in every round.

    Before the first round, all of them do `warm_up`, or their own tasks, at the same time. Every turn is reported on
    stderr, to show the progress of a long measurement, and so that one that is stopped is not lost.
    """
    for name, peer in peers.items():
        peer.ask(warm_up or tasks[name])
    for peer in peers.values():
        peer.answer()
    said: dict[str, list[dict[str, Any]]] = {name: [] for name in peers}
    for i in range(rounds):
        for name, peer in peers.items():
            said[name].append(peer.work(tasks[name]))
            print(f"  round {i + 1} of {rounds}, {name}: {said[name][-1]['seconds']:.3g} s", file=sys.stderr)
    return said


def rates(peers: dict[str, Peer], rounds: int, amount: float, **task: Any) -> dict[str, list[float]]:
    """Let the peers do one task in turn, and return the rate of each turn, which does `amount`, per second."""
    said = take_turns(peers, rounds, dict.fromkeys(peers, task))
    return {name: [amount / turn["seconds"] for turn in turns] for name, turns in said.items()}


def end(peers: dict[str, Peer]) -> None:
    """End the processes."""
    for peer in peers.values():
        peer.process.stdin.close()
    for peer in peers.values():
        peer.process.wait()

"""A real epoch: target tokens per second, without padding."""

import argparse
from collections.abc import Iterator

from benchmarks.peer import Peer, Row, end, take_turns

WAYS = {"ours": "batches of like lengths, by tokens", "unsorted": "batches of 64 sentences, as the tutorial"}


def measure(options: argparse.Namespace) -> Iterator[Row]:
    """Yield a row for an epoch of the `tiny` preset."""
    if not options.data:
        print("epoch: skipped; it needs --data")
        return
    spec = {"data": str(options.data), "source": options.source, "target": options.target, "threads": options.threads}
    peers = {name: Peer("epoch.py", spec | {"way": name}, onednn=True) for name in WAYS}
    said = take_turns(peers, options.rounds, {name: {"kind": "epoch"} for name in peers}, warm_up={"kind": "warm-up"})
    figures = {name: [peers[name].facts["tokens"] / turn["seconds"] for turn in turns] for name, turns in said.items()}
    waits = {name: f"{peer.work({'kind': 'waiting'})['waits']:.2%}" for name, peer in peers.items()}
    end(peers)
    facts = {
        name: {"padding": f"{peer.facts['padding']:.1%}", "steps": peer.facts["steps"]} for name, peer in peers.items()
    }
    yield Row("epoch", "real target tokens/s", figures, {"waits for data": waits, "batches": facts, "ways": WAYS})

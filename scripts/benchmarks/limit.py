"""The most that the machine can do: what the other rows are a share of."""

import argparse
from collections.abc import Iterator

from benchmarks.peer import Peer, Row, end, take_turns


def measure(options: argparse.Namespace) -> Iterator[Row]:
    """Yield a row for each limit."""
    peers = {"machine": Peer("limit.py", {"threads": options.threads}, onednn=True)}
    turns = take_turns(peers, options.rounds)["machine"]
    end(peers)
    for name in turns[0]:
        if name != "seconds":
            yield Row(f"limit: {name}", name.partition(", ")[2], {"machine": [turn[name] for turn in turns]}, {})

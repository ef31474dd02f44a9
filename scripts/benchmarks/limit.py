"""The limits of the machine, of which other rows reach a share."""

import argparse
from collections.abc import Iterator

from benchmarks.peer import Peer, Row, end, rates, take_turns
from benchmarks.train_step import BATCH, SIZES

ROWS = (1, 4, 8, 32, 128)


def measure(options: argparse.Namespace) -> Iterator[Row]:
    """Yield a row for each limit."""
    peers = {"machine": Peer("limit.py", {"threads": options.threads}, onednn=True)}
    turns = take_turns(peers, options.rounds, {"machine": {}})["machine"]
    end(peers)
    for name in turns[0]:
        if name != "seconds":
            yield Row(f"limit: {name}", name.partition(", ")[2], {"machine": [turn[name] for turn in turns]}, {})
    spec = SIZES["base"] | {"vocabulary": BATCH["vocabulary"], "threads": options.threads}
    peers = {"machine": Peer("step_products.py", spec)}
    for rows in ROWS:
        figures = rates(peers, options.rounds, peers["machine"].facts["steps"], rows=rows)
        yield Row(f"limit: {step_products(rows)}", "steps/s", figures, {})
    end(peers)


def step_products(rows: int) -> str:
    """Return the name of the limit set by the products of a decoding step of `base` for so many hypotheses."""
    return f"products of a step of {rows} rows alone, steps/s"

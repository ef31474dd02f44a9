"""How `benchmark.py` talks to its workers. Each runs in a process of its own, and works when it is told to."""

import json
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np


def spec() -> dict[str, Any]:
    """Return the spec of what this process is to measure."""
    return json.loads(sys.argv[1])


def random_ids(given: dict[str, Any]) -> tuple[np.ndarray, np.ndarray]:
    """Return source ids [B, S] and target ids [B, T + 1]."""
    rng = np.random.default_rng(0)
    shapes = (given["batch"], given["source"]), (given["batch"], given["target"] + 1)
    source, target = (rng.integers(4, given["vocabulary"], shape, np.int32) for shape in shapes)
    return source, target


def serve(work: Callable[..., Any], **facts: Any) -> None:
    """Print the facts. Then do the task of each line of input, and print how many seconds it took."""
    print(json.dumps(facts), flush=True)
    for line in sys.stdin:
        task = json.loads(line)
        start = time.perf_counter()
        found = work(**task)
        seconds = time.perf_counter() - start
        print(json.dumps({"seconds": seconds} | (found or {})), flush=True)

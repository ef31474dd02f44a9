"""How `benchmark.py` talks to what it measures: each runs in a process of its own, and works when it is told to."""

import json
import sys
import time
from collections.abc import Callable
from typing import Any


def spec() -> dict[str, Any]:
    """Return what the process was started to measure."""
    return json.loads(sys.argv[1])


def serve(work: Callable[..., Any], **facts: Any) -> None:
    """Do the task of each line that comes in, and say how many seconds it took; the facts are said at first."""
    print(json.dumps(facts), flush=True)
    for line in sys.stdin:
        task = json.loads(line)
        start = time.perf_counter()
        found = work(**task)
        seconds = time.perf_counter() - start
        print(json.dumps({"seconds": seconds} | (found or {})), flush=True)

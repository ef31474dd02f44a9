"""What training does with its text, without a model: the start up to the first batch, then going through windows."""

import time
from pathlib import Path

start = time.perf_counter()
from protocol import serve, spec  # noqa: E402

from tf_transformer.data import Batches  # noqa: E402
from tf_transformer.data.prepared import Prepared  # noqa: E402

given = spec()
seconds: dict[str, float] = {}


def took(name: str) -> None:
    """Note the seconds since the last call, under a name."""
    seconds[name] = round(time.perf_counter() - start - sum(seconds.values()), 3)


def resident(name: str = "VmRSS") -> float:
    """Return the memory of this process in MB, or its peak, as Linux counts it."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(f"{name}:"))


took("imports")
empty = resident()
pairs = Prepared(given["corpus"]).pairs()
took("opening")
batches = Batches(pairs, given["batch_tokens"], seed=0)
windows = len(batches._epoch.windows)
place = (windows // 2, batches.length // windows // 2) if given["resumes"] else (0, 0)
took("planning")
# As `fit` does: for what it announces, and when the first epoch begins.
batches.start_epoch(0)
batches.start_epoch(0, *place)
took("planning again")
elements = iter(batches.dataset())
next(elements)
took("first batch")


def work() -> dict[str, float]:
    """Go through the rest of the window and into the next; return the MB at the start, at the end, and at the peak."""
    found = {"first": resident()}
    for _ in range(round(1.2 * batches.length / windows)):
        if next(elements, None) is None:
            break
    return found | {"last": resident(), "most": resident("VmHWM")}


serve(work, stages=seconds, pairs=len(pairs), windows=windows, empty=empty)
elements = iter(())  # lets the dataset go while Python runs: threads of TensorFlow call it

"""`tf-transformer prepare`, with the peak memory of the process and its workers, as Linux counts it."""

import subprocess
import sys
import time
from pathlib import Path

from protocol import serve

COMMAND = str(Path(sys.executable).with_name("tf-transformer"))
PROCESSES = Path("/proc")


def children(process: int) -> list[int]:
    """Return the processes that a process has started."""
    threads = (PROCESSES / str(process) / "task").glob("*/children")
    return [int(number) for thread in threads for number in thread.read_text().split()]


def peak(process: int) -> float:
    """Return the peak memory of a process in MB."""
    lines = (PROCESSES / str(process) / "status").read_text().splitlines()
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM:")), 0.0)


def work(arguments: list[str]) -> dict[str, float]:
    """Prepare, and return the peak memory in MB of the parent, and of the worker with the most."""
    process = subprocess.Popen([COMMAND, "prepare", *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    parent = workers = 0.0
    while process.poll() is None:
        try:
            parent = max(parent, peak(process.pid))
            workers = max([workers, *map(peak, children(process.pid))])
        except OSError:  # it ends
            pass
        time.sleep(0.02)
    if process.returncode:
        raise RuntimeError(process.stderr.read().decode())
    return {"parent": parent, "worker": workers}


serve(work)

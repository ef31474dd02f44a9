"""Mapping a function over tasks in several processes, in the order of the tasks.

The processes are started as commands. A script that uses this therefore needs no `if __name__ == "__main__":`, as it
would with multiprocessing, and the processes do not import what this process has imported, such as TensorFlow.
"""

import contextlib
import itertools
import os
import pickle
import queue
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

from tf_transformer.errors import InputError

Task = TypeVar("Task")
Result = TypeVar("Result")


def child_environment() -> dict[str, str]:
    """Return the environment of a Python process that finds the same modules as this one.

    It looks for none in its working folder, where a user's own `copy.py` may lie. This package is found in any case.
    """
    folders = [*filter(None, sys.path), str(Path(__file__).parents[3])]
    return os.environ | {"PYTHONPATH": os.pathsep.join(folders), "PYTHONSAFEPATH": "1"}


class Workers:
    """Processes that work for this one. None are started for a single task, or if `count` is 1.

    Args:
        count: the number of processes.
    """

    def __init__(self, count: int):
        self.count = count
        self._idle: queue.Queue[subprocess.Popen[bytes]] = queue.Queue()
        self._started: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> "Workers":
        return self

    def __exit__(self, *error: object) -> None:
        for process in self._started:
            process.kill()
        for process in self._started:
            # Its pipes are closed and it is awaited. A task that it has not read may be left in one of them.
            with contextlib.suppress(BrokenPipeError), process:
                pass

    def map(self, function: Callable[[Task], Result], tasks: Iterable[Task]) -> Iterator[Result]:
        """Yield the results of a function for tasks, in their order. At most two tasks per process wait at a time.

        Raises:
            InputError: the function raised it for the first task that failed, or a process was killed.
        """
        tasks = iter(tasks)
        first = list(itertools.islice(tasks, 2))
        if self.count == 1 or len(first) < 2:
            yield from map(function, itertools.chain(first, tasks))
            return
        self._start()
        waiting: deque[Future[Result]] = deque()
        with ThreadPoolExecutor(self.count, "worker") as threads:
            try:
                for task in itertools.chain(first, tasks):
                    waiting.append(threads.submit(self._call, function, task))
                    if len(waiting) >= 2 * self.count:
                        yield waiting.popleft().result()
                while waiting:
                    yield waiting.popleft().result()
            finally:
                for future in waiting:
                    future.cancel()

    def _start(self) -> None:
        if self._started:
            return
        command = [sys.executable, "-m", "tf_transformer.data.preparing.worker"]
        for _ in range(self.count):
            process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=child_environment(), start_new_session=True
            )
            self._started.append(process)
            self._idle.put(process)

    def _call(self, function: Callable[[Task], Result], task: Task) -> Any:
        """Send a task to a process and return the result."""
        process = self._idle.get()
        result, error = None, None
        try:
            with contextlib.suppress(BrokenPipeError):  # then there is no answer either
                pickle.dump((function, task), process.stdin, pickle.HIGHEST_PROTOCOL)  # type: ignore[arg-type]
                process.stdin.flush()  # type: ignore[union-attr]
            result, error = pickle.load(process.stdout)  # type: ignore[arg-type]
        except (EOFError, pickle.UnpicklingError):
            error = InputError(
                f"a worker process ended (exit code {process.wait()}), perhaps for lack of memory: run the same "
                "command again, or prepare the text with fewer --workers"
            )
        finally:
            self._idle.put(process)
        if error is not None:
            raise error
        return result

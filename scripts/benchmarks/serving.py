"""Requests per second that `tf-transformer serve` answers, with one sentence each, and how long they take."""

import argparse
import contextlib
import http.client
import itertools
import json
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from benchmarks.peer import ENVIRONMENT, Row

SECONDS = 20
"""The seconds of one turn."""
CLIENTS = 32


def measure(options: argparse.Namespace) -> Iterator[Row]:
    """Yield a row for many clients at once, with batching and without, and one for a single client."""
    if not (options.run_dir and options.sentences):
        print("serving: skipped; it needs --run-dir and --sentences")
        return
    sentences = options.sentences.read_text("utf-8").splitlines()
    command = str(Path(sys.executable).with_name("tf-transformer"))
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        export = [command, "export", "--run-dir", str(options.run_dir), "--output", f"{folder}/model/1"]
        subprocess.run(export, check=True, capture_output=True, env=ENVIRONMENT)
        together, alone = (
            stack.enter_context(_server(command, folder, *extra)) for extra in ((), ("--max-batch-tokens", "1"))
        )
        ways = {
            f"{CLIENTS} clients": (together, CLIENTS),
            "1 client": (together, 1),
            f"{CLIENTS} clients, batches of 1": (alone, CLIENTS),
        }
        figures: dict[str, list[float]] = {name: [] for name in ways}
        times: dict[str, list[float]] = {name: [] for name in ways}
        for i in range(options.rounds + 1):
            for name, (address, clients) in ways.items():
                taken = _turn(address, clients, sentences, 2 if i == 0 else SECONDS)
                if i:
                    figures[name].append(len(taken) / SECONDS)
                    times[name] += taken
        notes = {
            f"{name}, milliseconds": ", ".join(
                f"p{p} {1000 * np.percentile(seconds, p):,.0f}" for p in (50, 90, 99, 100)
            )
            for name, seconds in times.items()
        }
        yield Row("serving, sentences of mixed lengths", "requests/s", figures, notes)


@contextlib.contextmanager
def _server(command: str, folder: str, *extra: str) -> Iterator[str]:
    """Start a server, yield its address, and end it."""
    serve = [command, "serve", f"{folder}/model", "--port", "0", "--grpc-port", "0", *extra]
    with subprocess.Popen(serve, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT) as process:
        try:
            said = next(line for line in process.stderr if line.startswith("serving"))
            yield re.search(r"http://(\S+),", said)[1]
        finally:
            process.terminate()


def _turn(address: str, clients: int, sentences: list[str], seconds: float) -> list[float]:
    """Let clients request one sentence after another for some seconds; return the seconds that each answer took."""
    taken: list[float] = []
    end = time.perf_counter() + seconds

    def client(number: int) -> None:
        connection = http.client.HTTPConnection(address, timeout=60)
        for sentence in itertools.cycle(sentences[number::clients]):
            start = time.perf_counter()
            connection.request("POST", "/v1/models/model:predict", json.dumps({"instances": [sentence]}))
            response = connection.getresponse()
            answer = response.read()
            if response.status != 200:
                raise RuntimeError(answer.decode())
            now = time.perf_counter()
            if now > end:
                return
            taken.append(now - start)

    threads = [threading.Thread(target=client, args=(number,)) for number in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return taken

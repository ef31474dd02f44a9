"""Translation in a browser: seconds to the first one, and sentences per second beside one thread of other runtimes."""

import argparse
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.decode import make, peers_ctranslate2, peers_litert
from benchmarks.peer import Peer, Row, end, rates, take_turns

CASES = ((1, 1), (8, 1), (32, 1), (1, 4), (8, 4))
"""The sentences of a batch, and the hypotheses of each."""
LONGEST = 80


def measure(options: argparse.Namespace) -> Iterator[Row]:
    """Yield rows for a trained model and real sentences. Needs Chromium, and `npm ci --prefix web`."""
    if not (options.run_dir and options.sentences):
        print("decode-browser: skipped; it needs --run-dir and --sentences")
        return
    search = {"max_length": LONGEST, "length_penalty": 0.0, "early_stopping": True}
    with tempfile.TemporaryDirectory() as folder:
        spec = {"folder": folder, "threads": 1, "run_dir": str(options.run_dir), "sentences": str(options.sentences)}
        make(spec, {}, {"ours, LiteRT int8": "int8"})
        count = len(json.loads((Path(folder) / "texts.json").read_text())["texts"])
        browser = {"ours, Chromium": Peer("decode_browser.py", spec | {"search": search})}
        turns = take_turns(browser, options.rounds, {"ours, Chromium": {"is_first": True}})["ours, Chromium"]
        seconds = {f"{name} cache": [turn[name] for turn in turns] for name in ("empty", "kept")}
        yield Row("first translation in Chromium", "seconds", seconds, {})
        others = peers_ctranslate2(spec, ["CTranslate2 int8"], 1, LONGEST)
        peers = browser | peers_litert(spec, search, ["ours, LiteRT int8"]) | others
        for size, beam in CASES:
            task = {"batch": size, "batches": -(-count // size), "beam": beam}
            figures = rates(peers, options.rounds, count, **task)
            yield Row(f"decode real sentences in a browser, batch {size}, beam {beam}", "sentences/s", figures, {})
        end(peers)

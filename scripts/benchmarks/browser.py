"""Translation in a browser: seconds to the first one, and sentences per second beside one thread of other runtimes."""

import argparse
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.decode import make, peers_ctranslate2, peers_litert
from benchmarks.peer import Peer, Row, end, take_turns

CASES = ((1, 1), (8, 1), (32, 1), (1, 4), (8, 4))
"""The sentences of a batch, and the hypotheses of each."""
LONGEST = 80
OURS, THEIRS = "ours, Chromium", "transformers.js, Chromium"


def measure(options: argparse.Namespace) -> Iterator[Row]:
    """Yield rows for a model and real sentences. Needs Chromium, and `npm ci --prefix web`.

    The model is a run's, or a folder of MarianMT, of which transformers.js translates the same weights.
    """
    has_theirs = bool(options.pretrained and options.transformers and options.transformers_js)
    if not (options.sentences and (options.run_dir or has_theirs)):
        others = "--pretrained, --transformers and --transformers-js"
        print(f"decode-browser: skipped; it needs --sentences, and --run-dir or {others}")
        return
    search = {"max_length": LONGEST, "length_penalty": 0.0, "early_stopping": True}
    with tempfile.TemporaryDirectory() as folder:
        spec = {"folder": folder, "threads": 1, "sentences": str(options.sentences)}
        spec["run_dir"] = _pretrained(options, spec) if has_theirs else str(options.run_dir)
        make(spec, {}, {"ours, LiteRT int8": "int8"})
        count = len(json.loads((Path(folder) / "texts.json").read_text())["texts"])
        browsers = {OURS: Peer("decode_browser.py", spec | {"search": search})}
        if has_theirs:
            packages = {"packages": str(options.transformers_js), "longest": LONGEST}
            browsers[THEIRS] = Peer("decode_transformers_js.py", spec | packages)
        said = take_turns(browsers, options.rounds, {name: {"is_first": True} for name in browsers})
        for cache in ("empty", "kept"):
            seconds = {name: [turn[cache] for turn in turns] for name, turns in said.items()}
            yield Row(f"first translation in Chromium, {cache} cache", "seconds", seconds, {})
        others = peers_ctranslate2(spec, ["CTranslate2 int8"], 1, LONGEST)
        peers = browsers | peers_litert(spec, search, ["ours, LiteRT int8"]) | others
        for size, beam in CASES:
            here = {name: peer for name, peer in peers.items() if name != THEIRS or beam == 1}  # it has no beam
            task = {"batch": size, "batches": -(-count // size), "beam": beam}
            said = take_turns(here, options.rounds, dict.fromkeys(here, task))
            figures = {name: [count / turn["seconds"] for turn in turns] for name, turns in said.items()}
            yield Row(
                f"decode real sentences in a browser, batch {size}, beam {beam}", "sentences/s", figures, _equal(said)
            )
        end(peers)


def _pretrained(options: argparse.Namespace, spec: dict[str, Any]) -> str:
    """Import the folder of MarianMT, convert it for transformers.js, and return the path of the run."""
    work = spec | {"model": str(options.pretrained), "count": None, "longest": LONGEST, "exactly": None, "ways": {}}
    python = options.transformers / "bin" / "python"
    makers = {"ours": Peer("make_pretrained.py", work), "theirs": Peer("make_onnx.py", work, python=python)}
    for maker in makers.values():
        _ = maker.facts
    end(makers)
    return str(Path(spec["folder"]) / "run")


def _equal(said: dict[str, list[dict[str, Any]]]) -> dict[str, str]:
    """Return how many translations of the two browsers are the same, which they need not be in 8 bits."""
    if THEIRS not in said:
        return {}
    ours, theirs = (said[name][0]["translations"] for name in (OURS, THEIRS))
    return {"the same translations": f"{sum(map(str.__eq__, ours, theirs))} of {len(ours)}"}

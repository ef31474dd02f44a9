"""Decoding: output tokens per second of a random model, and sentences per second of a trained one."""

import argparse
import contextlib
import json
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from benchmarks.limit import step_products
from benchmarks.peer import Peer, Row, end, installed, rates
from benchmarks.train_step import SIZES

FORCED = {"source": 20, "target": 30, "vocabulary": 8000}
EXACTLY = {
    "min_length": FORCED["target"],
    "max_length": FORCED["target"],
    "length_penalty": 0.0,
    "early_stopping": True,
}
"""The search settings that write exactly as many tokens as `FORCED` says."""
CASES = ((1, 1), (8, 1), (32, 1), (128, 1), (1, 4), (8, 4), (32, 4))
"""The sentences of a batch, and the hypotheses of each."""
EXPORTS = {
    "ours": {},
    "ours, XLA": {"jit_compile": True},
    "ours, bfloat16": {"dtype": "bfloat16"},
    "ours, XLA bfloat16": {"jit_compile": True, "dtype": "bfloat16"},
}
LITERT = {"ours, LiteRT int8": "int8", "ours, LiteRT float32": "float32"}
PEERS = {"CTranslate2 float32": "float32", "CTranslate2 int8": "int8"}


def forced(options: argparse.Namespace) -> Iterator[Row]:
    """Yield rows for a `base` model with random weights that writes a fixed number of tokens per sentence."""
    exports = {name: way for name, way in EXPORTS.items() if way.get("dtype", "float32") in options.dtypes}
    searches = {name: EXACTLY | way for name, way in exports.items()}
    with random_base(options.threads, searches, LITERT) as (spec, parameters):
        peers = peers_forced(spec, exports, PEERS) | peers_litert(spec, EXACTLY)
        if options.opennmt_tf:
            work = spec | SIZES["base"] | {"beams": [1, 4]}
            peers["OpenNMT-tf float32"] = Peer(
                "decode_opennmt_tf.py", work, python=options.opennmt_tf / "bin" / "python"
            )
        prefix = {"prefix fed anew": Peer("decode_prefix.py", spec)}
        for size, beam in CASES:
            row = case(peers | prefix, size, beam, options.rounds)
            end(prefix)  # it can do the first case alone
            prefix = {}
            # Every step reads every weight of the decoder once, whatever the batch, and multiplies it with every row.
            gigaweights = row.median("ours") * parameters / 1e9
            reached = {
                "float32 product, GFLOP/s": 2 * beam * gigaweights,
                "memory read, GB/s": 4 * gigaweights / size,
                step_products(size * beam): row.median("ours") / size,
            }
            yield row._replace(reached=reached)
        end(peers)


def real(options: argparse.Namespace) -> Iterator[Row]:
    """Yield rows for a trained model and real sentences, with the peers' stopping rule, and ours with its own too."""
    if not (options.run_dir and options.sentences):
        print("decode-real: skipped; it needs --run-dir and --sentences")
        return
    longest = 80
    ways = {"ours": {}, "ours, XLA": {"jit_compile": True}, "ours, exact": {"early_stopping": False}}
    search = {"max_length": longest, "length_penalty": 0.0, "early_stopping": True}
    with tempfile.TemporaryDirectory() as folder:
        spec = {"folder": folder, "threads": options.threads}
        spec |= {"run_dir": str(options.run_dir), "sentences": str(options.sentences)}
        make(spec, {name: search | way for name, way in ways.items()}, LITERT)
        count = len(json.loads((Path(folder) / "texts.json").read_text())["texts"])
        peers = _peers(spec, ways, PEERS, 1, longest) | peers_litert(spec, search)
        for size, beam in CASES:
            task = {"batch": size, "batches": -(-count // size), "beam": beam}
            figures = rates(peers, options.rounds, count, **task)
            yield Row(f"decode real sentences, batch {size}, beam {beam}", "sentences/s", figures, {})
        end(peers)


def peers_litert(spec: dict[str, Any], search: dict[str, Any], names: Iterable[str] = LITERT) -> dict[str, Peer]:
    """Start the translators that use LiteRT, or those of them that are named."""
    return {name: Peer("decode_litert.py", spec | {"export": name, "search": search}) for name in names}


def peers_ctranslate2(spec: dict[str, Any], names: Iterable[str], least: int, most: int) -> dict[str, Peer]:
    """Start the translators of `PEERS` that are named; a translation has so many tokens at least, and at most."""
    work = spec | {"least": least, "most": most}
    return {name: Peer("decode_ctranslate2.py", work | {"type": PEERS[name]}) for name in names}


def peers_forced(spec: dict[str, Any], exports: Iterable[str], names: Iterable[str]) -> dict[str, Peer]:
    """Start translators with the models of `random_base`: those of the exports, and those of `PEERS` that are named."""
    return _peers(spec, exports, names, FORCED["target"], FORCED["target"])


def case(peers: dict[str, Peer], size: int, beam: int, rounds: int) -> Row:
    """Return the row of a batch size and a beam size for the models of `random_base`."""
    batches = max(1, 8 // size)
    task = {"batch": size, "batches": batches, "beam": beam}
    figures = rates(peers, rounds, batches * size * FORCED["target"], **task)
    return Row(f"decode base, batch {size}, beam {beam}", "output tokens/s", figures, {})


@contextlib.contextmanager
def random_base(
    threads: int, searches: dict[str, dict[str, Any]], litert: dict[str, str] | None = None
) -> Iterator[tuple[dict[str, Any], int]]:
    """Write a `base` model with random weights. Yield the spec of its workers, and what `make` returns."""
    with tempfile.TemporaryDirectory() as folder:
        spec = FORCED | {"folder": folder, "threads": threads, "preset": "base"}
        yield spec, make(spec, searches, litert or {})


def make(spec: dict[str, Any], searches: dict[str, dict[str, Any]], litert: dict[str, str]) -> int:
    """Write the models for greedy search and for a beam of 4, and return the number of the decoder's parameters.

    A single model serves both for CTranslate2, if that is installed, and for each LiteRT export that is asked for.
    """
    makers = {}
    for beam in (1, 4):
        work = {f"{name} {beam}": search | {"beam_size": beam} for name, search in searches.items()}
        converts = beam == 1 and bool(installed(PEERS))
        once = {"ctranslate2": converts, "litert": litert if beam == 1 else {}}
        makers[str(beam)] = Peer("make_models.py", spec | {"searches": work} | once)
    parameters = [maker.facts["parameters"] for maker in makers.values()]
    end(makers)
    return parameters[0]


def _peers(
    spec: dict[str, Any], exports: Iterable[str], names: Iterable[str], least: int, most: int
) -> dict[str, Peer]:
    ours = {name: Peer("decode_ours.py", spec | {"export": name, "beams": [1, 4]}) for name in exports}
    return ours | peers_ctranslate2(spec, names, least, most)

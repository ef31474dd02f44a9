"""`tf-transformer info`."""

import argparse
import itertools
import json
from typing import TYPE_CHECKING, Any

from tf_transformer.commands.chosen_model import MODEL_HELP
from tf_transformer.data.corpora import is_prepared
from tf_transformer.runs.descriptions import describe, is_export, is_litert

if TYPE_CHECKING:
    from tf_transformer.data.prepared import Prepared

SUMMARY = "Print what a run, an export or a prepared corpus is made of, as JSON."
PERCENTILES = (50, 90, 99)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what the command takes."""
    parser.add_argument("path", metavar="DIR", help=f"{MODEL_HELP}, or a prepared corpus")


def run(options: argparse.Namespace) -> None:
    """Print what a run, an export or a prepared corpus is made of."""
    from tf_transformer.data.prepared import Prepared  # NumPy takes a while
    from tf_transformer.runs import checkpoints
    from tf_transformer.runs.directory import RunDirectory

    if is_export(options.path) or is_litert(options.path):
        description = describe(options.path)
    elif is_prepared(options.path):
        description = _of_corpus(Prepared(options.path))
    else:
        found = RunDirectory(options.path)
        description = dict(found.description)
        if found.known():
            description["checkpoint"] = found.read_best(checkpoints.state_of)
    print(json.dumps(description, indent=1))


def _of_corpus(prepared: "Prepared") -> dict[str, Any]:
    """Return what a prepared corpus is made of, its lengths summed up."""
    manifest = prepared.manifest
    shown = ("format_version", "packages", "corpora", "languages", "directions", "validation", "config")
    return {
        **{key: manifest[key] for key in shown},
        "pairs": sum(corpus["pairs"] for corpus in prepared.corpora),
        "tokens": {side: _lengths(counts) for side, counts in manifest["lengths"].items()},
        "tokenizers": manifest["tokenizers"],
        "shards": len(manifest["shards"]),
        "bytes": sum(path.stat().st_size for path in prepared.path.iterdir()),
    }


def _lengths(counts: list[int]) -> dict[str, Any]:
    """Return sum, mean, percentiles and maximum of lengths, by how many there are of each."""
    pairs, tokens = sum(counts), sum(length * count for length, count in enumerate(counts))
    below = list(itertools.accumulate(counts))
    found = {str(p): next(i for i, count in enumerate(below) if 100 * count >= p * pairs) for p in PERCENTILES}
    return {"all": tokens, "mean": round(tokens / pairs, 2), "percentiles": found, "most": len(counts) - 1}

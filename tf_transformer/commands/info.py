"""`tf-transformer info`."""

import argparse
import itertools
import json
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from tf_transformer.commands.common.chosen_model import MODEL_HELP
from tf_transformer.data.corpora import is_prepared
from tf_transformer.runs.descriptions import describe, is_export, is_litert
from tf_transformer.runs.summaries import summary_of

if TYPE_CHECKING:
    from tf_transformer.data.prepared import Prepared

SUMMARY = "Describe a run, an export or a prepared corpus."
EXAMPLE = "tf-transformer info runs/toy"
PERCENTILES = (50, 90, 99)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what the command takes."""
    parser.add_argument("path", metavar="DIR", help=f"{MODEL_HELP}, or a prepared corpus")
    parser.add_argument("--json", action="store_true", help="print all that is known, as JSON (default: a summary)")


def run(options: argparse.Namespace) -> None:
    """Print what a run, an export or a prepared corpus is made of."""
    from tf_transformer.data.prepared import Prepared  # NumPy takes a while
    from tf_transformer.runs import checkpoints
    from tf_transformer.runs.directory import RunDirectory

    if is_export(options.path):
        kind, description = "export for LiteRT" if is_litert(options.path) else "SavedModel", describe(options.path)
    elif is_prepared(options.path):
        kind, description = "prepared corpus", _of_corpus(Prepared(options.path))
    else:
        found = RunDirectory(options.path)
        kind, description = "run directory", dict(found.description)
        if found.known():
            description["checkpoint"] = found.read_best(checkpoints.state_of)
        if is_prepared(found.prepared):
            description["corpora"] = Prepared(found.prepared).corpora
    if options.json:
        print(json.dumps(description, indent=1))
        return
    is_corpus = "shards" in description
    rows = {"Kind": kind, **(_summary_of_corpus(description) if is_corpus else summary_of(description))}
    if not is_corpus and (left_out := _left_out(description.get("corpora", ()))):
        rows["Left out"] = left_out
    rows["Written by"] = ", ".join(f"{name} {version}" for name, version in description["packages"].items())
    width = max(map(len, rows))
    for name, value in rows.items():
        print(f"{name:{width}}  {value}")


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


def _left_out(corpora: Iterable[Mapping[str, Any]]) -> str:
    """Return how many pairs of corpora were left out, by the reason, in words."""
    counts: Counter[str] = Counter()
    for corpus in corpora:
        counts.update(corpus["dropped"])
    return ", ".join(f"{count:,} {reason}" for reason, count in counts.items() if count)


def _lengths(counts: list[int]) -> dict[str, Any]:
    """Return sum, mean, percentiles and maximum of lengths, by how many there are of each."""
    pairs, tokens = sum(counts), sum(length * count for length, count in enumerate(counts))
    below = list(itertools.accumulate(counts))
    found = {str(p): next(i for i, count in enumerate(below) if 100 * count >= p * pairs) for p in PERCENTILES}
    return {"all": tokens, "mean": round(tokens / pairs, 2), "percentiles": found, "most": len(counts) - 1}


def _summary_of_corpus(description: dict[str, Any]) -> dict[str, str]:
    """Return the rows of a table about a prepared corpus."""
    rows = {}
    for number, corpus in enumerate(description["corpora"], 1):
        left_out = f"; left out: {dropped}" if (dropped := _left_out([corpus])) else ""
        rows[f"Corpus {number}"] = f"{corpus['name']}: {corpus['pairs']:,} of {corpus['given']:,} pairs{left_out}"
    for side, found in description["tokens"].items():
        shares = ", ".join(f"{share}% have at most {most}" for share, most in found["percentiles"].items())
        rows[f"Tokens of the {side}"] = f"{found['all']:,}; {found['mean']:g} a pair, {shares}, all {found['most']}"
    return rows | {
        "Vocabulary": ", ".join(f"{one['size']:,} tokens in {one['file']}" for one in description["tokenizers"]),
        **({"Languages": ", ".join(description["languages"])} if description["languages"] else {}),
        "Validation": f"{description['validation']['pairs']:,} pairs",
        "Size": f"{description['bytes'] / 1e6:,.1f} MB in {description['shards']} shards",
    }

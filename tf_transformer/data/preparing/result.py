"""What a prepared corpus has besides its shards: validation text, table of blocks and manifest."""

import dataclasses
import importlib.metadata
import io
import itertools
import json
import logging
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

from tf_transformer.config.sections import NEW
from tf_transformer.data.chunks import digest_of
from tf_transformer.data.corpora import MANIFEST, is_drawn, read, validation_data, validation_split, why_empty
from tf_transformer.data.pairs import Pairs
from tf_transformer.data.prepared import Prepared
from tf_transformer.data.prepared.manifest import BLOCK_TABLE, VALIDATION, fingerprint_of, written
from tf_transformer.data.prepared.shards import BLOCKS
from tf_transformer.data.preparing.chosen import numbered_chunks
from tf_transformer.data.preparing.normalized import NOTHING, warn_of_changed
from tf_transformer.data.preparing.plan import Plan
from tf_transformer.data.preparing.shard import Models
from tf_transformer.errors import InputError
from tf_transformer.storage.atomic import atomic_write
from tf_transformer.version import __version__

DROPPED = ("score", "untranslated", "fuzzy", "unapproved", "obsolete", "equal", "copy", "empty", "long", "ratio")
"""The reasons for leaving out pairs, in the order in which they are checked."""

log = logging.getLogger(__name__)


def validation_rows(plan: Plan) -> list[tuple[int, str, str]]:
    """Return the validation pairs with the numbers of their corpora. Pairs of several directions alternate.

    Raises:
        InputError: as `read`.
    """
    corpora = {i: read(held_out, validation_split(held_out)) for i, held_out in validation_data(plan.data).items()}
    rows = [[(i, source, target) for source, target in zip(*pairs, strict=True)] for i, pairs in corpora.items()]
    return [row for turn in itertools.zip_longest(*rows) for row in turn if row is not None]


def write_validation(rows: list[tuple[int, str, str]], folder: Path) -> None:
    """Write the validation text."""
    with atomic_write(folder / VALIDATION) as beside:
        beside.write_text("".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows), "utf-8")


def described(rows: list[tuple[int, str, str]]) -> dict[str, Any]:
    """Return the number of pairs and the fingerprint of the validation text."""
    pairs = Pairs.of((source, target) for _, source, target in rows)
    return {"pairs": len(rows), "fingerprint": pairs.fingerprint}


def fingerprints_of(plan: Plan) -> dict[str, dict[str, Any]]:
    """Return the fingerprints of the text that a plan names, without the number of its training pairs."""
    digests = [task.chunk.digest() for task in numbered_chunks(plan)]
    return {"train": {"fingerprint": fingerprint_of(digests)}, "validation": described(validation_rows(plan))}


def difference(there: Prepared, plan: Plan, readable: Callable[[], Plan]) -> str | None:
    """Return in what a prepared corpus differs from what a plan would prepare, or None if in nothing.

    Args:
        there: the corpus.
        plan: the plan.
        readable: returns the plan with files that can be read; it is called if all but the text is the same.
    """
    before, now = there.config, json.loads(json.dumps(plan.settings()))
    kept = {name: before["data"][name] for name in NEW["data"]}
    for name, value in kept.items():
        if getattr(plan.data, name) is None or not is_drawn(plan.data):  # it was not asked for, or does not matter
            now["data"][name] = value
    if plan.tokenizer.normalization is None:
        now["tokenizer"]["normalization"] = before["tokenizer"]["normalization"]
    if before != now:
        return "was prepared with other settings"
    if (tuple(there.manifest["languages"]), tuple(there.directions)) != (plan.languages, plan.directions):
        return "was prepared for other directions"
    given = plan.vocabularies
    if given and [one.model for one in given] != [one.model for one in there.vocabularies]:
        return "was prepared with other tokenizers"
    read = readable()
    text = fingerprints_of(dataclasses.replace(read, data=dataclasses.replace(read.data, **kept)))
    same = [there.fingerprints[split]["fingerprint"] == text[split]["fingerprint"] for split in text]
    return None if all(same) else "was prepared from other text"


def model_names(models: Models) -> list[str]:
    """Return the names of the files of SentencePiece models."""
    return ["tokenizer.model"] if len(models.files) == 1 else ["source.model", "target.model"]


def assemble(
    plan: Plan, models: Models, shards: Iterable[dict[str, Any]], validation: dict[str, Any], folder: Path
) -> None:
    """Write the table of blocks and the manifest, and report what was left out.

    Args:
        plan: what is prepared.
        models: the tokenizers.
        shards: the facts about each shard, as `Encoding` returns them, in order.
        validation: what `described` returns for the validation text.
        folder: the folder to write to, which has tokenizers and validation text.

    Raises:
        InputError: no pair is left.
    """
    corpora: list[dict[str, Any]] = [
        {"name": data.corpus, "given": 0, "pairs": 0, "dropped": dict.fromkeys(DROPPED, 0)} for data in plan.corpora
    ]
    described_shards, changed, blocks, lengths = [], [], [], [np.zeros(1, np.int64), np.zeros(1, np.int64)]
    for facts in shards:
        corpus = corpora[facts["shard"]["corpus"]]
        corpus["given"] += facts["given"]
        corpus["pairs"] += facts["shard"]["pairs"]
        for why, dropped in facts["dropped"].items():
            corpus["dropped"][why] += dropped
        described_shards.append(facts["shard"])
        changed.append(facts.get("changed", NOTHING))  # of a preparation that an earlier version began
        blocks.append(np.array([tuple(row) for row in facts["blocks"]], BLOCKS))
        lengths = [_added(*sides) for sides in zip(lengths, map(np.array, facts["lengths"]), strict=True)]
    _report(plan, corpora)
    warn_of_changed(changed, sum(corpus["given"] for corpus in corpora))
    table = io.BytesIO()
    np.save(table, np.concatenate([np.empty(0, BLOCKS), *blocks]))
    with atomic_write(folder / BLOCK_TABLE) as beside:
        beside.write_bytes(table.getvalue())
    names = model_names(models)
    manifest = {
        "packages": {"tf-transformer": __version__, "sentencepiece": importlib.metadata.version("sentencepiece")},
        "tokenizers": [{"file": n, "size": size} for n, size in zip(names, models.sizes, strict=True)],
        "languages": plan.languages,
        "directions": plan.directions,
        "corpora": corpora,
        "validation": validation,
        "lengths": {side: counts.tolist() for side, counts in zip(("source", "target"), lengths, strict=True)},
        "files": {n: digest_of((folder / n).read_bytes()) for n in (BLOCK_TABLE, VALIDATION, *names)},
        "shards": described_shards,
        "config": plan.settings(),
    }
    with atomic_write(folder / MANIFEST) as beside:
        beside.write_bytes(written(manifest))


def _added(counts: np.ndarray, more: np.ndarray) -> np.ndarray:
    """Return the sum of two lists of counts, of which one may be longer."""
    width = max(len(counts), len(more))
    return np.pad(counts, (0, width - len(counts))) + np.pad(more, (0, width - len(more)))


def _report(plan: Plan, corpora: list[dict[str, Any]]) -> None:
    """Report the pairs that were left out, and raise InputError if no pair is left."""
    given = sum(corpus["given"] for corpus in corpora)
    dropped = {why: sum(corpus["dropped"][why] for corpus in corpora) for why in DROPPED}
    said = " and ".join(f"{count} {words(plan)[why]}" for why, count in dropped.items() if count)
    if said:
        log.info("train: dropped pairs: %s, of %d", said, given)
    if given == sum(dropped.values()):
        raise nothing_left(plan, f". Received: {given} pairs{f', {said}' if said else ''}")


class NoPairError(InputError):
    """Text with no pair left to train on."""


def nothing_left(plan: Plan, why: str = "") -> NoPairError:
    """Return the error for text with no pair left to train on."""
    where = f"{plan.data.corpus}, split {plan.data.train_split!r}{why_empty(plan.data, plan.data.train_split)}"
    return NoPairError(f"no pair to train on in {where}{why}")


def words(plan: Plan) -> dict[str, str]:
    """Return the words for each reason to leave out pairs, which follow the number of pairs."""
    data = plan.data
    return {
        "score": f"below data.min_score={data.min_score}",
        "untranslated": "without a translation",
        "fuzzy": "with a translation marked as fuzzy",
        "unapproved": "with a translation that is not approved",
        "obsolete": "that are obsolete",
        "equal": "that equal an earlier pair",
        "copy": "whose source equals the target",
        "empty": "with an empty side",
        "long": f"longer than data.max_length={data.max_length} tokens",
        "ratio": f"with a ratio of lengths above data.max_length_ratio={data.max_length_ratio}",
    }

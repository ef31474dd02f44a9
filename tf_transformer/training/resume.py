"""Resuming a run: which differences are refused, and where the run stood."""

import hashlib
import json
import logging
from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf

from tf_transformer.data.batches import Place
from tf_transformer.errors import InputError
from tf_transformer.runs import checkpoints
from tf_transformer.runs.directory import RunDirectory
from tf_transformer.runs.weights import weights
from tf_transformer.tokenizers import Tokenizer
from tf_transformer.training.callbacks.saving import SUMS
from tf_transformer.training.strategy import Machines, is_chief
from tf_transformer.training.trainer import dropout_seeds

log = logging.getLogger(__name__)


def refuse_other_text(run: RunDirectory, texts: dict[str, Any]) -> None:
    """Raise InputError if a run was started with another text, or with other directions of it."""
    before = run.description["data"]
    run.refuse_differences(
        [
            f"{what} of {split} has changed"
            for split in ("train", "validation")
            for key, what in (("fingerprint", "the text"), ("directions", "the direction"))
            if _differ(before[split], texts[split], key)
        ]
    )


def _differ(before: dict[str, Any], now: dict[str, Any], key: str) -> bool:
    """Return whether text has changed. If the fingerprints are of different kinds, the sizes are compared."""
    if key == "fingerprint" and len(str(before.get(key))) != len(str(now.get(key))):
        key = "pairs"
    return key in now and before.get(key) != now.get(key)


def variables_of(model: keras.Model, optimizer: keras.optimizers.Optimizer) -> dict[str, Any]:
    """Return everything that training changes: weights, optimizer, and the states of the dropout generators."""
    # Keras numbers the generators of a process, so their paths depend on what else was built there.
    seeds = {f"seed/{i}": seed for i, seed in enumerate(dropout_seeds(model))}
    trained = {name: weight for name, weight in weights(model).items() if weight.trainable}
    return trained | {variable.path: variable for variable in optimizer.variables} | seeds


def restore(
    run: RunDirectory, variables: dict[str, Any], strategy: tf.distribute.Strategy
) -> tuple[int, Place, list[float]]:
    """Restore the last checkpoint that is not damaged.

    Returns:
        The updates that it has made, where it stands in its text, and what metrics had summed up there.

    The chief renames damaged checkpoints after it, and those of another run, so that they are no longer listed.

    Raises:
        InputError: all checkpoints are damaged.
    """
    known = run.known()
    aside = {path: "foreign" for path in checkpoints.all_of(run.checkpoints) if path not in known}
    found: tuple[int, Place, list[float]] | None = None
    for checkpoint in reversed(known):
        try:
            with strategy.scope():
                state = checkpoints.restore(checkpoint, variables)
        except checkpoints.MissingCheckpointError:  # it was damaged, and the chief has already renamed it
            continue
        except checkpoints.CorruptCheckpointError as error:
            log.warning("%s", error)
            aside[checkpoint] = "damaged"
            continue
        log.info("going on from %s", checkpoint)
        place = Place(state["epoch"], state.get("window", 0), state["batch"])
        found = state["step"], place, state.get(SUMS, [])
        break
    if found is None and known:
        raise InputError(f"all checkpoints of {run.path} are damaged: start a new run with --overwrite")
    if is_chief(strategy):
        for checkpoint, why in aside.items():
            checkpoints.set_aside(checkpoint, why)
    if found is None:
        log.info("%s has no checkpoint yet: it begins at its first update", run.path)
    return found or (0, Place(), [])


def check_same_start(
    machines: Machines, step: int, place: Place, texts: dict[str, Any], tokenizers: Sequence[Tokenizer]
) -> None:
    """Raise InputError if the machines of a cluster do not start from the same state.

    Args:
        machines: the machines of the cluster; each of them must call this.
        step: the updates that the run has made, by the checkpoint that this machine found.
        place: where it stands in its text, by the same.
        texts: what identifies the text that this machine read.
        tokenizers: the tokenizers of this machine.
    """
    # Only the machine that prepares the text needs its files.
    texts = {split: text for split, text in texts.items() if split != "files"}
    digests = [json.dumps(texts, sort_keys=True).encode(), b"".join(tokenizer.model for tokenizer in tokenizers)]
    # Sums of six-byte numbers over the machines are exact in float64.
    numbers = [int.from_bytes(hashlib.sha256(digest).digest()[:6]) for digest in digests]
    own = (step, *place, *numbers)
    differs = [
        total != number * machines.count for total, number in zip(machines.all_reduce_sum(*own), own, strict=True)
    ]
    *are_other_checkpoints, is_other_text, are_other_tokenizers = differs
    if any(are_other_checkpoints):
        raise InputError(
            f"the machines do not see the same checkpoints (this one is at step {step}): --run-dir must be on a "
            "file system that all of them share; start all of them again"
        )
    if is_other_text:
        read = ", ".join(f"{text['pairs']} {split} pairs, {text['fingerprint']}" for split, text in texts.items())
        raise InputError(
            f"the machines do not read the same text (this one has {read}): --run-dir, and a prepared corpus, must be "
            "on a file system that all of them share; start all of them again"
        )
    if are_other_tokenizers:
        raise InputError(
            "the machines do not have the same tokenizers: give all of them the same file by --tokenizer, or the same "
            "version of sentencepiece; start all of them again"
        )

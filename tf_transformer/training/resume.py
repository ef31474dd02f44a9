"""Going on with a run: what may differ, and where it stood."""

import logging
from pathlib import Path
from typing import Any, NamedTuple

import keras
import tensorflow as tf

from tf_transformer import checkpoints
from tf_transformer.config import Config
from tf_transformer.errors import InputError
from tf_transformer.run_directory import RunDirectory, weights
from tf_transformer.training.strategy import Machines, is_chief
from tf_transformer.training.trainer import dropout_seeds

MAY_CHANGE = {
    *(("training", name) for name in ("max_steps", "checkpoint_every", "keep_last", "keep_best", "deterministic")),
    *(("training", name) for name in ("early_stopping", "best_by", "samples")),
    *(("training", f"bleu_{name}") for name in ("every", "sentences", "tokenize")),
    # The text and the tokenizer themselves are compared.
    *(("data", name) for name in ("corpus", "extra_corpora", "validation_corpus")),
    ("tokenizer", "file"),
}
"""The settings that may differ when a run goes on: how long it is, what is kept and shown, where its input lies."""

log = logging.getLogger(__name__)


class Place(NamedTuple):
    """Where a run stands."""

    step: int = 0
    """updates made"""
    epoch: int = 0
    """epochs finished"""
    batch: int = 0
    """batches of the next epoch that were consumed"""


def refuse_differences(run: RunDirectory, config: Config, texts: dict[str, Any]) -> None:
    """Raise InputError, with the differences shown, where a run was started with another config or text."""
    if averaged := run.description.get("averaged"):
        raise InputError(
            f"{run.path} is the average of steps {', '.join(map(str, averaged['steps']))} of {averaged['run']}: it "
            "cannot go on. Start another run from it with --init-from"
        )
    old, new = run.config.as_dict(), config.as_dict()
    differences = [
        f"{section}.{key} was {old[section][key]!r}, is {new[section][key]!r}"
        for section in old
        for key in old[section]
        if old[section][key] != new[section][key] and section != "decoding" and (section, key) not in MAY_CHANGE
    ]
    before = run.description["data"]
    differences += [f"the text of {split} has changed" for split in texts if texts[split] != before[split]]
    file = config.tokenizer.file
    if file and Path(file).read_bytes() != run.tokenizers()[0].model:
        differences.append(f"{file} is another tokenizer")
    if differences:
        raise InputError(
            f"{run.path} was started with other settings: {'; '.join(differences)}. Give the same ones to go on, "
            "another --run-dir, or --overwrite to start anew"
        )


def variables_of(model: keras.Model, optimizer: keras.optimizers.Optimizer) -> dict[str, Any]:
    """Return all that training changes: weights, optimizer, and the states of the dropout generators."""
    # Keras numbers the generators of a process, so their paths depend on what else was built there.
    seeds = {f"seed/{i}": seed for i, seed in enumerate(dropout_seeds(model))}
    return weights(model) | {variable.path: variable for variable in optimizer.variables} | seeds


def restore(run: RunDirectory, variables: dict[str, Any], strategy: tf.distribute.Strategy) -> Place:
    """Restore the last checkpoint that is whole; the damaged ones after it are named and set aside by the chief.

    Raises:
        InputError: all of them are damaged.
    """
    damaged = []
    for checkpoint in reversed(checkpoints.all_of(run.checkpoints)):
        try:
            state = checkpoints.state_of(checkpoint)
            with strategy.scope():
                checkpoints.restore(checkpoint, variables)
        except checkpoints.CorruptCheckpointError as error:
            log.warning("%s", error)
            damaged.append(checkpoint)
            continue
        if is_chief(strategy):
            for later in damaged:
                checkpoints.set_aside(later)
        log.info("going on from %s", checkpoint)
        return Place(state["step"], state["epoch"], state["batch"])
    if damaged:
        raise InputError(f"all checkpoints of {run.path} are damaged: --overwrite starts anew")
    log.info("%s has no checkpoint yet: it begins at its first update", run.path)
    return Place()


def check_same_place(place: Place, machines: Machines) -> None:
    """Raise InputError where the machines of a cluster did not find the same checkpoint."""
    if machines.sum(*place) != [number * machines.count for number in place]:
        raise InputError(
            f"the machines do not see the same checkpoints (this one is at step {place.step}): --run-dir must be on a "
            "file system that all of them share; start all of them again"
        )

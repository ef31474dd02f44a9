"""The mean of several checkpoints of a run (paper 6.1)."""

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path

import keras
import numpy as np

from tf_transformer.errors import InputError
from tf_transformer.runs import checkpoints
from tf_transformer.runs.averaged_checkpoints import place_of_average, to_average
from tf_transformer.runs.directory import RunDirectory, write_run
from tf_transformer.runs.weights import (
    build_model,
    low_rank_changes,
    padded_to,
    saved_names,
    tokenizer_files,
    tokenizers_of,
    weights,
)
from tf_transformer.storage.atomic import atomic_write


def average_checkpoints(paths: Sequence[Path], model: keras.Model) -> None:
    """Set the weights of a model to the mean of the weights in several of its checkpoints.

    If training kept a moving average of the weights (`use_ema`), the moving averages are averaged, as in `average_run`.

    Args:
        paths: the paths of the checkpoints, such as `checkpoints.all_of(folder)[-5:]`.
        model: a model of the same kind as theirs.

    Raises:
        InputError: there is no checkpoint, or one is damaged or belongs to another model.
    """
    if not paths:
        raise InputError("give the checkpoints to average. Received: none")
    by_name = weights(model)
    means = _means(paths, list(by_name), is_averaged=False)
    for name, variable in by_name.items():
        variable.assign(means[name])


def _means(paths: Sequence[Path], names: Sequence[str], is_averaged: bool) -> Mapping[str, np.ndarray]:
    """Return the mean of each weight, or of its moving average, over checkpoints."""
    saved = saved_names(paths[-1], names, is_averaged)
    means = checkpoints.mean(paths, saved.values())
    return {name: means[saved[name]] for name in names}


def _means_of_low_rank(
    paths: Sequence[Path], frozen: Path, names: Sequence[str], is_averaged: bool
) -> Mapping[str, np.ndarray]:
    """Return the frozen weights plus the mean of what low-rank adaptation adds to them."""
    means = {name: array.copy() for name, array in checkpoints.read(frozen, names).items()}
    for path in paths:
        for name, change in low_rank_changes(path, is_averaged).items():
            means[name] += padded_to(change, means[name].shape) / len(paths)
    return means


def average_run(
    run_dir: str | Path,
    output: str | Path | None = None,
    *,
    last: int | None = None,
    best: int | None = None,
) -> RunDirectory:
    """Write the mean of the weights of several checkpoints as a model of its own (paper 6.1).

    If training keeps a moving average of the weights, the moving averages in the checkpoints are averaged.

    Args:
        run_dir: the run directory with the checkpoints.
        output: a new folder; by default `average-last-N` or `average-best-N` in the run directory.
        last: how many of the last checkpoints to average. The paper averaged 5 for its base model, 20 for the big one.
        best: how many of the checkpoints with the best validations to average instead.

    Returns:
        The new run directory. You can translate with it, export it and start other runs from it (`init_from`), but
        its training cannot continue.

    Raises:
        InputError: as `to_average`; the output exists; or a checkpoint is damaged.
    """
    run = RunDirectory(run_dir)
    chosen = to_average(run, last=last, best=best)
    place = place_of_average(run, output, last=last, best=best)
    steps = [checkpoints.state_of(path)["step"] for path in chosen]
    names = list(weights(build_model(run.config)))
    if run.frozen is None:
        means = _means(chosen, names, run.keeps_average)
    else:
        means = _means_of_low_rank(chosen, run.frozen, names, run.keeps_average)
    facts = run.facts() | {"averaged": {"run": str(run.path.resolve()), "steps": steps}}
    training = dataclasses.replace(run.config.training, ema_decay=0.0, lora_rank=0)
    with atomic_write(place) as beside:
        beside.mkdir()
        config = dataclasses.replace(run.config, training=training)
        id = write_run(beside, config, tokenizer_files(*tokenizers_of(run)), facts)
        checkpoints.write(RunDirectory(beside).checkpoints, steps[-1], means.items(), {"averaged": steps, "run": id})
    return RunDirectory(place)

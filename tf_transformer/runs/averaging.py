"""The mean of several checkpoints of a run (paper 6.1)."""

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path

import keras
import numpy as np

from tf_transformer.errors import InputError
from tf_transformer.files import written_whole
from tf_transformer.runs import checkpoints
from tf_transformer.runs.averaged_checkpoints import place_of_average, to_average
from tf_transformer.runs.directory import RunDirectory, write_run
from tf_transformer.runs.weights import (
    build_model,
    low_rank_changes,
    saved_names,
    tokenizer_files,
    tokenizers_of,
    weights,
)


def average_checkpoints(paths: Sequence[Path], model: keras.Model) -> None:
    """Give a model the mean of the weights in several checkpoints of it.

    Where training kept a moving average of the weights (`use_ema`), the mean is that of the moving averages, as in
    `average_run`.

    Args:
        paths: of the checkpoints, such as `checkpoints.all_of(folder)[-5:]`.
        model: of the same kind as theirs.

    Raises:
        InputError: no checkpoint; a damaged one, or one of another model.
    """
    if not paths:
        raise InputError("give the checkpoints to average. Received: none")
    by_name = weights(model)
    means = _means(paths, list(by_name))
    for name, variable in by_name.items():
        variable.assign(means[name])


def _means(paths: Sequence[Path], names: Sequence[str]) -> Mapping[str, np.ndarray]:
    """Return for each name of a weight the mean over checkpoints of what the model has for it."""
    saved = saved_names(paths[-1], names)
    means = checkpoints.mean(paths, saved.values())
    return {name: means[saved[name]] for name in names}


def _means_of_low_rank(paths: Sequence[Path], frozen: Path, names: Sequence[str]) -> Mapping[str, np.ndarray]:
    """Return the frozen weights with the mean of what low-rank factors add to them."""
    means = {name: array.copy() for name, array in checkpoints.read(frozen, names).items()}
    for path in paths:
        for name, change in low_rank_changes(path).items():
            means[name] += change / len(paths)
    return means


def average_run(
    run_dir: str | Path,
    output: str | Path | None = None,
    *,
    last: int | None = None,
    best: int | None = None,
) -> RunDirectory:
    """Write the mean of the weights of several checkpoints as a model of its own (paper 6.1).

    Where training keeps a moving average of the weights, the checkpoints' moving averages are what is averaged.

    Args:
        run_dir: of the checkpoints.
        output: a new folder; by default `average-last-N` or `average-best-N` in the run directory.
        last: average the last so many; the paper's base model took 5, the big one 20.
        best: average those of the best validations instead.

    Returns:
        The new run directory. It translates, exports and starts other runs (`init_from`), but does not go on.

    Raises:
        InputError: both or none of `last` and `best`; fewer checkpoints than that, or fewer that training keeps; an
            output that exists; a damaged checkpoint; last ones between which training has deleted others.
    """
    run = RunDirectory(run_dir)
    chosen = to_average(run, last=last, best=best)
    place = place_of_average(run, output, last=last, best=best)
    steps = [checkpoints.state_of(path)["step"] for path in chosen]
    names = list(weights(build_model(run.config)))
    means = _means(chosen, names) if run.frozen is None else _means_of_low_rank(chosen, run.frozen, names)
    facts = run.facts() | {"averaged": {"run": str(run.path.resolve()), "steps": steps}}
    training = dataclasses.replace(run.config.training, ema_decay=0.0, lora_rank=0)
    with written_whole(place) as beside:
        beside.mkdir()
        config = dataclasses.replace(run.config, training=training)
        id = write_run(beside, config, tokenizer_files(*tokenizers_of(run)), facts)
        checkpoints.write(RunDirectory(beside).checkpoints, steps[-1], means.items(), {"averaged": steps, "run": id})
    return RunDirectory(place)

"""The mean of several checkpoints of a run (paper 6.1)."""

import dataclasses
import shutil
from collections.abc import Sequence
from pathlib import Path

import keras

from tf_transformer import checkpoints
from tf_transformer.errors import InputError
from tf_transformer.run_directory import RunDirectory, build_model, weights


def average_checkpoints(paths: Sequence[Path], model: keras.Model) -> None:
    """Give a model the mean of the weights in several checkpoints of it.

    Args:
        paths: of the checkpoints, such as `checkpoints.all_of(folder)[-5:]`.
        model: of the same kind as theirs.

    Raises:
        InputError: a damaged checkpoint, or one of another model.
    """
    by_name = weights(model)
    means = checkpoints.mean(paths, by_name)
    for name, variable in by_name.items():
        variable.assign(means[name])


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
            output that exists; a damaged checkpoint.
    """
    if (last is None) == (best is None):
        raise InputError(f"give either how many of the last checkpoints, or of the best. Received: {last=}, {best=}")
    wanted = last if best is None else best
    if wanted is None or wanted < 1:
        raise InputError(f"the number of checkpoints must be at least 1. Received: {wanted}")
    run = RunDirectory(run_dir)
    settings = run.config.training
    known = checkpoints.all_of(run.checkpoints)
    candidates = known[::-1] if best is None else checkpoints.best(known, settings.best_by)
    kept = "keep_last" if best is None else "keep_best"
    # Of more than are kept, those between were deleted: an old one would be taken for one of the last.
    if wanted > getattr(settings, kept):
        raise InputError(
            f"{run.path} was trained with training.{kept}={getattr(settings, kept)}: train with --set "
            f"training.{kept}={wanted} to keep as many. Received: {wanted}"
        )
    if len(candidates) < wanted:
        raise InputError(
            f"{run.path} has {len(candidates)} {'' if best is None else 'validated '}checkpoints: average those, train "
            f"longer, or lower training.checkpoint_every. Received: {wanted}"
        )
    chosen = sorted(candidates[:wanted])
    place = Path(output or run.path / f"average-{'last' if best is None else 'best'}-{wanted}")
    if place.exists():
        raise InputError(f"{place} exists: give another --output, or remove it")
    names = run.saved_names(weights(build_model(run.config)))
    values = checkpoints.mean(chosen, names.values())
    steps = [checkpoints.state_of(path)["step"] for path in chosen]
    facts = run.facts() | {"averaged": {"run": str(run.path.resolve()), "steps": steps}}
    config = dataclasses.replace(run.config, training=dataclasses.replace(settings, ema_decay=0.0))
    averaged = RunDirectory.create(place, config, run.tokenizers(), facts)
    try:
        checkpoints.write(
            averaged.checkpoints, steps[-1], {name: values[saved] for name, saved in names.items()}, {"averaged": steps}
        )
    except BaseException:
        shutil.rmtree(place)
        raise
    return averaged

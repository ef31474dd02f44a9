"""Which checkpoints of a run are averaged, and where their mean goes; known without TensorFlow."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from tf_transformer.errors import InputError
from tf_transformer.runs import checkpoints
from tf_transformer.runs.directory import RunDirectory


def to_average(run: RunDirectory, *, last: int | None, best: int | None) -> list[Path]:
    """Return the checkpoints to average, the oldest first.

    Args:
        run: whose they are.
        last: the last so many.
        best: those of the best validations instead.

    Raises:
        InputError: both or none of `last` and `best`; fewer checkpoints than that, or fewer that training keeps; last
            ones between which training has deleted others.
    """
    if (last is None) == (best is None):
        raise InputError(f"give either how many of the last checkpoints, or of the best. Received: {last=}, {best=}")
    wanted = last if best is None else best
    if wanted is None or wanted < 1:
        raise InputError(f"the number of checkpoints must be at least 1. Received: {wanted}")
    settings = run.config.training
    known = run.known()
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
    if best is None:
        _check_chain(run, [checkpoints.state_of(path) for path in chosen])
    return chosen


def place_of_average(run: RunDirectory, output: str | Path | None, *, last: int | None, best: int | None) -> Path:
    """Return where an average is written: `output`, or `average-last-N` or `average-best-N` in the run.

    Raises:
        InputError: it exists.
    """
    place = Path(output or run.path / (f"average-last-{last}" if best is None else f"average-best-{best}"))
    if place.exists():
        raise InputError(f"{place} exists: give another --output, or remove it")
    return place


def _check_chain(run: RunDirectory, states: Sequence[Mapping[str, object]]) -> None:
    """Raise InputError where training has deleted checkpoints between these; each knows the one before it."""
    for i in range(len(states) - 1, 0, -1):
        before, here = states[i - 1]["step"], states[i]
        # Those of earlier versions do not know.
        if (previous := here.get("previous", before)) != before:
            raise InputError(
                f"{run.path} has deleted the checkpoint of step {previous}, which came before that of step "
                f"{here['step']}: average the last {len(states) - i}, or train on until as many are kept. "
                f"Received: {len(states)}"
            )

"""Choosing the checkpoints of a run to average, and the place of their mean, without TensorFlow."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from tf_transformer.errors import InputError
from tf_transformer.runs import checkpoints
from tf_transformer.runs.directory import RunDirectory
from tf_transformer.storage.atomic import refuse_existing


def to_average(run: RunDirectory, *, last: int | None, best: int | None) -> list[Path]:
    """Return the checkpoints to average, the oldest first.

    Args:
        run: the run of the checkpoints.
        last: how many of the last checkpoints to average.
        best: how many of the checkpoints with the best validations to average instead.

    Raises:
        InputError: both or neither of `last` and `best` are given; the run has fewer checkpoints, or training keeps
            fewer; or training has deleted checkpoints between the last ones.
    """
    if (last is None) == (best is None):
        raise InputError(
            f"give either the number of the last checkpoints or that of the best ones. Received: {last=}, {best=}"
        )
    wanted = last if best is None else best
    if wanted is None or wanted < 1:
        raise InputError(f"the number of checkpoints must be at least 1. Received: {wanted}")
    settings = run.config.training
    known = run.known()
    candidates = known[::-1] if best is None else checkpoints.best(known, settings.best_by)
    kept = "keep_last" if best is None else "keep_best"
    # Beyond the number that is kept, checkpoints in between were deleted, and an old one would count as a last one.
    if wanted > getattr(settings, kept):
        raise InputError(
            f"{run.path} was trained with training.{kept}={getattr(settings, kept)}: train with --set "
            f"training.{kept}={wanted} to keep enough checkpoints. Received: {wanted}"
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
    """Return the path of an average: `output`, or `average-last-N` or `average-best-N` in the run.

    Raises:
        InputError: the path exists.
    """
    place = Path(output or run.path / (f"average-last-{last}" if best is None else f"average-best-{best}"))
    refuse_existing(place)
    return place


def _check_chain(run: RunDirectory, states: Sequence[Mapping[str, object]]) -> None:
    """Raise InputError if training has deleted checkpoints between these. Each state names the step before its own."""
    for i in range(len(states) - 1, 0, -1):
        before, here = states[i - 1]["step"], states[i]
        # Checkpoints of earlier versions do not name it.
        if (previous := here.get("previous", before)) != before:
            raise InputError(
                f"training of {run.path} has deleted the checkpoint of step {previous}, the one before that of step "
                f"{here['step']}: average the last {len(states) - i}, or continue training until enough are kept. "
                f"Received: {len(states)}"
            )

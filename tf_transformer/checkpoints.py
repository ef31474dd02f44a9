"""Checkpoints: folders of one `variables.npz` and one `state.json` each, written whole or not at all.

NumPy alone reads the variables; every array carries a checksum.
"""

import json
import os
import shutil
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from tf_transformer.errors import InputError

PREFIX = "step-"


class CorruptCheckpointError(InputError):
    """A checkpoint that cannot be read back: truncated, or with a flipped bit."""


def path_of(folder: Path, step: int) -> Path:
    """Return where the checkpoint of `step` stands."""
    return folder / f"{PREFIX}{step:08d}"


def all_of(folder: Path) -> list[Path]:
    """Return the checkpoints in a folder, the oldest first."""
    return sorted(folder.glob(f"{PREFIX}*")) if folder.is_dir() else []


def save(folder: Path, step: int, variables: Mapping[str, Any], state: dict[str, Any]) -> Path:
    """Write the checkpoint of `step` beside its place, then rename it: it is there whole, or not at all.

    Args:
        folder: of all checkpoints.
        step: number of updates.
        variables: Keras variables, by name.
        state: what JSON can hold.
    """
    place = path_of(folder, step)
    beside = folder / f".{place.name}.{os.getpid()}"
    shutil.rmtree(beside, ignore_errors=True)
    beside.mkdir(parents=True)
    try:
        with (beside / "variables.npz").open("wb") as file:
            np.savez(file, allow_pickle=False, **{name: v.numpy() for name, v in variables.items()})
            file.flush()
            os.fsync(file.fileno())
        (beside / "state.json").write_text(json.dumps({"step": step} | state, indent=1))
        shutil.rmtree(place, ignore_errors=True)
        beside.rename(place)
    finally:
        shutil.rmtree(beside, ignore_errors=True)
    return place


def set_aside(checkpoint: Path) -> None:
    """Rename a damaged checkpoint so that it is listed no more."""
    aside = checkpoint.with_name(f"damaged-{checkpoint.name}")
    shutil.rmtree(aside, ignore_errors=True)
    checkpoint.rename(aside)


def remove_unfinished(folder: Path) -> None:
    """Remove what a process left that was killed as it saved."""
    for beside in folder.glob(f".{PREFIX}*"):
        shutil.rmtree(beside)


def state_of(checkpoint: Path) -> dict[str, Any]:
    """Return the state that was saved with a checkpoint."""
    try:
        return json.loads((checkpoint / "state.json").read_text())
    except (FileNotFoundError, ValueError) as error:
        raise CorruptCheckpointError(f"{checkpoint} is damaged: {error}") from None


def restore(checkpoint: Path, variables: Mapping[str, Any]) -> None:
    """Assign the saved values to Keras variables, by name; all are read before the first is assigned.

    Raises:
        CorruptCheckpointError: a damaged file.
        InputError: a variable that was not saved, or one of another shape.
    """
    values = {}
    try:
        with np.load(checkpoint / "variables.npz", allow_pickle=False) as saved:
            for name in variables.keys() & set(saved.files):
                values[name] = saved[name]
    except FileNotFoundError as error:
        raise CorruptCheckpointError(f"{checkpoint} is damaged: {error.strerror}") from None
    except (ValueError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise CorruptCheckpointError(f"{checkpoint} is damaged: {error}") from None
    for name, variable in variables.items():
        if name not in values:
            raise InputError(f"{checkpoint} is of another model: it holds no {name}")
        if tuple(variable.shape) != values[name].shape:
            raise InputError(
                f"{checkpoint} is of another model: {name} has shape {tuple(variable.shape)} here, "
                f"{values[name].shape} there"
            )
    for name, variable in variables.items():
        variable.assign(values[name])

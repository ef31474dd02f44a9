"""Checkpoints: one file each, `step-XXXXXXXX.npz`, written whole or not at all.

NumPy alone reads them. Every array in them carries a checksum; two of them are text, the state (JSON) and the names
of the others.
"""

import contextlib
import errno
import io
import json
import logging
import math
import os
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tf_transformer.errors import InputError
from tf_transformer.files import written_whole

PREFIX = "step-"
STATE, NAMES = "state", "names"
NO_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)

log = logging.getLogger(__name__)


class CorruptCheckpointError(InputError):
    """A checkpoint that cannot be read back: truncated, or with a flipped bit."""


class MissingCheckpointError(InputError):
    """A checkpoint that is there no more: training deletes the older ones."""


def path_of(folder: Path, step: int) -> Path:
    """Return where the checkpoint of `step` stands."""
    return folder / f"{PREFIX}{step:08d}.npz"


def all_of(folder: str | Path) -> list[Path]:
    """Return the checkpoints in a folder, the oldest first."""
    return sorted(Path(folder).glob(f"{PREFIX}*.npz"))


def best(known: Iterable[Path], best_by: str = "loss") -> list[Path]:
    """Return the checkpoints that were validated, the best first.

    Those that are damaged are named by a warning and passed over; so is, in silence, what training has deleted since
    it was listed, and a validation that is not a finite number.

    Args:
        known: checkpoints.
        best_by: "loss", of which the least is best, or "bleu", of which the most is.
    """
    validated = []
    for path in known:
        try:
            value = state_of(path).get(f"val_{best_by}")
        except MissingCheckpointError:
            continue
        except CorruptCheckpointError as error:
            log.warning("%s; passed over", error)
            continue
        if value is not None and math.isfinite(value):
            validated.append((-value if best_by == "bleu" else value, path))
    return [path for _, path in sorted(validated)]


def save(folder: Path, step: int, variables: Mapping[str, Any], state: dict[str, Any]) -> Path:
    """Write the checkpoint of `step` beside its place, then rename it: it is there whole, or not at all.

    Args:
        folder: of all checkpoints.
        step: number of updates.
        variables: Keras variables, by name.
        state: what JSON can hold.

    Raises:
        InputError: there is no room; the checkpoints before are kept.
    """
    return write(folder, step, ((name, variable.numpy()) for name, variable in variables.items()), state)


def write(folder: Path, step: int, values: Iterable[tuple[str, np.ndarray]], state: dict[str, Any]) -> Path:
    """Write a checkpoint of NumPy arrays, each under its name, one by one; otherwise as `save`."""
    place = path_of(folder, step)
    try:
        with written_whole(place) as beside, beside.open("wb") as file:
            names = []
            with zipfile.ZipFile(file, "w", allowZip64=True) as saved:
                for name, value in values:
                    _add(saved, name, value)
                    names.append(name)
                _add(saved, STATE, np.array(json.dumps({"step": step} | state)))
                _add(saved, NAMES, np.array("\n".join(names)))
            file.flush()
            os.fsync(file.fileno())
        _to_disk(folder)
    except OSError as error:
        if error.errno not in NO_SPACE:
            raise
        raise InputError(
            f"no room for the checkpoint of step {step} in {folder} ({error.strerror}): the checkpoints before it are "
            "kept. Make room and give the same command to go on"
        ) from None
    return place


def _add(saved: zipfile.ZipFile, name: str, value: np.ndarray) -> None:
    """Write an array as `np.savez` does."""
    with saved.open(f"{name}.npy", "w", force_zip64=True) as member:
        np.lib.format.write_array(member, np.asanyarray(value), allow_pickle=False)


def _to_disk(folder: Path) -> None:
    """Write the names in a folder to the disk, as fsync does the bytes of a file."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def set_aside(checkpoint: Path, why: str) -> None:
    """Rename a checkpoint so that it is listed no more; `why`, such as "damaged", goes before its name."""
    checkpoint.rename(checkpoint.with_name(f"{why}-{checkpoint.name}"))


def remove_unfinished(folder: Path) -> None:
    """Remove what a process left that was killed as it saved."""
    for beside in folder.glob(f".{PREFIX}*"):
        beside.unlink()


def state_of(checkpoint: Path) -> dict[str, Any]:
    """Return the state that was saved with a checkpoint; errors as of `read`."""
    return json.loads(str(read(checkpoint, [STATE])[STATE]))


def names_in(checkpoint: Path) -> set[str]:
    """Return the names of the arrays of a checkpoint; errors as of `read`."""
    return set(str(read(checkpoint, [NAMES])[NAMES]).split("\n"))


def read(checkpoint: Path, names: Iterable[str]) -> dict[str, np.ndarray]:
    """Return the saved arrays of those names that the checkpoint has; they cannot be written to.

    Raises:
        MissingCheckpointError: it is there no more.
        CorruptCheckpointError: a damaged file.
    """
    with _opened(checkpoint) as (saved, there):
        return {name: _array(saved, name) for name in set(names) & there}


@contextlib.contextmanager
def _opened(checkpoint: Path) -> Iterator[tuple[zipfile.ZipFile, set[str]]]:
    """Open a checkpoint; gives the file, and the names of what is in it. Errors as of `read`."""
    try:
        with zipfile.ZipFile(checkpoint) as saved:
            there = {name.removesuffix(".npy") for name in saved.namelist()}
            # The index of the file, unlike all else in it, has no checksum.
            if {STATE, NAMES, *str(_array(saved, NAMES)).split("\n")} - {""} != there:
                raise CorruptCheckpointError(f"{checkpoint} is damaged: its index is wrong")
            yield saved, there
    except InputError:
        raise
    except FileNotFoundError:
        raise MissingCheckpointError(f"{checkpoint} is there no more: training deletes the older ones") from None
    except (ValueError, EOFError, KeyError, RuntimeError, zipfile.BadZipFile, zlib.error) as error:
        raise CorruptCheckpointError(f"{checkpoint} is damaged: {error}") from None
    except OSError as error:
        if error.errno != errno.EINVAL:  # a damaged index may point to before the beginning
            raise
        raise CorruptCheckpointError(f"{checkpoint} is damaged: its index is wrong") from None


def _array(saved: zipfile.ZipFile, name: str) -> np.ndarray:
    """Return an array of a checkpoint.

    Its bytes are read to their end before the first is looked at: only there is the checksum compared, which NumPy's
    own reader, that stops where the header says, does not reach.
    """
    content = saved.read(f"{name}.npy")
    file = io.BytesIO(content)
    read_header = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    shape, is_fortran, dtype = read_header[np.lib.format.read_magic(file)](file)
    return np.ndarray(shape, dtype, content, file.tell(), order="F" if is_fortran else "C")


def restore(checkpoint: Path, variables: Mapping[str, Any]) -> dict[str, Any]:
    """Assign the saved values to Keras variables, by name, and return the state that was saved with them.

    All are read before the first is assigned, and then once more: a large model has no room for them twice.

    Raises:
        MissingCheckpointError: it is there no more.
        CorruptCheckpointError: a damaged file.
        InputError: a variable that was not saved, or one of another shape.
    """
    with _opened(checkpoint) as (saved, there):
        state = json.loads(str(_array(saved, STATE)))
        for name, variable in variables.items():
            if name not in there:
                raise InputError(f"{checkpoint} is of another model: it holds no {name}")
            if tuple(variable.shape) != (shape := _array(saved, name).shape):
                raise InputError(
                    f"{checkpoint} is of another model: {name} has shape {tuple(variable.shape)} here, {shape} there"
                )
        for name, variable in variables.items():
            variable.assign(_array(saved, name))
        return state


def mean(known: Sequence[Path], names: Iterable[str]) -> dict[str, np.ndarray]:
    """Return the means of saved arrays over checkpoints (paper 6.1), summed in float64.

    Raises:
        CorruptCheckpointError: a damaged file.
        InputError: one of them has no array of such a name.
    """
    sums: dict[str, Any] = dict.fromkeys(names, 0.0)
    for checkpoint in known:
        values = read(checkpoint, sums)
        if missing := sums.keys() - values.keys():
            raise InputError(f"{checkpoint} is of another model: it holds no {min(missing)}")
        for name, value in values.items():
            sums[name] = sums[name] + value.astype(np.float64)
    return {name: (total / len(known)).astype(np.float32) for name, total in sums.items()}

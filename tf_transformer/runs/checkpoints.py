"""Checkpoints: one file each, `step-XXXXXXXX.npz`, written whole or not at all.

Reading them takes only NumPy. Every array in them has a checksum. Two of the arrays are text: the state (JSON) and the
names of the other arrays.
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
from tf_transformer.storage.atomic import atomic_write

PREFIX = "step-"
STATE, NAMES = "state", "names"
NO_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)

log = logging.getLogger(__name__)


class CorruptCheckpointError(InputError):
    """A checkpoint that cannot be read back, such as a truncated one or one with a flipped bit."""


class MissingCheckpointError(InputError):
    """A checkpoint that no longer exists, because training deletes older ones."""


def path_of(folder: Path, step: int) -> Path:
    """Return the path of the checkpoint of `step`."""
    return folder / f"{PREFIX}{step:08d}.npz"


def all_of(folder: str | Path) -> list[Path]:
    """Return the checkpoints in a folder, the oldest first."""
    return sorted(Path(folder).glob(f"{PREFIX}*.npz"))


def best(known: Iterable[Path], best_by: str = "loss") -> list[Path]:
    """Return the checkpoints that were validated, the best first.

    Damaged checkpoints are skipped with a warning. Checkpoints that training has deleted meanwhile, or whose
    validation is not a finite number, are skipped silently.

    Args:
        known: the checkpoints.
        best_by: "loss", of which the lowest is best, or "bleu", of which the highest is best.
    """
    validated = []
    for path in known:
        try:
            value = state_of(path).get(f"val_{best_by}")
        except MissingCheckpointError:
            continue
        except CorruptCheckpointError as error:
            log.warning("%s; skipped", error)
            continue
        if value is not None and math.isfinite(value):
            validated.append((-value if best_by == "bleu" else value, path))
    return [path for _, path in sorted(validated)]


def save(folder: Path, step: int, variables: Mapping[str, Any], state: dict[str, Any]) -> Path:
    """Write the checkpoint of `step` to a temporary file and rename it, so that it is complete or does not exist.

    Args:
        folder: the folder of all checkpoints.
        step: the number of updates.
        variables: Keras variables, by name.
        state: values that JSON can represent.

    Raises:
        InputError: the disk is full; earlier checkpoints are kept.
    """
    return write(folder, step, ((name, variable.numpy()) for name, variable in variables.items()), state)


def write(folder: Path, step: int, values: Iterable[tuple[str, np.ndarray]], state: dict[str, Any]) -> Path:
    """Write a checkpoint of named NumPy arrays, one by one; otherwise as `save`."""
    place = path_of(folder, step)
    try:
        with atomic_write(place) as beside, beside.open("wb") as file:
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
            f"no room for the checkpoint of step {step} in {folder} ({error.strerror}): earlier checkpoints are kept. "
            "Free some space and run the same command again to continue"
        ) from None
    return place


def _add(saved: zipfile.ZipFile, name: str, value: np.ndarray) -> None:
    """Write an array as `np.savez` does."""
    with saved.open(f"{name}.npy", "w", force_zip64=True) as member:
        np.lib.format.write_array(member, np.asanyarray(value), allow_pickle=False)


def _to_disk(folder: Path) -> None:
    """Write the names in a folder to the disk, as fsync does for the bytes of a file."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def set_aside(checkpoint: Path, why: str) -> None:
    """Rename a checkpoint so that it is no longer listed; `why`, such as "damaged", is put before its name."""
    checkpoint.rename(checkpoint.with_name(f"{why}-{checkpoint.name}"))


def remove_unfinished(folder: Path) -> None:
    """Remove what is left of a process that was killed while it was saving."""
    for beside in folder.glob(f".{PREFIX}*"):
        beside.unlink()


def state_of(checkpoint: Path) -> dict[str, Any]:
    """Return the state that was saved with a checkpoint; raises what `read` raises."""
    return json.loads(str(read(checkpoint, [STATE])[STATE]))


def names_in(checkpoint: Path) -> set[str]:
    """Return the names of the arrays of a checkpoint; raises what `read` raises."""
    return set(str(read(checkpoint, [NAMES])[NAMES]).split("\n"))


def read(checkpoint: Path, names: Iterable[str]) -> dict[str, np.ndarray]:
    """Return the saved arrays of those names that the checkpoint has. The arrays are read-only.

    Raises:
        MissingCheckpointError: the checkpoint no longer exists.
        CorruptCheckpointError: the file is damaged.
    """
    with _opened(checkpoint) as (saved, there):
        return {name: _array(saved, name) for name in set(names) & there}


@contextlib.contextmanager
def _opened(checkpoint: Path) -> Iterator[tuple[zipfile.ZipFile, set[str]]]:
    """Open a checkpoint, and yield the file and the names of its arrays; raises what `read` raises."""
    try:
        with zipfile.ZipFile(checkpoint) as saved:
            there = {name.removesuffix(".npy") for name in saved.namelist()}
            # The index of the file is the only part of it without a checksum.
            if {STATE, NAMES, *str(_array(saved, NAMES)).split("\n")} - {""} != there:
                raise CorruptCheckpointError(f"{checkpoint} is damaged: its index is wrong")
            yield saved, there
    except InputError:
        raise
    except FileNotFoundError:
        raise MissingCheckpointError(f"{checkpoint} no longer exists: training deletes older checkpoints") from None
    except (ValueError, EOFError, KeyError, RuntimeError, zipfile.BadZipFile, zlib.error) as error:
        raise CorruptCheckpointError(f"{checkpoint} is damaged: {error}") from None
    except OSError as error:
        if error.errno != errno.EINVAL:  # a damaged index may point before the beginning
            raise
        raise CorruptCheckpointError(f"{checkpoint} is damaged: its index is wrong") from None


def _array(saved: zipfile.ZipFile, name: str) -> np.ndarray:
    """Return an array of a checkpoint.

    All of its bytes are read before the first is used, because the checksum is compared only at their end. NumPy's own
    reader stops where the header says, and may not reach that end.
    """
    content = saved.read(f"{name}.npy")
    file = io.BytesIO(content)
    read_header = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    shape, is_fortran, dtype = read_header[np.lib.format.read_magic(file)](file)
    return np.ndarray(shape, dtype, content, file.tell(), order="F" if is_fortran else "C")


def restore(checkpoint: Path, variables: Mapping[str, Any]) -> dict[str, Any]:
    """Assign the saved values to Keras variables, by name, and return the state that was saved with them.

    All values are read and checked before the first is assigned. They are then read again, because the values of a
    large model do not fit into memory twice.

    Raises:
        MissingCheckpointError: the checkpoint no longer exists.
        CorruptCheckpointError: the file is damaged.
        InputError: a variable was not saved, or was saved with another shape.
    """
    with _opened(checkpoint) as (saved, there):
        state = json.loads(str(_array(saved, STATE)))
        for name, variable in variables.items():
            if name not in there:
                raise InputError(f"{checkpoint} belongs to another model: it holds no {name}")
            if tuple(variable.shape) != (shape := _array(saved, name).shape):
                raise InputError(
                    f"{checkpoint} belongs to another model: {name} has shape {tuple(variable.shape)} here, "
                    f"{shape} there"
                )
        for name, variable in variables.items():
            variable.assign(_array(saved, name))
        return state


def mean(known: Sequence[Path], names: Iterable[str]) -> dict[str, np.ndarray]:
    """Return the means of saved arrays over checkpoints (paper 6.1), summed in float64.

    Raises:
        CorruptCheckpointError: a file is damaged.
        InputError: a checkpoint has no array of one of the names.
    """
    sums: dict[str, Any] = dict.fromkeys(names, 0.0)
    for checkpoint in known:
        values = read(checkpoint, sums)
        if missing := sums.keys() - values.keys():
            raise InputError(f"{checkpoint} belongs to another model: it holds no {min(missing)}")
        for name, value in values.items():
            sums[name] = sums[name] + value.astype(np.float64)
    return {name: (total / len(known)).astype(np.float32) for name, total in sums.items()}

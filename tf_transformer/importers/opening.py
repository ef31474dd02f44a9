"""Importing whatever model a folder holds."""

from collections.abc import Callable
from pathlib import Path

from tf_transformer.errors import InputError
from tf_transformer.importers import marian
from tf_transformer.importers.folder import read_json
from tf_transformer.importers.imported import Imported, write
from tf_transformer.importers.tensors import open_tensors
from tf_transformer.runs.directory import RunDirectory

ARCHITECTURES: dict[str, Callable[[Path], Imported]] = {"marian": marian.read}
"""What reads a folder of transformers, by the model_type of its config.json."""


def import_model(model: str | Path, run_dir: str | Path) -> RunDirectory:
    """Write the model of a folder as a run directory.

    Args:
        model: a folder as transformers saves a model.
        run_dir: a new folder.

    Raises:
        InputError: no such folder; a model of another architecture; what is missing, damaged or does not fit. Nothing
            is left of the run directory then.
    """
    folder = Path(model)
    if not folder.is_dir():
        raise InputError(f"{folder}: there is no such folder")
    if Path(run_dir).exists():
        raise InputError(f"{run_dir} exists: give another --run-dir, or remove it")
    config = read_json(folder / "config.json")
    kind = config.get("model_type") if isinstance(config, dict) else None
    if kind not in ARCHITECTURES:
        raise InputError(
            f"{folder} is a model of type {kind!r}, which cannot be imported; those of type "
            f"{', '.join(ARCHITECTURES)} can"
        )
    imported = ARCHITECTURES[kind](folder)
    with open_tensors(folder) as tensors:
        return write(imported, tensors, run_dir)

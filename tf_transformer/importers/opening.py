"""Importing the model that a folder or a file holds."""

import dataclasses
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tf_transformer.config import Config, override
from tf_transformer.errors import InputError
from tf_transformer.importers import hub, m2m100, marian, marian_npz
from tf_transformer.importers.adapter import check_has_base
from tf_transformer.importers.folder import read_object
from tf_transformer.importers.imported import Imported, write
from tf_transformer.importers.kinds import check_files, check_kind
from tf_transformer.runs.directory import RunDirectory
from tf_transformer.storage.atomic import refuse_existing

ARCHITECTURES: dict[str, Callable[[Path], Imported]] = {"marian": marian.read, "m2m_100": m2m100.read}
"""The functions that read a folder of transformers, by the model_type of its config.json."""
MAY_BE_SET = ("model.positions", "model.norm_epsilon")
"""The settings of the model that may be changed, because they do not follow from its weights."""


def import_model(model: str | Path, run_dir: str | Path, *layers: Mapping[str, Any]) -> RunDirectory:
    """Write a model of another project as a run directory.

    Args:
        model: a folder in which transformers saved a model; an .npz of Marian, or the folder of its decoder.yml; or
            the name of a model on the Hugging Face Hub, if the extra hub is installed.
        run_dir: a new folder.
        *layers: settings that override those of the folder, as `override` takes them: settings of decoding and data,
            and those of the model that do not follow from the weights.

    Raises:
        InputError: there is no such model, or it has another architecture; or something is missing, damaged or does
            not fit. No run directory is left then.
    """
    refuse_existing(Path(run_dir), "--run-dir")
    folder = Path(model)
    if from_hub := hub.is_name(folder):
        folder = hub.download(str(model))
    imported = _reader(folder)(folder)
    if from_hub:
        imported = imported._replace(origin=imported.origin | {"name": str(model)})
    config = _changed(imported.config, layers)
    config.decoding.check_languages(imported.languages)
    return write(imported._replace(config=config), run_dir)


def _reader(model: Path) -> Callable[[Path], Imported]:
    if model.is_dir():
        check_files(model)
    elif model.suffix == ".zip" and model.is_file():
        raise InputError(f"{model} is packed: unpack it, and give the folder")
    if model.suffix == ".npz" or (model / marian_npz.DECODER).is_file():
        return marian_npz.read
    if not model.is_dir():
        raise InputError(f"{model}: no such folder or .npz file")
    check_has_base(model)
    config = read_object(model / "config.json")
    kind = config.get("model_type")
    if not (isinstance(kind, str) and kind in ARCHITECTURES):
        raise InputError(
            f"{model} cannot be imported: its model_type must be one of {', '.join(ARCHITECTURES)}. Received: {kind!r}"
        )
    check_kind(model, config)
    return ARCHITECTURES[kind]


def _changed(config: Config, layers: tuple[Mapping[str, Any], ...]) -> Config:
    changed = override(config, *layers)
    before, after = dataclasses.asdict(config.model), dataclasses.asdict(changed.model)
    for name in before:
        if before[name] != after[name] and f"model.{name}" not in MAY_BE_SET:
            raise InputError(
                f"model.{name} follows from the weights and cannot be set; only {' and '.join(MAY_BE_SET)} can. "
                f"Received: {after[name]!r}"
            )
    return changed

"""The commands that take a model as it is: export, info; and what opens one for the others."""

import argparse
import dataclasses
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tf_transformer import config, settings
from tf_transformer.commands.places import check_place
from tf_transformer.errors import InputError
from tf_transformer.quiet import import_tensorflow

if TYPE_CHECKING:
    from tf_transformer.export import ExportedTranslator
    from tf_transformer.translator import Translator


def export(options: argparse.Namespace) -> None:
    """Write a run in the form that a runtime reads."""
    if Path(options.output).exists():
        raise InputError(f"{options.output} exists: give another --output, such as the next version, or remove it")
    check_place("--output", options.output)
    import_tensorflow()
    if options.format == "ctranslate2":
        from tf_transformer.ctranslate2_export import export_ctranslate2

        if given := _given(options):
            raise InputError(
                "CTranslate2 is told how to search when it is called, not when the model is written. "
                f"Received: {', '.join(sorted(given))}"
            )
        if options.dtype != "float32":
            raise InputError(
                f"CTranslate2 chooses its type when it loads a model (compute_type). Received: --dtype {options.dtype}"
            )
        print(f"exported: {export_ctranslate2(options.run_dir, options.output)}")
        return
    from tf_transformer import export as saved_model

    decoding = _decoding(options, options.run_dir) if _given(options) else None
    print(f"exported: {saved_model.export(options.run_dir, options.output, decoding, options.dtype)}")


def info(options: argparse.Namespace) -> None:
    """Print what a run or an export is made of."""
    import_tensorflow()
    from tf_transformer import checkpoints
    from tf_transformer.export import describe, is_export
    from tf_transformer.run_directory import RunDirectory

    path = Path(options.path)
    if is_export(path):
        description = describe(path)
    else:
        run = RunDirectory(path)
        description = dict(run.description)
        if checkpoints.all_of(run.checkpoints):
            description["checkpoint"] = checkpoints.state_of(run.best_checkpoint())
    print(json.dumps(description, indent=1))


def open_model(options: argparse.Namespace) -> "tuple[Translator | ExportedTranslator, dict[str, Any]]":
    """Return what translates, and the description of the model."""
    path = options.model
    if not Path(path).is_dir():
        raise InputError(f"--model {path}: there is no such folder")
    import_tensorflow()
    from tf_transformer.export import ExportedTranslator, is_export
    from tf_transformer.run_directory import RunDirectory
    from tf_transformer.translator import Translator

    if is_export(path):
        if given := _given(options):
            raise InputError(
                f"{path} is an export: how it searches was chosen when it was written. Give {min(given)} and the "
                "like to export, or a run directory here"
            )
        exported = ExportedTranslator(path)
        return exported, exported.description
    return Translator.load(path, _decoding(options, path)), RunDirectory(path).description


def _decoding(options: argparse.Namespace, run_dir: str) -> config.DecodingConfig:
    """Return how a run searches, with what the options say laid over it."""
    from tf_transformer.run_directory import RunDirectory

    return settings.override(RunDirectory(run_dir).config, *_given(options).values()).decoding


def _given(options: argparse.Namespace) -> dict[str, dict[str, Any]]:
    """Return the options of the search that were given, and what each sets; `--set` before those with a name."""
    layers: dict[str, dict[str, Any]] = {}
    for text in getattr(options, "set", ()):
        layer = settings.parse_setting(text)
        if "decoding" not in layer:
            raise InputError(f"only settings of decoding can be set here. Received: --set {text}")
        layers.pop(f"--set {text}", None)  # given again, it goes over those between
        layers[f"--set {text}"] = layer
    for name in (field.name for field in dataclasses.fields(config.DecodingConfig)):
        if (value := getattr(options, name, None)) is not None:
            layers[options.names[name]] = {"decoding": {name: value}}
    return layers

"""The commands that take a model as it is: export, info; and what opens one for the others."""

import argparse
import dataclasses
import importlib.util
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tf_transformer import config, settings
from tf_transformer.commands.places import check_place
from tf_transformer.descriptions import describe, is_export
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
    from tf_transformer.run_directory import RunDirectory

    run = RunDirectory(options.run_dir)
    run.best_checkpoint()  # refused before TensorFlow is imported
    given = _given(options)
    if options.format == "ctranslate2":
        if given:
            raise InputError(
                "CTranslate2 is told how to search when it is called, not when the model is written. "
                f"Received: {', '.join(sorted(given))}"
            )
        if options.dtype != "float32":
            raise InputError(
                f"CTranslate2 chooses its type when it loads a model (compute_type). Received: --dtype {options.dtype}"
            )
        if importlib.util.find_spec("ctranslate2") is None:
            raise InputError("the package ctranslate2 is missing: pip install 'tf-transformer[ctranslate2]'")
        import_tensorflow()
        from tf_transformer.ctranslate2_export import export_ctranslate2

        print(f"exported: {export_ctranslate2(options.run_dir, options.output)}")
        return
    decoding = settings.override(run.config, *given.values()).decoding
    import_tensorflow()
    from tf_transformer import export as saved_model

    print(f"exported: {saved_model.export(options.run_dir, options.output, decoding, options.dtype)}")


def info(options: argparse.Namespace) -> None:
    """Print what a run or an export is made of."""
    from tf_transformer import checkpoints
    from tf_transformer.run_directory import RunDirectory

    path = Path(options.path)
    if is_export(path):
        description = describe(path)
    else:
        run = RunDirectory(path)
        description = dict(run.description)
        if run.known():
            description["checkpoint"] = run.read_best(checkpoints.state_of)
    print(json.dumps(description, indent=1))


@dataclasses.dataclass(frozen=True)
class ModelChoice:
    """The model that `--model` names, and how it is to search; all that is known of it without TensorFlow."""

    path: str
    description: dict[str, Any]
    decoding: config.DecodingConfig

    @property
    def data(self) -> config.DataConfig:
        """What it was trained on."""
        return settings.override(config.Config(), self.description["config"]).data

    def open(self) -> "Translator | ExportedTranslator":
        """Return what translates."""
        import_tensorflow()
        if is_export(self.path):
            from tf_transformer.export import ExportedTranslator

            return ExportedTranslator(self.path)
        from tf_transformer.translator import Translator

        return Translator.load(self.path, self.decoding)


def chosen_model(options: argparse.Namespace) -> ModelChoice:
    """Return the model that the options name.

    Raises:
        InputError: there is none; settings of the search that do not fit it.
    """
    path = options.model
    if not Path(path).is_dir():
        raise InputError(f"--model {path}: there is no such folder")
    from tf_transformer.run_directory import RunDirectory

    description, given = describe(path), _given(options)
    if not is_export(path):
        RunDirectory(path).best_checkpoint()  # there must be one
    elif given:
        raise InputError(
            f"{path} is an export: how it searches was chosen when it was written. Give {min(given)} and the "
            "like to export, or a run directory here"
        )
    trained = settings.override(config.Config(), description["config"])
    return ModelChoice(path, description, settings.override(trained, *given.values()).decoding)


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

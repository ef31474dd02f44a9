"""The JSON descriptions of run directories and exports, read without TensorFlow."""

import json
from pathlib import Path
from typing import Any

from tf_transformer.config import Config, override
from tf_transformer.config.sections import WITHOUT_KEY
from tf_transformer.errors import InputError
from tf_transformer.storage.atomic import is_half_replaced

FORMAT_VERSION = 1
OF_RUN = Path("config.json")
"""The file of the description within a run directory."""
OF_EXPORT = Path("assets.extra", "tf_transformer.json")
"""The file of the description within a SavedModel."""
OF_LITERT = Path("tf_transformer.json")
"""The file of the description within an export for LiteRT."""
LITERT_MODEL = "model.tflite"
"""The file of the model within an export for LiteRT."""
WEB_MODEL = f"{LITERT_MODEL}.gz"
"""The same file within an export for browsers, whose description is that of an export for LiteRT."""
WARM_UP = Path("assets.extra", "tf_serving_warmup_requests")
"""The file, within an export, of the requests that a server runs first (TensorFlow Serving's "SavedModel warmup")."""

LANGUAGES = ("source_language", "target_language")
"""The names of the languages in the settings of the search and in the inputs of signatures."""


def is_export(path: str | Path) -> bool:
    """Say whether a folder is an export that this library translates with: a SavedModel, or one for LiteRT."""
    return is_saved_model(path) or is_litert(path)


def is_saved_model(path: str | Path) -> bool:
    """Say whether a folder is a SavedModel."""
    return (Path(path) / "saved_model.pb").exists()


def is_litert(path: str | Path) -> bool:
    """Say whether a folder is an export for LiteRT."""
    return (Path(path) / LITERT_MODEL).exists()


def is_web(path: str | Path) -> bool:
    """Say whether a folder is an export for browsers. With its files unpacked it is one for LiteRT as well."""
    return not is_litert(path) and (Path(path) / WEB_MODEL).exists() and (Path(path) / OF_LITERT).exists()


def refuse_web(path: str | Path) -> None:
    """Raise InputError for an export for browsers: only they read it."""
    if is_web(path):
        raise InputError(f"{path} is an export for browsers: export --format litert writes one that commands read")


def is_run(path: str | Path) -> bool:
    """Say whether a folder is a run directory; other models may have a config.json too."""
    if is_export(path):
        return False
    try:
        describe(path)
    except InputError:
        return False
    return True


def describe(path: str | Path) -> dict[str, Any]:
    """Return the description of a run directory or an export of this library: config, data, versions.

    Raises:
        InputError: `path` is neither, or has another format version.
    """
    refuse_web(path)
    folder = Path(path)
    kind, place = "run directory", OF_RUN
    if is_saved_model(folder):
        kind, place = "SavedModel exported by tf-transformer", OF_EXPORT
    elif is_litert(folder):
        kind, place = "LiteRT model exported by tf-transformer", OF_LITERT
    try:
        description = json.loads((folder / place).read_text("utf-8"))
        if (version := description["format_version"]) != FORMAT_VERSION:
            raise InputError(
                f"{folder} has format version {version}, but this version of tf-transformer reads {FORMAT_VERSION}"
            )
        description["config"]["model"]
    except (OSError, json.JSONDecodeError, UnicodeDecodeError, KeyError, TypeError):
        if is_half_replaced(folder):
            raise InputError(
                f"{folder} was left by training that was stopped as it began: run the same train command again"
            ) from None
        raise InputError(f"{folder} is not a {kind}: {_reason(folder, place)}") from None
    return description


def _reason(folder: Path, place: Path) -> str:
    """Return why a folder has no description."""
    if not folder.exists():
        return "there is no such folder"
    versions = [path for path in folder.glob("[0-9]*") if is_export(path)]
    if versions:
        return f"it holds versions of an export, so give one, such as {max(versions, key=lambda path: path.name)}"
    return f"{place} is missing or damaged"


class Described:
    """A run directory or an export with its description, read without TensorFlow.

    Raises:
        InputError: as `describe`; or this version does not know its settings.
    """

    def __init__(self, path: str | Path):
        self.path = Path(path)
        self.description = describe(self.path)
        self.config = override(Config(), WITHOUT_KEY, self.description["config"])

    @property
    def languages(self) -> tuple[str, ...]:
        """The languages that the model translates between, each with a token; () if it has one direction."""
        return tuple(self.description.get("languages", ()))

    @property
    def most_source(self) -> int:
        """The most source tokens that the search takes, including the end token.

        Raises:
            InputError: as `DecodingConfig.most_source`.
        """
        return self.config.decoding.most_source(self._positions, bool(self.languages))

    def most_target(self, source: int) -> int:
        """The most target tokens, including the end token, that the search writes for so many source tokens."""
        decoding, before = self.config.decoding, int(bool(self.languages))
        limit = source - before - 1 + decoding.max_extra_length
        most = decoding.most_written(self._positions, before)
        return limit if most is None else min(limit, most)

    @property
    def _positions(self) -> int | None:
        """The number of positions that the model has learned; None if it takes any."""
        model = self.config.model
        return model.max_positions if model.positions == "learned" else None

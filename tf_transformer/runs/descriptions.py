"""What a run directory or an export says of itself, in JSON; TensorFlow is not needed to read it."""

import json
from pathlib import Path
from typing import Any

from tf_transformer.config import Config, override
from tf_transformer.errors import InputError
from tf_transformer.files import is_half_replaced

FORMAT_VERSION = 1
OF_RUN = Path("config.json")
"""Where the description of a run stands in its directory."""
OF_EXPORT = Path("assets.extra", "tf_transformer.json")
"""Where that of a SavedModel stands."""
OF_LITERT = Path("tf_transformer.json")
"""Where that of an export for LiteRT stands."""
LITERT_MODEL = "model.tflite"
"""What such an export has besides."""
WARM_UP = Path("assets.extra", "tf_serving_warmup_requests")
"""Where an export has the requests that a server runs before it serves it: TensorFlow Serving's "SavedModel warmup"."""

LANGUAGES = ("source_language", "target_language")
"""What settings of the search and inputs of signatures call the languages of a model of several."""


def is_export(path: str | Path) -> bool:
    """Say whether a folder is a SavedModel."""
    return (Path(path) / "saved_model.pb").exists()


def is_litert(path: str | Path) -> bool:
    """Say whether a folder is an export for LiteRT."""
    return (Path(path) / LITERT_MODEL).exists()


def is_run(path: str | Path) -> bool:
    """Say whether a folder is a run directory; there are other models with a config.json."""
    if is_export(path) or is_litert(path):
        return False
    try:
        describe(path)
    except InputError:
        return False
    return True


def describe(path: str | Path) -> dict[str, Any]:
    """Return what a run or an export of ours says of itself: config, data, versions.

    Raises:
        InputError: `path` is neither, or it is of another format.
    """
    folder = Path(path)
    kind, place = "run directory", OF_RUN
    if is_export(folder):
        kind, place = "SavedModel of ours", OF_EXPORT
    elif is_litert(folder):
        kind, place = "export of ours for LiteRT", OF_LITERT
    try:
        description = json.loads((folder / place).read_text("utf-8"))
        if (version := description["format_version"]) != FORMAT_VERSION:
            raise InputError(f"{folder} has format version {version}; this version of ours reads {FORMAT_VERSION}")
        description["config"]["model"]
    except (OSError, json.JSONDecodeError, UnicodeDecodeError, KeyError, TypeError):
        if is_half_replaced(folder):
            raise InputError(
                f"{folder} was left by a training that was stopped as it began: give the same train command again"
            ) from None
        raise InputError(f"{folder} is not a {kind}: {place} is missing or damaged") from None
    return description


class Described:
    """A run directory or an export, as it describes itself; read without TensorFlow.

    Raises:
        InputError: as `describe`; settings that this version does not know.
    """

    def __init__(self, path: str | Path):
        self.path = Path(path)
        self.description = describe(self.path)
        self.config = override(Config(), self.description["config"])

    @property
    def languages(self) -> tuple[str, ...]:
        """Those that it translates between, each with a token; () where it has one direction."""
        return tuple(self.description.get("languages", ()))

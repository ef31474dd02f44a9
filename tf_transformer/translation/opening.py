"""Opening whatever translates."""

from pathlib import Path

from tf_transformer.config import DecodingConfig
from tf_transformer.runs.descriptions import Described, is_export
from tf_transformer.runs.directory import RunDirectory
from tf_transformer.translation.exported import ExportedTranslator
from tf_transformer.translation.results import TextTranslator
from tf_transformer.translation.translator import Translator


def open_translator(model: str | Path | Described, decoding: DecodingConfig | None = None) -> TextTranslator:
    """Open a run directory or an export.

    Args:
        model: its folder, or what has been read of it.
        decoding: how a run searches; its own settings by default. That of an export was fixed when it was written, but
            for the languages.

    Raises:
        InputError: neither of them, or one without weights.
    """
    path = model.path if isinstance(model, Described) else model
    if is_export(path):
        return ExportedTranslator(model, decoding)
    return Translator.load(model if isinstance(model, RunDirectory) else path, decoding)

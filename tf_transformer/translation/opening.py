"""Opening whatever translates."""

from pathlib import Path
from typing import TYPE_CHECKING

from tf_transformer.config import DecodingConfig
from tf_transformer.errors import InputError
from tf_transformer.runs.descriptions import Described, is_export, is_litert
from tf_transformer.runs.directory import RunDirectory

if TYPE_CHECKING:
    from tf_transformer.translation.results import TextTranslator


def open_translator(model: str | Path | Described, decoding: DecodingConfig | None = None) -> "TextTranslator":
    """Open a run directory or an export. TensorFlow is imported where the model needs it.

    Args:
        model: its folder, or what has been read of it.
        decoding: how to search; by default as the model says. That of a SavedModel was fixed when it was written, but
            for the languages.

    Raises:
        InputError: none of them, or one without weights; an extra that is missing.
    """
    path = model.path if isinstance(model, Described) else model
    if is_litert(path):
        try:
            from tf_transformer.litert import Translator as LiteRTTranslator
        except ImportError as error:
            raise InputError(str(error)) from None
        return LiteRTTranslator.load(model, decoding)
    if is_export(path):
        from tf_transformer.translation.exported import ExportedTranslator

        return ExportedTranslator(model, decoding)
    from tf_transformer.translation.translator import Translator

    return Translator.load(model if isinstance(model, RunDirectory) else path, decoding)

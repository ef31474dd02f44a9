"""Opening a model of any kind to translate with it."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tf_transformer.config import DecodingConfig
from tf_transformer.errors import InputError
from tf_transformer.runs.descriptions import Described, is_export, is_litert, is_saved_model
from tf_transformer.runs.directory import RunDirectory
from tf_transformer.text.batching import BATCH_TOKENS

if TYPE_CHECKING:
    from tf_transformer.text.translator import TextTranslator


def open_translator(
    model: str | Path | Described,
    decoding: DecodingConfig | None = None,
    others: Sequence[RunDirectory] = (),
    *,
    batch_tokens: int = BATCH_TOKENS,
) -> "TextTranslator":
    """Open a run directory or an export. TensorFlow is imported only if the model needs it.

    Args:
        model: its folder, or its `Described`.
        decoding: how to search; by default as the model says. A SavedModel takes only the languages from it, because
            its search was fixed at export.
        others: runs that translate with it as an ensemble, which is of runs alone.
        batch_tokens: the most tokens that LiteRT computes at once; TensorFlow takes a batch as it is.

    Raises:
        InputError: a folder that is neither, or has no weights; a missing extra; an export beside others; runs with
            different vocabularies.
    """
    path = model.path if isinstance(model, Described) else model
    if others and is_export(path):
        raise InputError(f"{path} is an export, but an ensemble is made of run directories")
    if is_litert(path):
        from tf_transformer.litert import Translator as LiteRTTranslator

        return LiteRTTranslator.load(model, decoding, batch_tokens=batch_tokens)
    if is_saved_model(path):
        from tf_transformer.translation.exported import ExportedTranslator

        return ExportedTranslator(model, decoding)
    from tf_transformer.translation.translator import Translator

    return Translator.load([model if isinstance(model, RunDirectory) else path, *others], decoding)

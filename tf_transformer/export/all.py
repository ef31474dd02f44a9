"""Export as a SavedModel and, in a folder within it, for LiteRT: one version, which any runtime finds."""

import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path

from tf_transformer.config import DecodingConfig
from tf_transformer.export import litert, saved_model
from tf_transformer.export.warm_up import sentence_of
from tf_transformer.litert import Translator
from tf_transformer.runs.descriptions import OF_EXPORT
from tf_transformer.runs.directory import RunDirectory
from tf_transformer.runs.runtimes import LITERT_WITHIN, SPEEDS, cpu
from tf_transformer.runs.weights import tokenizers_of
from tf_transformer.storage.atomic import atomic_write, refuse_existing
from tf_transformer.translation.exported import ExportedTranslator

ROUNDS = 7
"""How many times each export translates a sentence, in turns."""


def export(
    run_dir: str | Path | RunDirectory,
    output: str | Path,
    decoding: DecodingConfig | None = None,
    dtype: str = "float32",
    quantize: str = "int8",
) -> Path:
    """Export the best checkpoint of a run as a SavedModel with an export for LiteRT in its folder `litert`.

    Both then translate the same sentence alone, in turns, and the description of the SavedModel says how many sentences
    a second each did, and on which CPU. Commands that open it there name the other if it is much faster.

    Args:
        run_dir: the path of the run, or its `RunDirectory`.
        output: a new folder.
        decoding: how to search; by default as the run does.
        dtype: the type of the SavedModel, as `saved_model.export` takes it.
        quantize: the type of the weights for LiteRT, as `litert.export` takes it.

    Raises:
        InputError: as for either of them.
    """
    output = Path(output)
    refuse_existing(output)
    run = run_dir if isinstance(run_dir, RunDirectory) else RunDirectory(run_dir)
    with atomic_write(output) as beside:
        beside.mkdir()
        litert.save_run(run, beside / LITERT_WITHIN, f"{output.name}/{LITERT_WITHIN}", decoding, quantize)
        saved_model.save_runs(run, beside, output.name, decoding, dtype)
        translate: dict[str, Callable[[list[str]], list[str]]] = {
            "saved_model": ExportedTranslator(beside).translate_strings,
            "litert": Translator.load(beside / LITERT_WITHIN).translate_strings,
        }
        speeds = measured(translate, sentence_of(tokenizers_of(run)[0]))
        description = json.loads((beside / OF_EXPORT).read_text("utf-8")) | {SPEEDS: {"cpu": cpu()} | speeds}
        (beside / OF_EXPORT).write_text(json.dumps(description, indent=1) + "\n", "utf-8")
    return output


def measured(translate: dict[str, Callable[[list[str]], list[str]]], sentence: str) -> dict[str, float]:
    """Return how many sentences a second each translates alone: the median of rounds in which they take turns."""
    seconds: dict[str, list[float]] = {name: [] for name in translate}
    for _ in range(1 + ROUNDS):
        for name, by in translate.items():
            start = time.perf_counter()
            by([sentence])
            seconds[name].append(time.perf_counter() - start)
    # TensorFlow optimises its graph in the first round.
    return {name: round(1 / statistics.median(of_rounds[1:]), 2) for name, of_rounds in seconds.items()}

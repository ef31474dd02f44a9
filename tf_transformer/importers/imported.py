"""A model as an importer reads it, and how it is written as a run directory."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tf_transformer.config import Config
from tf_transformer.importers.tensors import Tensors
from tf_transformer.runs import checkpoints
from tf_transformer.runs.directory import CHECKPOINTS, RunDirectory, new_id, write_run
from tf_transformer.storage.atomic import atomic_write


class Imported(NamedTuple):
    """A model of another project in our terms."""

    config: Config
    tokenizers: dict[str, bytes]
    """SentencePiece models by the names of their files in a run directory"""
    open: Callable[[], AbstractContextManager[Tensors]]
    """opens the original weights"""
    weights: Callable[[Tensors], Iterable[tuple[str, np.ndarray]]]
    """yields our name and the array of each weight, once each"""
    origin: dict[str, Any]
    """where the model comes from, as JSON"""
    languages: tuple[str, ...] = ()
    """the languages that have a token, if the model has several directions"""


def write(imported: Imported, run_dir: str | Path) -> RunDirectory:
    """Write a new run directory, which appears only once it is complete.

    Raises:
        InputError: weights are missing, left over or of another shape.
    """
    place, id, parameters = Path(run_dir), new_id(), 0

    def counted(weights: Iterable[tuple[str, np.ndarray]]) -> Iterator[tuple[str, np.ndarray]]:
        nonlocal parameters
        for name, array in weights:
            parameters += array.size
            yield name, array

    with imported.open() as tensors, atomic_write(place) as beside:
        beside.mkdir()
        # One by one, because there may be memory for only one copy of a large model.
        checkpoints.write(beside / CHECKPOINTS, 0, counted(imported.weights(tensors)), {"run": id})
        tensors.check_all_taken()
        facts: dict[str, Any] = {"parameters": parameters, "origin": imported.origin}
        if imported.languages:
            facts["languages"] = imported.languages
        write_run(beside, imported.config, imported.tokenizers, facts, id)
    return RunDirectory(place)

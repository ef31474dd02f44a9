"""What an importer makes of a model folder, and how that is written."""

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tf_transformer.config import Config
from tf_transformer.files import written_whole
from tf_transformer.importers.tensors import Tensors
from tf_transformer.runs import checkpoints
from tf_transformer.runs.directory import RunDirectory, write_run


class Imported(NamedTuple):
    """A model of others in our terms."""

    config: Config
    tokenizers: dict[str, bytes]
    """SentencePiece models by the names of their files in a run directory"""
    open: Callable[[], AbstractContextManager[Tensors]]
    """opens the weights as they are"""
    weights: Callable[[Tensors], Iterable[tuple[str, np.ndarray]]]
    """gives our names and arrays, each once"""
    origin: dict[str, Any]
    """where it comes from; JSON"""


def write(imported: Imported, run_dir: str | Path) -> RunDirectory:
    """Write an ordinary run directory where there is nothing; it is there whole, or not at all.

    Raises:
        InputError: weights that are missing, left over or of another shape.
    """
    place = Path(run_dir)
    with imported.open() as tensors:
        weights = dict(imported.weights(tensors))
        tensors.check_all_taken()
    facts = {"parameters": sum(array.size for array in weights.values()), "origin": imported.origin}
    with written_whole(place) as beside:
        beside.mkdir()
        run_id = write_run(beside, imported.config, imported.tokenizers, facts)
        checkpoints.write(RunDirectory(beside).checkpoints, 0, weights, {"run": run_id})
    return RunDirectory(place)

"""Models with the weights that a run has saved."""

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, cast

import keras
import numpy as np
import tensorflow as tf

from tf_transformer.config import Config
from tf_transformer.errors import InputError
from tf_transformer.model import Ensemble, Transformer
from tf_transformer.model.low_rank import FACTORS, LEARNED, ROWS
from tf_transformer.runs import checkpoints
from tf_transformer.runs.directory import RunDirectory
from tf_transformer.tokenizers import Tokenizer

Run = str | Path | RunDirectory
"""The path of a run directory, or the directory as it has been read."""
RunOrRuns = Run | Sequence[Run]
AVERAGE = "_average"
"""What Keras lets the names of moving averages end with."""


class Loaded(NamedTuple):
    """What `load` returns."""

    model: Transformer
    source_tokenizer: Tokenizer
    target_tokenizer: Tokenizer
    config: Config


class LoadedRuns(NamedTuple):
    """What `load_runs` returns."""

    model: Transformer | Ensemble
    source_tokenizer: Tokenizer
    target_tokenizer: Tokenizer
    runs: list[RunDirectory]
    checkpoints: list[dict[str, Any]]
    """of each run, what was saved with its weights"""


def load(run_dir: Run, dtype: str = "float32") -> Loaded:
    """Return the model of a run, with the weights of its best checkpoint, its tokenizers and its config.

    Args:
        run_dir: the path of the run directory, or the directory as it has been read.
        dtype: the Keras dtype policy in which the model computes, whichever it was trained in.

    Raises:
        InputError: `run_dir` is not a run directory, or has no checkpoint.
    """
    loaded = load_runs(run_dir, dtype)
    model = cast(Transformer, loaded.model)  # of one run, it is no ensemble
    return Loaded(model, loaded.source_tokenizer, loaded.target_tokenizer, loaded.runs[0].config)


def load_runs(run_dirs: RunOrRuns, dtype: str = "float32") -> LoadedRuns:
    """As `load`, for one run or for several, whose models become an `Ensemble`.

    Raises:
        InputError: as `load`; runs with different vocabularies.
    """
    given = [run_dirs] if isinstance(run_dirs, Run) else run_dirs
    runs = [run if isinstance(run, RunDirectory) else RunDirectory(run) for run in given]
    models = [build_model(run.config, dtype) for run in runs]
    states = [restore_best(run, model) for run, model in zip(runs, models, strict=True)]
    first, *others = [tokenizers_of(run) for run in runs]
    for run, tokenizers in zip(runs[1:], others, strict=True):
        for side, ours, theirs in zip(("source", "target"), first, tokenizers, strict=True):
            if ours.pieces != theirs.pieces:
                raise InputError(
                    f"an ensemble needs one vocabulary: {run.path} has another {side} vocabulary than {runs[0].path}. "
                    "Train both with the same --tokenizer"
                )
    return LoadedRuns(Ensemble(models) if others else models[0], *first, runs, states)


def build_model(config: Config, dtype: str = "float32") -> Transformer:
    """Return a new model; `dtype` is a Keras dtype policy."""
    try:
        model = Transformer(**dataclasses.asdict(config.model), dtype=dtype)
        model.build(((None, None), (None, None)))
    except ValueError as error:
        raise InputError(f"model: {error}") from None
    except tf.errors.ResourceExhaustedError as error:
        raise InputError(f"the model does not fit into memory: {error.message}") from None
    return model


def check_backend(what: str) -> None:
    """Raise InputError if Keras does not run on TensorFlow, which `what` needs."""
    if (backend := keras.backend.backend()) != "tensorflow":
        raise InputError(
            f"{what} needs Keras on TensorFlow: set KERAS_BACKEND=tensorflow before Keras is imported. "
            f"Received: {backend}"
        )


def restore_best(run: RunDirectory, model: keras.Model) -> dict[str, Any]:
    """Set the weights of a model of the same kind to those of the best checkpoint, and return the saved state.

    What low-rank adaptation has learned is merged into the weights. What the model has of its own stays unchanged.
    """
    by_name = {name: weight for name, weight in weights(model).items() if weight.name not in LEARNED}

    def restore(checkpoint: Path) -> dict[str, Any]:
        if run.frozen is None:
            names = saved_names(checkpoint, by_name, run.keeps_average)
            return checkpoints.restore(checkpoint, {names[name]: weight for name, weight in by_name.items()})
        changes = low_rank_changes(checkpoint, run.keeps_average)
        checkpoints.restore(run.frozen, by_name)
        for name, change in changes.items():
            by_name[name].assign_add(padded_to(change, by_name[name].shape))
        return checkpoints.state_of(checkpoint)

    return run.read_best(restore)


def low_rank_changes(checkpoint: Path, is_averaged: bool) -> dict[str, np.ndarray]:
    """Return what low-rank adaptation adds to weights in a checkpoint, by the names of the weights.

    To a table of embeddings it adds last rows alone. `is_averaged` is that of `saved_names`.
    """
    there = checkpoints.names_in(checkpoint)
    kernels, tables = (
        [name.removesuffix(learned) for name in there if name.endswith(f"/{learned}")] for learned in (FACTORS[0], ROWS)
    )
    factors = [kernel + factor for kernel in kernels for factor in FACTORS]
    names = saved_names(checkpoint, [*factors, *(table + ROWS for table in tables)], is_averaged)
    values = checkpoints.read(checkpoint, names.values())
    changes = {
        f"{kernel}kernel": np.matmul(*(values[names[kernel + factor]] for factor in FACTORS)) for kernel in kernels
    }
    return changes | {f"{table}table": values[names[table + ROWS]] for table in tables}


def padded_to(change: np.ndarray, shape: Sequence[int]) -> np.ndarray:
    """Return a change that `low_rank_changes` returns in the shape of its weight, with rows of zeros before it."""
    return np.pad(change, [(shape[0] - len(change), 0), *[(0, 0)] * (change.ndim - 1)])


def tokenizers_of(run: RunDirectory) -> tuple[Tokenizer, Tokenizer]:
    """Return the tokenizers of source and target: one object when shared."""
    source, target = run.tokenizer_paths()
    model = run.config.model
    loaded = Tokenizer.load(source, vocab_size=model.input_vocab_size, languages=run.languages)
    if source == target:
        return loaded, loaded
    return loaded, Tokenizer.load(target, vocab_size=model.target_vocab_size, languages=run.languages)


def tokenizer_files(source: Tokenizer, target: Tokenizer) -> Mapping[str, bytes]:
    """Return the contents of tokenizer files by name; there is one file if both tokenizers are the same object."""
    if source is target:
        return {"tokenizer.model": source.model}
    return {"source.model": source.model, "target.model": target.model}


def weights(model: keras.Model) -> dict[str, Any]:
    """Return the weights of a model under the names that checkpoints use."""
    return {variable.path: variable for variable in model.weights}


def count_of(model: keras.Model | Ensemble) -> int:
    """Return the number of parameters of a model, without those of low-rank adaptation, which are merged."""
    return sum(math.prod(weight.shape) for weight in model.weights if weight.name not in LEARNED)


def frozen_of(model: keras.Model) -> dict[str, Any]:
    """Return the weights that training leaves unchanged, by name."""
    return {name: weight for name, weight in weights(model).items() if not weight.trainable}


def saved_names(checkpoint: Path, names: Iterable[str], is_averaged: bool = False) -> dict[str, str]:
    """Return, for each weight, the name of its moving average in a checkpoint, or its own name if none was kept.

    Keras names the average of `transformer/output/kernel` `OPTIMIZER/transformer_output_kernel_average`. Any optimizer
    is meant.

    Args:
        checkpoint: the checkpoint.
        names: the names of the weights.
        is_averaged: whether training kept moving averages (`training.ema_decay`), so that each weight must have one.

    Raises:
        InputError: a weight has no moving average where training kept them, or where other weights have one.
    """
    averages = {name.partition("/")[2]: name for name in checkpoints.names_in(checkpoint) if name.endswith(AVERAGE)}
    if not averages and not is_averaged:
        return {name: name for name in names}
    saved = {name: averages.get(name.replace("/", "_") + AVERAGE) for name in names}
    if missing := [name for name, average in saved.items() if average is None]:
        raise InputError(
            f"{checkpoint} holds no moving average of {missing[0]}, although training.ema_decay asked for one: "
            "it was written by something else than this training"
        )
    return cast(dict[str, str], saved)

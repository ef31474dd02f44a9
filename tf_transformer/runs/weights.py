"""Models with the weights that a run has saved."""

import dataclasses
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import keras
import tensorflow as tf

from tf_transformer.config import Config
from tf_transformer.errors import InputError
from tf_transformer.model import Transformer
from tf_transformer.runs import checkpoints
from tf_transformer.runs.directory import RunDirectory
from tf_transformer.tokenizers import Tokenizer


class Loaded(NamedTuple):
    """What `load` returns."""

    model: Transformer
    source_tokenizer: Tokenizer
    target_tokenizer: Tokenizer
    config: Config


def load(run_dir: str | Path | RunDirectory, dtype: str = "float32") -> Loaded:
    """Return the model of a run, with the weights of its best checkpoint, its tokenizers and its config.

    Args:
        run_dir: of the run, or what has been read of it.
        dtype: a Keras dtype policy: what the model computes in, whatever it was trained in.

    Raises:
        InputError: not a run directory, or one without a checkpoint.
    """
    run = run_dir if isinstance(run_dir, RunDirectory) else RunDirectory(run_dir)
    model = build_model(run.config, dtype)
    restore_best(run, model)
    return Loaded(model, *tokenizers_of(run), run.config)


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
    """Raise InputError where Keras is not on TensorFlow, which `what` needs."""
    if (backend := keras.backend.backend()) != "tensorflow":
        raise InputError(
            f"{what} needs Keras on TensorFlow: set KERAS_BACKEND=tensorflow before Keras is imported. "
            f"Received: {backend}"
        )


def restore_best(run: RunDirectory, model: keras.Model) -> dict[str, Any]:
    """Give a model of the same kind the weights of the best checkpoint, and return the state saved with them."""
    by_name = weights(model)

    def restore(checkpoint: Path) -> dict[str, Any]:
        names = saved_names(checkpoint, by_name)
        return checkpoints.restore(checkpoint, {names[name]: weight for name, weight in by_name.items()})

    return run.read_best(restore)


def tokenizers_of(run: RunDirectory) -> tuple[Tokenizer, Tokenizer]:
    """Return the tokenizers of source and target: one object when shared."""
    source, target = run.tokenizer_paths()
    model = run.config.model
    loaded = Tokenizer.load(source, model.input_vocab_size)
    return loaded, loaded if source == target else Tokenizer.load(target, model.target_vocab_size)


def tokenizer_files(source: Tokenizer, target: Tokenizer) -> Mapping[str, bytes]:
    """Return the files that tokenizers are written to, by name: one where both are the same object."""
    if source is target:
        return {"tokenizer.model": source.model}
    return {"source.model": source.model, "target.model": target.model}


def weights(model: keras.Model) -> dict[str, Any]:
    """Return the weights of a model under the names that checkpoints use."""
    return {variable.path: variable for variable in model.weights}


def average_name(weight: str) -> str:
    """Return the name in checkpoints of the moving average of a weight: Keras's."""
    return f"adam/{weight.replace('/', '_')}_average"


def saved_names(checkpoint: Path, names: Iterable[str]) -> dict[str, str]:
    """Return for each name of a weight the one of what the model has for it: its moving average where it was saved."""
    there = checkpoints.names_in(checkpoint)
    return {name: average if (average := average_name(name)) in there else name for name in names}

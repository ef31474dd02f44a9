"""A run directory: `config.json`, the tokenizers, `checkpoints/` and `history.csv`."""

import dataclasses
import importlib.metadata
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import keras
import tensorflow as tf

from tf_transformer import __version__, checkpoints
from tf_transformer.config import Config
from tf_transformer.errors import InputError
from tf_transformer.model import Transformer
from tf_transformer.settings import override
from tf_transformer.tokenizers import Tokenizer
from tf_transformer.whole import written_whole

FORMAT_VERSION = 1
PACKAGES = ("tensorflow", "tensorflow-text", "keras", "sentencepiece")


def read_description(file: Path, kind: str, folder: Path) -> dict[str, Any]:
    """Return what `file` tells of a run or an export of ours, in `folder`.

    Raises:
        InputError: there is no such file of ours, or it is of another format.
    """
    try:
        description = json.loads(file.read_text("utf-8"))
        if (version := description["format_version"]) != FORMAT_VERSION:
            raise InputError(f"{folder} has format version {version}; this version of ours reads {FORMAT_VERSION}")
        description["config"]["model"]
    except (OSError, json.JSONDecodeError, UnicodeDecodeError, KeyError, TypeError):
        raise InputError(f"{folder} is not a {kind}: {file.relative_to(folder)} is missing or damaged") from None
    return description


class RunDirectory:
    """An existing run directory.

    Raises:
        InputError: `path` is not a run directory, or one of a newer format.
    """

    def __init__(self, path: str | Path):
        self.path = Path(path)
        self.description = read_description(self.path / "config.json", "run directory", self.path)
        self.config = override(Config(), self.description["config"])

    @classmethod
    def create(
        cls, path: str | Path, config: Config, tokenizers: tuple[Tokenizer, Tokenizer], facts: dict[str, Any]
    ) -> "RunDirectory":
        """Write a new run directory beside its place, then rename it.

        Args:
            path: of the new directory.
            config: resolved.
            tokenizers: source and target; one file when they are the same object.
            facts: what else to remember, such as the data and the number of parameters; JSON.
        """
        path = Path(path)
        with written_whole(path) as beside:
            beside.mkdir()
            for name, tokenizer in tokenizer_files(*tokenizers).items():
                (beside / name).write_bytes(tokenizer.model)
            cls._write(beside, config, facts)
        return cls(path)

    @staticmethod
    def _write(folder: Path, config: Config, facts: dict[str, Any]) -> None:
        description = {
            "format_version": FORMAT_VERSION,
            "packages": {"tf-transformer": __version__} | {p: importlib.metadata.version(p) for p in PACKAGES},
            **facts,
            "config": config.as_dict(),
        }
        with written_whole(folder / "config.json") as beside:
            beside.write_text(json.dumps(description, indent=1) + "\n", "utf-8")

    def replace_config(self, config: Config) -> "RunDirectory":
        """Write another config and return the directory with it."""
        self._write(self.path, config, self.facts())
        return RunDirectory(self.path)

    def facts(self) -> dict[str, Any]:
        """Return what `create` was told to remember."""
        return {k: self.description[k] for k in self.description.keys() - {"format_version", "packages", "config"}}

    @property
    def checkpoints(self) -> Path:
        """The folder of the checkpoints."""
        return self.path / "checkpoints"

    @property
    def history(self) -> Path:
        """The file with the metrics of every epoch."""
        return self.path / "history.csv"

    def best_checkpoint(self) -> Path:
        """Return the checkpoint of the best validation (`training.best_by`), or the last one where there was none."""
        known = checkpoints.all_of(self.checkpoints)
        if not known:
            raise InputError(f"{self.path} has no checkpoint yet: train it first")
        return (checkpoints.best(known, self.config.training.best_by) or known[-1:])[0]

    def tokenizers(self) -> tuple[Tokenizer, Tokenizer]:
        """Return the tokenizers of source and target: one object when shared."""
        if (self.path / "tokenizer.model").exists():
            shared = Tokenizer.load(self.path / "tokenizer.model")
            return shared, shared
        if (self.path / "source.model").exists():
            return Tokenizer.load(self.path / "source.model"), Tokenizer.load(self.path / "target.model")
        raise InputError(f"{self.path} has lost its tokenizer: neither tokenizer.model nor source.model is there")

    def model(self, dtype: str = "float32") -> Transformer:
        """Return the model with the weights of the best checkpoint; `dtype` is a Keras dtype policy."""
        model = build_model(self.config, dtype)
        self.restore(model)
        return model

    def restore(self, model: keras.Model) -> None:
        """Give a model of the same kind the weights of the best checkpoint."""
        by_name = weights(model)
        saved = {name: by_name[weight] for weight, name in self.saved_names(by_name).items()}
        checkpoints.restore(self.best_checkpoint(), saved)

    def saved_names(self, names: Iterable[str]) -> dict[str, str]:
        """Return for each name of a weight the one in checkpoints of what the model has there: its moving average."""
        return {name: average_name(name) if self.config.training.ema_decay else name for name in names}


class Loaded(NamedTuple):
    """What `load` returns."""

    model: Transformer
    source_tokenizer: Tokenizer
    target_tokenizer: Tokenizer
    config: Config


def load(run_dir: str | Path, dtype: str = "float32") -> Loaded:
    """Return the model of a run, with the weights of its best checkpoint, its tokenizers and its config.

    Args:
        run_dir: of the run.
        dtype: a Keras dtype policy: what the model computes in, whatever it was trained in.

    Raises:
        InputError: not a run directory, or one without a checkpoint.
    """
    run = RunDirectory(run_dir)
    return Loaded(run.model(dtype), *run.tokenizers(), run.config)


def weights(model: keras.Model) -> dict[str, Any]:
    """Return the weights of a model under the names that checkpoints use."""
    return {variable.path: variable for variable in model.weights}


def average_name(weight: str) -> str:
    """Return the name in checkpoints of the moving average of a weight: Keras's."""
    return f"adam/{weight.replace('/', '_')}_average"


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


def tokenizer_files(source: Tokenizer, target: Tokenizer) -> dict[str, Tokenizer]:
    """Return the names of the files that tokenizers are written to: one where both are the same object."""
    return {"tokenizer.model": source} if source is target else {"source.model": source, "target.model": target}

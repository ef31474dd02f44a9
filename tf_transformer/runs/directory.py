"""A run directory: `config.json`, the tokenizers, `checkpoints/` and `history.csv`; read without TensorFlow."""

import importlib.metadata
import json
import logging
import os
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from tf_transformer.config import Config
from tf_transformer.config.sections import is_left_out
from tf_transformer.errors import InputError
from tf_transformer.runs import checkpoints
from tf_transformer.runs.descriptions import FORMAT_VERSION, OF_RUN, Described
from tf_transformer.storage.atomic import atomic_write, contents_of, is_half_replaced
from tf_transformer.tokenizers.vocabulary import Vocabulary
from tf_transformer.version import __version__

CHECKPOINTS, HISTORY, PREPARED, TENSORBOARD = "checkpoints", "history.csv", "prepared", "tensorboard"
"""What a run directory holds, beside its description and its tokenizers: see the properties of `RunDirectory`."""

FROZEN = "frozen"
"""The folder of the weights that training leaves unchanged."""
PACKAGES = ("tensorflow", "tensorflow-text", "keras", "sentencepiece")
OWN_FACTS = ("format_version", "id", "packages", "config")
"""The parts of the description that `write_run` adds itself."""
MAY_CHANGE = {
    *(("training", name) for name in ("max_steps", "checkpoint_every", "keep_last", "keep_best", "deterministic")),
    *(("training", name) for name in ("early_stopping", "best_by", "samples", "validate_every")),
    *(("training", f"bleu_{name}") for name in ("every", "sentences", "tokenize")),
    # The text and the tokenizer themselves are compared instead.
    *(("data", name) for name in ("corpus", "extra_corpora", "validation_corpus", "prepared")),
    ("tokenizer", "file"),
}
"""The settings, besides those of decoding, that may change when a run continues: how long it is, what is kept and
shown, and where its input lies."""
Made = TypeVar("Made")

log = logging.getLogger(__name__)


class RunDirectory(Described):
    """An existing run directory.

    Raises:
        InputError: `path` is not a run directory, or has another format version.
    """

    def replace_config(self, config: Config, facts: Mapping[str, Any] | None = None) -> "RunDirectory":
        """Write another config, and other facts if given, and return the changed directory."""
        _write_description(self.path, config, {**self.facts(), **(facts or {})}, self.id)
        return RunDirectory(self.path)

    def facts(self) -> dict[str, Any]:
        """Return the facts that were given to `write_run`."""
        return {name: fact for name, fact in self.description.items() if name not in OWN_FACTS}

    @property
    def id(self) -> str | None:
        """The id that its checkpoints also carry; None for a run from before runs had ids."""
        return self.description.get("id")

    @property
    def checkpoints(self) -> Path:
        """The folder of the checkpoints."""
        return self.path / CHECKPOINTS

    @property
    def frozen(self) -> Path | None:
        """The file of the weights that training leaves unchanged; None if it changes all weights."""
        return checkpoints.path_of(self.path / FROZEN, 0) if self.config.training.lora_rank else None

    @property
    def keeps_average(self) -> bool:
        """Whether training keeps a moving average of the weights, which is then the model."""
        return self.config.training.ema_decay > 0

    @property
    def history(self) -> Path:
        """The file with the metrics of every epoch."""
        return self.path / HISTORY

    @property
    def prepared(self) -> Path:
        """The folder of its prepared text; there is none if the run trains on a prepared corpus elsewhere."""
        return self.path / PREPARED

    @property
    def tensorboard(self) -> Path:
        """The folder of what TensorBoard shows, if it is installed."""
        return self.path / TENSORBOARD

    def known(self) -> list[Path]:
        """Return the checkpoints of this run, the oldest first, including damaged ones.

        Checkpoints of another run are skipped with a warning.
        """
        return [path for path in checkpoints.all_of(self.checkpoints) if not self._is_foreign(path)]

    def _is_foreign(self, checkpoint: Path) -> bool:
        try:
            run = checkpoints.state_of(checkpoint).get("run")
        except (checkpoints.MissingCheckpointError, checkpoints.CorruptCheckpointError):
            return False
        if run in (None, self.id) or self.id is None:
            return False
        log.warning("%s belongs to another run than the config.json of %s; skipped", checkpoint, self.path)
        return True

    def best_checkpoint(self) -> Path:
        """Return the checkpoint of the best validation (`training.best_by`), or the last one if none was validated.

        Raises:
            InputError: there is no checkpoint.
        """
        known = self.known()
        if not known:
            raise InputError(f"{self.path} has no checkpoint yet: train it first")
        return (checkpoints.best(known, self.config.training.best_by) or known[-1:])[0]

    def read_best(self, read: Callable[[Path], Made]) -> Made:
        """Return what `read` returns for the best checkpoint.

        If training deletes that checkpoint before it is read, the one that is best by then is read instead.
        """
        tried: set[Path] = set()
        while True:
            checkpoint = self.best_checkpoint()
            try:
                return read(checkpoint)
            except checkpoints.MissingCheckpointError:
                if checkpoint in tried:  # listed but missing, as a broken link
                    raise
                tried.add(checkpoint)

    def tokenizer_paths(self) -> tuple[Path, Path]:
        """Return the tokenizer files of source and target, which are the same file if they share it."""
        shared, source, target = (self.path / f"{name}.model" for name in ("tokenizer", "source", "target"))
        if shared.exists():
            return shared, shared
        if source.exists():
            return source, target
        raise InputError(f"{self.path} has lost its tokenizer: there is no tokenizer.model and no source.model")

    def vocabularies(self) -> tuple[Vocabulary, Vocabulary]:
        """Return the vocabularies of source and target, without TensorFlow; they are one object if shared."""
        source, target = self.tokenizer_paths()
        model = self.config.model
        loaded = Vocabulary.load(source, vocab_size=model.input_vocab_size, languages=self.languages)
        if source == target:
            return loaded, loaded
        return loaded, Vocabulary.load(target, vocab_size=model.target_vocab_size, languages=self.languages)

    def differences(self, config: Config) -> list[str]:
        """Return, in words, the settings that `config` changes although a run that continues must keep them."""
        old, new = self.config.as_dict(), config.as_dict()
        if (start := new["training"]["init_from"]) is None:  # the run knows which run it was started from
            new["training"]["init_from"] = old["training"]["init_from"]
        else:
            new["training"]["init_from"] = os.path.abspath(start)
        rules = new["tokenizer"]["normalization"]
        if rules and os.path.abspath(rules) == old["tokenizer"]["normalization"]:
            new["tokenizer"]["normalization"] = os.path.abspath(rules)
        return [
            f"{section}.{key} was {before!r}, is {new[section][key]!r}"
            for section, settings in old.items()
            for key, before in settings.items()
            if before != new[section][key]
            and not (section == "decoding" or (section, key) in MAY_CHANGE)
            and not is_left_out(section, key, before, new[section][key])
        ]

    def refuse_differences(self, differences: list[str]) -> None:
        """Raise InputError if there are differences, or if the run cannot continue at all."""
        if extended := self.description.get("extended"):
            raise InputError(
                f"{self.path} is {extended['run']} with more tokens, and its training cannot continue: start "
                "another run from it with --init-from"
            )
        if origin := self.description.get("origin"):
            raise InputError(
                f"{self.path} is the imported model {origin['name']}, and its training cannot continue: start another "
                "run from it with --init-from"
            )
        if averaged := self.description.get("averaged"):
            raise InputError(
                f"{self.path} is the average of steps {', '.join(map(str, averaged['steps']))} of {averaged['run']}, "
                "and its training cannot continue: start another run from it with --init-from"
            )
        if differences:
            raise InputError(
                f"{self.path} was started with other settings: {'; '.join(differences)}. Give the same settings to "
                "continue, another --run-dir, or --overwrite to start over"
            )


def find_run(path: Path) -> RunDirectory | None:
    """Return the run in a folder, or None if there is no such folder or nothing in it.

    Raises:
        InputError: the folder holds something else.
    """
    if is_half_replaced(path):
        return RunDirectory(path) if (path / OF_RUN).exists() else None
    return RunDirectory(path) if path.exists() and (not path.is_dir() or contents_of(path)) else None


def write_run(
    folder: Path, config: Config, tokenizers: Mapping[str, bytes], facts: Mapping[str, Any], id: str | None = None
) -> str:
    """Write the description and the tokenizers of a new run, and return the id of the run.

    Args:
        folder: the folder of the new run.
        config: the resolved config.
        tokenizers: the SentencePiece models by the names of their files: `tokenizer.model`, or `source.model` and
            `target.model`.
        facts: what else to remember, such as the data and the number of parameters, as JSON.
        id: the id that its checkpoints carry, as `new_id` returns it; by default a new one.
    """
    id = id or new_id()
    for name, model in tokenizers.items():
        (folder / name).write_bytes(model)
    _write_description(folder, config, facts, id)
    return id


def new_id() -> str:
    """Return an id for a new run."""
    return uuid.uuid4().hex


def _write_description(folder: Path, config: Config, facts: Mapping[str, Any], id: str | None) -> None:
    description = {
        "format_version": FORMAT_VERSION,
        **({"id": id} if id else {}),
        "packages": {"tf-transformer": __version__} | {p: importlib.metadata.version(p) for p in PACKAGES},
        **{name: fact for name, fact in facts.items() if name not in OWN_FACTS},
        "config": config.as_dict(),
    }
    with atomic_write(folder / OF_RUN) as beside:
        beside.write_text(json.dumps(description, indent=1) + "\n", "utf-8")

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
from tf_transformer.errors import InputError
from tf_transformer.files import contents_of, is_half_replaced, written_whole
from tf_transformer.runs import checkpoints
from tf_transformer.runs.descriptions import FORMAT_VERSION, OF_RUN, Described
from tf_transformer.version import __version__
from tf_transformer.vocabulary import Vocabulary

CHECKPOINTS = "checkpoints"
"""The folder of the checkpoints."""
FROZEN = "frozen"
"""The folder of the weights that training leaves as they are."""
PACKAGES = ("tensorflow", "tensorflow-text", "keras", "sentencepiece")
OWN_FACTS = ("format_version", "id", "packages", "config")
"""What `write_run` puts into the description itself."""
MAY_CHANGE = {
    *(("training", name) for name in ("max_steps", "checkpoint_every", "keep_last", "keep_best", "deterministic")),
    *(("training", name) for name in ("early_stopping", "best_by", "samples")),
    *(("training", f"bleu_{name}") for name in ("every", "sentences", "tokenize")),
    # The text and the tokenizer themselves are compared.
    *(("data", name) for name in ("corpus", "extra_corpora", "validation_corpus", "prepared")),
    ("tokenizer", "file"),
}
"""The settings that may differ when a run goes on, besides those of decoding: how long it is, what is kept and shown,
where its input lies."""
MAY_BE_LEFT_OUT = {
    ("model", "input_vocab_size"),
    ("model", "target_vocab_size"),
    ("data", "source"),
    ("data", "target"),
}
"""Sizes come from the tokenizer; where languages may be left out, they are names alone and change no text."""

Made = TypeVar("Made")

log = logging.getLogger(__name__)


class RunDirectory(Described):
    """An existing run directory.

    Raises:
        InputError: `path` is not a run directory, or one of a newer format.
    """

    def replace_config(self, config: Config, facts: Mapping[str, Any] | None = None) -> "RunDirectory":
        """Write another config, and other facts if there are such, and return the directory with it."""
        _write_description(self.path, config, {**self.facts(), **(facts or {})}, self.id)
        return RunDirectory(self.path)

    def facts(self) -> dict[str, Any]:
        """Return what `write_run` was told to remember."""
        return {name: fact for name, fact in self.description.items() if name not in OWN_FACTS}

    @property
    def id(self) -> str | None:
        """What its checkpoints know it by; none where it was begun before runs had one."""
        return self.description.get("id")

    @property
    def checkpoints(self) -> Path:
        """The folder of the checkpoints."""
        return self.path / CHECKPOINTS

    @property
    def frozen(self) -> Path | None:
        """The file of the weights that training leaves as they are; None where it changes all."""
        return checkpoints.path_of(self.path / FROZEN, 0) if self.config.training.lora_rank else None

    @property
    def history(self) -> Path:
        """The file with the metrics of every epoch."""
        return self.path / "history.csv"

    def known(self) -> list[Path]:
        """Return the checkpoints of this run, the oldest first; those of another run are named and passed over.

        Damaged ones are among them.
        """
        return [path for path in checkpoints.all_of(self.checkpoints) if not self._is_foreign(path)]

    def _is_foreign(self, checkpoint: Path) -> bool:
        try:
            run = checkpoints.state_of(checkpoint).get("run")
        except (checkpoints.MissingCheckpointError, checkpoints.CorruptCheckpointError):
            return False
        if run in (None, self.id) or self.id is None:
            return False
        log.warning("%s is of another run than the config.json of %s; passed over", checkpoint, self.path)
        return True

    def best_checkpoint(self) -> Path:
        """Return the checkpoint of the best validation (`training.best_by`), or the last one where there was none.

        Raises:
            InputError: there is no checkpoint.
        """
        known = self.known()
        if not known:
            raise InputError(f"{self.path} has no checkpoint yet: train it first")
        return (checkpoints.best(known, self.config.training.best_by) or known[-1:])[0]

    def read_best(self, read: Callable[[Path], Made]) -> Made:
        """Return what `read` makes of the best checkpoint.

        Training may delete it between the look and the reading: then of the one that is the best by that time.
        """
        tried: set[Path] = set()
        while True:
            checkpoint = self.best_checkpoint()
            try:
                return read(checkpoint)
            except checkpoints.MissingCheckpointError:
                if checkpoint in tried:  # listed, and not there: a link to nothing
                    raise
                tried.add(checkpoint)

    def tokenizer_paths(self) -> tuple[Path, Path]:
        """Return the files of the tokenizers of source and target: twice the same one where they share it."""
        shared, source, target = (self.path / f"{name}.model" for name in ("tokenizer", "source", "target"))
        if shared.exists():
            return shared, shared
        if source.exists():
            return source, target
        raise InputError(f"{self.path} has lost its tokenizer: neither tokenizer.model nor source.model is there")

    def vocabularies(self) -> tuple[Vocabulary, Vocabulary]:
        """Return what the tokenizers of source and target know, without TensorFlow: one object where they share it."""
        source, target = self.tokenizer_paths()
        model = self.config.model
        loaded = Vocabulary.load(source, self.languages, model.input_vocab_size)
        return loaded, loaded if source == target else Vocabulary.load(target, self.languages, model.target_vocab_size)

    def differences(self, config: Config) -> list[str]:
        """Return what a run that goes on may not change, and `config` does, in words."""
        old, new = self.config.as_dict(), config.as_dict()
        if (start := new["training"]["init_from"]) is None:  # the run knows from which it was started
            new["training"]["init_from"] = old["training"]["init_from"]
        else:
            new["training"]["init_from"] = os.path.abspath(start)
        return [
            f"{section}.{key} was {before!r}, is {new[section][key]!r}"
            for section, settings in old.items()
            for key, before in settings.items()
            if before != new[section][key]
            and not (section == "decoding" or (section, key) in MAY_CHANGE)
            and not ((section, key) in MAY_BE_LEFT_OUT and None in (before, new[section][key]))
        ]

    def refuse_differences(self, differences: list[str]) -> None:
        """Raise InputError where there are differences, or where the run cannot go on at all."""
        if origin := self.description.get("origin"):
            raise InputError(
                f"{self.path} is the imported model {origin['name']}: it cannot go on. Start another run from it with "
                "--init-from"
            )
        if averaged := self.description.get("averaged"):
            raise InputError(
                f"{self.path} is the average of steps {', '.join(map(str, averaged['steps']))} of {averaged['run']}: "
                "it cannot go on. Start another run from it with --init-from"
            )
        if differences:
            raise InputError(
                f"{self.path} was started with other settings: {'; '.join(differences)}. Give the same ones to go on, "
                "another --run-dir, or --overwrite to start anew"
            )


def find_run(path: Path) -> RunDirectory | None:
    """Return the run in a folder; None where there is no such folder, or nothing in it.

    Raises:
        InputError: there is something else.
    """
    if is_half_replaced(path):
        return RunDirectory(path) if (path / OF_RUN).exists() else None
    return RunDirectory(path) if path.exists() and (not path.is_dir() or contents_of(path)) else None


def write_run(
    folder: Path, config: Config, tokenizers: Mapping[str, bytes], facts: Mapping[str, Any], id: str | None = None
) -> str:
    """Write what a new run begins with into its folder, and return what its checkpoints know it by.

    Args:
        folder: of the run, which is new.
        config: resolved.
        tokenizers: the SentencePiece models by the names of their files: `tokenizer.model`, or `source.model` and
            `target.model`.
        facts: what else to remember, such as the data and the number of parameters; JSON.
        id: what the checkpoints know it by, as `new_id` gives it; a new one by default.
    """
    id = id or new_id()
    for name, model in tokenizers.items():
        (folder / name).write_bytes(model)
    _write_description(folder, config, facts, id)
    return id


def new_id() -> str:
    """Return what the checkpoints of a new run may know it by."""
    return uuid.uuid4().hex


def _write_description(folder: Path, config: Config, facts: Mapping[str, Any], id: str | None) -> None:
    description = {
        "format_version": FORMAT_VERSION,
        **({"id": id} if id else {}),
        "packages": {"tf-transformer": __version__} | {p: importlib.metadata.version(p) for p in PACKAGES},
        **{name: fact for name, fact in facts.items() if name not in OWN_FACTS},
        "config": config.as_dict(),
    }
    with written_whole(folder / OF_RUN) as beside:
        beside.write_text(json.dumps(description, indent=1) + "\n", "utf-8")

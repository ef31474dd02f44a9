"""What the tests of training share."""

import csv
import shutil
from pathlib import Path

import pytest

from tf_transformer.config import PRESETS, Config, override
from tf_transformer.data.corpora import copy_task
from tf_transformer.runs.directory import RunDirectory
from tf_transformer.training.fit import train


@pytest.fixture(scope="session")
def corpus(made_once):
    """53 pairs to train on, 6 steps an epoch; 11 to validate on."""

    def write(folder: Path) -> None:
        folder.mkdir()
        pairs = copy_task.pairs("train")
        for split, chosen in (("train", pairs[:53]), ("val", pairs[53:64])):
            for language in ("xx", "yy"):
                lines = [source[: 4 + 2 * (i % 7)] for i, (source, _) in enumerate(chosen)]
                (folder / f"{split}.{language}").write_text("".join(f"{line}\n" for line in lines))

    return made_once("corpus_of_53_pairs", write)


@pytest.fixture(scope="session")
def small():
    """Makes the config of a tiny model for a corpus, with settings of training laid over it."""

    def config(corpus, **training) -> Config:
        return override(
            PRESETS["tiny"],
            {
                "model": {"num_layers": 1, "d_model": 16, "num_heads": 2, "dff": 16, "dropout_rate": 0.2},
                "tokenizer": {"vocab_size": 300},
                "data": {"corpus": str(corpus), "source": "xx", "target": "yy", "batch_tokens": 64, "max_length": 16},
                "training": {
                    "max_steps": 6,
                    "warmup_steps": 10,
                    "learning_rate_factor": 0.7,
                    "ema_decay": 0.0,
                    "samples": 0,
                }
                | training,
            },
        )

    return config


@pytest.fixture(scope="session")
def stopped(corpus, small, made_once):
    """Gives a copy of a run that was stopped after 5 updates; each has a checkpoint."""

    def copy_to(path: Path) -> RunDirectory:
        def make(run: Path) -> None:
            train(small(corpus, max_steps=5, checkpoint_every=1, keep_last=9), run)

        return RunDirectory(shutil.copytree(made_once("run_of_5_updates", make), path, dirs_exist_ok=True))

    return copy_to


@pytest.fixture(scope="session")
def epoch_rows():
    """Reads the rows of a history that end an epoch."""

    def read(run):
        with run.history.open() as file:
            return [row for row in csv.DictReader(file) if row["val_loss"]]

    return read

"""What the tests of training share."""

import csv

import pytest

from tf_transformer.config import PRESETS, Config, override
from tf_transformer.data.corpora import copy_task


@pytest.fixture(scope="session")
def corpus(tmp_path_factory):
    """53 pairs to train on, 6 steps an epoch; 11 to validate on."""
    folder = tmp_path_factory.mktemp("corpus")
    pairs = copy_task.pairs("train")
    for split, chosen in (("train", pairs[:53]), ("val", pairs[53:64])):
        for language in ("xx", "yy"):
            lines = [source[: 4 + 2 * (i % 7)] for i, (source, _) in enumerate(chosen)]
            (folder / f"{split}.{language}").write_text("".join(f"{line}\n" for line in lines))
    return folder


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
def epoch_rows():
    """Reads the rows of a history that end an epoch."""

    def read(run):
        with run.history.open() as file:
            return [row for row in csv.DictReader(file) if row["val_loss"]]

    return read

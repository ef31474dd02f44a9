"""Real text."""

import csv

import numpy as np
import pytest

from tf_transformer import load
from tf_transformer.commands.main import main
from tf_transformer.config import DataConfig
from tf_transformer.data import encode, read


@pytest.mark.long
def test_a_few_minutes_teach_it_more_than_how_often_words_are_used(multi30k, tmp_path):
    data = DataConfig(corpus=str(multi30k / "tok"), source="en", target="de")
    arguments = ["train", "--data", data.corpus, "--source", "en", "--target", "de", "--preset", "tiny"]
    values = ("model.num_layers=1", "tokenizer.vocab_size=4000", "training.ema_decay=0", "training.warmup_steps=100")
    settings = ["--max-steps", "130", *(f"--set={value}" for value in values)]
    assert main([*arguments, *settings, "--run-dir", str(tmp_path / "run")]) == 0
    with (tmp_path / "run" / "history.csv").open() as file:
        rows = list(csv.DictReader(file))
    loaded = load(tmp_path / "run")
    tokenizers = loaded.source_tokenizer, loaded.target_tokenizer
    encoded = (encode(read(data, split), *tokenizers, 128).sequences()[1] for split in ("train", "val"))
    train, val = (np.concatenate(rows) for rows in encoded)
    counts = np.bincount(train, minlength=loaded.target_tokenizer.vocab_size) + 1
    of_frequencies = np.exp(-np.log(counts[val] / counts.sum()).mean())
    assert float(rows[-1]["val_perplexity"]) < of_frequencies / 2

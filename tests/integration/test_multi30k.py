"""Real text."""

import csv

import pytest

from tf_transformer.cli import main


@pytest.mark.long
def test_a_few_minutes_teach_it_something(multi30k, tmp_path, capsys):
    arguments = ["train", "--data", str(multi30k / "tok"), "--source", "en", "--target", "de", "--preset", "tiny"]
    settings = ["--max-steps", "130", "--set", "training.ema_decay=0", "--set", "training.warmup_steps=100"]
    assert main([*arguments, *settings, "--run-dir", str(tmp_path / "run")]) == 0
    with (tmp_path / "run" / "history.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert float(rows[-1]["val_perplexity"]) < 1000  # of 10,000 tokens

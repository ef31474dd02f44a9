"""The Annotated Transformer's first example, from the command line."""

import csv
import json

from tf_transformer.cli import main
from tf_transformer.data import copy_task


def test_at_least_99_percent_of_unseen_sequences_are_copied_exactly(copy_run, tmp_path, capsys):
    capsys.readouterr()
    output = tmp_path / "test.txt"
    assert main(["evaluate", "--model", str(copy_run), "--json", "--output", str(output)]) == 0
    printed = capsys.readouterr().out
    scores = json.loads(printed)
    assert scores.keys() >= {"bleu", "chrf", "signature", "sentences", "seconds"}
    translations = output.read_text().splitlines()
    references = [target for _, target in copy_task.pairs("test")]
    assert scores["sentences"] == len(references) == len(translations) == 1000
    assert not set(references) & {target for _, target in copy_task.pairs("train")}
    assert sum(map(str.__eq__, translations, references)) >= 990
    assert scores["bleu"] > 98


def test_the_history_shows_it_learning(copy_run):
    with (copy_run / "history.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert float(rows[0]["loss"]) > 5 * float(rows[-1]["loss"])
    assert float(rows[-1]["val_perplexity"]) < 1.02

"""The Annotated Transformer's first example, from the command line."""

import csv
import json

from tf_transformer import Translator
from tf_transformer.commands.main import main
from tf_transformer.data.corpora import copy_task


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


def test_it_reads_its_source(copy_run):
    """What it writes is far more probable for its own source than for that of another sequence."""
    translator = Translator.load(copy_run)
    pairs = copy_task.pairs("val")[:101]
    sources, targets = zip(*pairs, strict=True)
    true = translator.score_strings(list(pairs))
    other = translator.score_strings(list(zip(sources[1:] + sources[:1], targets, strict=True)))
    per_token = [-sum(map(sum, scored)) / sum(map(len, scored)) for scored in (true, other)]
    assert per_token[0] < 0.1
    assert per_token[1] > 10 * per_token[0] + 1


def test_the_history_shows_it_learning(copy_run):
    with (copy_run / "history.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert float(rows[0]["loss"]) > 5 * float(rows[-1]["loss"])
    assert float(rows[-1]["val_perplexity"]) < 1.02

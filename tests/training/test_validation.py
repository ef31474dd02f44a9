"""Validation: BLEU, samples, the best checkpoint, and stopping early."""

import dataclasses

import numpy as np
import pytest

from tf_transformer import load
from tf_transformer.config import DecodingConfig, TrainingConfig, override
from tf_transformer.data import read
from tf_transformer.errors import InputError
from tf_transformer.evaluation import score
from tf_transformer.runs import checkpoints
from tf_transformer.runs.weights import weights
from tf_transformer.training.callbacks import EarlyStopping
from tf_transformer.training.fit import train
from tf_transformer.translation.translator import Translator


@pytest.mark.long
def test_bleu_and_samples_are_those_of_the_saved_model(corpus, small, copy_run, tmp_path, capsys, epoch_rows):
    """A model that copies learns at a rate that ruins it; its moving average stays what it was."""
    settings = {"max_steps": 12, "ema_decay": 0.999, "samples": 2, "bleu_every": 2, "bleu_sentences": 7}
    rate = {"learning_rate": 0.02, "warmup_steps": 12, "init_from": str(copy_run)}
    config = small(corpus, best_by="bleu", bleu_tokenize="none", **settings, **rate)
    model = dataclasses.replace(load(copy_run).config.model, input_vocab_size=None, target_vocab_size=None)
    run = train(dataclasses.replace(config, model=model), tmp_path / "run")
    printed = capsys.readouterr().out
    first, second = epoch_rows(run)
    assert first["val_bleu"] == "" != second["val_bleu"]
    translator = Translator.load(run.path, DecodingConfig(beam_size=1))
    pairs = read(config.data, "val")
    translations = translator.translate_strings(pairs.sources[:7])
    bleu = score(translations, pairs.targets[:7], "none").bleu
    assert float(second["val_bleu"]) == pytest.approx(bleu, abs=1e-3)
    assert bleu > 40
    checkpoints.restore(run.best_checkpoint(), weights(translator.model))  # not the average
    ruined = score(translator.translate_strings(pairs.sources[:7]), pairs.targets[:7], "none").bleu
    assert ruined < bleu - 20
    for i in (0, 1):
        shown = f"  source       {pairs.sources[i]}\n  translation  {translations[i]}\n"
        assert f"{shown}  reference    {pairs.targets[i]}\n" in printed
    assert printed.count("  reference    ") == 4  # two in each epoch


@pytest.mark.long
def test_a_validation_sentence_that_is_too_long_is_not_translated(corpus, small, tmp_path, capsys):
    """With learned positions it could not be."""
    for file in corpus.iterdir():
        text = file.read_text()
        (tmp_path / file.name).write_text("a " * 40 + f"\n{text}" if file.name.startswith("val") else text)
    config = override(small(tmp_path, max_steps=1, samples=1), {"model": {"positions": "learned", "max_positions": 16}})
    run = train(config, tmp_path / "run")
    assert f"source       {read(config.data, 'val').sources[1]}\n" in capsys.readouterr().out
    assert len(checkpoints.all_of(run.checkpoints)) == 1


def test_the_best_checkpoint_is_that_of_the_best_bleu(tmp_path):
    for step, bleu in ((1, 3.0), (2, 7.0), (3, 5.0)):
        checkpoints.write(tmp_path, step, [("a", np.zeros(1))], {"val_loss": float(step), "val_bleu": bleu})
    checkpoints.write(tmp_path, 4, [("a", np.zeros(1))], {})  # not validated
    known = checkpoints.all_of(tmp_path)
    assert [checkpoints.state_of(path)["step"] for path in checkpoints.best(known, "bleu")] == [2, 3, 1]
    assert [checkpoints.state_of(path)["step"] for path in checkpoints.best(known, "loss")] == [1, 2, 3]


@pytest.mark.parametrize(
    ("best_by", "values", "is_over"),
    [
        ("loss", [3.0, 2.0, 1.0], False),
        ("loss", [1.0, 2.0], False),  # one without a better one: patience is two
        ("loss", [1.0, 2.0, 1.0], True),  # equal is not better
        ("loss", [1.0, 2.0, 0.5, 0.7], False),
        ("bleu", [1.0, 2.0, 3.0], False),
        ("bleu", [3.0, 2.0, 2.9], True),
        ("loss", [], False),
    ],
)
def test_when_it_stops_early(best_by, values, is_over):
    assert EarlyStopping(best_by, 2, values).is_over() == is_over


@pytest.mark.long
def test_a_run_stops_early_and_stays_stopped(corpus, small, tmp_path, caplog, epoch_rows):
    # A rate this small moves nothing that counts: the second validation is no better by chance alone.
    config = small(corpus, max_steps=600, early_stopping=1, learning_rate=1e-12, keep_best=2)
    run = train(config, tmp_path / "run")
    losses = [float(row["val_loss"]) for row in epoch_rows(run)]
    assert 2 <= len(losses) < 100
    assert losses[-1] >= min(losses[:-1])
    with caplog.at_level("INFO"):
        train(config, tmp_path / "run")
    assert "is trained: it stopped early" in caplog.text
    assert len(epoch_rows(run)) == len(losses)


def test_best_by_bleu_needs_bleu():
    with pytest.raises(InputError, match="best_by=bleu needs bleu_every"):
        TrainingConfig(best_by="bleu")

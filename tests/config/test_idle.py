"""Settings that have no effect beside others are warned of, and those that have one are not."""

import dataclasses

import pytest

from tf_transformer.commands.common.resolve import resolve
from tf_transformer.commands.main import parser
from tf_transformer.config import Config, override
from tf_transformer.config.idle import IDLE, without_effect
from tf_transformer.config.overrides import HINTS
from tf_transformer.errors import InputError

ALL = {f"{section}.{key}" for section, keys in HINTS.items() for key in keys}


def test_what_is_listed_are_settings():
    assert {name for settings, *_ in IDLE for name in settings} <= ALL


@pytest.mark.parametrize(
    ("settings", "idle"),
    [
        ({}, {"plateau_patience", "plateau_factor", "bleu_sentences", "bleu_tokenize", "max_positions", "seed"}),
        ({"training": {"learning_rate": 0.1, "schedule": "plateau"}}, {"learning_rate_factor"}),
        ({"training": {"bleu_every": 2}, "model": {"positions": "learned"}}, set()),
        ({"tokenizer": {"file": "x.model"}}, {"vocab_size", "model_type", "normalization", "shared"}),
        ({"training": {"init_from": "run"}}, {"vocab_size", "byte_fallback", "character_coverage"}),
        ({"training": {"max_steps": 7, "warmup_steps": 7}}, {"schedule"}),
        ({"decoding": {"early_stopping": True}}, {"likely_stopping"}),
        ({"decoding": {"temperature": 1.0}}, {"beam_size", "early_stopping"}),
        ({"decoding": {"beam_size": 1, "length_penalty": 0.0}}, {"likely_stopping", "length_penalty_offset"}),
    ],
)
def test_what_has_no_effect(settings, idle):
    config = override(Config(), settings)
    said = without_effect(config, ALL)
    assert idle <= {line.split(" has no effect: ")[0].partition(".")[2] for line in said}
    assert without_effect(config, []) == []
    given = {f"{section}.{key}" for section, keys in settings.items() for key in keys}
    assert without_effect(config, given) == []
    if not idle:
        assert not any("bleu" in line or "positions" in line for line in said)


def resolved(*options):
    return resolve(parser().parse_args([*options])).config


def test_the_command_warns_of_what_was_given_alone(caplog, tmp_path):
    train = ("train", "--data", "copy", "--run-dir", str(tmp_path / "run"))
    resolved(*train)
    assert caplog.text == ""  # presets give more than they need
    resolved(*train, "--set", "training.plateau_factor=0.3")
    assert "training.plateau_factor has no effect: training.schedule is not plateau" in caplog.text
    caplog.clear()
    resolved(*train, "--max-steps", "7")
    assert "training.max_steps=7 ends training while the learning rate still rises, up to training.war" in caplog.text
    caplog.clear()
    resolved(*train, "--max-steps", "7", "--set", "training.warmup_steps=3")
    assert caplog.text == ""
    (tmp_path / "my.toml").write_text("[data]\nheld_out = 0.1\n")
    resolved(*train, "--config", str(tmp_path / "my.toml"))
    assert "data.held_out has no effect: only files of pairs are split by chance" in caplog.text
    caplog.clear()
    (tmp_path / "a.tsv").touch()
    settings = (
        "--set",
        "data.held_out=0.1",
        "--set",
        "training.schedule=plateau",
        "--set",
        "training.plateau_factor=0.3",
    )
    resolved(*train[:2], str(tmp_path / "a.tsv"), *train[3:], *settings)
    assert caplog.text == ""


def test_lengths_that_no_translation_has_are_refused():
    with pytest.raises(
        InputError, match=r"min_length must be at most max_length. Received: min_length=7, max_length=5"
    ):
        override(Config(), {"decoding": {"min_length": 7, "max_length": 5}})
    assert dataclasses.replace(Config().decoding, min_length=5, max_length=5).min_length == 5

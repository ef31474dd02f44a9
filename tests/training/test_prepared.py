"""Training on prepared corpora is training on the text."""

import json
import shutil

import numpy as np
import pytest

from tf_transformer.commands.main import main
from tf_transformer.config import override
from tf_transformer.data import token_pairs, windows
from tf_transformer.data.preparing import plan_of, prepare
from tf_transformer.errors import InputError
from tf_transformer.runs import checkpoints
from tf_transformer.runs.directory import RunDirectory
from tf_transformer.training.fit import train


def assert_same_bits(one, other):
    """The last checkpoints of two runs have the same weights, optimizer and dropout."""
    found = [np.load(checkpoints.all_of(run.checkpoints)[-1]) for run in (one, other)]
    for name in set(found[0].files) - {checkpoints.STATE}:
        np.testing.assert_array_equal(found[0][name], found[1][name], err_msg=name)


@pytest.fixture
def small_windows(monkeypatch):
    """Several windows an epoch of the 53 pairs."""
    monkeypatch.setattr(windows, "WINDOW", 19)
    monkeypatch.setattr("tf_transformer.data.prepared.shards.BLOCK", 5)
    monkeypatch.setattr(token_pairs, "BLOCK", 5)


@pytest.fixture
def options(corpus, small):
    """The options of a command that trains what `small` does; the text is named besides."""
    config = small(corpus).as_dict()
    chosen = {"model": ("num_layers", "d_model", "num_heads", "dff"), "data": ("batch_tokens",)}
    chosen["training"] = ("max_steps", "warmup_steps", "learning_rate_factor", "ema_decay", "samples")
    settings = [f"{section}.{key}={config[section][key]}" for section, keys in chosen.items() for key in keys]
    return [word for setting in settings for word in ("--set", setting)]


@pytest.mark.long
def test_prepared_by_a_command_it_trains_as_the_text_does(corpus, options, tmp_path, capsys):
    text = ["--data", str(corpus), "--source", "xx", "--target", "yy"]
    how = ["--vocab-size", "300", "--set", "data.max_length=16"]
    assert main(["prepare", *text, *how, "--output", str(tmp_path / "prepared")]) == 0
    assert main(["train", *text, *how, *options, "--run-dir", str(tmp_path / "text")]) == 0
    command = ["train", "--data", str(tmp_path / "prepared"), *options, "--run-dir", str(tmp_path / "run")]
    assert main(command) == 0
    one, other = RunDirectory(tmp_path / "text"), RunDirectory(tmp_path / "run")
    assert_same_bits(one, other)
    assert other.config.data.corpus == str(corpus)
    assert not (other.path / "prepared").exists()
    # It goes on, from another place too, and not with another text.
    (tmp_path / "prepared").rename(tmp_path / "moved")
    assert main([*command, "--max-steps", "8"]) == 2
    capsys.readouterr()
    command[2] = str(tmp_path / "moved")
    assert main([*command, "--max-steps", "8"]) == 0
    assert main(["train", *text, *how, *options, "--run-dir", str(tmp_path / "text"), "--max-steps", "8"]) == 0
    assert_same_bits(one, other)
    lines = (corpus / "train.xx").read_text().splitlines()
    changed = tmp_path / "changed"
    shutil.copytree(corpus, changed)
    (changed / "train.xx").write_text("".join(f"{line}\n" for line in [*lines[:-1], "x"]))
    text[1] = str(changed)
    model = ["--tokenizer", str(tmp_path / "moved" / "tokenizer.model")]
    assert main(["prepare", *text, *how, *model, "--output", str(tmp_path / "other")]) == 0
    command[2] = str(tmp_path / "other")
    assert main([*command, "--max-steps", "9"]) == 2
    assert "the text of train has changed" in capsys.readouterr().err


def test_settings_that_it_was_not_prepared_for_are_refused(corpus, options, tmp_path, capsys):
    text = ["--data", str(corpus), "--source", "xx", "--target", "yy"]
    how = ["--vocab-size", "300", "--set", "data.max_length=16"]
    assert main(["prepare", *text, *how, "--output", str(tmp_path / "prepared")]) == 0
    command = ["train", "--data", str(tmp_path / "prepared"), *options, "--run-dir", str(tmp_path / "run")]
    for wrong, said in {
        "data.max_length=17": "data.max_length was 16, is 17",
        "tokenizer.vocab_size=301": "tokenizer.vocab_size was 300, is 301",
        "data.bpe_dropout=0.1": "was prepared without it: prepare the corpus with --set data.bpe_dropout=0.1",
        "data.weights=[1,2]": "weights must be one per corpus, 1 in all. Received: 2",
    }.items():
        assert main([*command, "--set", wrong]) == 2
        assert said in capsys.readouterr().err
    assert main([*command, "--data", str(corpus)]) == 2
    assert "it is trained on alone" in capsys.readouterr().err
    assert main(["prepare", "--data", str(tmp_path / "prepared"), "--output", str(tmp_path / "again")]) == 2
    assert "is prepared already: train on it" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


@pytest.mark.long
def test_a_run_goes_on_without_its_text_and_notices_another(corpus, small, tmp_path):
    copied = tmp_path / "text"
    shutil.copytree(corpus, copied)
    run = train(small(copied, max_steps=3), tmp_path / "run")
    whole = train(small(copied, max_steps=5), tmp_path / "whole")
    copied.rename(tmp_path / "elsewhere")
    train(small(copied, max_steps=5), run.path)
    assert_same_bits(run, whole)
    (tmp_path / "elsewhere").rename(copied)
    (copied / "train.xx").write_text((copied / "train.yy").read_text() + "a b\n")
    (copied / "train.yy").write_text((copied / "train.xx").read_text())
    with pytest.raises(InputError, match="the text of train has changed"):
        train(small(copied, max_steps=6), run.path)


@pytest.mark.long
@pytest.mark.usefixtures("small_windows")
@pytest.mark.parametrize("dropout", [0.0, 0.3])
def test_a_run_goes_on_within_any_window(corpus, small, tmp_path, dropout):
    """Stops at 2, 5 and 9 of the steps of several windows, of text that is cut by chance too."""
    data = {"data": {"bpe_dropout": dropout}}
    whole = train(override(small(corpus, max_steps=13), data), tmp_path / "whole")
    run = None
    places = set()
    for steps in (2, 5, 9, 13):
        run = train(override(small(corpus, max_steps=steps), data), tmp_path / "run")
        state = checkpoints.state_of(checkpoints.all_of(run.checkpoints)[-1])
        places.add((state["epoch"], state["window"]))
    assert_same_bits(whole, run)
    assert len(places) > 3


@pytest.mark.long
def test_a_damaged_shard_stops_training_and_is_named(corpus, small, tmp_path, monkeypatch):
    monkeypatch.setattr("tf_transformer.data.prepared.shards.BLOCK", 5)
    run = train(small(corpus, max_steps=2), tmp_path / "run")
    place = run.path / "prepared" / "00000.shard"
    content = bytearray(place.read_bytes())
    content[-1] ^= 4
    place.write_bytes(content)
    with pytest.raises(InputError, match=r"00000\.shard is damaged near byte \d+"):
        train(small(corpus, max_steps=20), run.path)
    content[-1] ^= 4
    place.write_bytes(content)
    train(small(corpus, max_steps=20), run.path)


def test_a_prepared_corpus_is_no_folder_of_text(corpus, small, tmp_path):
    prepare(plan_of(small(corpus)), tmp_path / "prepared")
    with pytest.raises(InputError, match="is a prepared corpus"):
        train(override(small(corpus), {"data": {"corpus": str(tmp_path / "prepared")}}), tmp_path / "run")
    assert json.loads((tmp_path / "prepared" / "manifest.json").read_text())["format_version"] == 1
    assert not (tmp_path / "run").exists()

"""Several corpora, weights, filters, and starting from another run."""

import dataclasses
from collections import Counter

import numpy as np
import pytest

from tf_transformer import load
from tf_transformer.commands.main import main
from tf_transformer.config import Config, DataConfig, TokenizerConfig, override
from tf_transformer.data import Batches, windows
from tf_transformer.data.prepared import Prepared
from tf_transformer.data.preparing import plan_of, prepare
from tf_transformer.errors import InputError
from tf_transformer.runs import checkpoints
from tf_transformer.runs.directory import RunDirectory
from tf_transformer.tokenizers.vocabulary import train_tokenizer
from tf_transformer.training.fit import train
from tf_transformer.training.trainer import Trainer


def write(folder, **splits):
    folder.mkdir()
    for split, pairs in splits.items():
        for i, language in enumerate(("xx", "yy")):
            (folder / f"{split}.{language}").write_text("".join(f"{pair[i]}\n" for pair in pairs))
    return str(folder)


@pytest.fixture
def two(tmp_path):
    one = write(tmp_path / "one", train=[("a b", "b a"), ("c", "d"), ("a b", "b a")], val=[("e", "f")])
    other = write(tmp_path / "other", train=[("g", "h"), ("c", "d")], dev=[("i", "j")])
    return DataConfig(corpus=one, extra_corpora=(other,), source="xx", target="yy")


@pytest.fixture
def prepared(tmp_path):
    """Prepares data, of which one block has one pair."""

    def make(data: DataConfig) -> Prepared:
        config = Config(data=data, tokenizer=TokenizerConfig(vocab_size=300))
        made = prepare(plan_of(config), tmp_path / f"prepared{len(list(tmp_path.iterdir()))}")
        assert made is not None
        return made

    return make


def texts_of(prepared):
    """The training pairs, as text."""
    processor = prepared.vocabularies[0].processor
    return [tuple(map(processor.decode, pair)) for pair in zip(*prepared.pairs().sequences(), strict=True)]


def test_corpora_are_joined_and_the_first_one_validates(two, prepared):
    made = prepared(two)
    assert texts_of(made) == [("a b", "b a"), ("c", "d"), ("a b", "b a"), ("g", "h"), ("c", "d")]
    assert [corpus["pairs"] for corpus in made.corpora] == [3, 2]
    assert made.validation()[0].targets == ["f"]


def test_validation_data_of_their_own(two, prepared):
    assert prepared(dataclasses.replace(two, validation_corpus=two.extra_corpora[0])).validation()[0].targets == ["j"]


def test_equal_pairs_are_dropped_and_counted(two, prepared, caplog):
    with caplog.at_level("INFO"):
        made = prepared(dataclasses.replace(two, drop_duplicates=True))
    assert texts_of(made) == [("a b", "b a"), ("c", "d"), ("g", "h")]
    assert [corpus["dropped"]["equal"] for corpus in made.corpora] == [1, 1]
    assert "train: dropped pairs: 2 that equal an earlier pair, of 5" in caplog.text


@pytest.mark.long
def test_pairs_of_unlike_lengths_are_dropped_and_counted(tmp_path, small, caplog):
    pairs = [("a b c", "a"), ("a b c", "a b"), ("a", "b c d")]
    config = small(write(tmp_path / "text", train=pairs, val=pairs))
    # Characters as tokens: 5, and a mark of the beginning of a word, against 1 and that mark.
    config = override(config, {"data": {"max_length_ratio": 2.9}, "tokenizer": {"model_type": "char"}})
    with caplog.at_level("INFO"):
        train(override(config, {"training": {"max_steps": 1}}), tmp_path / "run")
    assert "train: dropped pairs: 2 with a ratio of lengths above data.max_length_ratio=2.9, of 3" in caplog.text
    assert "validation: dropped" not in caplog.text


@pytest.mark.long_but_first
@pytest.mark.parametrize("weight", [2.0, 0.5, 1.75])
@pytest.mark.parametrize("window", [1, 2**20])
def test_a_pair_is_seen_as_often_as_its_weight_says(two, prepared, weight, window, monkeypatch):
    monkeypatch.setattr(windows, "WINDOW", window)
    batches = Batches(prepared(two).pairs(), 64, seed=3, weights=(weight, 1.0))
    seen = Counter()
    for epoch in range(8):
        batches.start_epoch(epoch)
        of_epoch = Counter()
        for (source, _), _, weights in batches.dataset():
            of_epoch += Counter(tuple(row[row != 0]) for row in source.numpy()[weights.numpy() > 0])
        lengths = {len(source): count for source, count in of_epoch.items()}
        assert abs(sum(of_epoch.values()) - 2 - 3 * weight) < 3, lengths
        seen += of_epoch
    a, b, c = sorted(seen.values())
    assert [a, b, c] == sorted([16 * weight, 8, 8 * weight + 8])


def test_weights_must_be_one_for_each_corpus(two):
    with pytest.raises(InputError, match=r"weights must be one per corpus, 2 in all\. Received: 3"):
        dataclasses.replace(two, weights=(1.0, 2.0, 3.0))
    with pytest.raises(InputError, match=r"weights must be finite numbers above 0\. Received: \[1\.0, 0\.0\]"):
        dataclasses.replace(two, weights=(1.0, 0.0))


@pytest.mark.long
def test_fine_tuning_from_the_command_line(corpus, stopped, two, tmp_path):
    """Sizes and tokenizer are those of the run that is started from; so are the weights before the first update."""
    base = stopped(tmp_path / "base")
    command = ["train", "--data", two.corpus, "--data", two.extra_corpora[0], "--weights", "2,0.5"]
    command += ["--validation-data", str(corpus), "--source", "xx", "--target", "yy"]
    command += ["--init-from", str(base.path), "--run-dir", str(tmp_path / "tuned"), "--max-steps", "1"]
    command += ["--set", "training.learning_rate=1e-20", "--set", "training.ema_decay=0"]
    assert main(command) == 0
    tuned = type(base)(tmp_path / "tuned")
    assert (tuned.path / "tokenizer.model").read_bytes() == (base.path / "tokenizer.model").read_bytes()
    assert dataclasses.replace(tuned.config.model) == base.config.model
    assert tuned.config.data.weights == (2.0, 0.5)
    for one, other in zip(load(tuned.path).model.get_weights(), load(base.path).model.get_weights(), strict=True):
        np.testing.assert_array_equal(one, other)
    base.path.rename(tmp_path / "elsewhere")
    assert main([*command, "--max-steps", "2"]) == 0  # goes on, and does not need the base any more
    assert checkpoints.state_of(checkpoints.all_of(tuned.checkpoints)[-1])["step"] == 2


@pytest.fixture
def interrupted(corpus, small, stopped, tmp_path, monkeypatch):
    """A base, the config of a run from it that hardly learns, and that run, ended before its first checkpoint."""
    base = stopped(tmp_path / "base")
    config = small(corpus, init_from=str(base.path), learning_rate=1e-20, max_steps=1)

    def end(*args, **kwargs):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "fit", end)
        with pytest.raises(KeyboardInterrupt):
            train(config, tmp_path / "tuned")
    return base, config, RunDirectory(tmp_path / "tuned")


@pytest.mark.long
def test_fine_tuning_that_had_no_checkpoint_yet_starts_from_the_run_again(interrupted):
    base, config, tuned = interrupted
    assert checkpoints.all_of(tuned.checkpoints) == []
    train(config, tuned.path)
    for one, other in zip(load(tuned.path).model.get_weights(), load(base.path).model.get_weights(), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.long
def test_fine_tuning_that_had_no_checkpoint_yet_needs_the_same_run(interrupted, corpus, small, tmp_path):
    base, config, tuned = interrupted
    base.path.rename(tmp_path / "elsewhere")
    with pytest.raises(InputError, match="base is not a run directory"):
        train(config, tuned.path)
    tokenizer = {"tokenizer": {"vocab_size": 280}}
    train(override(small(corpus, max_steps=1), tokenizer), base.path)
    with pytest.raises(InputError, match=r"does not fit: model\.input_vocab_size is 280 there, 283 here.*; its token"):
        train(config, tuned.path)


@pytest.mark.long
def test_the_run_that_was_started_from_stays_what_it_was(interrupted, tmp_path):
    _, config, tuned = interrupted
    train(config, tuned.path)
    other = {"training": {"max_steps": 2, "init_from": str(tmp_path / "other")}}
    with pytest.raises(InputError, match=r"training\.init_from was '.*base', is '.*other'"):
        train(override(config, other), tuned.path)
    train(override(config, {"training": {"max_steps": 2, "init_from": None}}), tuned.path)
    again = RunDirectory(tuned.path)
    assert again.config.training.init_from == config.training.init_from
    assert checkpoints.state_of(checkpoints.all_of(again.checkpoints)[-1])["step"] == 2


@pytest.mark.long
def test_settings_are_held_against_the_run_that_is_started_from(corpus, small, tmp_path, capsys):
    """The preset has 4 layers and one tokenizer."""
    layers = {"num_decoder_layers": 5, "share_embeddings": "target"}
    separate = override(small(corpus, max_steps=1), {"model": layers, "tokenizer": {"shared": False}})
    base = train(separate, tmp_path / "base")
    command = ["train", "--data", str(corpus), "--source", "xx", "--target", "yy", "--init-from", str(base.path)]
    command += ["--run-dir", str(tmp_path / "tuned"), "--max-steps", "1", "--set", "decoding.attention_layer=5"]
    assert main(command) == 0
    tuned = RunDirectory(tmp_path / "tuned")
    assert tuned.config.decoding.attention_layer == 5
    assert tuned.config.tokenizer == base.config.tokenizer
    assert main([*command, "--set", "decoding.attention_layer=7"]) == 2
    assert "at most the number of decoder layers, 5. Received: 7" in capsys.readouterr().err


def test_an_epoch_without_a_pair_is_refused(two, prepared):
    with pytest.raises(InputError, match=r"epoch 1 has no pair: raise data\.weights"):
        Batches(prepared(two).pairs(), 64, seed=3, weights=(1e-3, 1e-3))


@pytest.mark.long
def test_a_run_that_does_not_fit_is_refused(corpus, small, stopped, tmp_path, capsys):
    base = stopped(tmp_path / "base")
    other = override(small(corpus), {"model": {"dff": 32}, "training": {"init_from": str(base.path)}})
    with pytest.raises(InputError, match=r"--init-from .*base does not fit: model\.dff is 16 there, 32 here"):
        train(other, tmp_path / "tuned")
    (tmp_path / "other.model").write_bytes(train_tokenizer(["a b c d"], TokenizerConfig(vocab_size=300)))
    other = override(
        small(corpus),
        {"tokenizer": {"file": str(tmp_path / "other.model")}, "training": {"init_from": str(base.path)}},
    )
    with pytest.raises(InputError, match=r"does not fit: its tokenizer is not .*other\.model"):
        train(other, tmp_path / "tuned")
    assert not (tmp_path / "tuned").exists()
    assert main(["train", "--data", "toy", "--init-from", str(tmp_path), "--run-dir", str(tmp_path / "tuned")]) == 2
    assert "is not a run directory" in capsys.readouterr().err

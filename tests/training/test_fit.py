import copy
import dataclasses
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import tensorflow as tf
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from tf_transformer import load
from tf_transformer.config.overrides import override, settings_help
from tf_transformer.data import Batches, encode, read
from tf_transformer.errors import InputError
from tf_transformer.runs import checkpoints
from tf_transformer.runs.averaging import average_run
from tf_transformer.runs.directory import RunDirectory
from tf_transformer.runs.history import read_history
from tf_transformer.storage.lock import LOCK, sole_writer
from tf_transformer.tokenizers import train_tokenizer
from tf_transformer.training.callbacks import StopOnNaN
from tf_transformer.training.fit import make_trainer, train

STEPS_PER_EPOCH = 6
"""Of the corpus below."""


def test_a_run_directory_holds_what_it_should(corpus, tmp_path, small, epoch_rows):
    config = small(corpus, max_steps=2 * STEPS_PER_EPOCH)
    run = train(config, tmp_path / "run")
    expected = {"checkpoints", "config.json", "history.csv", "prepared", "tensorboard", "tokenizer.model"}
    assert set(os.listdir(run.path)) == expected
    description = json.loads((run.path / "config.json").read_text())
    assert description["format_version"] == 1
    assert {"tensorflow", "keras", "tf-transformer"} <= set(description["packages"])
    assert description["data"]["train"]["pairs"] == 53
    assert [int(row["step"]) for row in epoch_rows(run)] == [STEPS_PER_EPOCH, 2 * STEPS_PER_EPOCH]
    expected = {"epoch", "step", "loss", "accuracy", "perplexity", "val_loss", "val_accuracy", "val_perplexity"}
    assert expected <= set(epoch_rows(run)[0])
    assert [int(p.stem[5:]) for p in checkpoints.all_of(run.checkpoints)] == [STEPS_PER_EPOCH, 2 * STEPS_PER_EPOCH]

    loaded = load(run.path)
    size = loaded.source_tokenizer.vocab_size
    assert loaded.source_tokenizer is loaded.target_tokenizer
    assert loaded.config.model == dataclasses.replace(config.model, input_vocab_size=size, target_vocab_size=size)
    assert np.isfinite(loaded.model((np.array([[4, 3]]), np.array([[2]])))).all()


@pytest.mark.long
def test_one_tokenizer_a_language(corpus, tmp_path, small):
    config = override(
        small(corpus, max_steps=1), {"tokenizer": {"shared": False}, "model": {"share_embeddings": "target"}}
    )
    run = train(config, tmp_path / "run")
    assert {"source.model", "target.model"} <= set(os.listdir(run.path))
    loaded = load(run.path)
    assert loaded.source_tokenizer is not loaded.target_tokenizer


@pytest.mark.long
def test_the_best_and_the_last_checkpoints_are_kept(corpus, tmp_path, small, epoch_rows):
    run = train(small(corpus, max_steps=4 * STEPS_PER_EPOCH, keep_last=2, checkpoint_every=3), tmp_path / "run")
    kept = [checkpoints.state_of(path) for path in checkpoints.all_of(run.checkpoints)]
    assert [state["step"] for state in kept][-2:] == [21, 24]
    losses = {int(row["step"]): float(row["val_loss"]) for row in epoch_rows(run)}
    best = min(losses, key=losses.get)
    assert best in [state["step"] for state in kept]
    assert len(kept) <= 3
    assert checkpoints.state_of(run.best_checkpoint())["step"] == best


def test_other_settings_are_refused_and_shown(corpus, tmp_path, small, stopped):
    stopped(tmp_path / "run")
    before = (tmp_path / "run" / "config.json").read_bytes()
    other = override(small(corpus, max_steps=6, seed=5), {"model": {"dropout_rate": 0.5}})
    with pytest.raises(InputError, match=r"model\.dropout_rate was 0\.2, is 0\.5; training\.seed was 0, is 5"):
        train(other, tmp_path / "run")
    assert (tmp_path / "run" / "config.json").read_bytes() == before


def test_changed_text_is_refused(corpus, tmp_path, small, stopped):
    changed = shutil.copytree(corpus, tmp_path / "text")
    stopped(tmp_path / "run")
    for language in ("xx", "yy"):
        with (changed / f"train.{language}").open("a") as file:
            file.write("a b\n")
    with pytest.raises(InputError, match="the text of train has changed"):
        train(small(changed, max_steps=6), tmp_path / "run")


@pytest.mark.long
def test_a_run_goes_on_from_another_folder(corpus, tmp_path, monkeypatch, small):
    (tmp_path / "here" / "deep").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "here")
    os.symlink(corpus, "text")
    run = train(small("text", max_steps=1), "run")
    assert run.config.data.corpus == str(tmp_path / "here" / "text")
    model = run.path / "tokenizer.model"
    monkeypatch.chdir("deep")
    # The same tokenizer by another road is no difference either; another one is.
    run = train(override(small("../text", max_steps=2), {"tokenizer": {"file": os.path.relpath(model)}}), "../run")
    assert checkpoints.all_of(run.checkpoints)[-1].name == "step-00000002.npz"
    (tmp_path / "other.model").write_bytes(train_tokenizer(["a b c d"], run.config.tokenizer))
    other = {"tokenizer": {"file": str(tmp_path / "other.model")}}
    with pytest.raises(InputError, match=r"other\.model is another tokenizer"):
        train(override(small("../text", max_steps=4), other), "../run")


@pytest.mark.long
def test_the_moving_average_is_the_model(corpus, tmp_path, small, epoch_rows):
    """The average of step 1 is its weights; then average = decay * average + (1 - decay) * weights.

    The decay of update t + 1 is (1 + t) / (10 + t) at most.
    """
    steps = 5
    run = train(small(corpus, max_steps=steps, checkpoint_every=1, ema_decay=0.3), tmp_path / "run")
    saved = [np.load(path) for path in checkpoints.all_of(run.checkpoints)]
    assert len(saved) == steps
    model = load(run.path).model
    for variable in model.trainable_variables:
        expected = saved[0][variable.path]
        for decay, step in zip((2 / 11, 3 / 12, 0.3, 0.3), saved[1:], strict=True):
            expected = decay * expected + (1 - decay) * step[variable.path]
        np.testing.assert_allclose(variable.numpy(), expected, atol=1e-6, err_msg=variable.path)
    assert not np.allclose(saved[-1][variable.path], variable.numpy(), atol=1e-4)
    trainer = make_trainer(run.config)
    trainer.model.set_weights(model.get_weights())
    tokenizer = load(run.path).source_tokenizer
    held_out = Batches(encode(read(run.config.data, "val"), tokenizer, tokenizer, 16), 64)
    scores = trainer.evaluate(held_out.dataset(), return_dict=True, verbose=0)
    assert float(epoch_rows(run)[-1]["val_loss"]) == pytest.approx(scores["loss"], rel=1e-4)


CHANGED = {
    "training": {
        "max_steps": 9,
        "checkpoint_every": 2,
        "keep_last": 2,
        "keep_best": 2,
        "deterministic": False,
        "early_stopping": 7,
        "best_by": "bleu",
        "samples": 1,
        "validate_every": 2,
        "bleu_every": 1,
        "bleu_sentences": 3,
        "bleu_tokenize": "char",
    },
    "data": {"corpus": "moved", "extra_corpora": (), "validation_corpus": "moved", "prepared": None},
    "tokenizer": {"file": "moved"},
}
"""The settings that may change while a run is stopped, besides those of decoding: with them it learns the same."""


@pytest.mark.long
def test_settings_that_may_change_change_nothing_that_is_learned(corpus, tmp_path, small, stopped):
    once = train(small(corpus, max_steps=9), tmp_path / "once")
    run = stopped(tmp_path / "run")
    moved = shutil.copytree(corpus, tmp_path / "moved")
    tokenizer = shutil.copy(run.path / "tokenizer.model", tmp_path / "moved.model")
    here = {"corpus": str(moved), "validation_corpus": str(moved)}
    changes = CHANGED | {"data": CHANGED["data"] | here, "tokenizer": {"file": str(tokenizer)}}
    again = train(override(small(corpus), changes), run.path)
    expected, found = (checkpoints.path_of(each.checkpoints, 9) for each in (once, again))
    names = checkpoints.names_in(expected)
    expected, found = checkpoints.read(expected, names), checkpoints.read(found, names)
    for name in names:
        np.testing.assert_allclose(found[name], expected[name], atol=1e-5, err_msg=name)


def test_every_other_setting_is_refused_on_resume_and_named(corpus, tmp_path, stopped):
    run = stopped(tmp_path / "run")
    other_words = {"norm": "post", "positions": "learned", "share_embeddings": "none", "activation": "gelu"}
    other_words |= {"model_type": "unigram", "normalization": "identity", "best_by": "bleu"}
    other_words |= {"mixed_precision": "bfloat16", "schedule": "constant", "optimizer": "muon"}
    named = {"corpus", "extra_corpora", "validation_corpus", "source", "target", "train_split", "validation_split"}
    seen = 0
    for section, settings in run.config.as_dict().items():
        for key, value in settings.items():
            if isinstance(value, bool):
                other = not value
            elif key in other_words:
                other = other_words[key]
            elif key == "extra_corpora":
                other = (str(corpus),)
            elif isinstance(value, tuple):
                other = (2.0,)
            elif isinstance(value, str) or key in named | {"file", "init_from", "bleu_tokenize"}:
                other = "other"
            elif isinstance(value, float):
                other = value + 0.125
            else:
                other = (value or 0) + 1
            changed = copy.deepcopy(run.config)  # each alone, though some are not valid without others
            object.__setattr__(getattr(changed, section), key, other)
            expected = section == "decoding" or key in CHANGED.get(section, ())
            found = run.differences(changed)
            assert len(found) == (not expected), f"{section}.{key}: {found}"
            assert expected or found[0].startswith(f"{section}.{key} was ")
            seen += 1
    assert seen == len(settings_help().splitlines())


def test_what_is_refused_is_refused_by_training_too(corpus, tmp_path, small, stopped):
    stopped(tmp_path / "run")
    for training in ({"seed": 1}, {"label_smoothing": 0.2}, {"accumulate": 2}, {"warmup_steps": 11}):
        (name,) = training
        with pytest.raises(InputError, match=rf"training\.{name} was "):
            train(small(corpus, **training), tmp_path / "run")


@pytest.mark.long
def test_config_is_written_in_one_order_by_every_process(tmp_path, stopped):
    run = stopped(tmp_path / "run")
    code = "import sys; from tf_transformer.runs.directory import RunDirectory as R; r = R(sys.argv[1]); "
    command = [sys.executable, "-c", code + "r.replace_config(r.config)", str(run.path)]
    texts = {(run.path / "config.json").read_text()}
    for seed in range(1, 6):
        subprocess.run(command, check=True, env=os.environ | {"PYTHONHASHSEED": str(seed)})
        texts.add((run.path / "config.json").read_text())
    assert len(texts) == 1


@pytest.mark.long
def test_two_processes_cannot_train_in_one_folder(corpus, tmp_path, small, stopped):
    new, old = tmp_path / "new", stopped(tmp_path / "old").path
    for path in (new, old):
        with sole_writer(path):
            for overwrite in (False, True):
                with pytest.raises(
                    InputError, match=rf"{path.name} is in use by process {os.getpid()} on .*wait until"
                ):
                    train(small(corpus), path, overwrite=overwrite)
    run = train(small(corpus), old)
    assert checkpoints.all_of(run.checkpoints)[-1].name == "step-00000006.npz"
    assert not (run.path / LOCK).exists()


@pytest.mark.long
def test_checkpoints_of_another_run_are_passed_over_and_set_aside(corpus, tmp_path, small, stopped, caplog):
    run = stopped(tmp_path / "run")
    wide = override(small(corpus, max_steps=6), {"model": {"d_model": 32}})
    other = train(wide, tmp_path / "other")
    foreign = Path(shutil.copy(checkpoints.path_of(other.checkpoints, 6), run.checkpoints))
    assert run.best_checkpoint() == checkpoints.path_of(run.checkpoints, 5)
    assert f"{foreign} belongs to another run" in caplog.text
    assert load(run.path).model.config["d_model"] == 16
    run = train(small(corpus, max_steps=7, keep_last=1), run.path)
    names = sorted(path.name for path in run.checkpoints.iterdir())
    assert names[0] == f"foreign-{foreign.name}"
    assert "step-00000007.npz" in names


def test_a_run_is_read_while_training_deletes_its_checkpoints(tmp_path, stopped, monkeypatch):
    run = stopped(tmp_path / "run")
    assert len(run.known()) == 5
    real, deleted = checkpoints.restore, []

    def restore(checkpoint, variables):
        if len(deleted) < 2:  # between the look and the reading
            checkpoint.unlink()
            deleted.append(checkpoint)
        return real(checkpoint, variables)

    monkeypatch.setattr(checkpoints, "restore", restore)
    load(run.path)
    assert len(deleted) == 2
    with pytest.raises(
        checkpoints.MissingCheckpointError, match="no longer exists: training deletes older checkpoints"
    ):
        checkpoints.state_of(deleted[0])


@pytest.mark.long
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount")
def test_a_run_lives_in_a_mounted_folder(corpus, tmp_path, small, stopped):
    """Which cannot be renamed, replaced or removed: a volume of a container."""
    folder = tmp_path / "mounted"
    folder.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "none", str(folder)], capture_output=True).returncode:
        pytest.skip("nothing can be mounted here")
    try:
        (folder / "lost+found").mkdir()
        stopped(folder)
        run = train(small(corpus, max_steps=1, seed=5), folder, overwrite=True)
        assert run.config.training.seed == 5
        assert [path.name for path in checkpoints.all_of(run.checkpoints)] == ["step-00000001.npz"]
        assert train(small(corpus, max_steps=2, seed=5), folder).path == folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def test_folders_that_only_look_like_ours_are_left_alone(corpus, tmp_path, small):
    for name in (".new", ".old", ".ready"):
        (tmp_path / "mine" / name).mkdir(parents=True)
        (tmp_path / "mine" / name / "thesis.tex").write_text("precious")
    for overwrite in (False, True):
        with pytest.raises(InputError, match="mine is not a run directory"):
            train(small(corpus), tmp_path / "mine", overwrite=overwrite)
    assert len(list((tmp_path / "mine").rglob("thesis.tex"))) == 3


@pytest.mark.long
def test_names_of_languages_that_were_given_once_stay(tmp_path, small):
    tsv = tmp_path / "pairs.tsv"
    tsv.write_text("".join(f"a b {i}\tc d {i}\n" for i in range(97)))
    config = override(small(tsv, max_steps=1), {"data": {"held_out": 0.2}})
    assert train(config, tmp_path / "run").config.data.target == "yy"
    for source, target in ((None, None), ("xx", "yy")):
        run = train(override(config, {"data": {"source": source, "target": target}}), tmp_path / "run")
        assert (run.config.data.source, run.config.data.target) == ("xx", "yy")


def test_what_fails_before_the_new_run_begins_loses_nothing_of_the_old_one(corpus, tmp_path, small, stopped):
    run = stopped(tmp_path / "run")
    before = {path: path.read_bytes() for path in run.path.rglob("*") if path.is_file()}
    with pytest.raises(InputError, match="no pair to train on in .*, 53 longer than"):
        train(override(small(corpus), {"data": {"max_length": 2}}), run.path, overwrite=True)
    assert {path: path.read_bytes() for path in run.path.rglob("*") if path.is_file()} == before


@pytest.mark.long
def test_overwrite_starts_anew_and_a_foreign_folder_is_refused(corpus, tmp_path, small, stopped):
    stopped(tmp_path / "run")
    run = train(small(corpus, max_steps=1, seed=5), tmp_path / "run", overwrite=True)
    assert [p.name for p in checkpoints.all_of(run.checkpoints)] == ["step-00000001.npz"]
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("precious")
    for overwrite in (False, True):
        with pytest.raises(InputError, match="mine is not a run directory"):
            train(small(corpus), tmp_path / "mine", overwrite=overwrite)
    assert (tmp_path / "mine" / "thesis.tex").read_text() == "precious"


def test_what_would_fail_later_is_refused_before_anything_is_lost(corpus, tmp_path, small, stopped):
    run = stopped(tmp_path / "run")
    before = {path: path.read_bytes() for path in run.path.rglob("*") if path.is_file()}
    for overwrite in (False, True):
        with pytest.raises(InputError, match="did you mean '13a'"):
            train(small(corpus, bleu_every=1, bleu_tokenize="13b"), run.path, overwrite=overwrite)
    assert {path: path.read_bytes() for path in run.path.rglob("*") if path.is_file()} == before


def test_overwrite_refuses_to_replace_what_the_new_run_is_made_from(corpus, tmp_path, small, stopped):
    run = stopped(tmp_path / "run")
    average = average_run(run.path, run.path / "averages" / "mean", last=1)
    shutil.copytree(corpus, run.path / "text")
    (tmp_path / "linked").symlink_to(run.path)
    before = {path: path.read_bytes() for path in run.path.rglob("*") if path.is_file()}
    for needed in (
        {"training": {"init_from": str(run.path)}},
        {"training": {"init_from": str(average.path)}},
        {"training": {"init_from": str(tmp_path / "linked" / "averages" / "mean")}},
        {"tokenizer": {"file": str(run.path / "tokenizer.model")}},
        {"data": {"prepared": str(run.path / "prepared")}},
        {"data": {"corpus": str(run.path / "text")}},
        {"data": {"extra_corpora": [f"{run.path / 'text'}:xx-yy"]}},
        {"data": {"validation_corpus": str(tmp_path / "linked" / "text")}},
    ):
        with pytest.raises(InputError, match=r"lies inside .*run: --overwrite would remove it. Give another folder"):
            train(override(small(corpus), needed), run.path, overwrite=True)
        with pytest.raises(InputError, match="lies inside"):
            train(override(small(corpus), needed), tmp_path / "linked", overwrite=True)
    assert {path: path.read_bytes() for path in run.path.rglob("*") if path.is_file()} == before


@pytest.mark.long
def test_tensorboard_has_every_update_once(corpus, tmp_path, small, stopped):
    run = train(small(corpus, max_steps=7), stopped(tmp_path / "run").path)
    events = EventAccumulator(str(run.path / "tensorboard" / "train")).Reload()
    scalars = [event.step for event in events.Tensors("batch_loss")]
    assert sorted(scalars) == [1, 2, 3, 4, 5, 6, 7]


@pytest.mark.long
def test_the_means_of_an_epoch_go_on_after_a_resume(tmp_path, stopped):
    """history.csv has the same rows after training was killed and went on from an earlier checkpoint."""
    run = stopped(tmp_path / "run")
    rows = [read_history(run.history)]
    for later in checkpoints.all_of(run.checkpoints)[2:]:
        later.unlink()
    rows.append(read_history(train(run.config, run.path).history))
    assert [row["step"] for row in rows[0]] == ["1", "2", "3", "4", "5", "5"]
    for one, other in zip(*rows, strict=True):
        assert {**one, **MEASURED} == {**other, **MEASURED}


MEASURED = {"seconds": "", "tokens_per_second": ""}


def test_a_finished_run_is_left_alone(tmp_path, stopped):
    run = stopped(tmp_path / "run")
    before = [p.stat().st_mtime_ns for p in checkpoints.all_of(run.checkpoints)]
    assert len(before) == 5
    train(run.config, run.path)
    assert [p.stat().st_mtime_ns for p in checkpoints.all_of(run.checkpoints)] == before


@pytest.mark.long
def test_a_loss_that_is_no_number_stops_training_and_keeps_what_was_good(corpus, tmp_path, small):
    config = small(corpus, max_steps=5, checkpoint_every=1, learning_rate_factor=1e38)
    with pytest.raises(InputError, match=r"at step 2"):
        train(config, tmp_path / "run")
    run = RunDirectory(tmp_path / "run")
    for path in checkpoints.all_of(run.checkpoints):
        with np.load(path) as saved:
            assert all(np.isfinite(saved[name]).all() for name in saved.files if saved[name].dtype.kind == "f")


@pytest.mark.long
def test_a_run_that_diverges_is_told_so(corpus, tmp_path, small, caplog):
    train(small(corpus, max_steps=2), tmp_path / "sane")
    assert "diverging" not in caplog.text
    with pytest.raises(InputError, match=r"the perplexity is inf at step \d+: training stopped"):
        train(small(corpus, max_steps=30, learning_rate=3.0, warmup_steps=1), tmp_path / "run")
    told = [record.message for record in caplog.records if "training may be diverging: the loss is " in record.message]
    assert len(told) == 1  # an epoch


@pytest.mark.parametrize(
    ("logs", "told"),
    [({"loss": 99.0, "perplexity": np.inf}, "perplexity is inf"), ({"loss": np.nan}, "loss is nan")],
)
def test_a_perplexity_beyond_all_numbers_stops_training(logs, told):
    stop = StopOnNaN(11)
    stop.set_model(SimpleNamespace(optimizer=SimpleNamespace(iterations=tf.Variable(7))))
    with pytest.raises(InputError, match=f"the {told} at step 7: training stopped"):
        stop.on_train_batch_end(0, logs)


@pytest.mark.long
def test_dropped_pairs_are_counted(tmp_path, caplog, small):
    for language, lines in (("xx", ["a b", "", "c d", "a " * 40]), ("yy", ["a b", "e", "c d", "a b"])):
        for split in ("train", "val"):
            (tmp_path / f"{split}.{language}").write_text("\n".join(lines) + "\n")
    with caplog.at_level("INFO"):
        train(small(tmp_path, max_steps=1), tmp_path / "run")
    assert "train: dropped pairs: 1 with an empty side and 1 longer than data.max_length=16 tokens, of 4" in caplog.text

import csv
import dataclasses
import json
import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest

from tf_transformer import checkpoints, load
from tf_transformer.config import PRESETS, Config
from tf_transformer.data import copy_task
from tf_transformer.errors import InputError
from tf_transformer.run_directory import RunDirectory
from tf_transformer.settings import override
from tf_transformer.training.fit import train

STEPS_PER_EPOCH = 6
"""Of the corpus below."""


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """53 pairs to train on, 11 to validate on."""
    folder = tmp_path_factory.mktemp("corpus")
    pairs = copy_task.pairs("train")
    for split, chosen in (("train", pairs[:53]), ("val", pairs[53:64])):
        for language in ("xx", "yy"):
            lines = [source[: 4 + 2 * (i % 7)] for i, (source, _) in enumerate(chosen)]
            (folder / f"{split}.{language}").write_text("".join(f"{line}\n" for line in lines))
    return folder


def small(corpus, **training) -> Config:
    return override(
        PRESETS["tiny"],
        {
            "model": {"num_layers": 1, "d_model": 16, "num_heads": 2, "dff": 16, "dropout_rate": 0.2},
            "tokenizer": {"vocab_size": 300},
            "data": {"corpus": str(corpus), "source": "xx", "target": "yy", "batch_tokens": 64, "max_length": 16},
            "training": {"max_steps": STEPS_PER_EPOCH, "warmup_steps": 10} | training,
        },
    )


def rows(run):
    with run.history.open() as file:
        return list(csv.DictReader(file))


def test_a_run_directory_holds_what_it_should(corpus, tmp_path):
    config = small(corpus, max_steps=2 * STEPS_PER_EPOCH)
    run = train(config, tmp_path / "run")
    expected = {"checkpoints", "config.json", "history.csv", "tokenizer.model"}
    assert set(os.listdir(run.path)) - {"tensorboard"} == expected
    description = json.loads((run.path / "config.json").read_text())
    assert description["format_version"] == 1
    assert {"tensorflow", "keras", "tf-transformer"} <= set(description["packages"])
    assert description["data"]["train"]["pairs"] == 53
    assert [int(row["step"]) for row in rows(run)] == [STEPS_PER_EPOCH, 2 * STEPS_PER_EPOCH]
    expected = {"epoch", "step", "loss", "accuracy", "perplexity", "val_loss", "val_accuracy", "val_perplexity"}
    assert expected <= set(rows(run)[0])
    assert [int(p.name[5:]) for p in checkpoints.all_of(run.checkpoints)] == [STEPS_PER_EPOCH, 2 * STEPS_PER_EPOCH]

    loaded = load(run.path)
    size = loaded.source_tokenizer.vocab_size
    assert loaded.source_tokenizer is loaded.target_tokenizer
    assert loaded.config.model == dataclasses.replace(config.model, input_vocab_size=size, target_vocab_size=size)
    assert np.isfinite(loaded.model((np.array([[4, 3]]), np.array([[2]])))).all()


def test_one_tokenizer_a_language(corpus, tmp_path):
    config = override(
        small(corpus, max_steps=1), {"tokenizer": {"shared": False}, "model": {"share_embeddings": "target"}}
    )
    run = train(config, tmp_path / "run")
    assert {"source.model", "target.model"} <= set(os.listdir(run.path))
    loaded = load(run.path)
    assert loaded.source_tokenizer is not loaded.target_tokenizer


def test_the_best_and_the_last_checkpoints_are_kept(corpus, tmp_path):
    run = train(small(corpus, max_steps=4 * STEPS_PER_EPOCH, keep_last=2, checkpoint_every=3), tmp_path / "run")
    kept = [checkpoints.state_of(path) for path in checkpoints.all_of(run.checkpoints)]
    assert [state["step"] for state in kept][-2:] == [21, 24]
    losses = {int(row["step"]): float(row["val_loss"]) for row in rows(run)}
    best = min(losses, key=losses.get)
    assert best in [state["step"] for state in kept]
    assert len(kept) <= 3
    assert checkpoints.state_of(run.best_checkpoint())["step"] == best


def test_other_settings_are_refused_and_shown(corpus, tmp_path):
    train(small(corpus, max_steps=1), tmp_path / "run")
    before = (tmp_path / "run" / "config.json").read_bytes()
    other = override(small(corpus, max_steps=2, seed=5), {"model": {"dropout_rate": 0.5}})
    with pytest.raises(InputError, match=r"model\.dropout_rate was 0\.2, is 0\.5; training\.seed was 0, is 5"):
        train(other, tmp_path / "run")
    assert (tmp_path / "run" / "config.json").read_bytes() == before


def test_changed_text_is_refused(corpus, tmp_path):
    for file in corpus.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    train(small(tmp_path, max_steps=1), tmp_path / "run")
    for language in ("xx", "yy"):
        with (tmp_path / f"train.{language}").open("a") as file:
            file.write("a b\n")
    with pytest.raises(InputError, match="the text of train has changed"):
        train(small(tmp_path, max_steps=2), tmp_path / "run")


def test_overwrite_starts_anew_and_a_foreign_folder_is_refused(corpus, tmp_path):
    train(small(corpus, max_steps=2), tmp_path / "run")
    run = train(small(corpus, max_steps=1, seed=5), tmp_path / "run", overwrite=True)
    assert [p.name for p in checkpoints.all_of(run.checkpoints)] == ["step-00000001"]
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("precious")
    for overwrite in (False, True):
        with pytest.raises(InputError, match="mine is not a run directory"):
            train(small(corpus), tmp_path / "mine", overwrite=overwrite)
    assert (tmp_path / "mine" / "thesis.tex").read_text() == "precious"


def test_a_finished_run_is_left_alone(corpus, tmp_path):
    run = train(small(corpus, max_steps=2), tmp_path / "run")
    before = [p.stat().st_mtime_ns for p in checkpoints.all_of(run.checkpoints)]
    train(small(corpus, max_steps=2), tmp_path / "run")
    assert [p.stat().st_mtime_ns for p in checkpoints.all_of(run.checkpoints)] == before


def test_a_loss_that_is_no_number_stops_training_and_keeps_what_was_good(corpus, tmp_path):
    config = small(corpus, max_steps=5, checkpoint_every=1, learning_rate_factor=1e38)
    with pytest.raises(InputError, match=r"at step 2"):
        train(config, tmp_path / "run")
    run = RunDirectory(tmp_path / "run")
    for path in checkpoints.all_of(run.checkpoints):
        with np.load(path / "variables.npz") as saved:
            assert all(np.isfinite(saved[name]).all() for name in saved.files)


def test_dropped_pairs_are_counted(tmp_path, caplog):
    for language, lines in (("xx", ["a b", "", "c d", "a " * 40]), ("yy", ["a b", "e", "c d", "a b"])):
        for split in ("train", "val"):
            (tmp_path / f"{split}.{language}").write_text("\n".join(lines) + "\n")
    with caplog.at_level("INFO"):
        train(small(tmp_path, max_steps=1), tmp_path / "run")
    assert "train: dropped 1 pairs with an empty side and 1 longer than 16 tokens, of 4" in caplog.text


def in_fresh_process(code):
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        env=os.environ | {"TF_CPP_MIN_LOG_LEVEL": "3"},
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_a_resumed_run_equals_an_uninterrupted_one(corpus, tmp_path):
    """Bit for bit, dropout and data order included; the first stop is within an epoch, the second at its end."""
    for stops in ([15], [3, 12, 15]):
        for stop in stops:
            in_fresh_process(f"""
                import sys
                import tensorflow as tf
                from tf_transformer.config import PRESETS
                from tf_transformer.settings import override
                from tf_transformer.training.fit import train
                tf.config.experimental.enable_op_determinism()
                config = override(PRESETS["tiny"], {small(corpus, max_steps=stop).as_dict()!r})
                train(config, {str(tmp_path / str(len(stops)))!r})
            """)
    once, thrice = (RunDirectory(tmp_path / name) for name in ("1", "3"))
    with (
        np.load(checkpoints.path_of(once.checkpoints, 15) / "variables.npz") as one,
        np.load(checkpoints.path_of(thrice.checkpoints, 15) / "variables.npz") as three,
    ):
        assert set(one.files) == set(three.files)
        assert any(name.startswith("seed/") for name in one.files)
        for name in one.files:
            np.testing.assert_array_equal(one[name], three[name], err_msg=name)
    assert [row["step"] for row in rows(once)] == ["6", "12", "15"]
    assert [row["step"] for row in rows(thrice)] == ["3", "6", "12", "15"]


def test_a_damaged_checkpoint_is_named_and_the_one_before_is_used(corpus, tmp_path, caplog):
    run = train(small(corpus, max_steps=4, checkpoint_every=2), tmp_path / "run")
    last = checkpoints.path_of(run.checkpoints, 4) / "variables.npz"
    last.write_bytes(last.read_bytes()[:1000])
    with caplog.at_level("INFO"):
        train(small(corpus, max_steps=5, checkpoint_every=2), tmp_path / "run")
    assert "step-00000004 is damaged" in caplog.text
    assert f"going on from {checkpoints.path_of(run.checkpoints, 2)}" in caplog.text


def test_replicas_give_the_same_losses_and_gradients(corpus, tmp_path):
    """Dropout 0, plain gradient descent of rate 1: the change of a weight is its gradient."""
    for replicas in (1, 2, 3):
        in_fresh_process(f"""
            import json, keras, numpy as np, tensorflow as tf
            cpu = tf.config.list_physical_devices("CPU")[0]
            tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * {replicas})
            from tf_transformer.config import PRESETS
            from tf_transformer.settings import override
            from tf_transformer.data import Batches, encode, read
            from tf_transformer.run_directory import build_model
            from tf_transformer.tokenizers import Tokenizer, train_tokenizer
            from tf_transformer.training.callbacks import EpochOrder
            from tf_transformer.training.fit import compile_model
            config = override(PRESETS["tiny"], {small(corpus).as_dict()!r})
            pairs = read(config.data, "train")
            tokenizer = Tokenizer(train_tokenizer(pairs.sources, config.tokenizer))
            size = tokenizer.vocab_size
            model = {{"input_vocab_size": size, "target_vocab_size": size, "dropout_rate": 0.0}}
            config = override(config, {{"model": model}})
            batches = Batches(encode(pairs, tokenizer, tokenizer, 16), 64, multiple_of={replicas}, seed=1)
            strategy = tf.distribute.MirroredStrategy([f"CPU:{{i}}" for i in range({replicas})])
            assert strategy.num_replicas_in_sync == {replicas}
            keras.utils.set_random_seed(0)
            with strategy.scope():
                model = build_model(config)
                compile_model(model, config)
                optimizer = keras.optimizers.SGD(1.0)
                optimizer.build(model.trainable_variables)
                model.optimizer = optimizer
            out, losses = {{}}, []
            class Watch(keras.callbacks.Callback):
                def on_train_batch_end(self, batch, logs=None):
                    # The logs of a batch are the mean of what each replica saw; the metrics hold the sums.
                    losses.append(float(model.get_metrics_result()["loss"]))
                    if batch == 0:
                        out.update({{v.path: v.numpy() for v in model.weights}})
            history = model.fit(batches.dataset(), callbacks=[EpochOrder(batches, batches.whole), Watch()],
                                verbose=0, shuffle=False)
            np.savez({str(tmp_path)!r} + "/{replicas}.npz", losses=losses, accuracy=history.history["accuracy"],
                     seen=sum(float(m.count.numpy()) for m in model._compile_metrics.metrics if m.name == "accuracy"),
                     tokens=batches.target_lengths.sum(), **out)
        """)
    one = np.load(tmp_path / "1.npz")
    assert one["seen"] == one["tokens"]  # each target token once an epoch; compared with the others below
    for replicas in (2, 3):
        other = np.load(tmp_path / f"{replicas}.npz")
        assert len(one["losses"]) > 3
        np.testing.assert_allclose(other["losses"], one["losses"], rtol=1e-5)
        np.testing.assert_allclose(other["accuracy"], one["accuracy"], rtol=1e-5)
        for name in one.files:
            np.testing.assert_allclose(other[name], one[name], atol=1e-5, err_msg=name)

"""bfloat16 and float16 inside the layers; weights, softmax, layer norm, logits and loss in float32."""

import json
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf

from tf_transformer import Transformer, load
from tf_transformer.commands.main import main
from tf_transformer.data.corpora import copy_task
from tf_transformer.runs import checkpoints
from tf_transformer.runs.directory import RunDirectory
from tf_transformer.runs.weights import build_model, restore_best, weights
from tf_transformer.training.fit import train
from tf_transformer.training.loss import token_losses

HALF = ["bfloat16", "float16"]
SIZES = {"num_layers": 1, "d_model": 14, "num_heads": 2, "dff": 11, "input_vocab_size": 13, "target_vocab_size": 13}
COPY = Path(__file__).parents[2] / "scripts" / "copy.toml"


def models(half, **options):
    """The same weights, computed in float32 and in half the bits."""
    both = []
    for dtype in ("float32", f"mixed_{half}"):
        keras.utils.set_random_seed(5)
        both.append(Transformer(**SIZES, dropout_rate=0.0, dtype=dtype, **options))
        both[-1].build(((None, None), (None, None)))
    return both


@pytest.mark.long_but_first
@pytest.mark.parametrize("half", HALF)
@pytest.mark.parametrize("options", [{}, {"norm": "pre", "share_embeddings": "all"}, {"positions": "learned"}])
def test_weights_logits_and_loss_are_float32(half, options):
    exact, mixed = models(half, **options)
    assert all(variable.dtype == "float32" for variable in mixed.trainable_variables)
    assert mixed.encoder.layers[0].compute_dtype == half
    ids = np.array([[5, 6, 7, 0], [8, 9, 3, 11], [0, 0, 0, 0]])  # the last one is padding alone
    with tf.GradientTape() as tape:
        logits = mixed((ids, ids))
        loss = tf.reduce_sum(token_losses(ids, logits))
    assert logits.dtype == loss.dtype == tf.float32
    # Not a float32 that was half a moment before.
    assert (tf.cast(tf.cast(logits, half), tf.float32) != logits).numpy().mean() > 0.5
    np.testing.assert_allclose(logits, exact((ids, ids)), atol=0.15 if half == "bfloat16" else 0.02)
    for gradient in map(tf.convert_to_tensor, tape.gradient(loss, mixed.trainable_variables)):
        assert gradient.dtype == tf.float32
        assert np.isfinite(gradient).all()


@pytest.mark.parametrize("half", HALF)
def test_the_gradient_of_a_row_that_comes_often_is_summed_in_float32(half):
    """Ones a thousand times over: bfloat16 would stop at 256, float16 at 2,048."""
    embedding = models(half)[1].encoder.embedding.tokens
    with tf.GradientTape() as tape:
        rows = embedding(tf.fill([3, 1001], 7))
        total = tf.reduce_sum(tf.cast(rows, tf.float32)) / np.sqrt(SIZES["d_model"])
    gradient = tf.convert_to_tensor(tape.gradient(total, embedding.table))
    np.testing.assert_allclose(gradient[7], np.full(SIZES["d_model"], 3003.0), rtol=0.01)


@pytest.mark.long
def test_checkpoints_are_float32_and_load_under_any_policy(corpus, small, tmp_path):
    half = "float16"  # whose optimizer keeps a scale besides
    run = train(small(corpus, max_steps=2, mixed_precision=half, ema_decay=0.5), tmp_path / "run")
    (last,) = checkpoints.all_of(run.checkpoints)
    with np.load(last) as saved:
        kinds = {saved[name].dtype for name in saved.files if saved[name].dtype.kind == "f" or name.startswith("tr")}
    assert kinds == {np.dtype("float32")}
    exact = load(run.path).model
    assert exact.dtype_policy.name == "float32"
    mixed = build_model(run.config, dtype=f"mixed_{half}")
    restore_best(run, mixed)
    for name, variable in weights(exact).items():
        np.testing.assert_array_equal(variable.numpy(), weights(mixed)[name].numpy())
    train(small(corpus, max_steps=3, mixed_precision=half, ema_decay=0.5), tmp_path / "run")
    assert checkpoints.path_of(RunDirectory(run.path).checkpoints, 3).exists()


@pytest.mark.long
@pytest.mark.parametrize("half", HALF)
def test_copy_is_learned_as_well_as_in_float32(half, tmp_path, capsys):
    run = str(tmp_path / "run")
    command = ["train", "--data", "copy", "--config", str(COPY), "--mixed-precision", half, "--run-dir", run]
    # As small as learns it: CPUs compute float16 far more slowly than float32.
    small = ["model.num_layers=1", "model.d_model=32", "model.dff=32", "data.batch_tokens=275"]
    small += ["training.max_steps=350", "training.warmup_steps=100", "training.learning_rate_factor=0.8"]
    command += [word for setting in small for word in ("--set", setting)]
    assert main(command) == 0
    capsys.readouterr()
    assert main(["evaluate", "--model", run, "--json", "--output", str(tmp_path / "test.txt")]) == 0
    assert json.loads(capsys.readouterr().out)["sentences"] == 1000
    translations = (tmp_path / "test.txt").read_text().splitlines()
    assert sum(map(str.__eq__, translations, (target for _, target in copy_task.pairs("test")))) >= 990

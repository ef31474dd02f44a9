"""Low-rank factors: the law of the layer, what is trained, exact resume, and that all that reads them merges them."""

import dataclasses

import keras
import numpy as np
import pytest
import tensorflow as tf

from tf_transformer import Transformer, load
from tf_transformer.errors import InputError
from tf_transformer.model.embeddings import TokenEmbedding
from tf_transformer.model.linear import Linear
from tf_transformer.model.low_rank import FACTORS, ROWS
from tf_transformer.runs import checkpoints
from tf_transformer.runs.averaging import average_run
from tf_transformer.runs.directory import RunDirectory
from tf_transformer.runs.weights import build_model, padded_to, restore_best, weights
from tf_transformer.training.fit import train

RANK = 3


@pytest.fixture(scope="module")
def base(corpus, small, tmp_path_factory):
    return train(small(corpus), tmp_path_factory.mktemp("runs") / "base")


@pytest.fixture(scope="module")
def config(corpus, small, base):
    return small(corpus, init_from=str(base.path), lora_rank=RANK, learning_rate=0.02, checkpoint_every=2)


@pytest.fixture(scope="module")
def tuned(config, tmp_path_factory):
    return train(config, tmp_path_factory.mktemp("runs") / "tuned")


@pytest.mark.parametrize("alpha", [None, 7.0])
def test_a_layer_is_what_dense_is(alpha):
    rng = np.random.default_rng(5)
    ours, theirs = Linear(11, activation="relu"), keras.layers.Dense(11, activation="relu")
    x = rng.normal(size=(2, 5, 13)).astype("float32")
    before = ours(x).numpy()
    theirs(x)
    theirs.set_weights(ours.get_weights())
    for layer in (ours, theirs):
        layer.enable_lora(RANK, lora_alpha=alpha)
    np.testing.assert_array_equal(ours(x).numpy(), before)
    assert [weight.name for weight in ours.trainable_variables] == ["bias", *FACTORS]
    shapes = {weight.name: tuple(weight.shape) for weight in ours.weights}
    assert shapes["lora_kernel_a"] == (13, RANK) and shapes["lora_kernel_b"] == (RANK, 11)
    for name in FACTORS:
        value = rng.normal(size=shapes[name])
        getattr(ours, name).assign(value)
        getattr(theirs, name).assign(value)
    np.testing.assert_allclose(ours(x), theirs(x), rtol=1e-4, atol=1e-4)
    assert not np.allclose(ours(x), before)


def test_it_is_enabled_once_on_what_is_built():
    layer = Linear(7)
    with pytest.raises(ValueError, match="built"):
        layer.enable_lora(2)
    layer.build((None, 5))
    layer.enable_lora(2)
    with pytest.raises(ValueError, match="once"):
        layer.enable_lora(2)


def test_a_layer_with_factors_is_saved_and_loaded(tmp_path):
    model = keras.Sequential([keras.Input((5,)), Linear(7)])
    model.layers[0].enable_lora(2, lora_alpha=3.0)
    model.layers[0].lora_kernel_b.assign(np.ones((2, 7)))
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    x = np.random.default_rng(1).normal(size=(3, 5)).astype("float32")
    np.testing.assert_array_equal(loaded(x), model(x))
    assert loaded.layers[0].lora_alpha == 3.0


@pytest.mark.parametrize(("share", "new"), [("none", (3, 5)), ("target", (0, 5)), ("all", (5, 5))])
def test_new_tokens_are_learned_whole(share, new, tmp_path):
    sizes = {"input_vocab_size": 23 if share == "all" else 19, "target_vocab_size": 23, "share_embeddings": share}
    model, merged = (Transformer(num_layers=1, d_model=6, num_heads=2, dff=5, **sizes) for _ in "ab")
    ids = np.array([[5, 18, 3]]), np.array([[2, 22, 17]])
    before = model(ids).numpy()
    merged(ids)
    merged.set_weights(model.get_weights())
    model.enable_lora(2, new_tokens=new)
    np.testing.assert_array_equal(model(ids), before)
    tables = {weight.path for weight in model.trainable_variables if weight.name == ROWS}
    assert len(tables) == {"none": 2, "target": 1, "all": 1}[share]
    assert {weight.name for weight in model.trainable_variables} == {*FACTORS, ROWS}
    by_name = weights(merged)
    for weight in model.trainable_variables:
        if weight.name == ROWS:
            change = np.random.default_rng(7).normal(size=weight.shape)
            weight.assign(change)
            table = by_name[weight.path.replace(ROWS, "table")]
            assert np.array_equal(padded_to(change, table.shape)[: -len(change)], np.zeros_like(table)[: -len(change)])
            table.assign_add(padded_to(change, table.shape))
    assert np.abs(model(ids) - before).max() > 0.1
    np.testing.assert_allclose(model(ids), merged(ids), atol=1e-5)
    x = np.random.default_rng(3).normal(size=(2, 6)).astype("float32")  # as in a step of decoding
    one, other = (each.decoder.embedding.tokens.logits(x) for each in (model, merged))
    np.testing.assert_allclose(one, other, atol=1e-5)
    model.save(tmp_path / "model.keras")
    np.testing.assert_array_equal(keras.saving.load_model(tmp_path / "model.keras")(ids), model(ids))
    with pytest.raises(ValueError, match="once"):
        model.enable_lora(2, new_tokens=new)


def test_a_table_has_not_more_new_rows_than_rows():
    table = TokenEmbedding(11, 6)
    table.build((None, None))
    with pytest.raises(ValueError, match="rows must be 1 to 11. Received: 12"):
        table.enable_lora(12)


@pytest.mark.long
def test_the_factors_alone_are_trained(base, tuned):
    saved = checkpoints.names_in(tuned.best_checkpoint())
    assert {name.rpartition("/")[2] for name in saved if name.startswith("transformer/")} == set(FACTORS)
    before = weights(load(base.path).model)
    frozen = checkpoints.read(tuned.frozen, before)
    for name, weight in before.items():
        np.testing.assert_array_equal(frozen[name], weight.numpy())
    after = weights(load(tuned.path).model)
    changed = {name for name in before if (after[name].numpy() != before[name].numpy()).any()}
    assert changed == {name for name in before if name.endswith("/kernel")}


def test_merged_the_model_computes_the_same(tuned):
    merged = load(tuned.path).model
    apart = build_model(tuned.config)
    apart.enable_lora(RANK)
    factors = {name: weight for name, weight in weights(apart).items() if weight.trainable}
    checkpoints.restore(tuned.frozen, {name: w for name, w in weights(apart).items() if not w.trainable})
    checkpoints.restore(tuned.best_checkpoint(), factors)
    inputs = (np.array([[5, 6, 7, 3]]), np.array([[2, 5, 6]]))
    np.testing.assert_allclose(merged(inputs), apart(inputs), atol=1e-4)


@pytest.mark.long
def test_a_run_that_was_cut_goes_on_exactly(config, tuned, tmp_path):
    def until(steps):
        return dataclasses.replace(config, training=dataclasses.replace(config.training, max_steps=steps))

    train(until(4), tmp_path / "cut")
    resumed = train(until(6), tmp_path / "cut")
    whole, again = (checkpoints.all_of(run.checkpoints)[-1] for run in (tuned, resumed))
    names = checkpoints.names_in(whole)
    assert names == checkpoints.names_in(again)
    values, others = checkpoints.read(whole, names), checkpoints.read(again, names)
    for name in names - {"state", "names"}:
        np.testing.assert_array_equal(values[name], others[name], name)


@pytest.mark.long
def test_before_its_first_checkpoint_it_goes_on_beside_what_it_has_frozen(config, base, tmp_path):
    """The base may be trained further in between."""
    run = train(
        dataclasses.replace(config, training=dataclasses.replace(config.training, max_steps=1)), tmp_path / "run"
    )
    for checkpoint in checkpoints.all_of(run.checkpoints):
        checkpoint.unlink()
    frozen = checkpoints.read(run.frozen, checkpoints.names_in(run.frozen))
    changed = {name: array + 1 for name, array in frozen.items()}
    checkpoints.write(run.path / "frozen", 0, changed.items(), {"run": run.id})
    again = train(config, tmp_path / "run")
    model = load(again.path).model
    beta = "transformer/encoder/layer_0/self_attention_residual/norm/beta"
    np.testing.assert_array_equal(weights(model)[beta], changed[beta])


@pytest.mark.long
def test_its_average_and_what_starts_from_it_have_the_merged_weights(corpus, small, tuned, tmp_path):
    paths = checkpoints.all_of(tuned.checkpoints)[-2:]
    averaged = average_run(tuned.path, tmp_path / "averaged", last=2)
    assert averaged.frozen is None
    name = "transformer/encoder/layer_0/self_attention/query_key_value"
    wanted = checkpoints.read(tuned.frozen, [f"{name}/kernel"])[f"{name}/kernel"].copy()
    for path in paths:
        factors = checkpoints.read(path, [f"{name}/{factor}" for factor in FACTORS])
        wanted += np.matmul(*(factors[f"{name}/{factor}"] for factor in FACTORS)) / 2
    model = load(averaged.path).model
    np.testing.assert_allclose(weights(model)[f"{name}/kernel"], wanted, atol=1e-6)
    onward = train(small(corpus, init_from=str(tuned.path), learning_rate=1e-9, max_steps=1), tmp_path / "onward")
    merged, started = build_model(tuned.config), load(onward.path).model
    restore_best(tuned, merged)
    for one, other in zip(merged.weights, started.weights, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-6)


def test_it_needs_a_run_to_start_from(corpus, small, tmp_path):
    with pytest.raises(InputError, match="give --init-from"):
        train(small(corpus, lora_rank=2), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_little_is_held_for_what_is_frozen(config, base):
    """No slot of the optimizer, and no gradient, for the weights that stay as they are."""
    from tf_transformer.training.fit import make_trainer

    trainer = make_trainer(dataclasses.replace(config, model=base.config.model))
    trained = sum(tf.size(weight).numpy() for weight in trainer.model.trainable_variables)
    held = sum(tf.size(variable).numpy() for variable in trainer.optimizer.variables)
    assert trained < trainer.model.count_params() / 2
    assert held < 2 * trained + 10
    assert RunDirectory(base.path).frozen is None

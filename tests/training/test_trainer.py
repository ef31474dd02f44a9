"""The same gradients on any number of replicas and in any number of parts; different dropout masks."""

import itertools
import types

import keras
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tf_transformer.data import Batches, TokenPairs
from tf_transformer.training import Trainer
from tf_transformer.training.batch_size import full_update, hardest
from tf_transformer.training.callbacks import EpochOrder

CASES = {
    "whole": {"batch_tokens": 96, "accumulate": 1, "clip": 0.0},
    "in two parts": {"batch_tokens": 48, "accumulate": 2, "clip": 0.0},
    "in three parts, clipped": {"batch_tokens": 32, "accumulate": 3, "clip": 0.25},
    "of few rows": {"batch_tokens": 24, "accumulate": 1, "clip": 0.0},
}
"""Of 96 tokens an update each, but for the last."""
ON = {1: list(CASES), 2: ["whole", "in two parts"], 3: ["of few rows", "in three parts, clipped"]}
"""Which cases run on so many replicas."""
RUNS = [(replicas, case) for replicas in ON for case in ON[replicas]]


@pytest.fixture(scope="module")
def trained(corpus, small, made_once, in_fork):
    """Losses of an epoch, and the first gradient, of the cases on 1, 2 and 3 replicas; dropout 0."""
    folder = made_once("replicas", lambda folder: train_on_replicas(folder, corpus, small, in_fork))
    return {replicas: dict(np.load(folder / f"{replicas}.npz")) for replicas in ON}


def train_on_replicas(folder, corpus, small, in_fork):
    """Write what `trained` gives."""
    folder.mkdir()
    for replicas in ON:
        cases = {name: CASES[name] for name in ON[replicas]}
        in_fork(f"""
            import keras, numpy as np
            from tf_transformer.config import Config
            from tf_transformer.data import NO_PAIR, Batches, encode, read
            from tf_transformer.config import override
            from tf_transformer.tokenizers import Tokenizer, train_tokenizer
            from tf_transformer.training import Adam, SmoothedCrossEntropy, TokenAccuracy, TokenLoss
            from tf_transformer.training.callbacks import EpochOrder
            from tf_transformer.training.fit import make_trainer
            from tf_transformer.training.strategy import distribute, make_strategy

            class Plain(Adam):
                "The change of a weight is its gradient."
                def update_step(self, gradient, variable, learning_rate):
                    self.assign_sub(variable, gradient)

            strategy = make_strategy("mirrored", {replicas})
            assert strategy.num_replicas_in_sync == {replicas}
            config = override(Config(), {small(corpus).as_dict()!r})
            pairs = read(config.data, "train")
            tokenizer = Tokenizer(train_tokenizer(pairs.sources, config.tokenizer))
            sizes = {{"input_vocab_size": tokenizer.vocab_size, "target_vocab_size": tokenizer.vocab_size}}
            out = {{}}
            for name, case in {cases!r}.items():
                training, data = {{"accumulate": case["accumulate"]}}, {{"batch_tokens": case["batch_tokens"]}}
                model = sizes | {{"dropout_rate": 0.0}}
                config = override(config, {{"model": model, "training": training, "data": data}})
                batches = Batches(
                    encode(pairs, tokenizer, tokenizer, 16),
                    case["batch_tokens"] * case["accumulate"],
                    seed=1,
                )
                keras.utils.set_random_seed(0)
                with strategy.scope():
                    trainer = make_trainer(config)
                    optimizer = Plain(global_clipnorm=case["clip"] or None)
                    optimizer.build(trainer.trainable_variables)
                    trainer.compile(optimizer, SmoothedCrossEntropy(), metrics=[TokenLoss(0.1), TokenAccuracy()])
                before = {{v.path: v.numpy() for v in trainer.model.weights}}
                losses = []
                class Watch(keras.callbacks.Callback):
                    def on_train_batch_end(self, batch, logs=None):
                        # The logs of a batch are the mean of what each replica saw; the metrics hold the sums.
                        losses.append(float(trainer.get_metrics_result()["loss"]))
                        if batch == 0:
                            for v in trainer.model.weights:
                                out[name + ": " + v.path] = before[v.path] - v.numpy()
                history = trainer.fit(distribute(batches, strategy), verbose=0, shuffle=False,
                                      callbacks=[EpochOrder(batches, batches.length), Watch()])
                out[name + ": losses"] = losses
                out[name + ": accuracy"] = history.history["accuracy"]
                accuracy = next(m for m in trainer._compile_metrics.metrics if m.name == "accuracy")
                out[name + ": seen"] = float(accuracy.count.numpy())
                out[name + ": tokens"] = sum(map(batches.target_tokens, range(batches.length)))
                shares = [np.array_split(rows, {replicas}) for rows in batches.rows()]
                out[name + ": empty shares"] = sum((s == NO_PAIR).all() for share in shares for s in share)
            np.savez({str(folder)!r} + "/{replicas}.npz", **out)
        """)


def of_case(values, case):
    return {name.removeprefix(f"{case}: "): value for name, value in values.items() if name.startswith(f"{case}: ")}


@pytest.mark.long
@pytest.mark.parametrize(("replicas", "case"), RUNS)
def test_every_target_token_is_seen_once_an_epoch(trained, replicas, case):
    values = of_case(trained[replicas], case)
    assert values["seen"] == values["tokens"]


@pytest.mark.long
@pytest.mark.parametrize(("replicas", "case"), [run for run in RUNS if run[0] > 1])
def test_replicas_give_the_same_losses_and_gradients(trained, replicas, case):
    one, other = of_case(trained[1], case), of_case(trained[replicas], case)
    assert len(one["losses"]) > 3
    assert one.keys() == other.keys()
    for name in one.keys() - {"empty shares"}:
        np.testing.assert_allclose(other[name], one[name], rtol=1e-5, atol=1e-5, err_msg=name)


@pytest.mark.long
def test_a_replica_without_a_pair_was_among_them(trained):
    assert sum(of_case(trained[3], case)["empty shares"] for case in ON[3]) > 0


class Recording(Trainer):
    """Notes the shape of what is computed at once."""

    def _gradients(self, data):
        (source, target), labels, _ = data
        self.computed.append((len(labels), max(source.shape[1], target.shape[1])))
        return tf.zeros([]), []


@pytest.mark.long
@settings(max_examples=60)
@given(
    st.lists(st.tuples(st.integers(2, 40), st.integers(2, 40)), min_size=1, max_size=120),
    st.integers(40, 200),
    st.integers(1, 8),
    st.integers(1, 8),
)
@example([(30, 30)] * 150, 500, 3, 1)
@example([(58, 58)] * 40, 1000, 1, 8)
def test_what_is_computed_at_once_keeps_the_limit(lengths, batch_tokens, parts, replicas):
    """All replicas together compute at most `data.batch_tokens` at once, padding included, or a row each."""
    pairs = TokenPairs.of(np.full(np.sum(lengths), 5, np.uint16), np.array(lengths, np.uint16))
    trainer = Recording(keras.Model(), batch_tokens if parts > 1 else None)
    elements = list(Batches(pairs, batch_tokens * parts, seed=1).dataset(pieces=replicas))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tf.distribute, "get_strategy", lambda: types.SimpleNamespace(num_replicas_in_sync=replicas))
        for first in range(0, len(elements), replicas):
            by_replica = []
            for data in elements[first : first + replicas]:
                trainer.computed = []
                trainer._gradients(data) if trainer.part_tokens is None else trainer._accumulated(data)
                assert sum(rows for rows, _ in trainer.computed) == len(data[1])
                by_replica.append(trainer.computed)
            for at_once in itertools.zip_longest(*by_replica, fillvalue=(0, 0)):
                tokens = [rows * width for rows, width in at_once]
                assert sum(tokens) <= batch_tokens or all(rows <= 1 for rows, _ in at_once)


def most_at_once(batches, length, trainer):
    """The most tokens that a trainer computes at once of the first batch, whose pairs all have one length."""
    trainer.computed = []
    ids = tf.zeros([len(next(batches.rows())), length], tf.int32)
    data = (ids, ids), ids, tf.zeros(len(ids))
    trainer._gradients(data) if trainer.part_tokens is None else trainer._accumulated(data)
    return max(rows * width for rows, width in trainer.computed)


@pytest.mark.long_but_first
@pytest.mark.parametrize(("tokens", "longest"), [(1500, 128), (1000, 100), (6250, 100), (17, 16), (128, 128)])
@pytest.mark.parametrize("parts", [1, 2, 4])
def test_an_attempt_to_find_batches_is_as_large_as_training(tokens, longest, parts):
    """Of batches of each length, as training forms them."""
    trainer = Recording(keras.Model(), tokens if parts > 1 else None)
    tried = [most_at_once(full_update(length, tokens, parts), length, trainer) for length in hardest(tokens, longest)]
    for length in range(2, longest + 1):
        lengths = np.full((parts * tokens // length, 2), length)
        pairs = TokenPairs.of(np.full(lengths.sum(), 4, np.int32), lengths)
        assert most_at_once(Batches(pairs, tokens * parts), length, trainer) <= max(tried)
    assert max(tried) <= tokens * (parts if parts == 1 else 1)


@pytest.mark.long
def test_parts_give_the_same_losses_and_gradients(trained):
    whole, parts = (of_case(trained[1], case) for case in ("whole", "in two parts"))
    for name in whole.keys() - {"empty shares"}:
        np.testing.assert_allclose(parts[name], whole[name], rtol=1e-5, atol=1e-5, err_msg=name)


@pytest.mark.long
def test_the_sum_of_the_gradients_is_clipped_by_its_global_norm(trained):
    whole, clipped = (of_case(trained[1], case) for case in ("whole", "in three parts, clipped"))
    names = [name for name in whole if "/" in name]
    norm = np.sqrt(sum((whole[name] ** 2).sum() for name in names))
    assert norm > 2 * 0.25
    for name in names:
        np.testing.assert_allclose(clipped[name], whole[name] * 0.25 / norm, atol=1e-5, err_msg=name)


@pytest.mark.long
def test_replicas_draw_different_dropout_masks(in_fork):
    in_fork("""
        import keras, numpy as np, tensorflow as tf
        from tf_transformer import Transformer
        from tf_transformer.training import vary_dropout
        from tf_transformer.training.strategy import make_strategy
        from tf_transformer.training.trainer import dropout_seeds
        strategy = make_strategy("mirrored", 2)
        keras.utils.set_random_seed(7)
        with strategy.scope():
            model = Transformer(num_layers=1, d_model=4, num_heads=2, dff=3, input_vocab_size=11,
                                target_vocab_size=11, dropout_rate=0.5)
            model.build(((None, None), (None, None)))
        ids = tf.constant([[5, 6, 7]])
        call = tf.function(lambda: model((ids, ids), training=True))
        def outputs():
            return [t.numpy() for t in strategy.experimental_local_results(strategy.run(call))]
        first, second = outputs()
        np.testing.assert_array_equal(first, second)  # Keras's way, which this is about
        saved = [seed.numpy() for seed in dropout_seeds(model)]
        vary_dropout(model, strategy)
        first, second = outputs()
        assert np.abs(first - second).max() > 0.01
        # A resume sets the seeds of the first replica, and the same masks come again.
        for seed, value in zip(dropout_seeds(model), saved):
            seed.assign(value)
        vary_dropout(model, strategy)
        for again, before in zip(outputs(), (first, second)):
            np.testing.assert_array_equal(again, before)
    """)


def test_any_model_and_loss_that_is_a_sum_will_do():
    """The loss that Keras keeps is that of the batch, in parts too."""
    keras.utils.set_random_seed(3)
    x = np.random.default_rng(0).normal(size=(7, 5)).astype("float32")
    y = x.sum(axis=1, keepdims=True)
    data = tf.data.Dataset.from_tensors((x, y, np.full(7, 1 / 7, "float32")))
    logged = []
    for part_tokens in (None, 10):  # at once, and in parts of two rows of five numbers
        dense = keras.layers.Dense(1, kernel_initializer="ones")
        model = keras.Sequential([keras.Input((5,)), keras.layers.Dropout(0.0), dense])
        model.layers[-1].kernel.assign(np.full((5, 1), 0.5))
        trainer = Trainer(model, part_tokens)
        trainer.compile(keras.optimizers.SGD(0.1), keras.losses.MeanSquaredError(reduction="sum"))
        logged.append(trainer.fit(data, epochs=4, verbose=0).history["loss"])
        assert logged[-1][0] == pytest.approx(np.mean((0.5 * y - y) ** 2), rel=1e-5)
        assert logged[-1][-1] < logged[-1][0]
        assert trainer.evaluate(data, verbose=0) < logged[-1][-1]
    np.testing.assert_allclose(*logged, rtol=1e-5)


def test_a_batch_that_makes_no_update_is_not_validated():
    """Such as one whose gradients overflow in float16, at the beginning and right after a validation."""
    order = EpochOrder(types.SimpleNamespace(is_last=lambda batch: False, place=None), validate_every=2)
    steps, validated = [0, 0, 1, 2, 2, 3, 4], []
    optimizer = types.SimpleNamespace(iterations=tf.Variable(0))
    order.set_model(types.SimpleNamespace(optimizer=optimizer, stop_training=False))
    order.on_train_begin()
    for batch, step in enumerate(steps):
        optimizer.iterations.assign(step)
        order.on_train_batch_end(batch)
        if order.model.stop_training:
            validated.append(batch)
            order.on_epoch_end(0)
    assert validated == [3, 6]


def test_a_batch_without_weights_is_refused():
    trainer = Trainer(keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)]))
    trainer.compile(keras.optimizers.SGD(0.1), keras.losses.MeanSquaredError(reduction="sum"), run_eagerly=True)
    x, y = np.ones((2, 3)), np.ones((2, 1))
    for call in (trainer.fit, trainer.evaluate):
        with pytest.raises(ValueError, match=r"must be \(inputs, labels, weights\).* Received: 2 parts"):
            call(x, y, verbose=0)


def test_no_part_is_refused():
    with pytest.raises(ValueError, match="part_tokens must be at least 1. Received: 0"):
        Trainer(keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)]), 0)


@pytest.mark.long
def test_the_loss_that_keras_keeps_is_that_of_the_batch_on_two_replicas(in_fork):
    in_fork("""
        import keras, numpy as np, tensorflow as tf
        from tf_transformer.training import Trainer
        from tf_transformer.training.strategy import make_strategy
        strategy = make_strategy("mirrored", 2)
        with strategy.scope():
            model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1, kernel_initializer="ones")])
            trainer = Trainer(model)
            trainer.compile(keras.optimizers.SGD(0.1), keras.losses.MeanSquaredError(reduction="sum"))
        x, weights = np.arange(12, dtype="float32").reshape(4, 3), np.full(4, 1 / 4, "float32")
        data = tf.data.Dataset.from_tensors((x, np.zeros((4, 1), "float32"), weights))
        logged = trainer.fit(data, verbose=0).history["loss"]
        np.testing.assert_allclose(logged, [np.mean(x.sum(axis=1) ** 2)], rtol=1e-5)
    """)


@pytest.mark.long
def test_float16_skips_an_update_that_overflows_on_any_replica(in_fork):
    in_fork("""
        import keras, numpy as np, tensorflow as tf
        from tf_transformer.training import Trainer
        from tf_transformer.training.strategy import make_strategy
        strategy = make_strategy("mirrored", 2)
        with strategy.scope():
            model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])
            trainer = Trainer(model)
            optimizer = keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD(0.1), initial_scale=4.0)
            optimizer.build(model.trainable_variables)
            trainer.compile(optimizer, keras.losses.MeanSquaredError(reduction="sum"))
        before = model.get_weights()
        x = np.ones((2, 3), "float32")
        x[1] = np.inf  # the second replica's
        trainer.fit(tf.data.Dataset.from_tensors((x, np.ones((2, 1), "float32"), np.ones(2, "float32"))), verbose=0)
        for value, old in zip(model.get_weights(), before):
            np.testing.assert_array_equal(value, old)
        assert float(optimizer.dynamic_scale.numpy()) == 2.0
        assert int(optimizer.iterations.numpy()) == 0
    """)


@pytest.mark.long
def test_muon_takes_the_same_steps_on_two_replicas(corpus, small, tmp_path, in_fork):
    for replicas in (1, 2):
        in_fork(f"""
            from tf_transformer.config import Config, override
            from tf_transformer.training.fit import train
            from tf_transformer.training.strategy import make_strategy

            config = override(Config(), {small(corpus, max_steps=2, optimizer="muon").as_dict()!r})
            config = override(config, {{"model": {{"dropout_rate": 0.0}}}})
            train(config, {str(tmp_path)!r} + "/{replicas}", strategy=make_strategy("mirrored", {replicas}))
        """)
    one, two = (dict(np.load(next((tmp_path / name / "checkpoints").glob("*2.npz")))) for name in "12")
    # Adam's first steps have a full length whatever the gradient, even where it is rounding alone (biases of keys).
    kernels = [name for name in one if name.endswith("kernel")]
    assert len(kernels) == 4 + 7
    for name in kernels:
        np.testing.assert_allclose(one[name], two[name], atol=1e-4, err_msg=name)

import keras
import numpy as np
import pytest
import tensorflow as tf

from tf_transformer import MultiHeadAttention, Transformer
from tf_transformer.config import PRESETS, override
from tf_transformer.training import Adam, Muon
from tf_transformer.training.fit import make_trainer
from tf_transformer.training.optimizer import make_optimizer


def one_step(optimizer, value=3.0, gradient=2.0, name="kernel"):
    variable = keras.Variable([value], name=name)
    optimizer.build([variable])
    optimizer.apply([np.array([gradient], "float32")])
    return float(variable.numpy()[0])


def test_its_constants_are_the_papers():
    optimizer = Adam()
    assert (optimizer.beta_1, optimizer.beta_2, optimizer.epsilon) == (0.9, 0.98, 1e-9)


def test_the_first_step_is_the_learning_rate():
    """Bias-corrected, mean and root of the square of one gradient are equal."""
    assert one_step(Adam(0.01)) == pytest.approx(3.0 - 0.01)


def test_weight_decay_is_decoupled_and_leaves_biases_and_norms_alone():
    """AdamW: w - rate * decay * w - rate, whatever the gradient."""
    assert one_step(Adam(0.01, weight_decay=0.1)) == pytest.approx(3.0 - 0.01 * 0.1 * 3.0 - 0.01)
    assert one_step(Adam(0.01, weight_decay=0.1), gradient=50.0) == pytest.approx(3.0 - 0.01 * 0.1 * 3.0 - 0.01)
    for name in ("bias", "gamma", "beta"):
        assert one_step(Adam(0.01, weight_decay=0.1), name=name) == pytest.approx(3.0 - 0.01)


def test_it_agrees_with_keras():
    ours, theirs = Adam(0.01, weight_decay=0.1), keras.optimizers.AdamW(0.01, 0.1, 0.9, 0.98, 1e-9)
    values = []
    for optimizer in (ours, theirs):
        variable = keras.Variable([3.0, -1.0, 0.5], name="kernel")
        optimizer.build([variable])
        for step in range(5):
            optimizer.apply([np.array([1.0, step - 2.0, 0.1], "float32")])
        values.append(variable.numpy())
    np.testing.assert_allclose(*values, rtol=1e-6)


@pytest.mark.parametrize("kind", [Adam, Muon])
def test_it_saves(kind):
    optimizer = kind(0.02, weight_decay=0.1, global_clipnorm=0.5, use_ema=True, ema_momentum=0.9, ema_warmup=True)
    copy = keras.optimizers.deserialize(keras.optimizers.serialize(optimizer))
    assert type(copy) is kind
    assert copy.get_config() == optimizer.get_config()


@pytest.mark.parametrize(
    ("training", "peak"),
    [
        ({"warmup_steps": 4000}, (512 * 4000) ** -0.5),
        ({"warmup_steps": 4000, "learning_rate_factor": 2.0}, 2 * (512 * 4000) ** -0.5),
        ({"warmup_steps": 2000, "learning_rate": 0.005}, 0.005),
    ],
)
def test_both_ways_to_give_the_learning_rate(training, peak):
    config = override(PRESETS["base"], {"training": training})
    optimizer = make_optimizer(config)
    optimizer.build([keras.Variable([1.0])])
    optimizer.iterations.assign(training["warmup_steps"])
    assert float(optimizer.learning_rate) == pytest.approx(peak, rel=1e-5)


def updated(gradients, weights=(3.0, -5.0), **training):
    """A weight after updates by gradients, the mean of those, and its moving average where there is one."""
    weight = keras.Variable(weights, name="kernel")
    optimizer = make_optimizer(override(PRESETS["base"], {"training": training | {"learning_rate": 0.1}}))
    optimizer.build([weight])
    for gradient in gradients:
        optimizer.apply([tf.constant(gradient)], [weight])
    by_name = {variable.name.rpartition("_")[2]: variable.numpy() for variable in optimizer.variables}
    return weight.numpy(), by_name["momentum"], by_name.get("average")


def test_each_setting_does_what_it_says():
    settings = {"warmup_steps": 1}
    still, _, no_average = updated([[0.0, 0.0]], **settings)
    assert still.tolist() == [3.0, -5.0]  # no gradient, no decay: nothing moves
    assert no_average is None
    decayed, _, _ = updated([[0.0, 0.0]], weight_decay=0.02, **settings)
    np.testing.assert_allclose(decayed, np.array([3.0, -5.0]) * (1 - 0.1 * 0.02), rtol=1e-6)
    _, plain, _ = updated([[30.0, 40.0]], **settings)
    _, clipped, _ = updated([[30.0, 40.0]], clip_norm=0.5, **settings)
    np.testing.assert_allclose(plain, [3.0, 4.0], rtol=1e-5)  # a tenth: beta_1 is 0.9
    np.testing.assert_allclose(clipped, [0.03, 0.04], rtol=1e-5)  # of a gradient of norm 0.5
    after = [updated([[1.0, 2.0]] * count, **settings)[0] for count in (1, 2)]
    _, _, average = updated([[1.0, 2.0]] * 2, ema_decay=0.75, **settings)
    np.testing.assert_allclose(average, (2 * after[0] + 9 * after[1]) / 11, rtol=1e-6)  # (1 + 1) / (10 + 1) < 0.75
    # What training was started from stays in the average as long as the decay says.
    _, _, average = updated([[1.0, 2.0]] * 2, ema_decay=0.75, init_from="base", **settings)
    np.testing.assert_allclose(average, 0.75 * after[0] + 0.25 * after[1], rtol=1e-6)
    skipped, _, _ = updated([[float("inf"), 1.0]], mixed_precision="float16", **settings)
    assert skipped.tolist() == [3.0, -5.0]


@pytest.mark.parametrize("shape", [(7, 5), (5, 7)])
def test_muon_moves_a_kernel_by_an_orthogonal_matrix(shape):
    """Of the singular value decomposition U S V of the gradient, U V is left, with about the length of Adam's step."""
    gradient = np.random.default_rng(3).normal(size=shape).astype("float32")
    kernel = keras.Variable(np.zeros(shape, "float32"), name="kernel")
    optimizer = Muon(0.01)
    optimizer.build([kernel])
    optimizer.apply([gradient])
    u, _, v = np.linalg.svd(gradient, full_matrices=False)
    moved = -kernel.numpy() / (0.01 * 0.2 * 7**0.5)
    # Newton-Schulz stops where all singular values are near 1 (Jordan et al. 2024: 0.7 to 1.2).
    found = u.T @ moved @ v.T
    np.testing.assert_allclose(found, np.diag(np.diag(found)), atol=1e-4)
    assert np.all((np.diag(found) > 0.65) & (np.diag(found) < 1.25))


def test_muon_agrees_with_keras():
    rng = np.random.default_rng(5)
    weights = {"kernel": rng.normal(size=(5, 3)), "bias": rng.normal(size=3)}
    steps = [[rng.normal(size=value.shape).astype("float32") for value in weights.values()] for _ in range(5)]
    ours = Muon(0.01, weight_decay=0.1)
    theirs = keras.optimizers.Muon(
        0.01, adam_beta_2=0.98, epsilon=1e-9, weight_decay=0.1, adam_weight_decay=0.1, exclude_embeddings=False
    )
    theirs.exclude_from_weight_decay(var_names=["bias"])
    found = []
    for optimizer in (ours, theirs):
        variables = [keras.Variable(value.astype("float32"), name=name) for name, value in weights.items()]
        optimizer.build(variables)
        for gradients in steps:
            optimizer.apply(gradients)
        found.append([variable.numpy() for variable in variables])
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


def test_muon_takes_the_kernels_of_layers_and_leaves_the_rest_to_adam():
    sizes = {"num_layers": 1, "d_model": 6, "num_heads": 2, "dff": 7, "input_vocab_size": 11, "target_vocab_size": 13}
    options = {"share_embeddings": "none", "positions": "learned", "max_positions": 17}
    config = override(
        PRESETS["tiny"], {"model": sizes | options, "data": {"max_length": 16}, "training": {"optimizer": "muon"}}
    )
    trainer = make_trainer(config)
    optimizer = trainer.optimizer
    by_muon = {
        variable.path.partition("/")[2]
        for variable, velocity in zip(trainer.trainable_variables, optimizer.adam_velocities, strict=True)
        if velocity is None
    }
    kernels = {v.path.partition("/")[2] for v in trainer.trainable_variables if v.path.endswith("kernel")}
    assert by_muon == kernels - {"output/kernel"}
    assert len(by_muon) == 4 + 7


@pytest.mark.parametrize("name", ["transformer", "translator", "transformer_7"])
def test_muon_leaves_the_output_projection_to_adam_whatever_the_model_is_called(name):
    sizes = {"num_layers": 1, "d_model": 6, "num_heads": 2, "dff": 7, "input_vocab_size": 11, "target_vocab_size": 13}
    model = Transformer(**sizes, name=name)
    model.build(((None, None), (None, None)))
    attention = MultiHeadAttention(d_model=6, num_heads=2)
    attention.build((None, 5, 6))
    variables = [*model.trainable_variables, *attention.trainable_variables]
    optimizer = Muon()
    optimizer.build(variables)
    by_adam = {
        variable.path
        for variable, velocity in zip(variables, optimizer.adam_velocities, strict=True)
        if velocity is not None and variable.path.endswith("kernel")
    }
    assert by_adam == {f"{name}/output/kernel"}

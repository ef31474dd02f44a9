"""An ensemble against one model, and against a mean made by hand."""

import keras
import numpy as np
import pytest
from keras import ops

from tf_transformer import Ensemble, Transformer

B, S, T, V = 2, 5, 3, 13
rng = np.random.default_rng(7)
SIZES = dict(d_model=14, num_heads=7, dff=11, input_vocab_size=17, target_vocab_size=V)


def model(**options):
    made = Transformer(**{"num_layers": 2, **SIZES, **options})
    made.build(((None, None), (None, None)))
    for weight in made.weights:
        weight.assign(weight.numpy() * 2)
    return made


@pytest.fixture(scope="module")
def inputs():
    source, target = rng.integers(4, 13, (B, S)), rng.integers(4, V, (B, T))
    source[0, 3:] = 0
    return source, target


@pytest.fixture(scope="module")
def models():
    """Of other depths, widths and numbers of heads."""
    keras.utils.set_random_seed(3)
    return [model(), model(num_layers=3, d_model=6, num_heads=2, norm="pre"), model(num_decoder_layers=1)]


def softmax(logits):
    return np.asarray(ops.softmax(logits, axis=-1))


def test_a_model_with_itself_is_that_model(inputs, models):
    alone, twice = models[0], Ensemble([models[0]] * 2)
    np.testing.assert_allclose(twice(inputs), ops.log_softmax(alone(inputs)), atol=1e-5)
    for kind, expected in zip(twice.attention(inputs), alone.attention(inputs), strict=True):
        for ours, theirs in zip(kind, expected, strict=True):
            np.testing.assert_array_equal(ours, np.concatenate([theirs, theirs], axis=1))


def test_probabilities_are_the_mean(inputs, models):
    mean = np.mean([softmax(one(inputs)) for one in models], axis=0)
    np.testing.assert_allclose(np.exp(Ensemble(models)(inputs)), mean, atol=1e-6)


@pytest.mark.parametrize("length", [None, T + 2])
def test_steps_equal_the_whole(inputs, models, length):
    source, target = inputs
    ensemble = Ensemble(models)
    whole, weights = ensemble(inputs), ensemble.attention(inputs).cross
    assert len(weights) == ensemble.num_decoder_layers == 1
    assert weights[0].shape == (B, 7 + 2 + 7, T, S)  # of the last layer of each
    memory, cache = ensemble.encode(source), ensemble.empty_cache(B, length)
    for t in range(T):
        logits, of_step, cache = ensemble.decode_step(target[:, t], t, cache, memory)
        np.testing.assert_allclose(logits, whole[:, t], rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(of_step[0][:, :, 0], weights[0][:, :, t], atol=1e-5)


def test_what_all_models_can_read(models):
    assert Ensemble(models).max_positions is None
    learned = [model(positions="learned", max_positions=most) for most in (23, 19)]
    assert Ensemble([models[0], *learned]).max_positions == 19
    assert len(Ensemble(models).weights) == sum(len(one.weights) for one in models)


def test_wrong_use_is_refused(inputs, models):
    with pytest.raises(ValueError, match=r"\[\(17, 13\), \(17, 19\)\]"):
        Ensemble([models[0], model(target_vocab_size=19)])
    with pytest.raises(ValueError, match="train its models"):
        Ensemble(models)(inputs, training=True)

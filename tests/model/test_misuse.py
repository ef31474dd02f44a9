"""What a Keras user may try with the layers: it works, or says in words what to do."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tf_transformer import (
    Decoder,
    DecoderLayer,
    Encoder,
    EncoderLayer,
    MultiHeadAttention,
    Transformer,
    scaled_dot_product_attention,
)

SIZES = {"d_model": 8, "num_heads": 2, "dff": 12}
X = np.random.default_rng(2).normal(size=(2, 5, 8)).astype("float32")
IDS = np.array([[5, 6, 3], [7, 3, 0]])


@pytest.fixture
def model():
    return Transformer(num_layers=1, **SIZES, input_vocab_size=11, target_vocab_size=13)


@pytest.mark.parametrize("is_built", [False, True])
@pytest.mark.parametrize("inputs", [(IDS,), (IDS, IDS), ((IDS, IDS, IDS),)], ids=["one", "positional", "three"])
def test_a_model_wants_a_pair(model, is_built, inputs):
    """The batch of two rows is no pair either."""
    if is_built:
        model((IDS, IDS))
    with pytest.raises(ValueError, match=r"a pair, model\(\(source_ids, target_ids\)\)"):
        model(*inputs)


@pytest.mark.parametrize("kind", ["float32", "int32", "lists"])
def test_masks_that_are_not_boolean_are_refused(kind):
    mask = np.ones((2, 5), "int32" if kind == "lists" else kind)
    for call in (
        lambda: EncoderLayer(**SIZES)(X, mask=mask.tolist() if kind == "lists" else mask),
        lambda: scaled_dot_product_attention(X, X, X, mask[:, None]),
        lambda: MultiHeadAttention(d_model=8, num_heads=2)(X, mask=mask[:, None]),
        lambda: DecoderLayer(**SIZES)(X, X, mask=mask),
        lambda: DecoderLayer(**SIZES)(X, X, context_mask=mask),
        lambda: MultiHeadAttention(d_model=8, num_heads=2)(X, X, X),  # in Keras's own order: query, value, key
    ):
        with pytest.raises(ValueError, match="mask must be boolean, True = attend"):
            call()


def test_ragged_ids_are_refused(model):
    ragged = tf.RaggedTensor.from_row_lengths([5, 6, 7], [2, 1])
    with pytest.raises(ValueError, match=r"ids must be padded with 0: give ids.to_tensor\(0\)"):
        model((ragged, ragged))


@pytest.mark.parametrize("dtype", ["mixed_bfloat16", "mixed_float16"])
def test_ids_that_are_floats_stay_what_they_are(dtype):
    """As `keras.Input` gives them if it is not told their type; 1,001 and 3,001 are none of half the bits."""
    model = Transformer(num_layers=1, **SIZES, input_vocab_size=3100, target_vocab_size=3100, dtype=dtype)
    ids = np.array([[1001, 3001, 3]])
    expected = model((ids, ids))
    np.testing.assert_array_equal(model((ids.astype("float32"), ids.astype("float32"))), expected)
    inputs = [keras.Input((None,)), keras.Input((None,))]
    np.testing.assert_array_equal(keras.Model(inputs, model(inputs))([ids, ids]), expected)


def test_a_stack_with_the_tokens_of_another_says_that_it_is_not_saved_by_itself(tmp_path):
    sizes = SIZES | {"num_layers": 1, "vocab_size": 11}
    encoder = Encoder(**sizes)
    decoder = Decoder(**sizes, tokens=encoder.embedding.tokens)
    inputs = [keras.Input((None,), dtype="int32"), keras.Input((None,), dtype="int32")]
    model = keras.Model(inputs, decoder(inputs[1], encoder(inputs[0])))
    with pytest.raises(ValueError, match="a stack with the tokens of another layer cannot be saved by itself"):
        model.save(tmp_path / "model.keras")
    model.save_weights(tmp_path / "model.weights.h5")


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_layers_of_half_the_bits(dtype):
    for make, inputs in ((EncoderLayer, (X,)), (DecoderLayer, (X, X))):
        whole, half = make(**SIZES), make(**SIZES, dtype=dtype)
        expected = whole(*inputs)
        half(*inputs)
        half.set_weights([weight.astype(dtype) for weight in whole.get_weights()])
        found = half(*inputs)
        assert keras.backend.standardize_dtype(found.dtype) == dtype
        assert all(keras.backend.standardize_dtype(weight.dtype) == dtype for weight in half.weights)
        np.testing.assert_allclose(keras.ops.cast(found, "float32"), expected, atol=0.1)


@pytest.mark.parametrize("use", [lambda model: model.attention((IDS, IDS)), lambda model: model.encode(IDS)])
def test_a_new_model_may_be_used_in_parts_first(model, use):
    use(model)
    assert len(model.weights) == len({weight.path for weight in model.weights}) > 0
    assert model((IDS, IDS)).shape == (2, 3, 13)
    assert model.encode(IDS).bias.shape == (2, 1, 3)

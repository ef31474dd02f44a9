"""What Keras offers for models works on ours: summary, plot, LoRA, saving; or it says why not."""

import warnings

import keras
import numpy as np
import pytest

from tf_transformer import Decoder, DecoderLayer, EncoderLayer, FeedForward, MultiHeadAttention, Transformer
from tf_transformer.model.linear import Linear
from tf_transformer.model.low_rank import FACTORS

SIZES = {"d_model": 6, "num_heads": 2, "dff": 11}
IDS = np.array([[5, 6, 3, 2], [7, 3, 0, 0]])
RANDOM = np.random.default_rng(7)
X, CONTEXT = RANDOM.normal(size=(2, 5, 6)).astype("float32"), RANDOM.normal(size=(2, 3, 7)).astype("float32")


@pytest.fixture
def model():
    model = Transformer(num_layers=1, **SIZES, input_vocab_size=13, target_vocab_size=17)
    model.build(((None, None), (None, None)))
    return model


@pytest.fixture
def functional():
    x, context = keras.Input((5, 6)), keras.Input((3, 7))
    y = DecoderLayer(**SIZES)(EncoderLayer(**SIZES)(x), context)
    attended, _ = MultiHeadAttention(d_model=6, num_heads=3)(y, context)
    return keras.Model([x, context], FeedForward(6, 11)(attended))


def test_summary_shows_the_shapes_of_outputs(model):
    lines = []
    model.summary(print_fn=lambda text, **_: lines.append(text))
    shown = "\n".join(lines)
    assert shown.count("(None, None, 6)") == 2 and "?" not in shown


@pytest.mark.parametrize("layer", [FeedForward(6, 11), EncoderLayer(**SIZES)])
def test_layers_know_their_shapes_where_keras_asks(layer):
    assert layer.compute_output_shape((2, 5, 6)) == (2, 5, 6)
    x = RANDOM.normal(size=(2, 3, 5, 6)).astype("float32")
    y = keras.layers.TimeDistributed(layer)(x)
    np.testing.assert_allclose(y[:, 1], layer(x[:, 1]), atol=1e-5)


def test_symbolic_calls_give_the_attention_too():
    ids, x = keras.Input((None,), dtype="int32"), keras.Input((5, 6))
    y, weights = EncoderLayer(**SIZES)(x, return_attention_scores=True)
    assert (y.shape, weights.shape) == ((None, 5, 6), (None, 2, 5, 5))
    model = Transformer(num_layers=1, **SIZES, input_vocab_size=13, target_vocab_size=17)
    logits, weights = model((ids, ids), return_attention_scores=True)
    assert logits.shape == (None, None, 17) and weights.cross[0].shape == (None, 2, None, None)


@pytest.mark.parametrize("is_called", [False, True])
def test_summary_counts_what_the_parts_have(model, is_called):
    if is_called:
        model((IDS, IDS))
    lines = []
    model.summary(expand_nested=True, print_fn=lambda text, **_: lines.append(text))
    shown = "\n".join(lines)
    for part in (model.encoder, model.decoder, model.output_projection):
        assert f"{part.name} ({type(part).__name__})" in shown
        assert f"{part.count_params():,}" in shown


def test_models_are_plotted_new_and_loaded(model, functional, tmp_path):
    pytest.importorskip("pydot")
    for one in (model, functional):
        one.save(tmp_path / "a.keras")
        for each in (one, keras.models.load_model(tmp_path / "a.keras")):
            shown = keras.utils.model_to_dot(each, show_shapes=True, expand_nested=True, show_layer_names=True)
            for layer in [each] if one is model else each.layers:
                assert layer.name in shown.to_string()


@pytest.mark.parametrize("which", ["model", "functional"])
def test_lora_freezes_all_else_changes_nothing_at_first_and_is_saved(which, request, tmp_path):
    model = request.getfixturevalue(which)
    inputs = (IDS, IDS) if which == "model" else (X, CONTEXT)
    before = keras.ops.convert_to_numpy(model(inputs))
    for layer in [model] if which == "model" else [layer for layer in model.layers if layer.weights]:
        layer.enable_lora(3, lora_alpha=2.0)
        with pytest.raises(ValueError, match="LoRA can be enabled only once"):
            layer.enable_lora(3)
    np.testing.assert_array_equal(model(inputs), before)
    linears = [layer for layer in model._flatten_layers() if isinstance(layer, Linear)]
    assert [weight.name for weight in model.trainable_variables] == [*FACTORS] * len(linears)
    for layer in linears:
        layer.lora_kernel_b.assign(RANDOM.normal(size=layer.lora_kernel_b.shape))
    found = keras.ops.convert_to_numpy(model(inputs))
    assert np.abs(found - before).max() > 0.01
    model.save(tmp_path / "lora.keras")
    loaded = keras.models.load_model(tmp_path / "lora.keras")
    np.testing.assert_array_equal(loaded(inputs), found)
    assert len(loaded.trainable_variables) == len(model.trainable_variables)


def test_lora_wants_a_layer_that_is_built():
    for layer in (EncoderLayer(**SIZES), Decoder(num_layers=1, vocab_size=13, **SIZES)):
        with pytest.raises(ValueError, match="a layer that is built"):
            layer.enable_lora(2)


def test_quantize_says_what_to_do_instead_and_changes_nothing(model):
    before = keras.ops.convert_to_numpy(model((IDS, IDS)))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.quantize("int8")
    said = {str(warning.message) for warning in caught}
    for name in ("Linear", "TokenEmbedding"):
        (one,) = [text for text in said if text.startswith(name)]
        assert "tf-transformer export --format litert --quantize int8" in one and "\n" not in one
    np.testing.assert_array_equal(model((IDS, IDS)), before)

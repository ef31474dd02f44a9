import dataclasses

import keras
import numpy as np
import pytest
import tensorflow as tf

import tf_transformer.training
from tf_transformer import PRESETS, Transformer
from tf_transformer._imports import MODULES
from tf_transformer.model.layer_norm import LayerNorm

B, T, S, D, H, DFF, V = 2, 3, 5, 14, 7, 11, 17
SIZES = dict(num_layers=2, d_model=D, num_heads=H, dff=DFF, input_vocab_size=V, target_vocab_size=V)
OPTIONS = [
    {},
    {"norm": "pre"},
    {"positions": "learned", "max_positions": 13},
    {"share_embeddings": "target"},
    {"share_embeddings": "all", "norm": "pre", "activation": "gelu"},
    {"share_embeddings": "all", "positions": "opus", "output_bias": True, "activation": "swish", "norm_epsilon": 1e-5},
    {"positions": "m2m100", "num_decoder_layers": 3, "norm": "pre", "output_bias": True},
    {"key_dim": 3, "value_dim": 5},
]
rng = np.random.default_rng(3)
each_option = pytest.mark.parametrize("option", OPTIONS, ids=lambda o: "-".join(map(str, o.values())) or "paper")


def ids(*shape):
    return rng.integers(1, V, shape)


def build(**option):
    model = Transformer(**SIZES | option)
    model.build(((None, None), (None, None)))
    if model.output_bias is not None:
        model.output_bias.assign(rng.normal(size=V))
    return model


@each_option
def test_logits_are_float32_and_finite(option):
    logits = build(**option)((ids(B, S), ids(B, T)))
    assert logits.shape == (B, T, V)
    assert logits.dtype == "float32"
    assert np.isfinite(logits).all()


@each_option
def test_padding_changes_no_logits_of_real_tokens(option):
    model = build(**option)
    source, target = ids(B, S), ids(B, T)
    padded = np.pad(source, ((0, 0), (0, 4))), np.pad(target, ((0, 0), (0, 6)))
    np.testing.assert_allclose(model(padded)[:, :T], model((source, target)), atol=1e-5)


@each_option
def test_no_position_sees_a_later_one(option):
    model = build(**option)
    source, target = ids(B, S), ids(B, T)
    before = model((source, target))
    for t in range(1, T):
        changed = target.copy()
        changed[:, t] = changed[:, t] % (V - 1) + 1
        after = model((source, changed))
        np.testing.assert_allclose(after[:, :t], before[:, :t], atol=1e-6)
        assert np.abs(after[:, t] - before[:, t]).max() > 1e-4


@pytest.mark.long_but_first
@each_option
def test_decoding_step_by_step_equals_the_whole(option):
    """With a cache that grows and with one of a fixed size; the weights on the source as well as the logits."""
    model = build(**option)
    source, target = ids(B, S), ids(B, T)
    source[0, 3:] = 0
    whole, whole_weights = model((source, target)), model.attention((source, target)).cross
    for weights in whole_weights:
        np.testing.assert_allclose(np.sum(weights, axis=-1), 1, atol=1e-5)
        assert not np.any(weights[0, :, :, 3:])
    for length in (None, T, T + 2):
        memory, cache = model.encode(source), model.empty_cache(B, length)
        for t in range(T):
            logits, all_weights, cache = model.decode_step(target[:, t], t, cache, memory)
            np.testing.assert_allclose(logits, whole[:, t], atol=1e-5)
            for weights, expected in zip(all_weights, whole_weights, strict=True):
                np.testing.assert_allclose(weights[:, :, 0], expected[:, :, t], atol=1e-5)


@pytest.mark.long_but_first
@pytest.mark.parametrize(("dtype", "atol"), [("mixed_bfloat16", 0.05), ("mixed_float16", 0.005)])
@each_option
def test_steps_in_half_the_bits_equal_the_whole_within_their_precision(option, dtype, atol):
    model = build(dtype=dtype, **option)
    source, target = ids(B, S), ids(B, T)
    whole = model((source, target))
    assert model.empty_cache(B)[0].key.dtype == dtype.removeprefix("mixed_")
    for length in (None, T + 2):
        memory, cache = model.encode(source), model.empty_cache(B, length)
        for t in range(T):
            logits, _, cache = model.decode_step(target[:, t], t, cache, memory)
            np.testing.assert_allclose(logits, whole[:, t], atol=atol * np.abs(whole).max())


def test_every_position_reads_the_whole_source():
    model = build()
    source, target = ids(B, S), ids(B, T)
    before = model((source, target))
    for s in range(S):
        changed = source.copy()
        changed[:, s] = changed[:, s] % (V - 1) + 1
        assert (np.abs(model((changed, target)) - before).max(axis=(0, 2)) > 1e-5).all()


@pytest.mark.parametrize("share", ["none", "target", "all"])
def test_the_bias_is_added_to_the_logits_whether_or_not_they_are_tied(share):
    model, source, target = build(share_embeddings=share, output_bias=True), ids(B, S), ids(B, T)
    with_bias, bias = model((source, target)), model.output_bias.numpy()
    model.output_bias.assign(np.zeros(V))
    np.testing.assert_allclose(with_bias, model((source, target)) + bias, atol=1e-6)


def test_the_decoder_may_have_another_number_of_layers():
    model = build(num_decoder_layers=3)
    assert (len(model.encoder.layers), len(model.decoder.layers)) == (2, 3)
    assert len(model.attention((ids(B, S), ids(B, T))).cross) == 3
    assert model.encoder.count_params() < model.decoder.count_params()


def test_the_epsilon_reaches_every_norm():
    model = build(norm="pre", norm_epsilon=1e-3)
    norms = [layer for layer in model._flatten_layers() if isinstance(layer, LayerNorm)]
    assert len(norms) == 2 * 2 + 2 * 3 + 2  # encoder, decoder, the end of each
    assert {norm.epsilon for norm in norms} == {1e-3}


def test_sharing_saves_the_tables_it_names():
    sizes = {share: build(share_embeddings=share).count_params() for share in ("none", "target", "all")}
    assert sizes["none"] - sizes["target"] == V * D
    assert sizes["target"] - sizes["all"] == V * D


def test_base_has_the_parameters_of_the_paper():
    """65M in table 3, derived here: 37,000 tokens of 512, and 6 layers on each side."""
    model = PRESETS["base"].model
    d, dff = model.d_model, model.dff
    attention, feed_forward, norm = 4 * (d * d + d), 2 * d * dff + dff + d, 2 * d
    encoder = 6 * (attention + feed_forward + 2 * norm)
    decoder = 6 * (2 * attention + feed_forward + 3 * norm)
    expected = 37_000 * d + encoder + decoder
    arguments = dataclasses.asdict(model) | {"input_vocab_size": 37_000, "target_vocab_size": 37_000}
    built = Transformer(**arguments)
    built.build(((None, None), (None, None)))
    assert built.count_params() == expected
    assert expected == pytest.approx(65e6, rel=0.04)


def test_gradients_reach_every_weight():
    model = build()
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(model((ids(B, S), ids(B, T)), training=True) ** 2)
    for weight, gradient in zip(
        model.trainable_weights, tape.gradient(loss, [w.value for w in model.trainable_weights]), strict=True
    ):
        assert gradient is not None, weight.path
        assert weight.path.endswith("bias") or float(tf.reduce_max(tf.abs(gradient))) > 0, weight.path


def test_wrong_arguments_are_refused():
    for wrong, message in (
        ({"num_heads": 3}, "d_model=14, num_heads=3"),
        ({"num_heads": 0}, "num_heads=0"),
        ({"target_vocab_size": None}, "target_vocab_size=None"),
        ({"d_model": 21}, "d_model=21"),
        ({"share_embeddings": "some"}, "some"),
        ({"share_embeddings": "all", "input_vocab_size": 19}, "input_vocab_size=19, target_vocab_size=17"),
        ({"norm": "sandwich"}, "sandwich"),
        ({"positions": "rotary"}, "rotary"),
    ):
        with pytest.raises(ValueError, match=message):
            Transformer(**SIZES | wrong)


@pytest.mark.long_but_first
@each_option
def test_a_keras_file_loads_with_equal_outputs(option, tmp_path):
    model = build(**option)
    inputs = ids(B, S), ids(B, T)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(loaded(inputs), model(inputs))
    assert loaded.get_config() == model.get_config()


@pytest.mark.long
@pytest.mark.parametrize("first", ["import tf_transformer, keras", "import keras, tf_transformer"])
def test_a_keras_file_loads_in_a_fresh_process_that_only_imports_us(first, tmp_path, in_fresh_process):
    model = build(share_embeddings="all")
    source, target = ids(B, S), ids(B, T)
    model.save(tmp_path / "model.keras")
    np.savez(tmp_path / "in_out.npz", source=source, target=target, logits=model((source, target)))
    in_fresh_process(f"""
        {first}
        import numpy as np
        saved = np.load({str(tmp_path / "in_out.npz")!r})
        model = keras.saving.load_model({str(tmp_path / "model.keras")!r})
        np.testing.assert_allclose(model((saved["source"], saved["target"])), saved["logits"], atol=1e-6)
    """)


@pytest.mark.long
def test_another_backend_gives_the_same_logits(tmp_path, in_fresh_process):
    model = build(norm="pre")
    source, target = ids(B, S), ids(B, T)
    model.save_weights(tmp_path / "model.weights.h5")
    np.savez(tmp_path / "in_out.npz", source=source, target=target, logits=model((source, target)))
    code = f"""
        import keras, numpy as np
        assert keras.backend.backend() == "jax"
        from tf_transformer.model import Transformer
        saved = np.load({str(tmp_path / "in_out.npz")!r})
        model = Transformer(**{SIZES!r}, norm="pre")
        model.build((saved["source"].shape, saved["target"].shape))
        model.load_weights({str(tmp_path / "model.weights.h5")!r})
        np.testing.assert_allclose(model((saved["source"], saved["target"])), saved["logits"], atol=1e-5)
        for length in (None, {T}):
            memory, cache = model.encode(saved["source"]), model.empty_cache({B}, length)
            for t in range({T}):
                logits, _, cache = model.decode_step(saved["target"][:, t], t, cache, memory)
                np.testing.assert_allclose(logits, saved["logits"][:, t], atol=1e-5)
    """
    in_fresh_process(code, KERAS_BACKEND="jax")


@pytest.mark.long
def test_model_fit_trains_it_as_it_stands():
    keras.utils.set_random_seed(5)
    model = Transformer(**SIZES | {"dropout_rate": 0})
    source = ids(64, S)
    target = np.concatenate([np.full((64, 1), 2), source], axis=1)
    model.compile(keras.optimizers.Adam(0.01), keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    history = model.fit((source, target[:, :-1]), target[:, 1:], epochs=8, verbose=0).history["loss"]
    assert history[-1] < 0.8 * history[0]


def test_every_class_that_keras_must_find_has_a_stand_in():
    assert tf_transformer.training
    registered = {
        name: c for name, c in keras.saving.get_custom_objects().items() if name.startswith("tf_transformer>")
    }
    assert registered.keys() == {f"tf_transformer>{name}" for names in MODULES.values() for name in names}
    for name, found in registered.items():
        assert found.__module__.startswith("tf_transformer."), name  # the class itself, once it is imported


@pytest.mark.long
def test_a_look_for_keras_does_not_spend_the_import_hook(tmp_path, in_fresh_process):
    build().save(tmp_path / "model.keras")
    in_fresh_process(f"""
        import importlib.util, sys
        import tf_transformer
        assert importlib.util.find_spec("keras") is not None
        assert "keras" not in sys.modules
        import keras
        assert type(keras.saving.load_model({str(tmp_path / "model.keras")!r})).__name__ == "Transformer"
    """)

"""The options of the layers: taken as keywords, shown, and refused where they are none."""

import dataclasses
import inspect

import pytest

from tf_transformer import Decoder, DecoderLayer, Encoder, EncoderLayer, FeedForward, MultiHeadAttention, Transformer
from tf_transformer.config.model import AttentionOptions, FeedForwardOptions, LayerOptions, StackOptions

SIZES = dict(d_model=14, dff=11)
LAYER = SIZES | dict(num_heads=7)
STACK = LAYER | dict(num_layers=2)
CLASSES = [
    (FeedForward, FeedForwardOptions, SIZES),
    (MultiHeadAttention, AttentionOptions, dict(d_model=14, num_heads=7)),
    (EncoderLayer, LayerOptions, LAYER),
    (DecoderLayer, LayerOptions, LAYER),
    (Encoder, StackOptions, STACK | dict(vocab_size=17)),
    (Decoder, StackOptions, STACK | dict(vocab_size=17)),
    (Transformer, StackOptions, STACK | dict(input_vocab_size=17, target_vocab_size=19)),
]
OTHERS = dict(
    norm="pre",
    norm_epsilon=1e-5,
    activation="gelu",
    activation_dropout_rate=0.375,
    attention_dropout_rate=0.25,
    key_dim=3,
    value_dim=5,
    positions="learned",
    max_positions=23,
)


@pytest.mark.parametrize(("kind", "options", "sizes"), CLASSES)
def test_every_option_is_shown_with_its_default(kind, options, sizes):
    shown = inspect.signature(kind).parameters
    for field in dataclasses.fields(options):
        assert shown[field.name].default == field.default
        assert f"        {field.name}: {field.metadata['help']}" in kind.__doc__
    assert "{options}" not in kind.__doc__
    assert set(shown) >= set(sizes)


@pytest.mark.parametrize(("kind", "options", "sizes"), CLASSES)
def test_every_option_reaches_the_config(kind, options, sizes):
    given = {field.name: OTHERS[field.name] for field in dataclasses.fields(options)}
    for arguments in (sizes, sizes | given):
        config = kind(**arguments, name="mine").get_config()
        expected = {field.name: field.default for field in dataclasses.fields(options)} | arguments | {"name": "mine"}
        assert config.items() >= expected.items()
        assert kind.from_config(config).get_config() == config


def test_options_reach_the_layers_that_they_are_of():
    model = Transformer(**STACK, **OTHERS, input_vocab_size=17, target_vocab_size=19)
    for stack in (model.encoder, model.decoder):
        assert (stack.embedding.positions, stack.embedding.max_positions) == ("learned", 23)
        assert stack.final_norm is not None
        for layer in stack.stack:
            assert layer.self_attention.dropout_rate == 0.25
            assert (layer.self_attention.key_dim, layer.self_attention.value_dim) == (3, 5)
            assert layer.feed_forward.inner.activation.__name__ == "gelu"
            assert layer.feed_forward.activation_dropout.rate == 0.375
            assert layer.feed_forward.residual.is_pre
    for layer in model.encoder.stack:
        assert layer.residual.is_pre
    for layer in model.decoder.stack:
        assert layer.cross_attention.dropout_rate == 0.25
        assert (layer.cross_attention.key_dim, layer.cross_attention.value_dim) == (3, 5)
        assert layer.self_residual.is_pre and layer.cross_residual.is_pre


@pytest.mark.parametrize(("kind", "options", "sizes"), CLASSES)
def test_an_unknown_keyword_is_refused_by_its_name(kind, options, sizes):
    with pytest.raises((TypeError, ValueError), match="nrom"):
        kind(**sizes, nrom="pre")


def test_an_option_of_others_is_refused():
    with pytest.raises((TypeError, ValueError), match="positions"):
        EncoderLayer(**LAYER, positions="learned")

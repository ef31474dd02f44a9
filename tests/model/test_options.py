"""The options of the layers: the same defaults as in the config, taken as keywords, and refused where they are none."""

import dataclasses
import inspect

import pytest

from tf_transformer import Decoder, DecoderLayer, Encoder, EncoderLayer, FeedForward, MultiHeadAttention, Transformer
from tf_transformer.config import ModelConfig

DEFAULTS = {field.name: field.default for field in dataclasses.fields(ModelConfig)}
SIZES = dict(d_model=14, dff=11)
LAYER = SIZES | dict(num_heads=7)
STACK = LAYER | dict(num_layers=2)
OF_FEED_FORWARD = ("activation", "activation_dropout_rate")
OF_ATTENTION = ("key_dim", "value_dim")
OF_LAYER = (*OF_FEED_FORWARD, *OF_ATTENTION, "attention_dropout_rate", "norm", "norm_epsilon")
OF_STACK = (*OF_LAYER, "positions", "max_positions")
CLASSES = [
    (FeedForward, OF_FEED_FORWARD, SIZES),
    (MultiHeadAttention, OF_ATTENTION, dict(d_model=14, num_heads=7)),
    (EncoderLayer, OF_LAYER, LAYER),
    (DecoderLayer, OF_LAYER, LAYER),
    (Encoder, OF_STACK, STACK | dict(vocab_size=17)),
    (Decoder, OF_STACK, STACK | dict(vocab_size=17)),
    (Transformer, OF_STACK, STACK | dict(input_vocab_size=17, target_vocab_size=19)),
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
def test_the_defaults_are_those_of_the_config(kind, options, sizes):
    shown = inspect.signature(kind.__init__).parameters
    # Encoder and decoder, and their layers, have the arguments of their bases.
    documented = next(one.__doc__ for one in inspect.getmro(kind) if "Args:" in (one.__doc__ or ""))
    assert set(shown) >= {*sizes, *options}
    for name, parameter in shown.items():
        if name in DEFAULTS and parameter.default is not parameter.empty:
            expected = 0.0 if (kind, name) == (MultiHeadAttention, "dropout_rate") else DEFAULTS[name]
            assert parameter.default == expected, name
        if name != "self" and parameter.kind is not parameter.VAR_KEYWORD:
            assert f"\n        {name}: " in documented


@pytest.mark.parametrize(("kind", "options", "sizes"), CLASSES)
def test_every_option_reaches_the_config(kind, options, sizes):
    given = {name: OTHERS[name] for name in options}
    for arguments in (sizes, sizes | given):
        config = kind(**arguments, name="mine").get_config()
        expected = {name: DEFAULTS[name] for name in options} | arguments | {"name": "mine"}
        assert config.items() >= expected.items()
        assert kind.from_config(config).get_config() == config


def test_the_config_holds_the_arguments_of_the_model():
    assert set(DEFAULTS) == set(inspect.signature(Transformer.__init__).parameters) - {"self", "kwargs"}


def test_options_reach_the_layers_that_they_are_of():
    model = Transformer(**STACK, **OTHERS, input_vocab_size=17, target_vocab_size=19)
    for stack in (model.encoder, model.decoder):
        assert (stack.embedding.positions, stack.embedding.max_positions) == ("learned", 23)
        assert stack.final_norm is not None
        for layer in stack.layers:
            assert layer.self_attention.dropout_rate == 0.25
            assert (layer.self_attention.key_dim, layer.self_attention.value_dim) == (3, 5)
            assert layer.feed_forward.inner.activation.__name__ == "gelu"
            assert layer.feed_forward.activation_dropout.rate == 0.375
            assert layer.self_attention_residual.is_pre and layer.feed_forward_residual.is_pre
            assert layer.feed_forward_residual.norm.epsilon == 1e-5
    for layer in model.decoder.layers:
        assert layer.cross_attention.dropout_rate == 0.25
        assert (layer.cross_attention.key_dim, layer.cross_attention.value_dim) == (3, 5)
        assert layer.cross_attention_residual.is_pre


@pytest.mark.parametrize(("kind", "options", "sizes"), CLASSES)
def test_an_unknown_keyword_is_refused_by_its_name(kind, options, sizes):
    with pytest.raises((TypeError, ValueError), match="nrom"):
        kind(**sizes, nrom="pre")


def test_an_option_of_others_is_refused():
    with pytest.raises((TypeError, ValueError), match="positions"):
        EncoderLayer(**LAYER, positions="learned")

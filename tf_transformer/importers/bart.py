"""What models of the BART family have in common in transformers: their sizes and the names of their weights."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from tf_transformer.config import ModelConfig
from tf_transformer.errors import InputError
from tf_transformer.importers.folder import Settings
from tf_transformer.importers.keys import check_layers
from tf_transformer.importers.tensors import Tensors

ATTENTION = ("q_proj", "k_proj", "v_proj", "out_proj")
EPSILON = 1e-5
"""The epsilon of the layer norms in transformers."""
ACTIVATIONS = {"swish": "silu", "silu": "silu", "relu": "relu", "gelu": "gelu", "tanh": "tanh"}
"""Keras's names for the activations of transformers. In both, gelu is the exact one."""
SIDES = ("encoder", "decoder")
MOST_LAYERS = 10_000
MOST_DROPOUT = 0.999


def sizes_of(config: Settings, is_scaled: bool) -> dict[str, Any]:
    """Return the settings, as `ModelConfig` takes them, that all models of the family have.

    Args:
        config: config.json.
        is_scaled: whether the architecture scales its embeddings if config.json does not say.

    Raises:
        InputError: our layers cannot implement the settings.
    """
    check_layers(config)
    if not config.flag("scale_embedding", is_scaled):
        raise InputError(f"{config.file}: models with scale_embedding=False cannot be imported")
    for name in ("attention_heads", "ffn_dim"):
        sides = [config.integer(f"{side}_{name}", at_least=1) for side in ("encoder", "decoder")]
        if sides[0] != sides[1]:
            raise InputError(f"{config.file}: encoder and decoder must have the same {name}. Received: {sides}")
    activation = config.text("activation_function")
    if activation not in ACTIVATIONS:
        raise InputError(
            f"{config.file}: activation_function must be one of {', '.join(ACTIVATIONS)}. Received: {activation}"
        )
    encoder, decoder = (config.integer(f"{side}_layers", at_least=1, at_most=MOST_LAYERS) for side in SIDES)
    width, heads = config.integer("d_model", at_least=1), config.integer("encoder_attention_heads", at_least=1)
    if width % 2 or width % heads:
        raise config.error("d_model", f"even, and divisible by the {heads} encoder_attention_heads", width)
    return {
        "num_layers": encoder,
        "num_decoder_layers": decoder if decoder != encoder else None,
        "d_model": width,
        "num_heads": heads,
        "dff": config.integer("encoder_ffn_dim", at_least=1),
        "dropout_rate": config.number("dropout", 0.1, at_most=MOST_DROPOUT),
        "attention_dropout_rate": config.number("attention_dropout", 0.0, at_most=MOST_DROPOUT),
        "activation_dropout_rate": config.number("activation_dropout", 0.0, at_most=MOST_DROPOUT),
        "activation": ACTIVATIONS[activation],
        "norm_epsilon": EPSILON,
    }


def layers_of(tensors: Tensors, model: ModelConfig) -> Iterator[tuple[str, np.ndarray]]:
    """Yield our name and the array of each weight in the layers of encoder and decoder."""
    for side, count in (("encoder", model.num_layers), ("decoder", model.num_decoder_layers or model.num_layers)):
        for i in range(count):
            theirs, ours = f"model.{side}.layers.{i}", f"transformer/{side}/layer_{i}"
            yield from _self_attention(tensors, model.d_model, f"{theirs}.self_attn", f"{ours}/self_attention")
            yield from norm(tensors, model.d_model, f"{theirs}.self_attn_layer_norm", f"{ours}/self_attention_residual")
            if side == "decoder":
                yield from _cross_attention(tensors, model.d_model, f"{theirs}.encoder_attn", f"{ours}/cross_attention")
                place = f"{ours}/cross_attention_residual"
                yield from norm(tensors, model.d_model, f"{theirs}.encoder_attn_layer_norm", place)
            yield from _linear(tensors, f"{theirs}.fc1", f"{ours}/feed_forward/inner", model.d_model, model.dff)
            yield from _linear(tensors, f"{theirs}.fc2", f"{ours}/feed_forward/outer", model.dff, model.d_model)
            yield from norm(tensors, model.d_model, f"{theirs}.final_layer_norm", f"{ours}/feed_forward/residual")
        if model.norm == "pre":
            yield from norm(tensors, model.d_model, f"model.{side}.layer_norm", f"transformer/{side}/final_norm", "")


def norm(tensors: Tensors, width: int, theirs: str, ours: str, name: str = "/norm") -> Iterator[tuple[str, np.ndarray]]:
    """Yield the weights of a layer norm."""
    yield f"{ours}{name}/gamma", tensors.take(f"{theirs}.weight", width)
    yield f"{ours}{name}/beta", tensors.take(f"{theirs}.bias", width)


def _self_attention(tensors: Tensors, width: int, theirs: str, ours: str) -> Iterator[tuple[str, np.ndarray]]:
    yield from _fused(tensors, width, [f"{theirs}.{part}" for part in ATTENTION[:3]], f"{ours}/query_key_value")
    yield from _linear(tensors, f"{theirs}.out_proj", f"{ours}/output", width, width)


def _cross_attention(tensors: Tensors, width: int, theirs: str, ours: str) -> Iterator[tuple[str, np.ndarray]]:
    yield from _linear(tensors, f"{theirs}.q_proj", f"{ours}/query", width, width)
    yield from _fused(tensors, width, [f"{theirs}.{part}" for part in ATTENTION[1:3]], f"{ours}/key_value")
    yield from _linear(tensors, f"{theirs}.out_proj", f"{ours}/output", width, width)


def _fused(tensors: Tensors, width: int, parts: list[str], ours: str) -> Iterator[tuple[str, np.ndarray]]:
    """Yield one projection for several, which are side by side in our layers."""
    yield f"{ours}/kernel", np.concatenate([tensors.take(f"{part}.weight", width, width).T for part in parts], axis=1)
    yield f"{ours}/bias", np.concatenate([tensors.take(f"{part}.bias", width) for part in parts])


def _linear(tensors: Tensors, theirs: str, ours: str, width: int, units: int) -> Iterator[tuple[str, np.ndarray]]:
    yield f"{ours}/kernel", np.ascontiguousarray(tensors.take(f"{theirs}.weight", units, width).T)
    yield f"{ours}/bias", tensors.take(f"{theirs}.bias", units)

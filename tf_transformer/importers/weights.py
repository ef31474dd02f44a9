"""Weights under the names that transformers has for models of BART's family, as our checkpoints name them."""

from collections.abc import Iterator

import numpy as np

from tf_transformer.config import ModelConfig
from tf_transformer.importers.tensors import Tensors

ATTENTION = ("q_proj", "k_proj", "v_proj", "out_proj")


def layers_of(tensors: Tensors, model: ModelConfig) -> Iterator[tuple[str, np.ndarray]]:
    """Yield the weights of all layers of encoder and decoder: our name, and the array."""
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
    """Yield one projection for several that are side by side in ours."""
    yield f"{ours}/kernel", np.concatenate([tensors.take(f"{part}.weight", width, width).T for part in parts], axis=1)
    yield f"{ours}/bias", np.concatenate([tensors.take(f"{part}.bias", width) for part in parts])


def _linear(tensors: Tensors, theirs: str, ours: str, width: int, units: int) -> Iterator[tuple[str, np.ndarray]]:
    yield f"{ours}/kernel", np.ascontiguousarray(tensors.take(f"{theirs}.weight", units, width).T)
    yield f"{ours}/bias", tensors.take(f"{theirs}.bias", units)

"""Export to a model directory for CTranslate2, a runtime in C++ with int8. https://opennmt.net/CTranslate2."""

import os
from pathlib import Path
from typing import Any

import keras

from tf_transformer.config import DecodingConfig
from tf_transformer.errors import InputError, missing_extra
from tf_transformer.model import DecoderLayer, EncoderLayer, Transformer
from tf_transformer.model.embeddings import PositionalEmbedding
from tf_transformer.model.layer_norm import LayerNorm
from tf_transformer.model.linear import Linear
from tf_transformer.model.positions import positional_encoding
from tf_transformer.runs.directory import RunDirectory
from tf_transformer.runs.weights import load, tokenizer_files
from tf_transformer.storage.atomic import atomic_write, refuse_existing
from tf_transformer.tokenizers import END, START, UNKNOWN, Tokenizer

MIN_POSITIONS = 1024
"""The fewest sinusoidal positions to write: as many as the tokens that CTranslate2 takes by default."""
ACTIVATIONS = {"relu": "RELU", "gelu": "GELU", "silu": "SWISH", "swish": "SWISH", "sigmoid": "Sigmoid", "tanh": "Tanh"}
"""The activations that both have, with CTranslate2's names."""


def export(run_dir: str | Path | RunDirectory, output: str | Path, decoding: DecodingConfig | None = None) -> Path:
    """Write the best checkpoint of a run as a directory that `ctranslate2.Translator` loads.

    The SentencePiece models are written beside it, because CTranslate2 takes and gives pieces. `decoding`, by default
    that of the run, only says how many positions to write; how to search is chosen when CTranslate2 is called.

    Raises:
        InputError: the package ctranslate2 is missing; the output exists; the run directory is not ours or has no
            checkpoint; an activation or widths of heads that CTranslate2 does not have.
    """
    output = Path(output)
    refuse_existing(output)
    loaded = load(run_dir)
    with atomic_write(output) as beside:
        beside.mkdir()
        decoding = decoding or loaded.config.decoding
        positions = decoding.max_source_length + decoding.max_extra_length
        save(loaded.model, loaded.source_tokenizer, loaded.target_tokenizer, beside, positions)
        for name, content in tokenizer_files(loaded.source_tokenizer, loaded.target_tokenizer).items():
            (beside / name).write_bytes(content)
    return output


def save(model: Transformer, source: Tokenizer, target: Tokenizer, path: Path, positions: int = 0) -> None:
    """Write a model with its vocabularies to an empty folder, for at least `positions` positions."""
    try:
        from ctranslate2.specs import TransformerSpec, common_spec
    except ImportError as error:
        raise missing_extra("an export to CTranslate2", "ctranslate2", error) from None
    config = model.config
    if config["activation"] not in ACTIVATIONS:
        known = ", ".join(ACTIVATIONS)
        raise InputError(f"CTranslate2 has no activation {config['activation']!r}; it has {known}")
    attention = model.decoder.layers[0].self_attention
    if {attention.key_dim, attention.value_dim} != {config["d_model"] / config["num_heads"]}:
        raise InputError(
            "CTranslate2 has only heads of width d_model / num_heads. "
            f"Received: key_dim={attention.key_dim}, value_dim={attention.value_dim}"
        )
    spec = TransformerSpec.from_config(
        (len(model.encoder.layers), len(model.decoder.layers)),
        config["num_heads"],
        pre_norm=config["norm"] == "pre",
        activation=common_spec.Activation[ACTIVATIONS[config["activation"]]],
    )
    positions = max(positions, MIN_POSITIONS)
    for stack, part in ((spec.encoder, model.encoder), (spec.decoder, model.decoder)):
        embeddings = stack.embeddings[0] if isinstance(stack.embeddings, list) else stack.embeddings
        embeddings.weight = part.embedding.tokens.table.numpy()
        stack.position_encodings.encodings = _positions(part.embedding, positions)
        if part.final_norm is not None:
            _norm(stack.layer_norm, part.final_norm)
    for to, encoder_layer in zip(spec.encoder.layer, model.encoder.layers, strict=True):
        _self_attention(to.self_attention, encoder_layer)
        _feed_forward(to.ffn, encoder_layer)
    for to, layer in zip(spec.decoder.layer, model.decoder.layers, strict=True):
        _self_attention(to.self_attention, layer)
        _norm(to.attention.layer_norm, layer.cross_attention_residual.norm)
        attention = layer.cross_attention
        for linear, ours in zip(
            to.attention.linear, (attention.query, attention.key_value, attention.output_projection), strict=True
        ):
            _linear(linear, ours)
        _feed_forward(to.ffn, layer)
    if model.output_projection is None:
        spec.decoder.projection.weight = spec.decoder.embeddings.weight
    else:
        _linear(spec.decoder.projection, model.output_projection)
    if model.output_bias is not None:
        spec.decoder.projection.bias = model.output_bias.numpy()
    spec.register_source_vocabulary(source.pieces)
    spec.register_target_vocabulary(target.pieces)
    spec.config.unk_token, spec.config.eos_token = target.pieces[UNKNOWN], target.pieces[END]
    spec.config.bos_token = spec.config.decoder_start_token = target.pieces[START]
    spec.config.add_source_eos = True
    spec.config.layer_norm_epsilon = config["norm_epsilon"]
    spec.validate()
    spec.optimize()
    spec.save(os.fspath(path))


def _positions(embedding: PositionalEmbedding, count: int) -> Any:
    """Return the position encodings [N, D]. CTranslate2's own begin at 1, and have all sines before all cosines."""
    if embedding.positions == "learned":
        return embedding.table.numpy()
    return keras.ops.convert_to_numpy(positional_encoding(count, embedding.d_model, kind=embedding.positions))


def _self_attention(to: Any, layer: EncoderLayer | DecoderLayer) -> None:
    _norm(to.layer_norm, layer.self_attention_residual.norm)
    attention = layer.self_attention
    for linear, ours in zip(to.linear, (attention.query_key_value, attention.output_projection), strict=True):
        _linear(linear, ours)


def _feed_forward(to: Any, layer: EncoderLayer | DecoderLayer) -> None:
    _norm(to.layer_norm, layer.feed_forward_residual.norm)
    _linear(to.linear_0, layer.feed_forward.inner)
    _linear(to.linear_1, layer.feed_forward.outer)


def _linear(to: Any, linear: Linear) -> None:
    to.weight = linear.kernel.numpy().T.copy()
    if linear.use_bias:
        to.bias = linear.bias.numpy()


def _norm(to: Any, norm: LayerNorm) -> None:
    to.gamma, to.beta = norm.gamma.numpy(), norm.beta.numpy()

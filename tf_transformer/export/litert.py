"""Export to LiteRT, for phones, small boards, and CPUs with int8. https://ai.google.dev/edge/litert."""

import dataclasses
import json
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import tensorflow as tf

from tf_transformer.config import DecodingConfig
from tf_transformer.config.special_tokens import END, PAD, START, UNKNOWN
from tf_transformer.errors import InputError
from tf_transformer.export.model_card import litert_card
from tf_transformer.litert.model import CACHE, DECODE, ENCODE, MASK, MEMORY, NEW
from tf_transformer.model import Transformer
from tf_transformer.model.cache import KeyValue, ReadOnlyCache
from tf_transformer.model.decoder import Memory
from tf_transformer.model.scaled_dot_product import attention_bias
from tf_transformer.runs.descriptions import LITERT_MODEL, OF_LITERT
from tf_transformer.runs.directory import RunDirectory
from tf_transformer.runs.weights import build_model, restore_best, tokenizer_files, tokenizers_of
from tf_transformer.storage.atomic import atomic_write, refuse_existing
from tf_transformer.tokenizers import Tokenizer


def export(
    run_dir: str | Path | RunDirectory,
    output: str | Path,
    decoding: DecodingConfig | None = None,
    quantize: str = "int8",
) -> Path:
    """Export the best checkpoint of a run for LiteRT. The export is written beside its place, then renamed.

    The folder holds `model.tflite` with signatures for the encoder and for a step of the decoder, the SentencePiece
    models, `tf_transformer.json` and a README.md. `tf_transformer.litert.Translator` translates with it.
    docs/devices.md says what an app must do.

    Args:
        run_dir: the path of the run, or its `RunDirectory`.
        output: a new folder.
        decoding: how to search unless the translator is told otherwise; by default as the run does.
        quantize: "int8" stores the weights of matrix products in 8 bits, and also multiplies them by 8-bit numbers;
            "float16" stores weights in 16 bits; "float32" leaves them as they are.

    Raises:
        InputError: the output exists; the run directory is not ours or has no checkpoint; a search that samples; an
            activation that LiteRT does not have.
    """
    output = Path(output)
    refuse_existing(output)
    run = run_dir if isinstance(run_dir, RunDirectory) else RunDirectory(run_dir)
    with atomic_write(output) as beside:
        save_run(run, beside, output.name, decoding, quantize)
    return output


def save_run(run: RunDirectory, path: Path, name: str, decoding: DecodingConfig | None, quantize: str) -> None:
    """Write the best checkpoint of a run and its tokenizers to a new folder; its README.md calls the folder `name`."""
    decoding = decoding or run.config.decoding
    if decoding.temperature:
        raise InputError(
            f"only a SavedModel or a run samples: leave the temperature away. Received: {decoding.temperature}"
        )
    model = build_model(run.config)
    description = run.description | {"checkpoint": restore_best(run, model), "dtype": quantize}
    description["config"] = run.config.as_dict() | {"decoding": dataclasses.asdict(decoding)}
    save(model, *tokenizers_of(run), description, path, quantize)
    (path / "README.md").write_text(litert_card(name, description, OF_LITERT.as_posix()), "utf-8")


def save(
    model: Transformer, source: Tokenizer, target: Tokenizer, description: dict[str, Any], path: Path, quantize: str
) -> None:
    """Write a model, its tokenizers and its description to a new folder."""
    config, decoding = model.config, description["config"]["decoding"]
    files = tokenizer_files(source, target)
    facts = {
        "quantize": quantize,
        "layers": len(model.decoder.layers),
        "heads": config["num_heads"],
        "depth": model.decoder.layers[0].self_attention.key_dim,
        "value_depth": model.decoder.layers[0].self_attention.value_dim,
        "vocabulary": target.vocab_size,
        "max_positions": model.max_positions,
        "tokenizers": [*files] * (2 // len(files)),
        "tokens": {"pad": PAD, "unknown": UNKNOWN, "start": START, "end": END},
        "language_tokens": {"source": source.languages, "target": target.languages},
    }
    path.mkdir()
    (path / LITERT_MODEL).write_bytes(converted(model, decoding["attention_layer"], quantize))
    for name, content in files.items():
        (path / name).write_bytes(content)
    (path / OF_LITERT).write_text(json.dumps(description | {"litert": facts}, indent=1) + "\n", "utf-8")


def converted(model: Transformer, attention_layer: int | None = None, quantize: str = "float32") -> bytes:
    """Return a model as a .tflite of LiteRT's own operators, with the signatures that `litert.model` reads.

    Args:
        model: a built model.
        attention_layer: the layer whose attention a step gives, counted from 1, the lowest; None for the last.
        quantize: as in `export`.
    """
    module = tf.Module()
    module.variables_of_model = [variable.value for variable in model.weights]
    signatures = {DECODE: _decode(model, attention_layer), ENCODE: _encode(model)}
    with tempfile.TemporaryDirectory() as folder:
        tf.saved_model.save(module, os.fspath(folder), signatures=signatures)
        converter = tf.lite.TFLiteConverter.from_saved_model(os.fspath(folder), signature_keys=list(signatures))
        converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS]
        if quantize != "float32":
            converter.optimizations = [tf.lite.Optimize.DEFAULT]
        if quantize == "float16":
            converter.target_spec.supported_types = [tf.float16]
        try:
            return converter.convert()
        except Exception as error:  # the converter raises a single class for everything that it cannot do
            said = str(error).splitlines()
            raise InputError(f"LiteRT's converter cannot write this model: {said[0] if said else error}") from error


def _encode(model: Transformer) -> Callable[..., Any]:
    """Return the signature of the encoder."""

    @tf.function(input_signature=[tf.TensorSpec([None, None], tf.int32, name="ids")], autograph=False)
    def encode(ids: tf.Tensor) -> dict[str, tf.Tensor]:
        memory = model.encode(ids)
        found = {MASK: ids != PAD}
        for i, layer in enumerate(memory.layers):
            found |= {name.format(i): part for name, part in zip(MEMORY, layer, strict=True)}
        return found

    return encode


def _decode(model: Transformer, attention_layer: int | None) -> Callable[..., Any]:
    """Return the signature of a step of the decoder."""
    layers = range(len(model.decoder.layers))
    attention = model.decoder.layers[0].self_attention
    kept = [
        tf.TensorSpec([None, attention.num_heads, None, width], tf.float32)
        for width in (attention.key_dim, attention.value_dim)
    ]
    specs = {
        "ids": tf.TensorSpec([None], tf.int32),
        "position": tf.TensorSpec([], tf.int32),
        "forbidden": tf.TensorSpec([model.config["target_vocab_size"]], tf.float32),
        "count": tf.TensorSpec([], tf.int32),
        MASK: tf.TensorSpec([None, None], tf.bool),
        **{
            name.format(i): spec
            for names in (MEMORY, CACHE)
            for i in layers
            for name, spec in zip(names, kept, strict=True)
        },
    }

    @tf.function(
        input_signature=[tf.TensorSpec(spec.shape, spec.dtype, name=name) for name, spec in specs.items()],
        autograph=False,
    )
    def decode(*given: tf.Tensor) -> dict[str, tf.Tensor]:
        of = dict(zip(specs, given, strict=True))
        bias = attention_bias(of[MASK][:, None])
        memory = Memory(tuple(KeyValue(*(of[name.format(i)] for name in MEMORY)) for i in layers), bias)
        cache = tuple(ReadOnlyCache(*(of[name.format(i)] for name in CACHE)) for i in layers)
        logits, weights, new = model.decode_step(of["ids"], of["position"], cache, memory)
        best, tokens = tf.math.top_k(logits + of["forbidden"], of["count"])
        highest = tf.reduce_max(logits, axis=-1, keepdims=True)
        layer = tf.reduce_mean(weights[(attention_layer or len(weights)) - 1], axis=1)
        found = {
            "tokens": tokens,
            "token_logits": best,
            # reduce_logsumexp uses operations that LiteRT does not have.
            "normalizers": highest[:, 0] + tf.math.log(tf.reduce_sum(tf.exp(logits - highest), axis=-1)),
            "logits": logits,
            "attention": tf.reshape(layer, [tf.size(of["ids"]), tf.shape(layer)[2]]),
        }
        for i in layers:
            found |= {name.format(i): part for name, part in zip(NEW, new[i], strict=True)}
        return found

    return decode

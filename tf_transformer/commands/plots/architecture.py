"""`tf-transformer plot architecture`."""

import argparse
import dataclasses
import inspect
from pathlib import Path
from typing import TYPE_CHECKING

from tf_transformer import config
from tf_transformer.commands.common.quiet_tensorflow import import_tensorflow
from tf_transformer.runs.descriptions import Described

if TYPE_CHECKING:
    import keras
    from matplotlib.figure import Figure

    from tf_transformer.model import Decoder, DecoderLayer, Encoder, EncoderLayer, Transformer
    from tf_transformer.plotting.architecture import Tower

PACKAGE = Path(__file__).parents[2]

SUMMARY = "The parts of a model as in figure 1 of the paper, with their parameters and source files."
EXAMPLE = "tf-transformer plot architecture --preset base --output architecture.svg"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what this kind of picture takes."""
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--model", metavar="DIR", help="a run directory or an export")
    which.add_argument("--preset", metavar="NAME", help=f"one of {', '.join(config.PRESETS)}")


def figure(options: argparse.Namespace) -> "Figure":
    """Return the picture."""
    settings = Described(options.model).config if options.model else config.preset(options.preset)
    sizes = settings.model
    if sizes.input_vocab_size is None:  # of a preset: its tokenizer decides
        size = settings.tokenizer.vocab_size
        sizes = dataclasses.replace(sizes, input_vocab_size=size, target_vocab_size=size)
    import_tensorflow()
    from tf_transformer import plotting
    from tf_transformer.runs.weights import build_model

    model = build_model(dataclasses.replace(settings, model=sizes))
    name = options.model or f"preset {options.preset}"
    return plotting.architecture(*_towers(model), f"{name}: {model.count_params():,} parameters")


def _towers(model: "Transformer") -> "tuple[Tower, Tower]":
    """Return encoder and decoder of a model, read off its layers."""
    from tf_transformer.plotting.architecture import Part, Tower

    def part(title: str, kind: str, layer: "keras.layers.Layer", file: str = "") -> Part:
        source = file or Path(inspect.getfile(type(layer))).relative_to(PACKAGE).as_posix()
        return Part(title, kind, layer.count_params() if layer.weights else 0, source)

    def embedding(stack: "Encoder | Decoder", is_shared: bool) -> list[Part]:
        tokens = part(f"Embedding of {stack.config['vocab_size']:,} tokens", "embedding", stack.embedding.tokens)
        if is_shared:
            tokens = tokens._replace(title=f"{tokens.title}, shared", parameters=0)
        positions = part(f"{stack.config['positions'].capitalize()} positions", "embedding", stack.embedding)
        positions = positions._replace(parameters=positions.parameters - stack.embedding.tokens.count_params())
        return [tokens, positions]

    def sublayer(layer: "EncoderLayer | DecoderLayer", name: str, title: str, kind: str) -> list[Part]:
        residual = part(norm_title, "norm", getattr(layer, f"{name}_residual"))
        both = [part(title, kind, getattr(layer, name)), residual]
        return both[::-1] if is_pre else both

    def ending(stack: "Encoder | Decoder") -> list[Part]:
        return [part("Layer norm", "norm", stack.final_norm)] if stack.final_norm else []

    is_pre = model.config["norm"] == "pre"
    norm_title = "Layer norm, residual connection" if is_pre else "Residual connection, layer norm"
    heads = f"{model.config['num_heads']} heads"
    feed_forward = ("feed_forward", f"Feed-forward, {model.config['dff']:,} inside", "feed-forward")
    first, other = model.encoder.layers[0], model.decoder.layers[0]
    encoder = Tower(
        "Encoder",
        "source tokens",
        embedding(model.encoder, is_shared=False),
        [*sublayer(first, "self_attention", f"Self-attention, {heads}", "attention"), *sublayer(first, *feed_forward)],
        len(model.encoder.layers),
        ending(model.encoder),
    )
    tied = model.config["share_embeddings"]
    if model.output_projection is None:
        output = Part(
            f"Logits of {model.config['target_vocab_size']:,} tokens, shared",
            "output",
            0,
            Path(inspect.getfile(type(model.decoder.embedding.tokens))).relative_to(PACKAGE).as_posix(),
        )
    else:
        output = part(f"Logits of {model.config['target_vocab_size']:,} tokens", "output", model.output_projection)
    if model.output_bias is not None:
        output = output._replace(parameters=output.parameters + model.output_bias.shape[0])
    decoder = Tower(
        "Decoder",
        "target tokens written so far",
        embedding(model.decoder, is_shared=tied == "all"),
        [
            *sublayer(other, "self_attention", f"Causal self-attention, {heads}", "attention"),
            *sublayer(other, "cross_attention", f"Attention to the source, {heads}", "attention"),
            *sublayer(other, *feed_forward),
        ],
        len(model.decoder.layers),
        [*ending(model.decoder), output],
    )
    return encoder, decoder

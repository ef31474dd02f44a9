"""Marian's own models: an .npz beside its vocabularies, SentencePiece models and decoder.yml."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from tf_transformer.config import Config, DataConfig, DecodingConfig, ModelConfig, TokenizerConfig
from tf_transformer.config.decoding import MAX_SIZE
from tf_transformer.errors import InputError
from tf_transformer.importers.bart import MOST_DROPOUT, MOST_LAYERS
from tf_transformer.importers.folder import Settings, licence_of, read_bytes
from tf_transformer.importers.imported import Imported
from tf_transformer.importers.tensors import Tensors, open_npz
from tf_transformer.importers.vocabulary import Vocabulary, rewritten
from tf_transformer.storage.lines import read_lines

SETTINGS = "special:model.yml"
"""The array of an .npz that holds its settings."""
DECODER = "decoder.yml"
ACTIVATIONS = {"swish": "silu", "relu": "relu"}
"""Keras's names for the activations of Marian. Its gelu, x sigmoid(1.702 x), has no name in Keras."""
NOT_YAML = (yaml.YAMLError, ValueError, KeyError, AttributeError, OverflowError, RecursionError)
"""The exceptions that PyYAML raises for what is no YAML, or for values that are not what they are said to be."""
MAX_LENGTH = 512
NEEDED = {
    "type": "transformer",
    "transformer-decoder-autoreg": "self-attention",
    "transformer-no-projection": False,
    "transformer-train-position-embeddings": False,
    "transformer-ffn-depth": 2,
}
"""Settings that our layers have no option for, with the value that they must have, which is also the default."""
NORMS = {("", "dan", ""): "post", ("n", "da", "n"): "pre"}
"""Our norm for the values of transformer-preprocess, -postprocess and -postprocess-top."""


def read(model: Path) -> Imported:
    """Read everything but the weights.

    Args:
        model: the .npz, or the folder of its decoder.yml.

    Raises:
        InputError: something is missing or damaged, or has no place in our layers.
    """
    folder = model if model.is_dir() else model.parent
    decoder = _yaml(folder / DECODER)
    file = _one(folder, decoder, "models") if model.is_dir() else model
    with open_npz(file) as tensors:
        raw = tensors.take_bytes(SETTINGS)
    settings = _parsed(raw.rstrip(b"\0"), f"{file}, {SETTINGS}")
    norm = _check(settings, file)
    vocabularies = [_vocabulary(path) for path in _vocabularies(folder, decoder)]
    source, target = vocabularies[0], vocabularies[-1]
    config = _model_of(settings, norm, source, target, file)
    return Imported(
        config=Config(
            model=config,
            tokenizer=TokenizerConfig(shared=source == target, vocab_size=len(target.order()), byte_fallback=False),
            data=DataConfig(),
            decoding=_decoding_of(Settings(folder / DECODER, decoder).chosen()),
        ),
        tokenizers={
            f"{side}.model": rewritten(read_bytes(folder / f"{side}.spm"), vocabulary, str(folder / f"{side}.spm"))
            for side, vocabulary in (("source", source), ("target", target))
        },
        open=lambda: open_npz(file),
        weights=lambda tensors: _weights(tensors, config, source, target),
        origin={
            "architecture": "Marian",
            "name": file.name,
            "licence": licence_of(folder),
            "languages": [None, None],
        },
    )


def _yaml(file: Path) -> dict[str, Any]:
    return _parsed(read_bytes(file), str(file))


def _parsed(raw: bytes, name: str) -> dict[str, Any]:
    try:
        found = yaml.safe_load(raw.decode("utf-8"))
    except NOT_YAML:
        found = None
    if not isinstance(found, dict):
        raise InputError(f"{name} is not a YAML mapping")
    return found


def _one(folder: Path, decoder: dict[str, Any], name: str) -> Path:
    named = decoder.get(name)
    if not (isinstance(named, list) and len(named) == 1):
        raise InputError(
            f"{folder / DECODER}: {name} must name one file. Give the path of the .npz instead. Received: {named!r}"
        )
    return folder / str(named[0])


def _vocabularies(folder: Path, decoder: dict[str, Any]) -> list[Path]:
    named = decoder.get("vocabs")
    if not (isinstance(named, list) and named):
        raise InputError(f"{folder / DECODER} names no vocabs: it must list the files of the vocabularies")
    return [folder / str(name) for name in named]


def _check(settings: dict[str, Any], file: Path) -> str:
    """Check the settings, and return where the norms are.

    Raises:
        InputError: our layers cannot implement the settings.
    """
    for name, needed in NEEDED.items():
        if (value := settings.get(name, needed)) != needed:
            raise InputError(f"{file}: models with {name}={value} cannot be imported; it must be {needed}")
    if "n" in (embedding := str(settings.get("transformer-postprocess-emb", ""))):
        raise InputError(f"{file}: models with transformer-postprocess-emb={embedding} cannot be imported")
    activation = settings.get("transformer-ffn-activation")
    if not (isinstance(activation, str) and activation in ACTIVATIONS):
        raise InputError(
            f"{file}: transformer-ffn-activation must be {' or '.join(ACTIVATIONS)}. Received: {activation}"
        )
    names = ("transformer-preprocess", "transformer-postprocess", "transformer-postprocess-top")
    arrangement = tuple(str(settings.get(name) or "") for name in names)
    if arrangement not in NORMS:
        raise InputError(f"{file}: {', '.join(names)} must be those of post-norm or pre-norm. Received: {arrangement}")
    return NORMS[arrangement]


def _model_of(settings: dict[str, Any], norm: str, source: Vocabulary, target: Vocabulary, file: Path) -> ModelConfig:
    share = "none"
    if settings.get("tied-embeddings-all"):
        share = "all"
    elif settings.get("tied-embeddings"):
        share = "target"
    if (share == "all" or settings.get("tied-embeddings-src")) and source != target:
        raise InputError(f"{file} shares the embeddings of both languages, but their vocabularies differ")
    sizes = Settings(file, settings)
    encoder, decoder = (sizes.integer(f"{side}-depth", at_least=1, at_most=MOST_LAYERS) for side in ("enc", "dec"))
    return ModelConfig(
        num_layers=encoder,
        num_decoder_layers=decoder if decoder != encoder else None,
        d_model=sizes.integer("dim-emb", at_least=1),
        num_heads=sizes.integer("transformer-heads", at_least=1),
        dff=sizes.integer("transformer-dim-ffn", at_least=1),
        input_vocab_size=len(source.order()),
        target_vocab_size=len(target.order()),
        dropout_rate=sizes.number("transformer-dropout", 0.1, at_most=MOST_DROPOUT),
        attention_dropout_rate=sizes.number("transformer-dropout-attention", 0.0, at_most=MOST_DROPOUT),
        activation_dropout_rate=sizes.number("transformer-dropout-ffn", 0.0, at_most=MOST_DROPOUT),
        activation=ACTIVATIONS[settings["transformer-ffn-activation"]],
        norm=norm,
        norm_epsilon=1e-6,
        positions="marian",
        share_embeddings=share,
        output_bias=True,
    )


def _decoding_of(decoder: Settings) -> DecodingConfig:
    """Return the settings of the search. Marian divides scores by n^alpha and calls alpha normalize."""
    return DecodingConfig(
        beam_size=decoder.integer("beam-size", 12, at_least=1, at_most=MAX_SIZE),
        length_penalty=decoder.number("normalize", 0.0, at_most=10),
        length_penalty_offset=0.0,
        max_length=MAX_LENGTH,
        max_extra_length=MAX_LENGTH,
        max_source_length=MAX_LENGTH,
        # Scores are divided by length, so a longer translation may always win: an exact search takes all 512 steps.
        likely_stopping=True,
    )


def _vocabulary(file: Path) -> Vocabulary:
    """Read the lines `PIECE: ID` of a vocabulary.

    The file is YAML as Marian writes it. Other YAML readers take `no` for a boolean, or skip unusual keys.
    """
    if not file.is_file():
        raise InputError(f"cannot read the vocabulary {file}: there is no such file")
    if file.suffix == ".spm":
        raise InputError(
            f"{file}: models whose vocabulary is a SentencePiece model cannot be imported; it must be a .yml"
        )
    ids: dict[str, int] = {}
    key = None
    for number, line in enumerate(read_lines(file), 1):
        if not line.strip():
            continue
        if line.startswith("? "):
            key = line[2:]
            continue
        text, colon, value = (key, ":", line.removeprefix(":")) if key is not None else line.rpartition(":")
        key = None
        if not (colon and re.fullmatch(r"\s*[0-9]{1,9}\s*", value)):
            raise InputError(f"{file}, line {number} must have the form PIECE: ID. Received: {line:.60}")
        try:
            piece = _piece(text)
            piece.encode()  # fails for half of a character
        except NOT_YAML:
            raise InputError(f"{file}, line {number}: the piece is no YAML. Received: {line:.60}") from None
        if piece in ids:
            raise InputError(f"{file}, line {number}: the piece {piece!r} occurs twice")
        ids[piece] = int(value)
    pieces = sorted(ids, key=ids.__getitem__)
    if sorted(ids.values()) != list(range(len(ids))) or not {"</s>", "<unk>"} <= ids.keys():
        raise InputError(f"{file} must have </s> and <unk>, and the ids of its pieces must run from 0 without a gap")
    return Vocabulary(pieces, pad=None, unknown=ids["<unk>"], end=ids["</s>"], start=None)


def _piece(key: str) -> str:
    """Return the piece that a YAML key stands for."""
    if key.startswith('"') and key.endswith('"') and len(key) > 1:
        found = yaml.safe_load(re.sub(r"\\(?=[^\"\\/abefnrtv0xuUNLP_ ])", r"\\\\", key))
        return str(found)
    if key.startswith("'") and key.endswith("'") and len(key) > 1:
        return key[1:-1].replace("''", "'")
    return key


def _weights(
    tensors: Tensors, model: ModelConfig, source: Vocabulary, target: Vocabulary
) -> Iterator[tuple[str, np.ndarray]]:
    width = model.d_model

    def row(name: str, size: int = width) -> np.ndarray:
        return tensors.take(name, 1, size)[0]

    def table(side: str, vocabulary: Vocabulary) -> np.ndarray:
        name = f"{side}_Wemb" if f"{side}_Wemb" in tensors else "Wemb"
        return vocabulary.table(tensors.take(name, len(vocabulary.pieces), width))

    def attention(theirs: str, ours: str, parts: str) -> Iterator[tuple[str, np.ndarray]]:
        kernels = [tensors.take(f"{theirs}_W{part}", width, width) for part in parts]
        yield f"{ours}/kernel", np.concatenate(kernels, axis=1)
        yield f"{ours}/bias", np.concatenate([row(f"{theirs}_b{part}") for part in parts])

    def norm(theirs: str, ours: str, suffix: str) -> Iterator[tuple[str, np.ndarray]]:
        yield f"{ours}/gamma", row(f"{theirs}_ln_scale{suffix}")
        yield f"{ours}/beta", row(f"{theirs}_ln_bias{suffix}")

    suffix = "_pre" if model.norm == "pre" else ""
    yield "transformer/encoder/embedding/tokens/table", table("encoder", source)
    if model.share_embeddings != "all":
        yield "transformer/decoder/embedding/tokens/table", table("decoder", target)
    for side, count in (("encoder", model.num_layers), ("decoder", model.num_decoder_layers or model.num_layers)):
        for i in range(count):
            theirs, ours = f"{side}_l{i + 1}", f"transformer/{side}/layer_{i}"
            yield from attention(f"{theirs}_self", f"{ours}/self_attention/query_key_value", "qkv")
            yield from attention(f"{theirs}_self", f"{ours}/self_attention/output", "o")
            yield from norm(f"{theirs}_self_Wo", f"{ours}/self_attention_residual/norm", suffix)
            if side == "decoder":
                yield from attention(f"{theirs}_context", f"{ours}/cross_attention/query", "q")
                yield from attention(f"{theirs}_context", f"{ours}/cross_attention/key_value", "kv")
                yield from attention(f"{theirs}_context", f"{ours}/cross_attention/output", "o")
                yield from norm(f"{theirs}_context_Wo", f"{ours}/cross_attention_residual/norm", suffix)
            for part, name, shape in (
                ("1", "inner", (width, model.dff)),
                ("2", "outer", (model.dff, width)),
            ):
                yield f"{ours}/feed_forward/{name}/kernel", tensors.take(f"{theirs}_ffn_W{part}", *shape)
                yield f"{ours}/feed_forward/{name}/bias", row(f"{theirs}_ffn_b{part}", shape[1])
            yield from norm(f"{theirs}_ffn_ffn", f"{ours}/feed_forward/residual/norm", suffix)
        if model.norm == "pre":
            yield from norm(f"{side}_top", f"transformer/{side}/final_norm", "")
    if model.share_embeddings == "none":
        out = tensors.take("decoder_ff_logit_out_W", width, len(target.pieces))
        yield "transformer/output/kernel", np.ascontiguousarray(target.table(out.T).T)
    yield "transformer/output_bias", target.bias(row("decoder_ff_logit_out_b", len(target.pieces)))
    tensors.pass_over(SETTINGS)

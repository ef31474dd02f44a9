"""MarianMT models, such as those of OPUS-MT, as transformers stores them."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from tf_transformer.config import Config, DataConfig, ModelConfig, TokenizerConfig
from tf_transformer.errors import InputError
from tf_transformer.importers.bart import layers_of, sizes_of
from tf_transformer.importers.folder import licence_of, optional_json, read_bytes, read_json, size_of
from tf_transformer.importers.generation import decoding_of
from tf_transformer.importers.imported import Imported
from tf_transformer.importers.tensors import Tensors, open_tensors
from tf_transformer.importers.vocabulary import Vocabulary, read_pieces, rewritten

UNLIKE_OURS = {
    "scale_embedding": (True, False),
    "static_position_embeddings": (True, True),
    "normalize_before": (False, False),
    "normalize_embedding": (False, False),
    "add_bias_logits": (False, False),
    "add_final_layer_norm": (False, False),
    "extra_pos_embeddings": (0, 0),
}
"""See `bart.sizes_of`."""


def read(folder: Path) -> Imported:
    """Read everything but the weights.

    Raises:
        InputError: something is missing or damaged, or has no place in our layers.
    """
    config = read_json(folder / "config.json")
    source, target = _vocabularies(folder, config)
    languages = optional_json(folder / "tokenizer_config.json")
    model = _model_of(config, len(source.order()), len(target.order()), folder / "config.json")
    is_shared = source == target
    return Imported(
        config=Config(
            model=model,
            # Each side has its own SentencePiece model; both may share the vocabulary.
            tokenizer=TokenizerConfig(shared=is_shared, vocab_size=len(target.order()), byte_fallback=False),
            data=DataConfig(source=languages.get("source_lang"), target=languages.get("target_lang")),
            decoding=decoding_of(folder, config),
        ),
        tokenizers={
            "source.model": rewritten(read_bytes(folder / "source.spm"), source, str(folder / "source.spm")),
            "target.model": rewritten(read_bytes(folder / "target.spm"), target, str(folder / "target.spm")),
        },
        open=lambda: open_tensors(folder),
        weights=lambda tensors: _weights(tensors, model, source, target),
        origin={
            "architecture": "MarianMT, as transformers has it",
            "name": config.get("_name_or_path") or folder.resolve().name,
            "licence": licence_of(folder),
            "languages": [languages.get("source_lang"), languages.get("target_lang")],
        },
    )


def _model_of(config: dict[str, Any], sources: int, targets: int, file: Path) -> ModelConfig:
    tied = config.get("tie_word_embeddings", True)
    shared = "all" if config.get("share_encoder_decoder_embeddings", True) else "target"
    return ModelConfig(
        **sizes_of(config, UNLIKE_OURS, file),
        input_vocab_size=sources,
        target_vocab_size=targets,
        norm="post",
        positions="opus",
        share_embeddings=shared if tied else "none",
        output_bias=True,
    )


def _vocabularies(folder: Path, config: dict[str, Any]) -> tuple[Vocabulary, Vocabulary]:
    """Return the vocabularies of source and target, which are equal if shared."""
    source = _vocabulary(folder / "vocab.json", size_of(config, "vocab_size", folder / "config.json"), config)
    if config.get("share_encoder_decoder_embeddings", True):
        return source, source
    size = size_of(config, "decoder_vocab_size", folder / "config.json")
    return source, _vocabulary(folder / "target_vocab.json", size, config)


def _vocabulary(file: Path, size: int, config: dict[str, Any]) -> Vocabulary:
    pieces = read_pieces(file)
    if len(pieces) != size:
        raise InputError(f"{file} has {len(pieces)} pieces, but its model has {size}: they do not belong together")
    pad, start = config.get("pad_token_id", size - 1), config.get("decoder_start_token_id")
    for name in ("</s>", "<unk>"):
        if name not in pieces:
            raise InputError(f"{file} has no piece {name}")
    start = pad if start is None else start
    if not (0 <= pad < size and 0 <= start < size):
        raise InputError(f"{file} has {size} pieces, so the ids of padding and start cannot be {pad} and {start}")
    return Vocabulary(pieces, pad=pad, unknown=pieces.index("<unk>"), end=pieces.index("</s>"), start=start)


def _weights(
    tensors: Tensors, model: ModelConfig, source: Vocabulary, target: Vocabulary
) -> Iterator[tuple[str, np.ndarray]]:
    width = model.d_model
    tables = {
        "encoder": ("model.shared.weight", "model.encoder.embed_tokens.weight", "lm_head.weight"),
        "decoder": ("model.decoder.embed_tokens.weight", "lm_head.weight", "model.shared.weight"),
    }
    for side, vocabulary in (("encoder", source), ("decoder", target)):
        if side == "encoder" or model.share_embeddings != "all":
            names = tables[side][:2] if model.share_embeddings == "none" else tables[side]
            table = tensors.take(next((n for n in names if n in tensors), names[0]), len(vocabulary.pieces), width)
            yield f"transformer/{side}/embedding/tokens/table", vocabulary.table(table)
    yield from layers_of(tensors, model)
    if model.share_embeddings == "none":
        head = tensors.take("lm_head.weight", len(target.pieces), width)
        yield "transformer/output/kernel", target.table(head).T.copy()
    bias = tensors.take("final_logits_bias", 1, len(target.pieces))[0]
    yield "transformer/output_bias", target.bias(bias)
    # The same tables under other names, and the sinusoids, which are computed.
    tensors.pass_over(*tables["encoder"], *tables["decoder"])
    tensors.pass_over(*(f"model.{side}.embed_positions.weight" for side in ("encoder", "decoder")))

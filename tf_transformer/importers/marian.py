"""MarianMT models, such as those of OPUS-MT, as transformers stores them."""

import dataclasses
import re
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

import numpy as np

from tf_transformer.config import Config, DataConfig, ModelConfig, TokenizerConfig
from tf_transformer.config.special_tokens import LANGUAGE_CODE
from tf_transformer.errors import InputError
from tf_transformer.importers.added_tokens import AddedToken, added_tokens, roles_of
from tf_transformer.importers.bart import layers_of, sizes_of
from tf_transformer.importers.folder import Settings, licence_of, optional_object
from tf_transformer.importers.generation import MAX_SOURCE, search_of
from tf_transformer.importers.imported import Imported
from tf_transformer.importers.tensors import Tensors, open_tensors
from tf_transformer.importers.tokenizer_json import sentencepiece_of, written_pieces
from tf_transformer.importers.vocabulary import Vocabulary, as_words, filled, placed, read_pieces, rewritten


def read(folder: Path) -> Imported:
    """Read everything but the weights.

    Raises:
        InputError: something is missing or damaged, or has no place in our layers.
    """
    config = Settings.read(folder / "config.json")
    tokenizer = Settings(folder / "tokenizer_config.json", optional_object(folder / "tokenizer_config.json"))
    search = search_of(folder, config)
    if search.first is not None:
        raise search.given.error("forced_bos_token_id", "null: every translation would begin with it", search.first)
    source, target = _vocabularies(folder, config, search.given)
    model = _model_of(config, len(source.order()), len(target.order()))
    longest = config.integer("max_position_embeddings", MAX_SOURCE, at_least=2)
    named = [tokenizer.text(f"{side}_lang") for side in ("source", "target")]
    banned = {*search.banned, *([target.pad] if search.renormalized and target.pad is not None else [])}
    return Imported(
        config=Config(
            model=model,
            # Each side has its own SentencePiece model; both may share the vocabulary.
            tokenizer=TokenizerConfig(shared=source == target, vocab_size=len(target.order()), byte_fallback=False),
            data=DataConfig(source=named[0], target=named[1]),
            decoding=dataclasses.replace(
                search.decoding,
                ban_unknown=target.unknown in search.banned,
                max_source_length=min(longest, MAX_SOURCE),
            ),
        ),
        tokenizers={
            f"{side}.model": rewritten(sentencepiece_of(folder, f"{side}.spm"), each, str(folder / f"{side}.spm"))
            for side, each in (("source", source), ("target", target))
        },
        open=lambda: open_tensors(folder),
        weights=lambda tensors: _weights(tensors, model, source, target, banned),
        origin={
            "architecture": "MarianMT, as transformers has it",
            "name": config.text("_name_or_path") or folder.resolve().name,
            "licence": licence_of(folder),
            "languages": named,
        },
    )


def _model_of(config: Settings, sources: int, targets: int) -> ModelConfig:
    shared = "all" if config.flag("share_encoder_decoder_embeddings", True) else "target"
    return ModelConfig(
        **sizes_of(config, is_scaled=False),
        input_vocab_size=sources,
        target_vocab_size=targets,
        norm="post",
        positions="opus",
        share_embeddings=shared if config.flag("tie_word_embeddings", True) else "none",
        output_bias=True,
    )


def _vocabularies(folder: Path, config: Settings, given: Settings) -> tuple[Vocabulary, Vocabulary]:
    """Return the vocabularies of source and target, which are equal if shared.

    Args:
        folder: the folder of the model.
        config: its config.json.
        given: its settings of the search, which name ids.
    """
    added = added_tokens(folder)
    source = _vocabulary(folder / "vocab.json", config.integer("vocab_size", at_least=1), added, given)
    if config.flag("share_encoder_decoder_embeddings", True):
        return source, source
    # The added tokens of separate vocabularies are those of the source, as MarianTokenizer has it.
    size = config.integer("decoder_vocab_size", at_least=1)
    return source, _vocabulary(folder / "target_vocab.json", size, {}, given)


def _vocabulary(file: Path, size: int, added: Mapping[str, AddedToken], given: Settings) -> Vocabulary:
    beside = file.with_name("tokenizer.json")
    own = read_pieces(file) if file.exists() or not beside.exists() else written_pieces(beside)
    known = {piece: id for id, piece in own.items()}
    for name in ("</s>", "<unk>"):
        if name not in known:
            raise InputError(f"{file} has no piece {name}")
    no_words = {*known, *roles_of(file.parent), *(text for text in added if re.fullmatch(LANGUAGE_CODE, text))}
    words = {text: token for text, token in added.items() if text not in no_words}
    pieces, spelled = as_words(placed(own, added), words, file.parent)
    whole = filled(pieces, size, file.parent)
    pad = given.integer("pad_token_id", size - 1, at_most=size - 1)
    end = known["</s>"]
    if (value := given.values.get("eos_token_id", end)) not in (end, [end]):
        raise given.error("eos_token_id", f"{end}, the id of </s> in {file.name}", value)
    return Vocabulary(
        whole,
        pad=pad,
        unknown=known["<unk>"],
        end=end,
        start=given.integer("decoder_start_token_id", pad, at_most=size - 1),
        words=frozenset(spelled),
    )


def _weights(
    tensors: Tensors, model: ModelConfig, source: Vocabulary, target: Vocabulary, banned: Collection[int]
) -> Iterator[tuple[str, np.ndarray]]:
    width = model.d_model
    tables = {
        "encoder": ("model.shared.weight", "model.encoder.embed_tokens.weight", "lm_head.weight"),
        "decoder": ("model.decoder.embed_tokens.weight", "lm_head.weight", "model.shared.weight"),
    }
    for side, vocabulary in (("encoder", source), ("decoder", target)):
        if side == "encoder" or model.share_embeddings != "all":
            # An output of its own is no table of embeddings.
            names = [n for n in tables[side] if n != "lm_head.weight" or model.share_embeddings != "none"]
            table = tensors.take(next((n for n in names if n in tensors), names[0]), len(vocabulary.pieces), width)
            yield f"transformer/{side}/embedding/tokens/table", vocabulary.table(table)
    yield from layers_of(tensors, model)
    if model.share_embeddings == "none":
        head = tensors.take("lm_head.weight", len(target.pieces), width)
        yield "transformer/output/kernel", target.table(head).T.copy()
    bias = tensors.take("final_logits_bias", 1, len(target.pieces))[0]
    yield "transformer/output_bias", target.bias(bias, banned)
    # The same tables under other names, and the sinusoids, which are computed.
    own = {"lm_head.weight"} if model.share_embeddings == "none" else set()
    tensors.pass_over(*{*tables["encoder"], *tables["decoder"]} - own)
    tensors.pass_over(*(f"model.{side}.embed_positions.weight" for side in ("encoder", "decoder")))

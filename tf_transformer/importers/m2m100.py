"""M2M100 and NLLB-200, models with many languages, as transformers stores them."""

import dataclasses
import logging
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
from tf_transformer.importers.vocabulary import Vocabulary, parsed, read_pieces, rewritten

PIECES = "sentencepiece.bpe.model"
SPECIAL = ["<s>", "<pad>", "</s>", "<unk>"]
"""The first pieces of both vocabularies."""
LANGUAGES = {
    "m2m100": (
        *("af", "am", "ar", "ast", "az", "ba", "be", "bg", "bn", "br", "bs", "ca", "ceb", "cs", "cy", "da", "de", "el"),
        *("en", "es", "et", "fa", "ff", "fi", "fr", "fy", "ga", "gd", "gl", "gu", "ha", "he", "hi", "hr", "ht", "hu"),
        *("hy", "id", "ig", "ilo", "is", "it", "ja", "jv", "ka", "kk", "km", "kn", "ko", "lb", "lg", "ln", "lo", "lt"),
        *("lv", "mg", "mk", "ml", "mn", "mr", "ms", "my", "ne", "nl", "no", "ns", "oc", "or", "pa", "pl", "ps", "pt"),
        *("ro", "ru", "sd", "si", "sk", "sl", "so", "sq", "sr", "ss", "su", "sv", "sw", "ta", "th", "tl", "tn", "tr"),
        *("uk", "ur", "uz", "vi", "wo", "xh", "yi", "yo", "zh", "zu"),
    ),
    "wmt21": ["en", "ha", "is", "ja", "cs", "ru", "zh", "de"],
}
"""The languages of M2M100, by the name of their list in tokenizer_config.json. No file of a folder has the list."""
UNLIKE_OURS = {"scale_embedding": (True, True), "tie_word_embeddings": (True, True)}
"""See `bart.sizes_of`."""
TABLES = ("model.shared.weight", "model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight")

log = logging.getLogger(__name__)


def read(folder: Path) -> Imported:
    """Read everything but the weights.

    Raises:
        InputError: something is missing or damaged, or has no place in our layers.
    """
    file = folder / "config.json"
    config, tokenizer = read_json(file), optional_json(folder / "tokenizer_config.json")
    size = size_of(config, "vocab_size", file)
    is_nllb = not (folder / "vocab.json").exists()
    pieces, languages = _nllb(folder, tokenizer) if is_nllb else _m2m100(folder, tokenizer)
    if tokenizer.get("legacy_behaviour"):
        log.warning("%s: legacy_behaviour, which puts the language after the text, is ignored", folder)
    if not max(pieces) < size:
        raise InputError(
            f"{folder} has a vocabulary of {max(pieces) + 1} pieces, but its model has {size}: they do not belong "
            "together"
        )
    vocabulary = Vocabulary(
        [pieces.get(i, f"<unused_{i}>") for i in range(size)],
        pad=SPECIAL.index("<pad>"),
        unknown=SPECIAL.index("<unk>"),
        end=SPECIAL.index("</s>"),
        start=SPECIAL.index("</s>"),
        control=frozenset(pieces[i] for i in languages.values()),
    )
    ours = len(vocabulary.order())
    model = ModelConfig(
        **sizes_of(config, UNLIKE_OURS, file),
        input_vocab_size=ours,
        target_vocab_size=ours,
        norm="pre",
        positions="m2m100",
        share_embeddings="all",
        # The bias keeps the search from writing the start token, which shares the row of the end token.
        output_bias=True,
    )
    return Imported(
        config=Config(
            model=model,
            tokenizer=TokenizerConfig(shared=True, vocab_size=ours, byte_fallback=False),
            data=DataConfig(),
            decoding=dataclasses.replace(decoding_of(folder, config, languages=1), **_direction(tokenizer, languages)),
        ),
        tokenizers={"tokenizer.model": rewritten(read_bytes(folder / PIECES), vocabulary, str(folder / PIECES))},
        open=lambda: open_tensors(folder),
        weights=lambda tensors: _weights(tensors, model, vocabulary),
        origin={
            "architecture": f"{'NLLB' if is_nllb else 'M2M100'}, as transformers has it",
            "name": config.get("_name_or_path") or folder.resolve().name,
            "licence": licence_of(folder),
        },
        languages=tuple(languages),
    )


def _direction(tokenizer: dict[str, Any], languages: dict[str, int]) -> dict[str, Any]:
    """Return the languages that the folder was saved with, as settings of the search."""
    named = {"source_language": tokenizer.get("src_lang"), "target_language": tokenizer.get("tgt_lang")}
    return {name: language for name, language in named.items() if language in languages}


def _m2m100(folder: Path, tokenizer: dict[str, Any]) -> tuple[dict[int, str], dict[str, int]]:
    """Return the pieces by their ids, and the ids of the languages, which follow those in vocab.json."""
    pieces = dict(enumerate(read_pieces(folder / "vocab.json")))
    if [pieces.get(i) for i in range(len(SPECIAL))] != SPECIAL:
        raise InputError(f"{folder / 'vocab.json'} must begin with {' '.join(SPECIAL)}")
    kind = tokenizer.get("language_codes", "m2m100")
    if kind not in LANGUAGES:
        raise InputError(f"{folder}: language_codes must be one of {', '.join(LANGUAGES)}. Received: {kind!r}")
    languages = {language: len(pieces) + i for i, language in enumerate(LANGUAGES[kind])}
    return pieces | {id: f"__{language}__" for language, id in languages.items()}, languages


def _nllb(folder: Path, tokenizer: dict[str, Any]) -> tuple[dict[int, str], dict[str, int]]:
    """Return the pieces by their ids, SentencePiece's plus one, and the ids of the languages, which follow."""
    model = [piece.piece for piece in parsed(read_bytes(folder / PIECES), str(folder / PIECES)).pieces]
    if model[:3] != ["<unk>", "<s>", "</s>"]:
        raise InputError(f"{folder / PIECES} must begin with <unk> <s> </s>. Received: {' '.join(model[:3])}")
    pieces = dict(enumerate([*SPECIAL, *model[3:]]))
    first = len(pieces)
    added = optional_json(folder / "tokenizer.json").get("added_tokens", ())
    languages = {token["content"]: token["id"] for token in added if token["id"] >= first}
    if languages.keys() <= {"<mask>"}:  # an older folder lists the languages in the order of their ids
        named = optional_json(folder / "special_tokens_map.json") | tokenizer
        codes = named.get("additional_special_tokens") or named.get("extra_special_tokens") or ()
        languages = {code: first + i for i, code in enumerate(codes)}
    languages.pop("<mask>", None)
    if not languages:
        raise InputError(f"{folder} names no languages: tokenizer.json or special_tokens_map.json must list them")
    return pieces | {id: language for language, id in languages.items()}, languages


def _weights(tensors: Tensors, model: ModelConfig, vocabulary: Vocabulary) -> Iterator[tuple[str, np.ndarray]]:
    size = len(vocabulary.pieces)
    names = (*TABLES, "lm_head.weight")
    table = tensors.take(next((name for name in names if name in tensors), names[0]), size, model.d_model)
    yield "transformer/encoder/embedding/tokens/table", vocabulary.table(table)
    yield from layers_of(tensors, model)
    yield "transformer/output_bias", vocabulary.bias(np.zeros(size, np.float32))
    # The same table under other names, and the sinusoids, which are computed.
    tensors.pass_over(*names)
    tensors.pass_over(*(f"model.{side}.embed_positions.weights" for side in ("encoder", "decoder")))

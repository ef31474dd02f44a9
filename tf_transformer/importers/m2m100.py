"""M2M100 and NLLB-200, models with many languages, as transformers stores them."""

import dataclasses
import logging
import re
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tf_transformer.config import Config, DataConfig, ModelConfig, TokenizerConfig
from tf_transformer.errors import InputError
from tf_transformer.importers.added_tokens import AddedToken, added_tokens, roles_of
from tf_transformer.importers.bart import layers_of, sizes_of
from tf_transformer.importers.folder import Settings, licence_of, optional_object
from tf_transformer.importers.generation import Search, search_of
from tf_transformer.importers.imported import Imported
from tf_transformer.importers.tensors import Tensors, open_tensors
from tf_transformer.importers.tokenizer_json import sentencepiece_of, written_pieces
from tf_transformer.importers.vocabulary import Vocabulary, as_words, filled, parsed, placed, read_pieces, rewritten

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
TABLES = ("model.shared.weight", "model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight")
NLLB_CODE = re.compile(r"[a-z]{2,3}_[A-Z][a-z]{3}")
"""How NLLB names languages."""
CODE = re.compile(r"__(.+)__")
"""How M2M100 writes them."""

log = logging.getLogger(__name__)


def read(folder: Path) -> Imported:
    """Read everything but the weights.

    Raises:
        InputError: something is missing or damaged, or has no place in our layers.
    """
    config = Settings.read(folder / "config.json")
    tokenizer = Settings(folder / "tokenizer_config.json", optional_object(folder / "tokenizer_config.json"))
    size = config.integer("vocab_size", at_least=len(SPECIAL))
    is_nllb = not (folder / "vocab.json").exists()
    sentencepiece = sentencepiece_of(folder, PIECES)
    pieces, languages, words = _nllb(folder, sentencepiece) if is_nllb else _m2m100(folder, tokenizer)
    if tokenizer.values.get("legacy_behaviour"):
        log.warning("%s: legacy_behaviour, which puts the language after the text, is ignored", folder)
    search = search_of(folder, config, languages=1)
    _check_ids(search.given)
    vocabulary = Vocabulary(
        filled(pieces, size, folder),
        pad=SPECIAL.index("<pad>"),
        unknown=SPECIAL.index("<unk>"),
        end=SPECIAL.index("</s>"),
        start=search.given.integer("decoder_start_token_id", SPECIAL.index("</s>"), at_most=size - 1),
        control=frozenset(pieces[i] for i in languages.values()),
        words=frozenset(words),
    )
    ours = len(vocabulary.order())
    if not config.flag("tie_word_embeddings", True):
        raise config.error("tie_word_embeddings", "true", False)
    model = ModelConfig(
        **sizes_of(config, is_scaled=True),
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
            decoding=dataclasses.replace(
                search.decoding,
                ban_unknown=vocabulary.unknown in search.banned,
                **_direction(tokenizer, languages, search),
            ),
        ),
        tokenizers={"tokenizer.model": rewritten(sentencepiece, vocabulary, str(folder / PIECES))},
        open=lambda: open_tensors(folder),
        weights=lambda tensors: _weights(tensors, model, vocabulary, search.banned),
        origin={
            "architecture": f"{'NLLB' if is_nllb else 'M2M100'}, as transformers has it",
            "name": config.text("_name_or_path") or folder.resolve().name,
            "licence": licence_of(folder),
        },
        languages=tuple(languages),
    )


def _check_ids(given: Settings) -> None:
    """Check that padding and end have the ids of the vocabulary, which says `</s>` for both of these."""
    for name, piece in (("pad_token_id", "<pad>"), ("eos_token_id", "</s>")):
        id = SPECIAL.index(piece)
        if (value := given.values.get(name, id)) not in (id, [id]):
            raise given.error(name, f"{id}, the id of {piece}", value)


def _direction(tokenizer: Settings, languages: dict[str, int], search: Search) -> dict[str, Any]:
    """Return the languages that the folder was saved with, as settings of the search."""
    named = {"source_language": tokenizer.text("src_lang"), "target_language": tokenizer.text("tgt_lang")}
    forced = [language for language, id in languages.items() if id == search.first]
    if search.first is not None and not forced:
        raise search.given.error("forced_bos_token_id", "the id of a language", search.first)
    if forced:
        named["target_language"] = forced[0]
    return {name: language for name, language in named.items() if language in languages}


def _m2m100(folder: Path, tokenizer: Settings) -> tuple[dict[int, str], dict[str, int], set[str]]:
    """Return the pieces by their ids, the ids of the languages, and the added words.

    M2M100's tokenizer itself says which languages there are, and that their ids follow those in vocab.json.
    """
    pieces = read_pieces(folder / "vocab.json")
    if [pieces.get(i) for i in range(len(SPECIAL))] != SPECIAL:
        raise InputError(f"{folder / 'vocab.json'} must begin with {' '.join(SPECIAL)}")
    kind = tokenizer.values.get("language_codes", "m2m100")
    if not (isinstance(kind, str) and kind in LANGUAGES):
        raise tokenizer.error("language_codes", f"one of {', '.join(LANGUAGES)}", kind)
    own = {len(pieces) + i: f"__{language}__" for i, language in enumerate(LANGUAGES[kind])}
    return _with_added(folder, pieces | own, known=[*own.values()])


def _nllb(folder: Path, sentencepiece: bytes) -> tuple[dict[int, str], dict[str, int], set[str]]:
    """Return the pieces by their ids, the ids of the languages, and the added words.

    The ids of the pieces are SentencePiece's plus one. Where tokenizer.json has them too, it must agree.
    """
    if (folder / PIECES).exists():
        model = [piece.piece for piece in parsed(sentencepiece, str(folder / PIECES)).pieces]
        if model[:3] != ["<unk>", "<s>", "</s>"]:
            raise InputError(f"{folder / PIECES} must begin with <unk> <s> </s>. Received: {' '.join(model[:3])}")
        pieces = dict(enumerate([*SPECIAL, *model[3:]]))
    if (file := folder / "tokenizer.json").exists():
        written = written_pieces(file)
        pieces = pieces if (folder / PIECES).exists() else written
        expected = pieces | dict(enumerate(SPECIAL))
        if wrong := next((i for i, piece in expected.items() if written.get(i) != piece), None):
            raise InputError(f"{file}: the id {wrong} must be {expected[wrong]!r}. Received: {written.get(wrong)!r}")
    found = _with_added(folder, pieces)
    if not found[1]:
        raise InputError(
            f"{folder} says of no language which id it has: tokenizer.json, added_tokens_decoder in "
            "tokenizer_config.json, or added_tokens.json must"
        )
    return found


def _with_added(
    folder: Path, pieces: dict[int, str], known: Sequence[str] = ()
) -> tuple[dict[int, str], dict[str, int], set[str]]:
    """Return pieces with the added tokens among them, the ids of the languages in their order, and the added words."""
    added = added_tokens(folder, known)
    pieces, roles = placed(pieces, added), {*SPECIAL, *roles_of(folder)}
    others = {text: token for text, token in added.items() if text not in roles and text not in known}
    languages = {text: id for id, text in sorted(pieces.items()) if text in known}
    by_id = sorted(others.items(), key=lambda pair: pair[1].id)
    languages |= {text: token.id for text, token in by_id if _is_language(text, token)}
    words = {text: token for text, token in others.items() if text not in languages}
    pieces, spelled = as_words(pieces, words, folder)
    return pieces, {_name_of(text): id for text, id in languages.items()}, spelled


def _is_language(text: str, token: AddedToken) -> bool:
    """Say whether an added token is a language: it has the form of one, or is special and looks like a name."""
    is_code = NLLB_CODE.fullmatch(text) or CODE.fullmatch(text)
    return bool(is_code or (token.is_special and re.fullmatch(r"[\w-]+", text)))


def _name_of(piece: str) -> str:
    code = CODE.fullmatch(piece)
    return code[1] if code else piece


def _weights(
    tensors: Tensors, model: ModelConfig, vocabulary: Vocabulary, banned: Collection[int]
) -> Iterator[tuple[str, np.ndarray]]:
    size = len(vocabulary.pieces)
    names = (*TABLES, "lm_head.weight")
    table = tensors.take(next((name for name in names if name in tensors), names[0]), size, model.d_model)
    yield "transformer/encoder/embedding/tokens/table", vocabulary.table(table)
    yield from layers_of(tensors, model)
    yield "transformer/output_bias", vocabulary.bias(np.zeros(size, np.float32), banned)
    # The same table under other names, and the sinusoids, which are computed.
    tensors.pass_over(*names)
    tensors.pass_over(*(f"model.{side}.embed_positions.weights" for side in ("encoder", "decoder")))

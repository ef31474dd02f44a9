"""The settings of the tokenizer."""

from dataclasses import dataclass

from tf_transformer.config.fields import Section, setting
from tf_transformer.config.special_tokens import SPECIAL_TOKENS

DEFAULT_NORMALIZATION = "nfc"
"""That of a new tokenizer."""
NORMALIZATIONS = (DEFAULT_NORMALIZATION, "nmt_nfkc", "nfkc", "nmt_nfkc_cf", "nfkc_cf", "identity")


@dataclass(frozen=True, kw_only=True)
class TokenizerConfig(Section):
    """How the SentencePiece model is trained, or which existing one is used."""

    vocab_size: int = setting(
        8_000, "tokens, including special tokens and bytes", option="--vocab-size", at_least=SPECIAL_TOKENS + 1
    )
    model_type: str = setting("bpe", "bpe, unigram, char or word", choices=("bpe", "unigram", "char", "word"))
    shared: bool = setting(True, "one model for both languages, instead of one for each")
    byte_fallback: bool = setting(True, "encode unknown characters as bytes, so that none is lost")
    normalization: str | None = setting(
        None,
        "nfc keeps every visible character, and is what a new tokenizer gets by default; nmt_nfkc and the like of "
        "SentencePiece replace some by others; identity changes nothing; FILE adds rules of your own to those of nfc",
        choices=NORMALIZATIONS,
        or_file=True,
    )
    character_coverage: float = setting(
        0.9995, "share of the characters of the text that get a token", at_least=0.98, at_most=1
    )
    file: str | None = setting(
        None, "an existing SentencePiece model to use instead of training one", option="--tokenizer"
    )

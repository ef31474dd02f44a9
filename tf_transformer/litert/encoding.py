"""Sentences as the encoder reads them."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tf_transformer.config import DecodingConfig
from tf_transformer.config.special_tokens import END, PAD
from tf_transformer.errors import unknown
from tf_transformer.tokenizers.vocabulary import Vocabulary

Directions = Sequence[tuple[str, str]] | None
"""The source and target language of each sentence; None takes those of the search settings."""


class TokenIds(NamedTuple):
    """A sentence as the encoder reads it, or a translation as the decoder writes it."""

    ids: list[int]
    """the tokens, which end with the end token; a source begins with its language if the model has several"""
    is_cut: bool
    """whether it had more tokens than the search takes"""
    language_token: int | None = None
    """the token of the language to translate to, if the model has several"""


def tokenised(vocabulary: Vocabulary, sentences: list[str]) -> list[list[int]]:
    """Return the ids of sentences. A lone surrogate, which is no character, is read as a question mark."""
    return vocabulary.encode([sentence.encode("utf-8", "replace").decode() for sentence in sentences])


def encoded(vocabulary: Vocabulary, sentences: list[str], most: int) -> list[TokenIds]:
    """Tokenise sentences, and cut those that have more than `most` tokens, including the end token."""
    return [TokenIds([*ids[: most - 1], END], len(ids) > most - 1) for ids in tokenised(vocabulary, sentences)]


def encode_sources(
    vocabularies: tuple[Vocabulary, Vocabulary],
    sentences: list[str],
    most: int,
    decoding: DecodingConfig,
    directions: Directions,
) -> list[TokenIds]:
    """Tokenise sentences to translate, each with the token of its language if there are several.

    Args:
        vocabularies: of source and target.
        sentences: the sentences.
        most: the most tokens that the search takes.
        decoding: says between which languages to translate if `directions` is None.
        directions: the languages of each sentence, or None.

    Raises:
        InputError: no languages, although the model has several; a language that it does not have.
    """
    source_side, target_side = vocabularies
    if not source_side.languages:
        return encoded(source_side, sentences, most)
    if directions is None:
        decoding.check_directed(source_side.languages)
        directions = [(str(decoding.source_language), str(decoding.target_language))] * len(sentences)
    for direction in set(directions):
        for language, vocabulary in zip(direction, vocabularies, strict=True):
            if language not in vocabulary.languages:
                raise unknown("language", language, vocabulary.languages)
    return [
        TokenIds([source_side.languages[source], *each.ids], each.is_cut, target_side.languages[target])
        for each, (source, target) in zip(encoded(source_side, sentences, most - 1), directions, strict=True)
    ]


def padded(rows: Sequence[Sequence[int]]) -> np.ndarray:
    """Return rows of ids as one padded array [B, T], int32."""
    ids = np.full((len(rows), max(map(len, rows))), PAD, np.int32)
    for row, each in zip(ids, rows, strict=True):
        row[: len(each)] = each
    return ids

"""Sentences as the encoder reads them."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tf_transformer.config import DecodingConfig
from tf_transformer.config.special_tokens import END, PAD
from tf_transformer.errors import unknown
from tf_transformer.vocabulary import Vocabulary

Directions = Sequence[tuple[str, str]] | None
"""Of each sentence the languages of source and target; None takes those of the search settings."""


class Encoded(NamedTuple):
    """A sentence as the encoder reads it, or a translation as the decoder writes it."""

    ids: list[int]
    """the token of the language where the model has several, and the end token at the end"""
    is_cut: bool
    """whether it had more tokens than the search takes"""
    towards: int | None = None
    """the token of the language to translate to, where the model has several"""


def tokenised(vocabulary: Vocabulary, sentences: list[str]) -> list[list[int]]:
    """Return the ids of sentences; what is no character (a lone surrogate) is read as a question mark."""
    return vocabulary.encode([sentence.encode("utf-8", "replace").decode() for sentence in sentences])


def encoded(vocabulary: Vocabulary, sentences: list[str], most: int) -> list[Encoded]:
    """Tokenise sentences, and cut what has more than `most` tokens, the end token among them."""
    return [Encoded([*ids[: most - 1], END], len(ids) > most - 1) for ids in tokenised(vocabulary, sentences)]


def encode_sources(
    vocabularies: tuple[Vocabulary, Vocabulary],
    sentences: list[str],
    most: int,
    decoding: DecodingConfig,
    directions: Directions,
) -> list[Encoded]:
    """Tokenise sentences to translate, each with the token of its language where there are several.

    Args:
        vocabularies: of source and target.
        sentences: any.
        most: tokens that the search takes.
        decoding: between which languages, where `directions` is None.
        directions: as it is described.

    Raises:
        InputError: no languages, where the model has several, or one that it does not have.
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
        Encoded([source_side.languages[source], *each.ids], each.is_cut, target_side.languages[target])
        for each, (source, target) in zip(encoded(source_side, sentences, most - 1), directions, strict=True)
    ]


def padded(rows: Sequence[Sequence[int]]) -> np.ndarray:
    """Return ids [B, T], int32."""
    ids = np.full((len(rows), max(map(len, rows))), PAD, np.int32)
    for row, each in zip(ids, rows, strict=True):
        row[: len(each)] = each
    return ids

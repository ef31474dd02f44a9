"""Pairs of sentences to pairs of token sequences, held in memory: 8 bytes a pair of tokens."""

from typing import NamedTuple

import numpy as np
import tensorflow as tf

from tf_transformer.data.sources import Pairs
from tf_transformer.tokenizers import END, Tokenizer

CHUNK = 4096
"""Sentences tokenised at once."""


class TokenPairs(NamedTuple):
    """Encoded pairs, each side ending with the end token, and what was left out."""

    sources: tf.RaggedTensor
    """[N, any], int32"""
    targets: tf.RaggedTensor
    """[N, any], int32"""
    dropped_empty: int
    """pairs with a side of no tokens"""
    dropped_long: int
    """pairs with a side longer than the limit"""
    dropped_ratio: int
    """pairs with a side too many times as long as the other"""
    keep: np.ndarray
    """[pairs that were given], boolean: those that are here"""

    def __len__(self) -> int:
        return int(self.sources.nrows())


def encode(
    pairs: Pairs,
    source_tokenizer: Tokenizer,
    target_tokenizer: Tokenizer,
    max_length: int,
    max_length_ratio: float | None = None,
) -> TokenPairs:
    """Tokenise pairs and append the end token.

    A pair with an empty side is dropped and counted, and so is one with a side of more than `max_length` tokens (the
    end token included), and one whose longer side is more than `max_length_ratio` times as long as its shorter one
    (without the end tokens). Nothing is cut.
    """
    sources = _tokenize(pairs.sources, source_tokenizer)
    targets = _tokenize(pairs.targets, target_tokenizer)
    lengths = np.stack([sources.row_lengths().numpy(), targets.row_lengths().numpy()])
    full = (lengths > 1).all(axis=0)
    short = (lengths <= max_length).all(axis=0)
    words = np.maximum(lengths - 1, 1)
    alike = words.max(axis=0) <= words.min(axis=0) * (np.inf if max_length_ratio is None else max_length_ratio)
    keep = full & short & alike
    return TokenPairs(
        tf.ragged.boolean_mask(sources, keep),
        tf.ragged.boolean_mask(targets, keep),
        dropped_empty=int((~full).sum()),
        dropped_long=int((full & ~short).sum()),
        dropped_ratio=int((full & short & ~alike).sum()),
        keep=keep,
    )


def _tokenize(sentences: list[str], tokenizer: Tokenizer) -> tf.RaggedTensor:
    text = tf.data.Dataset.from_tensor_slices(tf.constant(sentences, tf.string)).batch(CHUNK)
    chunks = list(text.map(tokenizer.tokenize, num_parallel_calls=tf.data.AUTOTUNE))
    ids = tf.concat(chunks, axis=0) if chunks else tf.RaggedTensor.from_row_lengths(tf.zeros([0], tf.int32), [])
    end = tf.fill([ids.nrows(), 1], END)
    return tf.concat([ids, end], axis=1)

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

    def __len__(self) -> int:
        return int(self.sources.nrows())


def encode(pairs: Pairs, source_tokenizer: Tokenizer, target_tokenizer: Tokenizer, max_length: int) -> TokenPairs:
    """Tokenise pairs and append the end token.

    A pair with an empty side, and one with a side of more than `max_length` tokens (the end token included), is
    dropped and counted: nothing is cut.
    """
    sources = _tokenize(pairs.sources, source_tokenizer)
    targets = _tokenize(pairs.targets, target_tokenizer)
    lengths = np.stack([sources.row_lengths().numpy(), targets.row_lengths().numpy()])
    full = (lengths > 1).all(axis=0)
    short = (lengths <= max_length).all(axis=0)
    keep = full & short
    return TokenPairs(
        tf.ragged.boolean_mask(sources, keep),
        tf.ragged.boolean_mask(targets, keep),
        dropped_empty=int((~full).sum()),
        dropped_long=int((full & ~short).sum()),
    )


def _tokenize(sentences: list[str], tokenizer: Tokenizer) -> tf.RaggedTensor:
    text = tf.data.Dataset.from_tensor_slices(tf.constant(sentences, tf.string)).batch(CHUNK)
    chunks = list(text.map(tokenizer.tokenize, num_parallel_calls=tf.data.AUTOTUNE))
    ids = tf.concat(chunks, axis=0) if chunks else tf.RaggedTensor.from_row_lengths(tf.zeros([0], tf.int32), [])
    end = tf.fill([ids.nrows(), 1], END)
    return tf.concat([ids, end], axis=1)

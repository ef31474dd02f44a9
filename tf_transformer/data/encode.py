"""Pairs of sentences to pairs of token sequences, held in memory: 8 bytes a pair of tokens."""

import itertools
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from tf_transformer.data.sources import Pairs
from tf_transformer.errors import InputError
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
    sources = _tokenize(pairs.sources, source_tokenizer.tokenize)
    targets = _tokenize(pairs.targets, target_tokenizer.tokenize)
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


def cut_by_chance(
    pairs: Pairs,
    encoded: TokenPairs,
    source_tokenizer: Tokenizer,
    target_tokenizer: Tokenizer,
    *,
    dropout: float,
    max_length: int,
) -> Callable[[], TokenPairs]:
    """Return what tokenises pairs anew each time that it is called, by BPE-dropout (Provilkov et al. 2020).

    Args:
        pairs: the text.
        encoded: the same, as `encode` returned it; what it left out is left out.
        source_tokenizer: a BPE.
        target_tokenizer: a BPE.
        dropout: the probability that a merge is left out, above 0 and below 1.
        max_length: tokens, the end token among them; a side that would be longer is cut without dropout.

    Raises:
        InputError: a tokenizer that is no BPE.
    """
    sources, targets = (list(itertools.compress(side, encoded.keep)) for side in pairs)
    for tokenizer in (source_tokenizer, target_tokenizer):
        if not tokenizer.is_bpe:
            raise InputError(
                "data.bpe_dropout needs a BPE, and the tokenizer is none: set it to 0, or train one with "
                f"tokenizer.model_type=bpe. Received: {dropout}"
            )

    def side(sentences: list[str], plain: tf.RaggedTensor, tokenizer: Tokenizer) -> tf.RaggedTensor:
        cut = _tokenize(sentences, lambda text: tokenizer.tokenize_by_chance(text, dropout))
        rows = tf.range(cut.nrows())
        fitting = tf.where(cut.row_lengths() <= max_length, rows, rows + cut.nrows())
        return tf.gather(tf.concat([cut, plain], axis=0), fitting)

    def draw() -> TokenPairs:
        return TokenPairs(
            side(sources, encoded.sources, source_tokenizer),
            side(targets, encoded.targets, target_tokenizer),
            *encoded[2:],
        )

    return draw


def _tokenize(sentences: list[str], tokenize: Callable[[tf.Tensor], tf.RaggedTensor]) -> tf.RaggedTensor:
    """Return the ids of sentences, each with the end token."""
    text = tf.data.Dataset.from_tensor_slices(tf.constant(sentences, tf.string)).batch(CHUNK)
    chunks = list(text.map(tokenize, num_parallel_calls=tf.data.AUTOTUNE))
    ids = tf.concat(chunks, axis=0) if chunks else tf.RaggedTensor.from_row_lengths(tf.zeros([0], tf.int32), [])
    return tf.concat([ids, tf.fill([ids.nrows(), 1], END)], axis=1)

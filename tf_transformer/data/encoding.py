"""Pairs of sentences to pairs of token sequences, held in memory: 8 bytes a pair of tokens, and 16 a pair."""

import itertools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from tf_transformer.data.pairs import Pairs
from tf_transformer.errors import InputError
from tf_transformer.tokenizers import END, Tokenizer

CHUNK = 4096
"""Sentences tokenised at once."""


class LanguageIds(NamedTuple):
    """The tokens of the languages of N pairs, where a model has several."""

    sources: np.ndarray
    """[N], int32"""
    targets: np.ndarray
    """[N], int32"""

    def of(self, rows: np.ndarray) -> "LanguageIds":
        """Return those of some pairs."""
        return LanguageIds(self.sources[rows], self.targets[rows])


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
    has_languages: bool = False
    """whether each side begins with the token of its language"""

    def __len__(self) -> int:
        return int(self.sources.nrows())


def encode(
    pairs: Pairs,
    source_tokenizer: Tokenizer,
    target_tokenizer: Tokenizer,
    max_length: int,
    max_length_ratio: float | None = None,
    languages: LanguageIds | None = None,
) -> TokenPairs:
    """Tokenise pairs, put the tokens of their languages before them where there are such, and the end token after them.

    A pair with an empty side is dropped and counted, and so is one with a side of more than `max_length` tokens (the
    end token and that of the language included), and one whose longer side is more than `max_length_ratio` times as
    long as its shorter one (without these). Nothing is cut.
    """
    fronts = languages or (None, None)
    sources = _tokenize(pairs.sources, source_tokenizer.tokenize, fronts[0])
    targets = _tokenize(pairs.targets, target_tokenizer.tokenize, fronts[1])
    added = 1 if languages is None else 2
    lengths = np.stack([sources.lengths, targets.lengths])
    full = (lengths > added).all(axis=0)
    short = (lengths <= max_length).all(axis=0)
    words = np.maximum(lengths - added, 1)
    alike = words.max(axis=0) <= words.min(axis=0) * (np.inf if max_length_ratio is None else max_length_ratio)
    keep = full & short & alike
    return TokenPairs(
        sources.only(keep),
        targets.only(keep),
        dropped_empty=int((~full).sum()),
        dropped_long=int((full & ~short).sum()),
        dropped_ratio=int((full & short & ~alike).sum()),
        keep=keep,
        has_languages=languages is not None,
    )


def cut_by_chance(
    pairs: Pairs,
    encoded: TokenPairs,
    source_tokenizer: Tokenizer,
    target_tokenizer: Tokenizer,
    *,
    dropout: float,
    max_length: int,
    languages: LanguageIds | None = None,
) -> Callable[[], TokenPairs]:
    """Return what tokenises pairs anew each time that it is called, by BPE-dropout (Provilkov et al. 2020).

    Args:
        pairs: the text.
        encoded: the same, as `encode` returned it; what it left out is left out.
        source_tokenizer: a BPE.
        target_tokenizer: a BPE.
        dropout: the probability that a merge is left out, above 0 and below 1.
        max_length: tokens, the end token among them; a side that would be longer is cut without dropout.
        languages: as `encode` was given them.

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

    fronts = (None, None) if languages is None else languages.of(encoded.keep)

    def side(sentences: list[str], plain: tf.RaggedTensor, tokenizer: Tokenizer, front: Any) -> tf.RaggedTensor:
        cut = _tokenize(sentences, lambda text: tokenizer.tokenize_by_chance(text, dropout), front)
        rows = np.arange(len(sentences))
        fitting = np.where(cut.lengths <= max_length, rows, rows + len(sentences))
        return tf.gather(tf.concat([cut.ragged(), plain], axis=0), fitting)

    def draw() -> TokenPairs:
        return TokenPairs(
            side(sources, encoded.sources, source_tokenizer, fronts[0]),
            side(targets, encoded.targets, target_tokenizer, fronts[1]),
            *encoded[2:],
        )

    return draw


class _Sequences(NamedTuple):
    """Token sequences, one behind the other.

    NumPy puts them together: TensorFlow's allocators keep several times what such operations of its own give.
    """

    ids: np.ndarray
    """[tokens], int32"""
    lengths: np.ndarray
    """[N], int64"""

    def only(self, keep: np.ndarray) -> tf.RaggedTensor:
        """Return those that `keep` [N], boolean, has."""
        return _Sequences(self.ids[np.repeat(keep, self.lengths)], self.lengths[keep]).ragged()

    def ragged(self) -> tf.RaggedTensor:
        """Return them as TensorFlow has them, [N, any]."""
        return tf.RaggedTensor.from_row_lengths(self.ids, self.lengths, validate=False)


def _tokenize(
    sentences: list[str], tokenize: Callable[[tf.Tensor], tf.RaggedTensor], front: np.ndarray | None = None
) -> _Sequences:
    """Return the ids of sentences, each with the end token, and with a token before it where there is a front [N]."""
    # Byte arrays grow in place: many small arrays, joined at the end, would leave holes in the memory of the process.
    ids, lengths = bytearray(), bytearray()
    for start in range(0, len(sentences), CHUNK):
        chunk = tokenize(tf.constant(sentences[start : start + CHUNK], tf.string))
        if front is not None:
            chunk = tf.concat([tf.constant(front[start : start + CHUNK, None]), chunk], axis=1)
        ids += np.insert(chunk.flat_values.numpy(), chunk.row_limits().numpy(), np.int32(END)).data
        lengths += (chunk.row_lengths().numpy() + 1).data
    return _Sequences(np.frombuffer(ids, np.int32), np.frombuffer(lengths, np.int64))

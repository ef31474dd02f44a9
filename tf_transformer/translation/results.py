"""What a translator gives back: tensors, and the Python strings in them."""

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import tensorflow as tf

from tf_transformer.errors import InputError
from tf_transformer.in_batches import warn_of_cut


class Languages(NamedTuple):
    """The languages of B sentences, for a model of several."""

    source: Any
    """[B], string: those that the sentences are in"""
    target: Any
    """[B], string: those to translate to"""


class Source(NamedTuple):
    """Tokenised sentences."""

    ids: tf.Tensor
    """[B, S], int32: the token of the language where the model has several, the end token at the end, then padding"""
    is_truncated: tf.Tensor
    """[B], boolean: whether a sentence had more tokens than the search takes, and was cut"""


class Translations(NamedTuple):
    """Translations of B sentences."""

    texts: tf.Tensor
    """[B], or [B, N], the best first; string"""
    scores: tf.Tensor
    """of each, float32"""
    is_truncated: tf.Tensor
    """[B], boolean: whether a sentence had more tokens than the search takes, and was cut"""


class Scored(NamedTuple):
    """How probable B given translations are; logarithms to base e."""

    log_probabilities: tf.Tensor
    """[B]: of their tokens, the end token among them, summed"""
    token_log_probabilities: tf.Tensor
    """[B, T]: of each token; 0 beyond the end"""
    lengths: tf.Tensor
    """[B], int32: tokens"""
    is_truncated: tf.Tensor
    """[B], boolean: whether a sentence or its translation was cut"""


class Attention(NamedTuple):
    """What every token of a sentence and of its translation attended to; each row of weights adds up to 1."""

    source_tokens: list[str]
    """S pieces, the end token among them"""
    target_tokens: list[str]
    """T pieces, the end token among them where there is one"""
    weights: np.ndarray
    """[layers, heads, T, S], float32: what target tokens attended to in the source"""
    encoder: np.ndarray
    """[layers, heads, S, S]: what source tokens attended to in the source"""
    decoder: np.ndarray
    """[layers, heads, T, R]: what the decoder attended to in what it had read, to write each target token"""
    read_tokens: list[str]
    """R pieces that the decoder read: the start token, the language where the model has several, and target tokens"""


class Aligned(NamedTuple):
    """Translations of B sentences, with what their tokens attended to."""

    texts: tf.Tensor
    """[B], string"""
    source_tokens: tf.Tensor
    """[B, S], string: the pieces, the end token among them; padding is empty"""
    target_tokens: tf.Tensor
    """[B, T], string, likewise"""
    attention: tf.Tensor
    """[B, T, S], float32: the mean of the heads of a layer; 0 where either is padding"""
    is_truncated: tf.Tensor
    """[B], as in `Source`"""


class TextTranslator(Protocol):
    """What translates Python strings, whatever it is made of."""

    def translate_strings(self, sentences: list[str], numbers: Sequence[int] | None = None) -> list[str]:
        """Translate sentences; warnings name those that were cut, by their numbers where they have some."""

    def n_best_strings(
        self, sentences: list[str], n: int, numbers: Sequence[int] | None = None
    ) -> list[list[tuple[str, float]]]:
        """Translate sentences in n ways each: the translations with their scores, the best first."""

    def check_n_best(self, n: int) -> None:
        """Raise InputError where there are not so many translations of a sentence."""

    def score_strings(self, pairs: list[tuple[str, str]], numbers: Sequence[int] | None = None) -> list[list[float]]:
        """Return for every pair of source and target the log-probabilities of the target's tokens."""

    def count_tokens(self, sentences: list[str]) -> list[int]:
        """Return how many source tokens of each sentence the search takes, the end token among them."""


def rows_of(
    found: Translations, sentences: list[str], numbers: Sequence[int] | None = None
) -> list[list[tuple[str, float]]]:
    """Return what was found, [B, N], as Python strings with their scores; a line feed in one becomes a space.

    A warning names each of the sentences that was cut, by its number where they have numbers.
    """
    warn_of_cut(sentences, _cut(found.is_truncated), numbers)
    texts = [[text.decode().replace("\n", " ") for text in row] for row in found.texts.numpy()]
    return [list(zip(*row, strict=True)) for row in zip(texts, found.scores.numpy().tolist(), strict=True)]


def token_scores_of(
    found: Scored, pairs: list[tuple[str, str]], numbers: Sequence[int] | None = None
) -> list[list[float]]:
    """Return for every pair the log-probabilities of its target's tokens; warnings as of `rows_of`."""
    warn_of_cut([f"{source}\t{target}" for source, target in pairs], _cut(found.is_truncated), numbers)
    rows = zip(found.token_log_probabilities.numpy(), found.lengths.numpy(), strict=True)
    return [row[:length].tolist() for row, length in rows]


@contextlib.contextmanager
def failures_told() -> Iterator[None]:
    """Raise what TensorFlow cannot do, such as for want of memory, as an InputError."""
    try:
        yield
    except tf.errors.OpError as error:
        raise InputError(error.message) from None


def _cut(is_truncated: tf.Tensor) -> list[int]:
    return tf.where(is_truncated).numpy()[:, 0].tolist()

"""What maps tensors of strings gives back, and the Python strings in it."""

import logging
from collections.abc import Sequence
from typing import NamedTuple

import tensorflow as tf

log = logging.getLogger(__name__)


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


def rows_of(
    found: Translations, sentences: list[str], numbers: Sequence[int] | None = None
) -> list[list[tuple[str, float]]]:
    """Return what was found, [B, N], as Python strings with their scores; a line feed in one becomes a space.

    A warning names each of the sentences that was cut, by its number where they have numbers.
    """
    _warn(sentences, found.is_truncated, numbers)
    texts = [[text.decode().replace("\n", " ") for text in row] for row in found.texts.numpy()]
    return [list(zip(*row, strict=True)) for row in zip(texts, found.scores.numpy().tolist(), strict=True)]


def token_scores_of(
    found: Scored, pairs: list[tuple[str, str]], numbers: Sequence[int] | None = None
) -> list[list[float]]:
    """Return for every pair the log-probabilities of its target's tokens; warnings as of `rows_of`."""
    _warn([f"{source}\t{target}" for source, target in pairs], found.is_truncated, numbers)
    rows = zip(found.token_log_probabilities.numpy(), found.lengths.numpy(), strict=True)
    return [row[:length].tolist() for row, length in rows]


def text_of(sentences: list[str]) -> tf.Tensor:
    """Return Python strings as a tensor; what is no character (a lone surrogate) becomes a question mark."""
    return tf.constant([sentence.encode("utf-8", "replace") for sentence in sentences], tf.string)


def _warn(sentences: list[str], is_truncated: tf.Tensor, numbers: Sequence[int] | None) -> None:
    for i in tf.where(is_truncated).numpy()[:, 0]:
        log.warning(
            "%scut: it has more than max_source_length tokens, or than the model has positions: %.60s ...",
            f"line {numbers[i]} was " if numbers else "",
            sentences[i],
        )

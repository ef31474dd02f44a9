"""What a translator returns, as tensors and as Python strings."""

import contextlib
import unicodedata
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from tf_transformer.decoding import Considered
from tf_transformer.errors import MAX_LISTED, InputError
from tf_transformer.text.alignment import AlignedString
from tf_transformer.text.batching import warn_of_cut
from tf_transformer.text.translator import Terms
from tf_transformer.tokenizers import text_of


class Languages(NamedTuple):
    """The languages of B sentences, for a model of several."""

    source: Any
    """[B], string: the languages that the sentences are in"""
    target: Any
    """[B], string: the languages to translate to"""


class Source(NamedTuple):
    """Tokenised sentences."""

    ids: tf.Tensor
    """[B, S], int32: the language if the model has several, the tokens of the text, the end token, then padding"""
    is_truncated: tf.Tensor
    """[B], boolean: whether a sentence had more tokens than the search takes, and was cut"""


class Translations(NamedTuple):
    """Translations of B sentences."""

    texts: tf.Tensor
    """[B], or [B, N], the best first; string"""
    scores: tf.Tensor
    """the score of each, float32"""
    is_truncated: tf.Tensor
    """[B], boolean: whether a sentence had more tokens than the search takes, and was cut"""


class Scored(NamedTuple):
    """How probable B given translations are; logarithms to base e."""

    log_probabilities: tf.Tensor
    """[B]: the sums over their tokens, including the end token"""
    token_log_probabilities: tf.Tensor
    """[B, T]: of each token; 0 beyond the end"""
    lengths: tf.Tensor
    """[B], int32: the numbers of tokens"""
    is_truncated: tf.Tensor
    """[B], boolean: whether a sentence or its translation was cut"""


class Attention(NamedTuple):
    """What every token of a sentence and of its translation attended to; each row of weights adds up to 1."""

    source_tokens: list[str]
    """S pieces, including the end token"""
    target_tokens: list[str]
    """T pieces, including the end token if there is one"""
    weights: np.ndarray
    """[layers, heads, T, S], float32: what target tokens attended to in the source"""
    encoder: np.ndarray
    """[layers, heads, S, S]: what source tokens attended to in the source"""
    decoder: np.ndarray
    """[layers, heads, T, R]: which of the tokens read so far the decoder attended to for each target token"""
    read_tokens: list[str]
    """R pieces that the decoder read: the start token, the language if the model has several, and target tokens"""


class Aligned(NamedTuple):
    """Translations of B sentences, with what their tokens attended to."""

    texts: tf.Tensor
    """[B], string"""
    source_tokens: tf.Tensor
    """[B, S], string: the pieces, including the end token; padding is empty"""
    target_tokens: tf.Tensor
    """[B, T], string, likewise"""
    attention: tf.Tensor
    """[B, T, S], float32: the mean over the heads of a layer; 0 where either token is padding"""
    is_truncated: tf.Tensor
    """[B], as in `Source`"""
    scores: Any = None
    """[B], float32: the log-probability divided by the length penalty; exports do not have it"""


class SearchSteps(NamedTuple):
    """Translations of B sentences, with what the model and the search had to choose from at each step."""

    texts: tf.Tensor
    """[B], string"""
    target_ids: tf.Tensor
    """[B, T], int32: the tokens, with the end token if there is one, then padding"""
    target_tokens: tf.Tensor
    """[B, T], string: their pieces; padding is empty"""
    next_ids: tf.Tensor
    """[B, T, N], int32: the N tokens that the model finds most probable at each step, the best first"""
    next_tokens: tf.Tensor
    """[B, T, N], string: their pieces"""
    next_log_probabilities: tf.Tensor
    """[B, T, N], float32"""
    considered: Considered
    """the candidates of all steps of the search"""
    considered_tokens: tf.Tensor
    """[B, steps, C], string: the pieces of their tokens"""
    is_truncated: tf.Tensor
    """[B], as in `Source`"""


class AllAttention(NamedTuple):
    """Translations of B sentences, with the weights of all attention; L layers, H heads; 0 where a row is padding."""

    texts: tf.Tensor
    """[B], string"""
    source_tokens: tf.Tensor
    """[B, S], string: the pieces, with the end token; padding is empty"""
    target_tokens: tf.Tensor
    """[B, T], string, likewise"""
    read_tokens: tf.Tensor
    """[B, R], string: what the decoder read, the start token first, then the language where the model has several"""
    encoder: tf.Tensor
    """[B, L, H, S, S], float32: of the source to itself"""
    decoder: tf.Tensor
    """[B, L, H, T, R], float32: of each target token to what the decoder had read"""
    cross: tf.Tensor
    """[B, L, H, T, S], float32: of each target token to the source"""
    is_truncated: tf.Tensor
    """[B], as in `Source`"""


def rows_of(
    found: Translations, sentences: list[str], numbers: Sequence[int] | None = None
) -> list[list[tuple[str, float]]]:
    """Return translations [B, N] as Python strings with their scores; a line feed in one becomes a space.

    Warnings name the sentences that were cut, by `numbers` if these are given.
    """
    warn_of_cut(sentences, _cut(found.is_truncated), numbers)
    texts = [[_line(text) for text in row] for row in found.texts.numpy()]
    return [list(zip(*row, strict=True)) for row in zip(texts, found.scores.numpy().tolist(), strict=True)]


def aligned_of(found: Aligned, sentences: list[str], numbers: Sequence[int] | None = None) -> list[AlignedString]:
    """Return aligned translations [B] as Python strings; warnings are as in `rows_of`."""
    warn_of_cut(sentences, _cut(found.is_truncated), numbers)
    rows = []
    columns = (found.texts, found.source_tokens, found.target_tokens, found.attention)
    for text, *sides, attention in zip(*(column.numpy() for column in columns), strict=True):
        source, target = ([piece.decode() for piece in pieces if piece] for pieces in sides)
        rows.append(AlignedString(_line(text), source, target, attention[: len(target), : len(source)]))
    return rows


def token_scores_of(
    found: Scored, pairs: list[tuple[str, str]], numbers: Sequence[int] | None = None
) -> list[list[float]]:
    """Return for every pair the log-probabilities of its target's tokens; warnings are as in `rows_of`."""
    warn_of_cut([f"{source}\t{target}" for source, target in pairs], _cut(found.is_truncated), numbers)
    rows = zip(found.token_log_probabilities.numpy(), found.lengths.numpy(), strict=True)
    return [row[:length].tolist() for row, length in rows]


def _line(text: bytes) -> str:
    return text.decode().replace("\n", " ")


def terms_as_text(terms: Sequence[Sequence[str]], sentences: Sequence[str]) -> tf.Tensor:
    """Return the terms of each sentence, with tabs between them, as `TensorTranslator.search` takes them.

    Raises:
        InputError: not as many lists of terms as sentences; a term that is empty or has a tab.
    """
    if len(terms) != len(sentences):
        raise InputError(
            f"give terms for each sentence, [] for none. Received: {len(terms)} for {len(sentences)} sentences"
        )
    for row in terms:
        if isinstance(row, str):  # a sequence of letters
            raise InputError(f"give the terms of a sentence as a list. Received: {row!r}")
    for term in {term for row in terms for term in row}:
        if not term.strip() or "\t" in term:
            raise InputError(f"a term must have text, and no tab. Received: {term!r}")
    # Composed, as a tokenizer would: a term that it changes is refused.
    return text_of([unicodedata.normalize("NFC", "\t".join(row)) for row in terms])


def check_found(scores: tf.Tensor, terms: Terms) -> None:
    """Raise InputError if nothing was found for a sentence, which only terms can bring about."""
    if terms is None:
        return
    for row, best in zip(terms, scores.numpy(), strict=True):
        if best == -np.inf:
            more = f", and {len(row) - MAX_LISTED} more" if len(row) > MAX_LISTED else ""
            raise InputError(
                "no translation can contain all terms: the sentence has no text, the vocabulary cannot write one of "
                "them (or its normalisation makes another text of it, as `m2` of `m²`), or max_length or the positions "
                "of the model leave no room for them: leave terms out. "
                f"Received: {', '.join(map(repr, row[:MAX_LISTED]))}{more}"
            )


@contextlib.contextmanager
def failures_told() -> Iterator[None]:
    """Raise an InputError in place of an error of TensorFlow, such as lack of memory."""
    try:
        yield
    except tf.errors.OpError as error:
        raise InputError(error.message) from None


def _cut(is_truncated: tf.Tensor) -> list[int]:
    return tf.where(is_truncated).numpy()[:, 0].tolist()

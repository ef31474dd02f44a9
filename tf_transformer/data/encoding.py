"""Encoding pairs of sentences as pairs of token sequences, and counting the pairs that are left out."""

import itertools
from collections.abc import Iterable
from typing import NamedTuple, Protocol

import numpy as np

from tf_transformer.config.special_tokens import END
from tf_transformer.data.pairs import Pairs
from tf_transformer.data.token_pairs import TokenPairs

CHUNK = 4096
"""The number of sentences tokenised at once. Their ids are Python lists, which take several times the memory."""


class Encoder(Protocol):
    """An object that returns the ids of text: a `Vocabulary`, or a `Tokenizer`."""

    vocab_size: int

    def encode(self, sentences: list[str], dropout: float = 0.0, seed: int = 0) -> list[list[int]]:
        """Return the ids of sentences, without start and end."""


class LengthLimits(NamedTuple):
    """The limits that pairs must keep."""

    max_length: int
    """most tokens of a side, including the end token and that of the language"""
    max_length_ratio: float | None = None
    """highest ratio of the longer side to the shorter one, without these tokens"""


class EncodedPairs(NamedTuple):
    """Encoded pairs, and what was left out."""

    ids: np.ndarray
    """[tokens], uint16 or uint32: of each pair the source, then the target"""
    lengths: np.ndarray
    """[N, 2], uint16"""
    keep: np.ndarray
    """[pairs that were given], boolean: whether each is kept"""
    dropped: dict[str, int]
    """number of pairs that are not kept, by the reason: `empty`, `long` or `ratio`"""


def encode(
    pairs: Pairs,
    source_tokenizer: Encoder,
    target_tokenizer: Encoder,
    max_length: int,
    max_length_ratio: float | None = None,
    language_tokens: np.ndarray | None = None,
) -> TokenPairs:
    """Tokenise pairs, and add the end token after each side and, if given, the token of its language before it.

    A pair is dropped and counted if it has a side without a token, as a blank one has none, a side of more than
    `max_length` tokens (including the end token and that of the language), or a longer side of more than
    `max_length_ratio` times the tokens of its shorter one (without these tokens). No sentence is cut.

    Args:
        pairs: text without lone surrogates.
        source_tokenizer: a `Vocabulary` or a `Tokenizer`.
        target_tokenizer: a `Vocabulary` or a `Tokenizer`.
        max_length: the most tokens of a side, at most 65,535.
        max_length_ratio: the highest ratio; None means no limit.
        language_tokens: the tokens of the languages of source and target of each pair, [N, 2]; None adds none.
    """
    encoded = encode_packed(
        pairs, (source_tokenizer, target_tokenizer), LengthLimits(max_length, max_length_ratio), language_tokens
    )
    facts = {"keep": encoded.keep, "dropped": encoded.dropped, "has_languages": language_tokens is not None}
    return TokenPairs.of(encoded.ids, encoded.lengths, **facts)


def encode_packed(
    pairs: Pairs, encoders: tuple[Encoder, Encoder], limits: LengthLimits, language_tokens: np.ndarray | None = None
) -> EncodedPairs:
    """Encode pairs as `encode` does, and return the arrays."""
    kind = dtype_of(*encoders)
    parts = [
        _encode(
            part, encoders, limits, None if language_tokens is None else language_tokens[start : start + CHUNK], kind
        )
        for start in range(0, max(1, len(pairs.sources)), CHUNK)
        for part in [Pairs(*(side[start : start + CHUNK] for side in pairs))]
    ]
    ids, lengths, keep = (np.concatenate(arrays) for arrays in zip(*(part[:3] for part in parts), strict=True))
    return EncodedPairs(ids, lengths, keep, {why: sum(part.dropped[why] for part in parts) for why in parts[0].dropped})


def dtype_of(*encoders: Encoder) -> np.dtype:
    """Return the type of arrays that hold the ids of vocabularies."""
    return np.dtype(np.uint16 if max(encoder.vocab_size for encoder in encoders) <= 2**16 else np.uint32)


def _encode(
    pairs: Pairs,
    encoders: tuple[Encoder, Encoder],
    limits: LengthLimits,
    language_tokens: np.ndarray | None,
    kind: np.dtype,
) -> EncodedPairs:
    """Encode a few pairs."""
    sides = [encoder.encode(side) for encoder, side in zip(encoders, pairs, strict=True)]
    added = 1 if language_tokens is None else 2
    words = np.array([list(map(len, side)) for side in sides], np.int64).T.reshape(-1, 2)
    full = (words > 0).all(axis=1)
    short = (words + added <= limits.max_length).all(axis=1)
    most = np.inf if limits.max_length_ratio is None else limits.max_length_ratio
    alike = words.max(axis=1) <= np.maximum(words.min(axis=1), 1) * most
    keep = full & short & alike
    rows: Iterable[Iterable[int]]
    if language_tokens is None:
        rows = (row for pair in zip(*sides, strict=True) for ids in pair for row in (ids, (END,)))
        rows = _kept(rows, keep, 4)
    else:
        with_languages = zip(*sides, language_tokens.tolist(), strict=True)
        rows = (
            row
            for source, target, (of_source, of_target) in with_languages
            for row in ((of_source,), source, (END,), (of_target,), target, (END,))
        )
        rows = _kept(rows, keep, 6)
    lengths = (words + added)[keep]
    ids = np.fromiter(itertools.chain.from_iterable(rows), kind, count=int(lengths.sum()))
    dropped = {"empty": ~full, "long": full & ~short, "ratio": full & short & ~alike}
    return EncodedPairs(ids, lengths.astype(np.uint16), keep, {why: int(which.sum()) for why, which in dropped.items()})


def _kept(rows: Iterable[Iterable[int]], keep: np.ndarray, each: int) -> Iterable[Iterable[int]]:
    """Return the rows of the pairs that are kept. Each pair has `each` rows."""
    return rows if keep.all() else itertools.compress(rows, np.repeat(keep, each).tolist())


def draw(
    pairs: Pairs,
    encoders: tuple[Encoder, Encoder],
    ids: np.ndarray,
    lengths: np.ndarray,
    *,
    dropout: float,
    has_languages: bool,
    seed: tuple[int, ...],
    max_length: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Tokenise pairs with BPE-dropout (Provilkov et al. 2020), as a function of the seed.

    Args:
        pairs: the text.
        encoders: the BPEs of source and target.
        ids: the ids of the same pairs without dropout, as in `EncodedPairs`. The tokens of languages are taken from
            them, and so is a side that would be longer than `max_length`.
        lengths: the lengths of the same pairs without dropout, as in `EncodedPairs`.
        dropout: the share of merges that are left out.
        has_languages: whether each side begins with the token of its language.
        seed: numbers of at least 0.
        max_length: the most tokens of a side.

    Returns:
        Ids and lengths, as in `EncodedPairs`.
    """
    before = int(has_languages)
    rows = np.split(ids, np.cumsum(lengths.reshape(-1).astype(np.int64))[:-1])
    seeds = np.random.SeedSequence(seed).generate_state(2).tolist()
    for side, (encoder, text) in enumerate(zip(encoders, pairs, strict=True)):
        for i, cut in enumerate(encoder.encode(text, dropout, seeds[side])):
            plain = rows[2 * i + side]
            if before + len(cut) + 1 <= max_length:
                rows[2 * i + side] = np.array([*plain[:before], *cut, END], ids.dtype)
    return np.concatenate([ids[:0], *rows]), np.array(list(map(len, rows)), np.uint16).reshape(-1, 2)

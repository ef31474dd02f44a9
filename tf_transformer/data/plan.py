"""Putting pairs into batches of a bounded number of tokens."""

import numpy as np

NO_PAIR = -1
"""A row of padding in a plan."""
MIXED = 4
"""The range of source lengths within which pairs are mixed if every epoch has the same pairs. With a narrower range,
the same pairs would share a batch again and again."""


def plan(
    source_lengths: np.ndarray,
    target_lengths: np.ndarray,
    batch_tokens: int,
    *,
    multiple_of: int = 1,
    rng: np.random.Generator | None = None,
    mixed: int = MIXED,
) -> list[np.ndarray]:
    """Put every pair into exactly one batch, and pairs of similar lengths together.

    Args:
        source_lengths: tokens of the sources, [N].
        target_lengths: tokens of the targets, [N].
        batch_tokens: the most source tokens, and the most target tokens, of a batch, padding included (paper 5.1).
            Rows of `NO_PAIR` may exceed it.
        multiple_of: every batch has a multiple of this number of rows, such as that of replicas. Rows of `NO_PAIR` fill
            a batch up. The pairs of a batch do not depend on it.
        rng: shuffles pairs of similar lengths, and the batches. None keeps the order of lengths.
        mixed: the range of source lengths, in tokens, that count as similar.

    Returns:
        The indices of the pairs of each batch.

    Raises:
        ValueError: a pair is longer than `batch_tokens`.
    """
    longest = np.maximum(source_lengths, target_lengths)
    if len(longest) and longest.max() > batch_tokens:
        raise ValueError(f"batch_tokens must hold the longest pair. Received: {batch_tokens=}, {longest.max()} tokens")
    ties = np.arange(len(longest)) if rng is None else rng.random(len(longest))
    bands = _bands(target_lengths, round(2 * (longest.sum() / batch_tokens) ** 0.5))
    # Source lengths rise in one band and fall in the next, so that a batch with pairs of two bands is narrow too.
    steps = np.where(bands % 2 == 0, 1, -1) * (source_lengths // mixed)
    order = np.lexsort((ties, steps, bands))
    batches = []
    start = 0
    while start < len(order):
        window = order[start : start + batch_tokens // longest[order[start]]]
        padded = np.maximum.accumulate(longest[window]) * np.arange(1, len(window) + 1)
        rows = int((padded <= batch_tokens).sum())
        batch = order[start : start + rows]
        start += rows
        batches.append(np.pad(batch, (0, -len(batch) % multiple_of), constant_values=NO_PAIR))
    if rng is not None:
        rng.shuffle(batches)
    return batches


def _bands(lengths: np.ndarray, count: int) -> np.ndarray:
    """Return the number of the band of each pair, where a band is a range of lengths.

    All bands have about the same number of tokens. With about twice as many bands as the square root of the number of
    batches, the batches are as narrow in targets as in sources.
    """
    tokens = np.bincount(lengths) * np.arange(lengths.max(initial=0) + 1)
    before = np.cumsum(tokens) - tokens
    band = before * max(1, count) // max(1, tokens.sum())
    return np.unique(band[lengths], return_inverse=True)[1].reshape(-1)

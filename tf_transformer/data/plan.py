"""Pairs into batches of a bounded number of tokens."""

import numpy as np

NO_PAIR = -1
"""A row of padding in a plan."""


def plan(
    source_lengths: np.ndarray,
    target_lengths: np.ndarray,
    batch_tokens: int,
    *,
    multiple_of: int = 1,
    rng: np.random.Generator | None = None,
) -> list[np.ndarray]:
    """Put every pair into exactly one batch, pairs of like lengths together.

    Args:
        source_lengths: tokens of the sources, [N].
        target_lengths: tokens of the targets, [N].
        batch_tokens: most source tokens, and most target tokens, of a batch, padding included (paper 5.1);
            rows of `NO_PAIR` may exceed it where the batch is shorter than `multiple_of`.
        multiple_of: number of rows that every batch is a multiple of (the replicas); rows of `NO_PAIR` fill it up.
            The pairs of a batch do not depend on it.
        rng: shuffles pairs of like lengths, and the batches; none keeps the order of lengths.

    Returns:
        The indices of the pairs of each batch.

    Raises:
        ValueError: a pair longer than batch_tokens.
    """
    longest = np.maximum(source_lengths, target_lengths)
    if len(longest) and longest.max() > batch_tokens:
        raise ValueError(f"batch_tokens must hold the longest pair. Received: {batch_tokens=}, {longest.max()} tokens")
    ties = np.arange(len(longest)) if rng is None else rng.random(len(longest))
    # Steps of four source tokens let pairs of one target length mix; narrower ones would repeat the same batches.
    order = np.lexsort((ties, source_lengths // 4, target_lengths))
    batches = []
    start = 0
    while start < len(order):
        window = order[start : start + batch_tokens // target_lengths[order[start]]]
        padded = np.maximum.accumulate(longest[window]) * np.arange(1, len(window) + 1)
        rows = int((padded <= batch_tokens).sum())
        batch = order[start : start + rows]
        start += rows
        batches.append(np.pad(batch, (0, -len(batch) % multiple_of), constant_values=NO_PAIR))
    if rng is not None:
        rng.shuffle(batches)
    return batches

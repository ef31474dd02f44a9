"""Token pairs to batches of a bounded number of tokens, in an order that is a function of (seed, epoch)."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import tensorflow as tf

from tf_transformer.data.encoding import TokenPairs
from tf_transformer.errors import InputError
from tf_transformer.tokenizers import PAD, START

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


class Batches:
    """The batches of a corpus, epoch by epoch; `dataset()` goes through those of the current epoch.

    Args:
        pairs: what to batch.
        batch_tokens: as in `plan`.
        multiple_of: as in `plan`.
        seed: of the order; none keeps the order of lengths (for validation).
        repeats: times an epoch that each pair is seen, [N]; 1 by default. A pair of 2.5 is seen twice in one epoch,
            three times in the next; of pairs of 0.5 one half is seen in one epoch, the other half in the next.
        draw: gives the pairs anew when an epoch starts, as `cut_by_chance` does; those are as many as `pairs`, cut
            otherwise. By default they stay as they are.

    Raises:
        InputError: an epoch without any pair, as `repeats` has it.
    """

    def __init__(
        self,
        pairs: TokenPairs,
        batch_tokens: int,
        *,
        multiple_of: int = 1,
        seed: int | None = None,
        repeats: np.ndarray | None = None,
        draw: Callable[[], TokenPairs] | None = None,
    ):
        self.draw = draw
        self.batch_tokens = batch_tokens
        self.multiple_of = multiple_of
        self.seed = seed
        self.repeats = repeats
        self._take(pairs)
        self._plan(epoch=0, skip=0)

    def start_epoch(self, epoch: int, skip: int = 0) -> None:
        """Turn to `epoch`, without its first `skip` batches.

        Where pairs are drawn, an epoch that is entered anew is another one: of the pairs after the skipped batches some
        were seen before, and others never are.
        """
        if self.draw is not None:
            self._take(self.draw())
        self._plan(epoch, skip)

    def _take(self, pairs: TokenPairs) -> None:
        self.pairs = pairs
        self.source_lengths = pairs.sources.row_lengths().numpy()
        self.target_lengths = pairs.targets.row_lengths().numpy()

    def _plan(self, epoch: int, skip: int) -> None:
        rng = None if self.seed is None else np.random.default_rng((self.seed, epoch))
        pairs = self._pairs_of(epoch)
        if not len(pairs) and self.repeats is not None:
            raise InputError(f"epoch {epoch + 1} has no pair: raise data.weights")
        batches = plan(
            self.source_lengths[pairs],
            self.target_lengths[pairs],
            self.batch_tokens,
            multiple_of=self.multiple_of,
            rng=rng,
        )
        if self.draw is not None:
            skip = min(skip, len(batches) - 1)  # what is drawn anew may be fewer batches
        self.epoch, self.skip, self.whole = epoch, skip, len(batches)
        self.consumed = skip
        self.rows = [np.where(rows == NO_PAIR, NO_PAIR, pairs[rows]) for rows in batches[skip:]]

    def _pairs_of(self, epoch: int) -> np.ndarray:
        """Return the pairs of an epoch, those that are seen several times several times."""
        if self.repeats is None:
            return np.arange(len(self.source_lengths))
        # Each pair has a phase of its own: the visits before the end of epoch e are floor((e + 1) * repeats + phase).
        phases = np.random.default_rng(self.seed).permutation(len(self.repeats)) / len(self.repeats)
        before, after = (np.floor(e * self.repeats + phases) for e in (epoch, epoch + 1))
        return np.repeat(np.arange(len(self.repeats)), (after - before).astype(int))

    def target_tokens(self, batch: int) -> int:
        """Return the target tokens, padding not counted, of a batch of the current epoch (after those skipped).

        The token of a language is given, not learned: it does not count.
        """
        rows = self.rows[batch][self.rows[batch] != NO_PAIR]
        return int(self.target_lengths[rows].sum()) - len(rows) * self.pairs.has_languages

    @property
    def padding(self) -> float:
        """The share of the positions of this epoch, source and target, that hold padding."""
        real = padded = 0
        for rows in self.rows:
            pairs = rows[rows != NO_PAIR]
            for lengths in (self.source_lengths[pairs], self.target_lengths[pairs]):
                real += lengths.sum()
                padded += lengths.max() * len(rows)
        return float(1 - real / padded) if padded else 0.0

    def dataset(self) -> tf.data.Dataset:
        """Return the batches `((source [B, S], target [B, T]), labels [B, T], weight [B])`.

        `target` starts with the start token, `labels` ends with the end token. Where pairs begin with the tokens of
        languages, that of the target follows the start token, and its label is padding: it is given. The weight of a
        pair is one over the target tokens of its whole batch, before the batch is split among replicas: a sum over
        tokens, weighted by it, is the mean over the tokens of the batch. Rows of padding weigh nothing.
        """

        def batches() -> Iterator[tuple[Any, ...]]:
            source_ids, target_ids = _Padded(self.pairs.sources), _Padded(self.pairs.targets)
            for rows in self.rows:
                labels = target_ids(rows)
                target = np.pad(labels[:, :-1], ((0, 0), (1, 0)), constant_values=START)
                if self.pairs.has_languages:
                    labels[:, 0] = PAD
                weight = (rows != NO_PAIR) / np.count_nonzero(labels)
                yield (source_ids(rows), target), labels, weight.astype(np.float32)

        ids, weight = tf.TensorSpec([None, None], tf.int32), tf.TensorSpec([None], tf.float32)
        dataset = tf.data.Dataset.from_generator(batches, output_signature=((ids, ids), ids, weight))
        # Several machines: each forms all batches and takes its rows.
        options = tf.data.Options()
        options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.DATA
        # There is nothing to tune, and an iterator may wait for the thread that does it, up to a minute.
        options.autotune.enabled = False
        return dataset.prefetch(4).with_options(options)


class _Padded:
    """Rows of token sequences [N, any] as an array."""

    def __init__(self, ids: tf.RaggedTensor):
        self.values = ids.flat_values.numpy()
        self.starts = ids.row_starts().numpy()
        self.lengths = ids.row_lengths().numpy()

    def __call__(self, rows: np.ndarray) -> np.ndarray:
        """Return the sequences [B, T] of rows [B], T the longest of them; `NO_PAIR` is a row of padding."""
        lengths = np.where(rows == NO_PAIR, 0, self.lengths[rows])
        columns = np.arange(lengths.max())
        places = np.minimum(self.starts[rows, None] + columns, len(self.values) - 1)
        return np.where(columns < lengths[:, None], self.values[places], PAD)

"""Token pairs to batches of a bounded number of tokens, in an order that is a function of (seed, epoch)."""

from collections.abc import Callable, Iterator

import numpy as np
import tensorflow as tf

from tf_transformer.data.encode import Sides, TokenPairs
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
        draw: gives the pairs of numbers [B] as `cut_by_chance` does, instead of `pairs`, which then say only how pairs
            are batched: what is drawn may exceed `batch_tokens`.
    """

    def __init__(
        self,
        pairs: TokenPairs,
        batch_tokens: int,
        *,
        multiple_of: int = 1,
        seed: int | None = None,
        repeats: np.ndarray | None = None,
        draw: Callable[[tf.Tensor], Sides] | None = None,
    ):
        self.pairs = pairs
        self.draw = draw or self._pairs
        self.batch_tokens = batch_tokens
        self.multiple_of = multiple_of
        self.seed = seed
        self.source_lengths = pairs.sources.row_lengths().numpy()
        self.target_lengths = pairs.targets.row_lengths().numpy()
        self.repeats = repeats
        self.start_epoch(0)

    def start_epoch(self, epoch: int, skip: int = 0) -> None:
        """Turn to `epoch`, without its first `skip` batches."""
        rng = None if self.seed is None else np.random.default_rng((self.seed, epoch))
        pairs = self._pairs_of(epoch)
        batches = plan(
            self.source_lengths[pairs],
            self.target_lengths[pairs],
            self.batch_tokens,
            multiple_of=self.multiple_of,
            rng=rng,
        )
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

    def _pairs(self, numbers: tf.Tensor) -> Sides:
        return Sides(tf.gather(self.pairs.sources, numbers), tf.gather(self.pairs.targets, numbers))

    def target_tokens(self, batch: int) -> int:
        """Return the target tokens, padding not counted, of a batch of the current epoch (after those skipped)."""
        rows = self.rows[batch]
        return int(self.target_lengths[rows[rows != NO_PAIR]].sum())

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

        `target` starts with the start token, `labels` ends with the end token. The weight of a pair is one over the
        target tokens of its whole batch, before the batch is split among replicas: a sum over tokens, weighted by
        it, is the mean over the tokens of the batch. Rows of padding weigh nothing.
        """

        def indices() -> Iterator[np.ndarray]:
            yield from self.rows

        def gather(rows: tf.Tensor) -> tuple[tuple[tf.Tensor, tf.Tensor], tf.Tensor, tf.Tensor]:
            real = rows != NO_PAIR
            pairs = self.draw(tf.where(real, rows, rows[0]))  # the first row is real
            source = tf.where(real[:, None], pairs.sources.to_tensor(PAD), PAD)
            labels = tf.where(real[:, None], pairs.targets.to_tensor(PAD), PAD)
            start = tf.fill([tf.shape(labels)[0], 1], START)
            target = tf.concat([start, labels[:, :-1]], axis=1)
            tokens = tf.math.count_nonzero(labels, dtype=tf.float32)
            return (source, target), labels, tf.cast(real, tf.float32) / tokens

        ids = tf.data.Dataset.from_generator(indices, output_signature=tf.TensorSpec([None], tf.int64))
        # Several machines: each forms all batches and takes its rows.
        options = tf.data.Options()
        options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.DATA
        # There is nothing to tune, and an iterator may wait for the thread that does it, up to a minute.
        options.autotune.enabled = False
        return ids.map(gather, num_parallel_calls=2).prefetch(4).with_options(options)

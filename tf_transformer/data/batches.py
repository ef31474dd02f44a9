"""Token pairs to batches of a bounded number of tokens, in an order that is a function of (seed, epoch)."""

import contextlib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from tf_transformer.config.special_tokens import PAD, START
from tf_transformer.data.epoch import Epoch, Planned
from tf_transformer.data.plan import MIXED, NO_PAIR, plan
from tf_transformer.data.token_pairs import TokenPairs
from tf_transformer.data.windows import Dropout, Window, windows_of
from tf_transformer.errors import InputError


class Place(NamedTuple):
    """Where training stands within its text."""

    epoch: int = 0
    """epochs finished"""
    window: int = 0
    """windows of the next epoch that were consumed"""
    batch: int = 0
    """batches of the next window that were consumed"""


class Batches:
    """The batches of a corpus, epoch by epoch; `dataset()` returns those of the current epoch.

    Batches are formed within windows of `WINDOW` pairs. Each window is planned while the one before it is trained on.

    Args:
        pairs: the pairs to batch.
        batch_tokens: as in `plan`.
        multiple_of: as in `plan`, for a strategy that splits whole batches into equal parts, and for plain `model.fit`
            on several replicas, where Keras adds up their parts of the first batch. `Trainer` needs none.
        seed: the seed of the order. None keeps the order of lengths, as for validation.
        weights: for each corpus, how often an epoch sees each of its pairs; by default once. A pair of weight 2.5 is
            seen twice in one epoch and three times in the next. Of the pairs of weight 0.5, one half is seen in one
            epoch and the other half in the next.
        dropout: tokenises the text anew in each epoch, as a function of (seed, epoch). By default the tokens stay.

    Raises:
        InputError: the first epoch has no pair because of `weights`, or a file is damaged.
    """

    def __init__(
        self,
        pairs: TokenPairs,
        batch_tokens: int,
        *,
        multiple_of: int = 1,
        seed: int | None = None,
        weights: Sequence[float] = (),
        dropout: Dropout | None = None,
    ):
        self.pairs = pairs
        self.batch_tokens = batch_tokens
        self.multiple_of = multiple_of
        self.seed = seed
        self.weights = np.array(weights)
        self.dropout = dropout
        self._damage: InputError | None = None
        self._planner = ThreadPoolExecutor(1, "planner")
        self.start_epoch(0)

    def start_epoch(self, epoch: int, window: int = 0, skip: int = 0) -> None:
        """Turn to `epoch`, without its first `window` windows and the first `skip` batches of the next window.

        Raises:
            InputError: the epoch has no pair, or a file is damaged.
        """
        windows = windows_of(self.pairs, self.seed, epoch)
        # If there are several windows, each has other pairs in every epoch, which need no further mixing.
        mixed = MIXED if len(windows) == 1 else 1

        def planned(number: int, blocks: np.ndarray) -> Planned:
            return self._plan(epoch, number, blocks, mixed)

        self._epoch = Epoch(epoch, windows, planned, self._planner, window, skip)
        self.consumed = 0
        """batches since the epoch was entered"""
        if self.weights.size and not self._epoch.known:
            raise InputError(f"epoch {epoch + 1} has no pair: raise data.weights")

    @property
    def length(self) -> int:
        """The number of batches of the current epoch from where it was entered, estimated if it has several windows."""
        return self._epoch.length

    def is_last(self, batch: int) -> bool:
        """Say whether a batch of the current epoch is its last. Batches are counted from where it was entered."""
        return self._epoch.is_last(batch)

    @property
    def place(self) -> Place:
        """Where training stands after `consumed` batches. The end of an epoch is the beginning of the next one."""
        if self.is_last(self.consumed - 1):
            return Place(self._epoch.number + 1)
        return Place(self._epoch.number, *self._epoch.place(self.consumed))

    def target_tokens(self, batch: int) -> int:
        """Return the number of target tokens of a batch of the current epoch, which is numbered as in `is_last`.

        Padding does not count, and neither does the token of a language, which is given and not learned.
        """
        return self._epoch.target_tokens(batch)

    @property
    def windows(self) -> int:
        """The number of windows of the current epoch."""
        return len(self._epoch.windows)

    @property
    def padding(self) -> float:
        """The share of padding among the source and target positions of the last window that was planned."""
        window, batches = self._epoch.latest
        real = padded = 0
        for rows in batches:
            for lengths in window.lengths[rows[rows != NO_PAIR]].T.astype(np.int64):
                real += lengths.sum()
                padded += lengths.max() * len(rows)
        return float(1 - real / padded) if padded else 0.0

    def rows(self) -> Iterator[np.ndarray]:
        """Yield the batches of the current epoch, from where it was entered, as `plan` returns them for a window."""
        for _, rows in self._epoch:
            yield rows

    @contextlib.contextmanager
    def naming_damage(self) -> Iterator[None]:
        """Raise InputError if TensorFlow fails because a file of the text is damaged."""
        try:
            yield
        except tf.errors.OpError:
            if self._damage is None:
                raise
            raise self._damage from None

    def dataset(self, part: int = 0, parts: int = 1, pieces: int = 1, *, by_place: bool = False) -> tf.data.Dataset:
        """Return the batches `((source [B, S], target [B, T]), labels [B, T], weight [B])`.

        `target` starts with the start token, and `labels` ends with the end token. If pairs begin with the tokens of
        languages, that of the target follows the start token, and its label is padding because it is given. The weight
        of a pair is one over the number of target tokens of its whole batch, before the batch is split among replicas.
        A sum over tokens with these weights is thus the mean over the tokens of the batch. Rows of padding have weight
        0.

        Args:
            part: the number of the part of each batch to return. Only the pairs of this part are read.
            parts: the number of parts that the rows are split into, equal but for one row.
            pieces: the number of successive elements in which the part is returned. Each has at least one row, which
                may be padding.
            by_place: whether to order the rows by their places in the corpus before they are split. The same part of
                successive batches then lies close together, and each of several machines reads little besides its own.
        """

        def elements() -> Iterator[tuple[Any, ...]]:
            try:
                yield from whole()
            except InputError as error:  # TensorFlow would hide it in an error of its own
                self._damage = error
                raise

        def whole() -> Iterator[tuple[Any, ...]]:
            epoch = self._epoch  # `start_epoch` may be called before all elements are taken
            for window, rows in epoch:
                rows = rows[rows != NO_PAIR]
                if by_place:
                    rows = np.sort(rows)
                lengths = window.lengths[rows].astype(np.int64)
                given = int(window.has_languages)
                weight = np.float32(1 / (lengths[:, 1].sum() - given * len(rows)))
                wanted = max(len(rows) + -len(rows) % self.multiple_of, parts * pieces)
                rows = np.pad(rows, (0, wanted - len(rows)), constant_values=NO_PAIR)
                for own in np.array_split(rows, parts * pieces)[part * pieces : (part + 1) * pieces]:
                    source, labels = (window.padded(own, side, int(lengths[:, side].max())) for side in (0, 1))
                    target = np.pad(labels[:, :-1], ((0, 0), (1, 0)), constant_values=START)
                    if window.has_languages:
                        labels[:, 0] = PAD
                    yield (source, target), labels, np.where(own == NO_PAIR, np.float32(0), weight)

        ids, weight = tf.TensorSpec([None, None], tf.int32), tf.TensorSpec([None], tf.float32)
        dataset = tf.data.Dataset.from_generator(elements, output_signature=((ids, ids), ids, weight))
        if self.seed is None:  # every epoch is the same
            dataset = dataset.apply(tf.data.experimental.assert_cardinality(self.length * pieces))
        options = tf.data.Options()
        # If several machines do not choose parts, each forms all batches and takes its rows.
        options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.DATA
        # There is nothing to tune, and an iterator may wait up to a minute for the tuning thread.
        options.autotune.enabled = False
        return dataset.prefetch(4).with_options(options)

    def _plan(self, epoch: int, number: int, blocks: np.ndarray, mixed: int) -> Planned:
        """Return a window of an epoch with its batches."""
        window = Window(self.pairs, blocks, self.dropout, (self.seed or 0, epoch))
        rng = None if self.seed is None else np.random.default_rng((self.seed, epoch, number))
        pairs = self._pairs_of(window, epoch)
        lengths = window.lengths[pairs].astype(np.int64)
        batches = plan(
            lengths[:, 0], lengths[:, 1], self.batch_tokens, multiple_of=self.multiple_of, rng=rng, mixed=mixed
        )
        return Planned(window, [np.where(rows == NO_PAIR, NO_PAIR, pairs[rows]) for rows in batches])

    def _pairs_of(self, window: Window, epoch: int) -> np.ndarray:
        """Return the pairs of a window, each as often as this epoch sees it."""
        if not self.weights.size:
            return np.arange(len(window))
        # Each pair has a phase that does not depend on the window of its block. By the end of epoch e, it has been seen
        # floor((e + 1) * weight + phase) times.
        phases = [
            np.random.default_rng((self.seed or 0, int(block))).permutation(size) / size
            for block, size in zip(window.blocks, self.pairs.sizes[window.blocks], strict=True)
        ]
        repeats, phase = self.weights[window.corpora], np.concatenate([np.empty(0), *phases])
        before, after = (np.floor(e * repeats + phase) for e in (epoch, epoch + 1))
        return np.repeat(np.arange(len(window)), (after - before).astype(int))

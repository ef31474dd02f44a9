"""Callbacks that save checkpoints, and choose which to keep."""

import contextlib
import logging
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

import keras
import numpy as np

from tf_transformer.data import Batches
from tf_transformer.runs import checkpoints
from tf_transformer.training.callbacks.order import diverged, updates
from tf_transformer.training.strategy import workers

SIGNALS = (signal.SIGINT, signal.SIGTERM)
SUMS = "sums"
"""What the metrics have summed up in an unfinished epoch, in the state of a checkpoint."""

log = logging.getLogger(__name__)


class SaveCheckpoints(keras.callbacks.Callback):
    """Saves a checkpoint every `every` steps and at the end of every epoch, and keeps the best and the last ones.

    Args:
        folder: the folder of the checkpoints.
        variables: what to save, by name.
        batches: the batches, whose epoch and place are saved too.
        every: steps between checkpoints within an epoch.
        keep_last: latest checkpoints to keep.
        keep_best: best checkpoints to keep besides.
        best_by: "loss" or "bleu" of the validation.
        run: the id of the run, which is saved too, if it has one.
    """

    def __init__(
        self,
        folder: str | Path,
        variables: dict[str, Any],
        batches: Batches,
        every: int = 1000,
        keep_last: int = 5,
        keep_best: int = 1,
        best_by: str = "loss",
        run: str | None = None,
    ):
        super().__init__()
        self.folder = Path(folder)
        self.variables = variables
        self.batches = batches
        self.every = every
        self.keep_last = keep_last
        self.keep_best = keep_best
        self.best_by = best_by
        self.run = run
        self.saved_step = -1
        self.previous: int | None = None

    def on_train_begin(self, logs: Any = None) -> None:
        """Remember where training starts: at a checkpoint, unless it is the very beginning."""
        self.saved_step = updates(self.model)

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        """Save within an epoch; its end is saved after validation."""
        step = updates(self.model)
        if step % self.every == 0 and step > self.saved_step and not self.model.stop_training:
            self.save_within()

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Save with the metrics of the epoch; the place is the start of the next epoch, if this one is complete."""
        self.save(logs)

    def save_within(self) -> None:
        """Save within an epoch, with what its metrics have summed up so far.

        On several machines only the chief saves, and reading their common sums would wait for the others.
        """
        several = workers(self.model.distribute_strategy)
        sums = [] if several else [float(variable.numpy()) for variable in self.model.metrics_variables]
        self.save({SUMS: sums})

    def save(self, logs: dict[str, Any] | None = None) -> None:
        """Save now, and keep the logs with the checkpoint."""
        step = updates(self.model)
        if step != self.saved_step:
            self.previous = self.saved_step or None
        state = {
            **self.batches.place._asdict(),
            "previous": self.previous,
            **({"run": self.run} if self.run else {}),
            **(logs or {}),
        }
        # The loss of a step is of the weights before its update. What the update did to them shows only here.
        if not all(np.isfinite(variable.numpy()).all() for variable in self.variables.values()):
            raise diverged(step, "a weight is not a finite number")
        checkpoints.save(self.folder, step, self.variables, state)
        self.saved_step = step
        known = checkpoints.all_of(self.folder)
        keep = {*known[-self.keep_last :], *checkpoints.best(known, self.best_by)[: self.keep_best]}
        for old in known:
            if old not in keep:
                old.unlink()


class GoOnMeasuring(keras.callbacks.Callback):
    """Lets the means of the epoch in which training resumes go on from where they were.

    It must come before the callbacks that read the logs.

    Args:
        sums: what `SaveCheckpoints` saved within that epoch of the metrics' variables; [] at the beginning of an epoch.
    """

    def __init__(self, sums: Sequence[float]):
        super().__init__()
        self.sums = sums

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        """Add the sums after the first batch: only then has Keras made the variables."""
        variables = self.model.metrics_variables
        if len(self.sums) == len(variables):
            for variable, before in zip(variables, self.sums, strict=True):
                variable.assign(variable.numpy() + before)
            logs.update({name: float(value) for name, value in self.model.get_metrics_result().items()})
        self.sums = ()


class SaveOnSignal(keras.callbacks.Callback):
    """Saves a checkpoint and ends training on Ctrl-C or SIGTERM.

    Within `catching()`, a signal takes effect after the current step or, during validation, at the end of the epoch.
    A second signal ends the process at once, and so does the first before there is an update to save, because the first
    update waits until TensorFlow has built its graph. All machines of a cluster leave after the same step.

    Args:
        saver: the callback that saves, which must come before this one; None on a machine that does not write.
        total: returns the sums of its arguments over all machines; by default there is only one.
        meet: waits until all machines are about to leave.

    Raises:
        KeyboardInterrupt: after Ctrl-C.
        SystemExit: with code 143, after SIGTERM.
    """

    def __init__(
        self,
        saver: SaveCheckpoints | None,
        total: Callable[..., list[float]] = lambda *numbers: [*numbers],
        meet: Callable[[], None] = lambda: None,
    ):
        super().__init__()
        self.saver = saver
        self.total = total
        self.meet = meet
        self.received: int | None = None
        self.is_first_update = False
        """whether the first update of this process is being made"""

    @contextlib.contextmanager
    def catching(self) -> Iterator[None]:
        """Catch the signals. Python allows this in the main thread only; in others, this does nothing."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.signal(number, self._receive) for number in SIGNALS}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _receive(self, number: int, frame: FrameType | None) -> None:
        if self.received is not None:
            self._end()
        self.received = number
        if self.is_first_update:
            log.info("stopped before the first update; the same command goes on")
            self._end()

    def on_train_begin(self, logs: Any = None) -> None:
        """Note that no update is made yet. A cluster waits for its first one: its machines must leave together."""
        self.is_first_update = not workers(self.model.distribute_strategy)

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        """Save and leave; the last batch of an epoch is left to `on_epoch_end`, which knows the validation."""
        self.is_first_update = False
        if not self.model.stop_training and self._must_leave():
            if self.saver is not None and self.saver.saved_step != updates(self.model):
                self.saver.save_within()
            self._leave()

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Leave if asked to; the epoch is already saved."""
        if self._must_leave():
            self._leave()

    def _must_leave(self) -> bool:
        """Return whether any machine has received a signal. If so, this one acts as if it had received it, too."""
        totals = self.total(*(float(self.received == number) for number in SIGNALS))
        for number, total in zip(SIGNALS, totals, strict=True):
            if total:
                self.received = number
        # A signal after the sum waits for the next one, because the other machines do not know of it.
        return any(totals)

    def _leave(self) -> None:
        """Say where training stopped, wait for the other machines, and end."""
        # Read the step before they meet: afterwards that fails if another machine ends first.
        log.info("stopped at step %d; the same command goes on", updates(self.model))
        self.meet()
        self._end()

    def _end(self) -> None:
        if self.received == signal.SIGINT:
            raise KeyboardInterrupt
        raise SystemExit(128 + signal.SIGTERM)

"""Callbacks that show and record the progress of training."""

import csv
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TextIO

import keras

from tf_transformer.data import Batches
from tf_transformer.progress import IN_LOG
from tf_transformer.runs.history import read_history
from tf_transformer.storage.atomic import atomic_write
from tf_transformer.training.callbacks.order import updates


class Throughput(keras.callbacks.Callback):
    """Adds `tokens_per_second` (real target tokens, padding and validation not counted) and `learning_rate` to logs."""

    def __init__(self, batches: Batches):
        super().__init__()
        self.batches = batches

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        """Start the clock."""
        self.start = time.perf_counter()
        self.tokens = 0

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        """Count the batch."""
        self.tokens += self.batches.target_tokens(batch)
        self.measured = {
            "tokens_per_second": round(self.tokens / (time.perf_counter() - self.start)),
            "learning_rate": float(self.model.optimizer.learning_rate),
        }
        logs.update(self.measured)

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Add the last of both to the logs of the epoch."""
        logs.update(self.measured)


class History(keras.callbacks.Callback):
    """Writes a row of metrics for every training step, and one for every validation.

    Losses, accuracy and perplexity are means since the epoch began, or since the last validation within it. Seconds
    count all training so far, and the learning rate is that of the next update. On several devices, the row of a step
    has the mean over the devices, whatever their numbers of tokens; the row of a validation is exact. Rows after the
    step that training resumes from are dropped first.

    Args:
        path: the path of the .csv file.
        resumed_step: updates made so far.
        batches: the batches whose epoch a row is of.
    """

    COLUMNS = (
        *("epoch", "step", "loss", "accuracy", "perplexity", "learning_rate", "tokens_per_second", "seconds"),
        *("val_loss", "val_accuracy", "val_perplexity", "val_bleu"),
    )

    def __init__(self, path: Path, resumed_step: int, batches: Batches):
        super().__init__()
        self.path = path
        self.batches = batches
        self.resumed_step = resumed_step
        self.file: TextIO

    def on_train_begin(self, logs: Any = None) -> None:
        """Write the rows that stay to a new file, rename it, and start the clock."""
        kept = [row for row in read_history(self.path) if int(row["step"]) <= self.resumed_step]
        self.start = time.perf_counter() - (float(kept[-1]["seconds"]) if kept else 0.0)
        with atomic_write(self.path) as beside, beside.open("w", newline="") as file:
            writer = csv.DictWriter(file, self.COLUMNS)
            writer.writeheader()
            writer.writerows(kept)
        # Line-buffered, so that every row is on disk before its checkpoint.
        self.file = self.path.open("a", newline="", buffering=1)

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        """Remember which epoch of the text it is."""
        self.epoch = self.batches.place.epoch + 1

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        """Write a row."""
        self._write(logs)

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Write the row with validation."""
        self._write(logs)

    def on_train_end(self, logs: Any = None) -> None:
        """Close the file."""
        self.file.close()

    def _write(self, logs: dict[str, Any]) -> None:
        row = {
            "epoch": self.epoch,
            "step": updates(self.model),
            # A resumed run decides by the validation metrics, so they are written in full.
            **{
                name: repr(float(value)) if name.startswith("val_") else f"{value:.6g}"
                for name, value in logs.items()
                if name in self.COLUMNS
            },
            "seconds": f"{time.perf_counter() - self.start:.2f}",
        }
        csv.DictWriter(self.file, self.COLUMNS).writerow(row)


class TensorBoard(keras.callbacks.TensorBoard):
    """Keras's callback, which would count the batches of a resumed run from 1; this one counts all updates."""

    def on_train_begin(self, logs: Any = None) -> None:
        """Count from the updates made so far."""
        super().on_train_begin(logs)
        self._global_train_batch = updates(self.model)


class ProgressLogger(keras.callbacks.ProgbarLogger):
    """Keras's progress bar with the number of steps of each epoch.

    Without a terminal, it prints a line every minute and one at the end of an epoch.

    Args:
        batches: the batches that `fit` trains on.
        max_steps: updates in all.
        validate_every: updates between validations within an epoch; 0 has none.
    """

    def __init__(self, batches: Batches, max_steps: int, validate_every: int = 0):
        super().__init__()
        self.batches = batches
        self.max_steps = max_steps
        self.validate_every = validate_every
        self.times: list[float] = []
        """when each step of the epoch ended; the first step, which may include tracing, is not timed"""

    def set_params(self, params: dict[str, Any]) -> None:
        """Choose between bar and line."""
        self.epochs = 1  # Keras would print "Epoch 1/N" with an N that is only a bound.
        self.verbose = 1 if sys.stdout.isatty() else 2

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        """Begin a bar, and print how far training is."""
        step = updates(self.model)
        self.target = min(self.batches.length, self.max_steps - step)
        if self.validate_every:
            self.target = min(self.target, self.validate_every - step % self.validate_every)
        left = time_left(self.times, self.max_steps - step)
        print(f"epoch {self.batches.place.epoch + 1}, step {step:,} of {self.max_steps:,}{left}", flush=True)
        self.times.clear()
        self.told = time.perf_counter()
        super().on_epoch_begin(epoch, logs)

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        """Read the clock, and print a line if a minute has passed."""
        now = time.perf_counter()
        self.times.append(now)
        if batch >= self.target:  # the length of an epoch of several windows is an estimate
            self.target = batch + 1
            if self.progbar is not None:
                self.progbar.target = self.target
        if self.verbose == 2 and now - self.told >= IN_LOG:
            self.told = now
            step = updates(self.model)
            left = time_left(self.times, self.max_steps - step)
            print(
                f"step {step:,} of {self.max_steps:,}, loss {logs['loss']:.4g}, perplexity {logs['perplexity']:.4g}, "
                f"{logs['tokens_per_second']:,} tokens/s{left}",
                flush=True,
            )
        super().on_train_batch_end(batch, logs)


def time_left(times: Sequence[float], steps: int) -> str:
    """Return how long the remaining steps will take, in words after a comma; "" if that is not known.

    Args:
        times: when earlier steps ended, in seconds; the duration of the first one is unknown.
        steps: the number of steps that are left.
    """
    if len(times) < 2:
        return ""
    return f", about {_duration((times[-1] - times[0]) / (len(times) - 1) * steps)} left"


def _duration(seconds: float) -> str:
    minutes = round(seconds / 60)
    return f"{minutes // 60} h {minutes % 60} min" if minutes >= 60 else f"{minutes} min" if minutes else "1 min"

"""What happens between the steps of `model.fit`."""

import csv
import math
import shutil
import sys
import time
from pathlib import Path
from typing import Any

import keras
import numpy as np

from tf_transformer import checkpoints
from tf_transformer.data import Batches
from tf_transformer.errors import InputError
from tf_transformer.run_directory import best


def updates(model: keras.Model) -> int:
    """Return the number of optimizer updates so far."""
    return int(model.optimizer.iterations.numpy())


class EpochOrder(keras.callbacks.Callback):
    """Turns `batches` to each epoch as it begins, and ends the epoch after its last batch.

    It goes before other callbacks that stop training.

    Keras would end an epoch by asking for one batch too many, and the step that then fails has already counted
    itself in `optimizer.iterations` and moved the dropout seeds on.

    Args:
        batches: whose dataset is being fitted.
        max_steps: updates in all, those before a resume included; no limit by default.
        skip: batches of the first epoch that were consumed before a resume.
    """

    def __init__(self, batches: Batches, max_steps: int | None = None, skip: int = 0):
        super().__init__()
        self.batches = batches
        self.max_steps = max_steps
        self.skip = skip
        self.ended = False

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        """Shuffle for this epoch."""
        limit = None if self.max_steps is None else self.max_steps - updates(self.model)
        self.batches.start_epoch(epoch, skip=self.skip, limit=limit)
        self.skip = 0

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        """Leave the loop over batches after the last one."""
        if batch + 1 == len(self.batches.rows) and not self.model.stop_training:
            self.model.stop_training = self.ended = True

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Go on with the next epoch, if there is one and nobody else has asked to stop."""
        if self.ended:
            self.model.stop_training = self.max_steps is not None and updates(self.model) >= self.max_steps
            self.ended = False


class StopOnNaN(keras.callbacks.Callback):
    """Raises InputError, with the step named, as soon as the loss is not a finite number."""

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        """Look at the running loss, which stays NaN once it is."""
        if not math.isfinite(logs["loss"]):
            raise diverged(updates(self.model), f"the loss is {logs['loss']}")


def diverged(step: int, what: str) -> InputError:
    """Return the error for training that has gone astray at a step."""
    return InputError(
        f"{what} at step {step}: training stopped, and the checkpoints before that step are kept. "
        "Lower training.learning_rate_factor or raise training.warmup_steps"
    )


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
        self.speed = self.tokens / (time.perf_counter() - self.start)
        logs["tokens_per_second"] = round(self.speed)

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Add both to the logs of the epoch."""
        logs["tokens_per_second"] = round(self.speed)
        logs["learning_rate"] = float(self.model.optimizer.learning_rate)


class SaveCheckpoints(keras.callbacks.Callback):
    """Saves at the end of every epoch and every so many steps, and keeps the best and the last few.

    Args:
        folder: of the checkpoints.
        variables: what to save, by name.
        batches: whose epoch and place are saved too.
        every: steps between checkpoints within an epoch.
        keep_last: latest checkpoints to keep, besides the one of least validation loss.
    """

    def __init__(self, folder: Path, variables: dict[str, Any], batches: Batches, every: int, keep_last: int):
        super().__init__()
        self.folder = folder
        self.variables = variables
        self.batches = batches
        self.every = every
        self.keep_last = keep_last

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        """Save within an epoch; its end is saved after validation."""
        step = updates(self.model)
        if step % self.every == 0 and batch + 1 < len(self.batches.rows):
            self._save(step, {"epoch": self.batches.epoch, "batch": self.batches.skip + batch + 1})

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Save with the metrics of the epoch; the place is the start of the next one, if this one is whole."""
        consumed = self.batches.skip + len(self.batches.rows)
        whole = consumed == self.batches.whole
        place = {"epoch": epoch + 1, "batch": 0} if whole else {"epoch": epoch, "batch": consumed}
        self._save(updates(self.model), place | logs)

    def _save(self, step: int, state: dict[str, Any]) -> None:
        # The loss of a step is of the weights before it: what its update did to them shows here.
        if not all(np.isfinite(variable.numpy()).all() for variable in self.variables.values()):
            raise diverged(step, "a weight is not a finite number")
        checkpoints.save(self.folder, step, self.variables, state)
        known = checkpoints.all_of(self.folder)
        keep = {*known[-self.keep_last :], best(known)}
        for old in known:
            if old not in keep:
                shutil.rmtree(old)


class History(keras.callbacks.Callback):
    """Writes a row of metrics an epoch; rows after the step that training resumes from are dropped first."""

    def __init__(self, path: Path, resumed_step: int):
        super().__init__()
        self.path = path
        self.rows: list[dict[str, Any]] = []
        if path.exists():
            with path.open(newline="") as file:
                whole = (row for row in csv.DictReader(file) if (row.get("step") or "").isdecimal())
                self.rows = [row for row in whole if int(row["step"]) <= resumed_step]

    def on_train_begin(self, logs: Any = None) -> None:
        """Start the clock."""
        self.start = time.perf_counter()

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Write all rows beside the file, then rename."""
        numbers = {name: f"{value:.6g}" for name, value in logs.items()}
        seconds = round(time.perf_counter() - self.start)
        step = updates(self.model)
        self.rows.append({"epoch": epoch + 1, "step": step, **numbers, "seconds": seconds})
        beside = self.path.with_suffix(".part")
        with beside.open("w", newline="") as file:
            writer = csv.DictWriter(file, list(self.rows[-1]), extrasaction="ignore")
            writer.writeheader()
            writer.writerows(self.rows)
        beside.rename(self.path)


class Progress(keras.callbacks.ProgbarLogger):
    """Keras's progress bar with the number of steps of each epoch; a line an epoch where there is no terminal."""

    def __init__(self, batches: Batches):
        super().__init__()
        self.batches = batches

    def set_params(self, params: dict[str, Any]) -> None:
        """Choose between bar and line."""
        self.epochs = 1  # Keras would print "Epoch 1/N" with an N that is only a bound.
        self.verbose = 1 if sys.stdout.isatty() else 2

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        """Begin a bar."""
        self.target = len(self.batches.rows)
        print(f"epoch {epoch + 1}, step {updates(self.model)}", flush=True)
        super().on_epoch_begin(epoch, logs)

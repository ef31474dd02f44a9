"""Which batches an epoch has, and when training ends or must end."""

import logging
import math
from typing import Any

import keras

from tf_transformer.data import Batches
from tf_transformer.errors import InputError

SUSPICIOUS = 2.0
"""Times the loss of guessing: an untrained model begins near one such loss."""

log = logging.getLogger(__name__)


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
        skip: batches that were consumed before a resume, of the window of the first epoch where that was.
        window: the number of that window.
    """

    def __init__(self, batches: Batches, max_steps: int | None = None, skip: int = 0, window: int = 0):
        super().__init__()
        self.batches = batches
        self.max_steps = max_steps
        self.place = (window, skip)
        self.ended = False

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        """Shuffle for this epoch."""
        self.batches.start_epoch(epoch, *self.place)
        self.place = (0, 0)

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        """Leave the loop over batches after the last one."""
        self.batches.consumed = batch + 1
        if (self.batches.is_last(batch) or self._is_done()) and not self.model.stop_training:
            self.model.stop_training = self.ended = True

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Go on with the next epoch, if there is one and nobody else has asked to stop."""
        if self.ended:
            self.model.stop_training = self._is_done()
            self.ended = False

    def _is_done(self) -> bool:
        return self.max_steps is not None and updates(self.model) >= self.max_steps


class StopOnNaN(keras.callbacks.Callback):
    """Raises InputError, with the step named, as soon as the loss or the perplexity is not a finite number.

    Besides, it warns once an epoch where the mean loss since the epoch began is more than `SUSPICIOUS` times that of
    guessing: a model that knows nothing does not lose as much.

    Args:
        vocab_size: target tokens; a guess is one of them, all alike. None warns of nothing.
    """

    def __init__(self, vocab_size: int | None = None):
        super().__init__()
        self.guess = math.log(vocab_size) if vocab_size else math.inf
        self.is_warned = False

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        """Warn again, if need be."""
        self.is_warned = False

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        """Look at the running means, which stay NaN once they are."""
        for name in ("loss", "perplexity"):
            if not math.isfinite(logs.get(name, 0.0)):
                raise diverged(updates(self.model), f"the {name} is {logs[name]}")
        if logs["loss"] > SUSPICIOUS * self.guess and not self.is_warned:
            self.is_warned = True
            log.warning(
                "training may be diverging: the loss is %.4g at step %d, where guessing has %.4g. If it does not fall, "
                "stop it and train with a lower training.learning_rate (or learning_rate_factor) or more "
                "training.warmup_steps",
                *(logs["loss"], updates(self.model), self.guess),
            )


def diverged(step: int, what: str) -> InputError:
    """Return the error for training that has gone astray at a step."""
    return InputError(
        f"{what} at step {step}: training stopped, and the checkpoints before that step are kept. "
        "Train another --run-dir with a lower training.learning_rate (or learning_rate_factor, where there is none) or "
        "more training.warmup_steps, perhaps from these by --init-from"
    )

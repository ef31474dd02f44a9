"""Callbacks that choose the batches of an epoch, and that end training."""

import logging
import math
from typing import Any

import keras

from tf_transformer.data import Batches
from tf_transformer.data.batches import Place
from tf_transformer.errors import InputError

SUSPICIOUS = 2.0
"""A loss is suspicious above this many times the loss of guessing, near which an untrained model begins."""

log = logging.getLogger(__name__)


def updates(model: keras.Model) -> int:
    """Return the number of optimizer updates so far."""
    return int(model.optimizer.iterations.numpy())


class EpochOrder(keras.callbacks.Callback):
    """Prepares `batches` for each epoch as it begins, and ends the epoch after its last batch.

    It must come before other callbacks that stop training.

    Keras would end an epoch by asking for one batch too many. The step that then fails would already have counted
    itself in `optimizer.iterations` and advanced the dropout seeds.

    Args:
        batches: the batches that `fit` trains on.
        max_steps: updates in all, including those before a resume; no limit by default.
        skip: batches that were consumed before a resume, in the window where it stopped.
        window: the number of that window in the first epoch.
        validate_every: updates after which a validation interrupts an epoch. For Keras an epoch is then what lies
            between two validations; with 0, the default, it is an epoch of the text.
        epoch: with `validate_every`, the epoch of the text that training begins in.
    """

    def __init__(
        self,
        batches: Batches,
        max_steps: int | None = None,
        skip: int = 0,
        window: int = 0,
        validate_every: int = 0,
        epoch: int = 0,
    ):
        super().__init__()
        self.batches = batches
        self.max_steps = max_steps
        self.validate_every = validate_every
        self.place = Place(epoch, window, skip)
        self.ended = False
        self.validated = 0
        """the update of the last validation, after which a batch may make none: gradients that are not finite"""

    def on_train_begin(self, logs: Any = None) -> None:
        """Note where training begins."""
        self.validated = updates(self.model)

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        """Shuffle for this epoch, or return to where a validation has interrupted it."""
        if not self.validate_every:
            self.place = self.place._replace(epoch=epoch)
        self.batches.start_epoch(*self.place)
        self.place = Place()

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        """Leave the loop over batches after the last one, and for a validation."""
        self.batches.consumed = batch + 1
        step = updates(self.model)
        is_due = self.validate_every and step > self.validated and step % self.validate_every == 0
        if (is_due or self.batches.is_last(batch) or self._is_done()) and not self.model.stop_training:
            self.model.stop_training = self.ended = True

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Let the next epoch begin, unless training is over or another callback has asked to stop."""
        self.validated = updates(self.model)
        if self.validate_every:
            self.place = self.batches.place
        if self.ended:
            self.model.stop_training = self._is_done()
            self.ended = False

    def _is_done(self) -> bool:
        return self.max_steps is not None and updates(self.model) >= self.max_steps


class StopOnNaN(keras.callbacks.Callback):
    """Raises InputError, which names the step, as soon as the loss or the perplexity is not a finite number.

    It also warns once per epoch if the mean loss since the epoch began is more than `SUSPICIOUS` times the loss of
    guessing, which is more than even an untrained model has.

    Args:
        vocab_size: number of target tokens; guessing gives them all the same probability. None turns the warning off.
    """

    def __init__(self, vocab_size: int | None = None):
        super().__init__()
        self.guess = math.log(vocab_size) if vocab_size else math.inf
        self.is_warned = False

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        """Allow a new warning."""
        self.is_warned = False

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        """Check the running means, which stay NaN once they are NaN."""
        for name in ("loss", "perplexity"):
            if not math.isfinite(logs.get(name, 0.0)):
                raise diverged(updates(self.model), f"the {name} is {logs[name]}")
        if logs["loss"] > SUSPICIOUS * self.guess and not self.is_warned:
            self.is_warned = True
            log.warning(
                "training may be diverging: the loss is %.4g at step %d, where guessing gives %.4g. If it does not "
                "fall, stop and train with a lower training.learning_rate (or learning_rate_factor) or more "
                "training.warmup_steps",
                *(logs["loss"], updates(self.model), self.guess),
            )


def diverged(step: int, what: str) -> InputError:
    """Return the error for training that has diverged at a step."""
    return InputError(
        f"{what} at step {step}: training stopped, and the checkpoints before that step are kept. "
        "Train in another --run-dir with a lower training.learning_rate (or learning_rate_factor, if that is not set) "
        "or more training.warmup_steps; --init-from can start from these checkpoints"
    )

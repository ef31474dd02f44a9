"""The learning rate (paper 5.3)."""

import math
from typing import Any

import keras
from keras import ops

from tf_transformer.config import TrainingConfig


@keras.saving.register_keras_serializable("tf_transformer")
class NoamSchedule(keras.optimizers.schedules.LearningRateSchedule):
    """factor * d_model^-0.5 * min(step^-0.5, step * warmup_steps^-1.5) (paper 5.3).

    It rises linearly to its peak at `warmup_steps`, factor * (d_model * warmup_steps)^-0.5, and falls with the inverse
    square root of the step. Keras counts updates from 0: update n has the paper's rate of step n - 1, and the first one
    that of step 1, so that it has an effect.

    Args:
        d_model: width of the model.
        warmup_steps: updates until the peak.
        factor: multiplies the paper's learning rate; `of_peak` takes the peak instead.

    Raises:
        ValueError: an argument that is not above 0.
    """

    def __init__(self, d_model: int, warmup_steps: int = 4000, factor: float = 1.0):
        super().__init__()
        for name, value in (("d_model", d_model), ("warmup_steps", warmup_steps), ("factor", factor)):
            if value <= 0:
                raise ValueError(f"{name} must be above 0. Received: {name}={value}")
        self.d_model = d_model
        self.warmup_steps = warmup_steps
        self.factor = factor

    @classmethod
    def of_peak(cls, learning_rate: float, warmup_steps: int = 4000) -> "NoamSchedule":
        """Return the schedule that rises to `learning_rate` at `warmup_steps`, whatever the width of the model."""
        return cls(1, warmup_steps, learning_rate * warmup_steps**0.5)

    def __call__(self, step: Any) -> Any:
        """Return the learning rate of `step`, a scalar float32."""
        step = ops.maximum(ops.cast(step, "float32"), 1.0)
        return self.factor * self.d_model**-0.5 * ops.minimum(step**-0.5, step * self.warmup_steps**-1.5)

    def get_config(self) -> dict[str, Any]:
        """Return the constructor's arguments."""
        return {"d_model": self.d_model, "warmup_steps": self.warmup_steps, "factor": self.factor}


@keras.saving.register_keras_serializable("tf_transformer")
class LinearWarmup(keras.optimizers.schedules.LearningRateSchedule):
    """Rises linearly to a peak, as `NoamSchedule` does, and stays there or falls along a cosine.

    Args:
        peak: the highest learning rate.
        warmup_steps: updates until the peak.
        decay_steps: updates from the peak until the rate is 0, along half a cosine (Loshchilov and Hutter 2017); None
            stays at the peak.

    Raises:
        ValueError: an argument that is not above 0.
    """

    def __init__(self, peak: float, warmup_steps: int = 4000, decay_steps: int | None = None):
        super().__init__()
        for name, value in (("peak", peak), ("warmup_steps", warmup_steps), ("decay_steps", decay_steps)):
            if value is not None and value <= 0:
                raise ValueError(f"{name} must be above 0. Received: {name}={value}")
        self.peak = peak
        self.warmup_steps = warmup_steps
        self.decay_steps = decay_steps

    def __call__(self, step: Any) -> Any:
        """Return the learning rate of `step`, a scalar float32."""
        step = ops.maximum(ops.cast(step, "float32"), 1.0)
        rate = self.peak * ops.minimum(step / self.warmup_steps, 1.0)
        if self.decay_steps is None:
            return rate
        done = ops.clip((step - self.warmup_steps) / self.decay_steps, 0.0, 1.0)
        return rate * 0.5 * (1.0 + ops.cos(math.pi * done))

    def get_config(self) -> dict[str, Any]:
        """Return the constructor's arguments."""
        return {"peak": self.peak, "warmup_steps": self.warmup_steps, "decay_steps": self.decay_steps}


@keras.saving.register_keras_serializable("tf_transformer")
class ScaledSchedule(keras.optimizers.schedules.LearningRateSchedule):
    """Another schedule times a variable `scale`, at first 1, which a callback lowers.

    Args:
        schedule: the other schedule.
    """

    def __init__(self, schedule: keras.optimizers.schedules.LearningRateSchedule):
        super().__init__()
        self.schedule = schedule
        self.scale = keras.Variable(1.0, trainable=False, dtype="float32", name="scale")

    def __call__(self, step: Any) -> Any:
        """Return the learning rate of `step`, a scalar float32."""
        return self.schedule(step) * self.scale.value

    def get_config(self) -> dict[str, Any]:
        """Return the constructor's arguments."""
        return {"schedule": keras.saving.serialize_keras_object(self.schedule)}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> "ScaledSchedule":
        """Return the schedule of such a config."""
        return cls(keras.saving.deserialize_keras_object(config["schedule"]))


def schedule_of(settings: TrainingConfig, d_model: int) -> keras.optimizers.schedules.LearningRateSchedule:
    """Return the schedule that settings ask for, for a model of a width."""
    warmup = settings.warmup_steps
    if settings.learning_rate is None:
        peak = settings.learning_rate_factor * (d_model * warmup) ** -0.5
    else:
        peak = settings.learning_rate
    if settings.schedule == "cosine":
        return LinearWarmup(peak, warmup, max(settings.max_steps - warmup, 1))
    if settings.schedule == "constant":
        return LinearWarmup(peak, warmup)
    if settings.schedule == "plateau":
        return ScaledSchedule(LinearWarmup(peak, warmup))
    if settings.learning_rate is None:
        return NoamSchedule(d_model, warmup, settings.learning_rate_factor)
    return NoamSchedule.of_peak(settings.learning_rate, warmup)

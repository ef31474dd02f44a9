"""The learning rate (paper 5.3)."""

from typing import Any

import keras
from keras import ops


@keras.saving.register_keras_serializable("tf_transformer")
class NoamSchedule(keras.optimizers.schedules.LearningRateSchedule):
    """factor * d_model^-0.5 * min(step^-0.5, step * warmup_steps^-1.5) (paper 5.3).

    It rises linearly to its peak at `warmup_steps`, factor * (d_model * warmup_steps)^-0.5, and falls with the inverse
    square root of the step. Keras counts steps from 0; step 0 is taken as step 1, so that the first update has an
    effect.

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

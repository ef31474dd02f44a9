"""Adam as the paper and its reproductions use it (paper 5.3)."""

from typing import Any

import keras
import tensorflow as tf

from tf_transformer.config import Config
from tf_transformer.training.schedule import schedule_of


@keras.saving.register_keras_serializable("tf_transformer")
class Adam(keras.optimizers.Adam):
    """Keras's Adam with the paper's constants, and with a `global_clipnorm` that is exact under several replicas.

    Keras clips the gradient of each replica before it sums them, so that the result depends on the number of replicas.
    This optimizer clips the sum. With `weight_decay` it is AdamW, which does not decay biases and layer norms. It
    updates a weight with one TensorFlow op, where Keras needs about fifteen.

    Args:
        learning_rate: a number or a schedule.
        beta_1: decay of the mean of the gradients.
        beta_2: decay of the mean of their squares.
        epsilon: added to the square root of that mean.
        weight_decay: share of a weight, times the learning rate, that is subtracted at each step; none by default.
        ema_warmup: whether the moving average of the weights (`use_ema`) covers fewer updates at the beginning: after
            t updates, its momentum is the smaller of `ema_momentum` and (1 + t) / (10 + t). Use it if the initial
            weights are random. Pretrained ones are worth keeping in the average.
        name: the name of the optimizer.
        **kwargs: the arguments of `keras.optimizers.Adam`: `global_clipnorm`, `use_ema`, `ema_momentum`, ...
    """

    def __init__(
        self,
        learning_rate: Any = 0.001,
        beta_1: float = 0.9,
        beta_2: float = 0.98,
        epsilon: float = 1e-9,
        weight_decay: float | None = None,
        ema_warmup: bool = False,
        name: str = "adam",
        **kwargs: Any,
    ):
        super().__init__(learning_rate, beta_1, beta_2, epsilon, weight_decay=weight_decay, name=name, **kwargs)
        self.ema_warmup = ema_warmup
        self.exclude_from_weight_decay(var_names=["bias", "gamma", "beta"])

    def get_config(self) -> dict[str, Any]:
        """Return the constructor's arguments."""
        return super().get_config() | {"ema_warmup": self.ema_warmup}

    def update_step(self, gradient: tf.Tensor, variable: tf.Variable, learning_rate: Any) -> None:
        """Update a weight by the same formula as Keras."""
        if self.amsgrad:
            return super().update_step(gradient, variable, learning_rate)
        index = self._get_variable_index(variable)
        dtype = variable.dtype
        step = tf.cast(self.iterations + 1, dtype)
        tf.raw_ops.ResourceApplyAdam(
            var=variable.handle,
            m=self._momentums[index].value.handle,
            v=self._velocities[index].value.handle,
            beta1_power=tf.cast(self.beta_1, dtype) ** step,
            beta2_power=tf.cast(self.beta_2, dtype) ** step,
            lr=tf.cast(learning_rate, dtype),
            beta1=tf.cast(self.beta_1, dtype),
            beta2=tf.cast(self.beta_2, dtype),
            epsilon=tf.cast(self.epsilon, dtype),
            grad=tf.cast(gradient, dtype),
        )

    def _update_model_variables_moving_average(self, trainable_variables: list[Any]) -> None:
        """Update the moving average, which covers fewer updates at the beginning.

        Keras uses its full momentum from the second update on, and so would keep the weights of the first for long.
        """
        if not self.ema_warmup:
            return super()._update_model_variables_moving_average(trainable_variables)
        made = tf.cast(self.iterations, tf.float32)
        momentum = tf.minimum(self.ema_momentum, (1.0 + made) / (10.0 + made)) * tf.cast(made > 0, tf.float32)
        for variable, average in zip(trainable_variables, self._model_variables_moving_average, strict=True):
            if self.use_ema and average is not None:
                share = tf.cast(momentum, average.dtype)
                average.assign(share * average + (1 - share) * variable)

    def _clip_gradients(self, grads: list[Any]) -> list[Any]:
        return grads if self.global_clipnorm else super()._clip_gradients(grads)

    def _all_reduce_sum_gradients(self, grads_and_vars: Any) -> Any:
        summed = super()._all_reduce_sum_gradients(grads_and_vars)
        if not self.global_clipnorm:
            return summed
        gradients, variables = zip(*summed, strict=True)
        clipped, _ = tf.clip_by_global_norm(gradients, self.global_clipnorm)
        return list(zip(clipped, variables, strict=True))


def make_optimizer(config: Config) -> keras.optimizers.Optimizer:
    """Return the optimizer that a config asks for; for float16 it scales the loss."""
    settings = config.training
    optimizer = Adam(
        schedule_of(settings, config.model.d_model),
        weight_decay=settings.weight_decay or None,
        global_clipnorm=settings.clip_norm or None,
        use_ema=settings.ema_decay > 0,
        ema_momentum=settings.ema_decay,
        ema_warmup=settings.init_from is None,
    )
    if settings.mixed_precision == "float16":
        return keras.optimizers.LossScaleOptimizer(optimizer, name="loss_scale")
    return optimizer


def schedule_in(optimizer: keras.optimizers.Optimizer) -> Any:
    """Return the schedule of an optimizer that `make_optimizer` made."""
    return getattr(optimizer, "inner_optimizer", optimizer)._learning_rate

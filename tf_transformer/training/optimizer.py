"""Adam as the paper and its reproductions use it (paper 5.3), and Muon, which learns more from each update."""

from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf

from tf_transformer.config import Config
from tf_transformer.training.schedule import schedule_of


class _AveragedAndClipped(keras.optimizers.Optimizer):
    """A moving average that covers fewer updates at the beginning, and clipping of the gradient of all replicas."""

    ema_warmup: bool

    def get_config(self) -> dict[str, Any]:
        """Return the constructor's arguments."""
        return super().get_config() | {"ema_warmup": self.ema_warmup}

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


def _adam(
    optimizer: Any, variable: Any, gradient: Any, rate: Any, moments: tuple[Any, Any], betas: tuple[float, float]
) -> None:
    """Update a weight and the means of its gradient and of its square by one TensorFlow op."""
    dtype = variable.dtype
    step = tf.cast(optimizer.iterations + 1, dtype)
    beta1, beta2 = (tf.cast(beta, dtype) for beta in betas)
    mean, square = moments
    tf.raw_ops.ResourceApplyAdam(
        var=variable.handle,
        m=mean.value.handle,
        v=square.value.handle,
        beta1_power=beta1**step,
        beta2_power=beta2**step,
        lr=tf.cast(rate, dtype),
        beta1=beta1,
        beta2=beta2,
        epsilon=tf.cast(optimizer.epsilon, dtype),
        grad=tf.cast(gradient, dtype),
    )


@keras.saving.register_keras_serializable("tf_transformer")
class Adam(_AveragedAndClipped, keras.optimizers.Adam):
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

    def update_step(self, gradient: tf.Tensor, variable: tf.Variable, learning_rate: Any) -> None:
        """Update a weight by the same formula as Keras."""
        if self.amsgrad:
            return super().update_step(gradient, variable, learning_rate)
        index = self._get_variable_index(variable)
        moments = self._momentums[index], self._velocities[index]
        _adam(self, variable, gradient, learning_rate, moments, (self.beta_1, self.beta_2))


@keras.saving.register_keras_serializable("tf_transformer")
class Muon(_AveragedAndClipped, keras.optimizers.Muon):
    """Keras's Muon: the kernels of layers move by orthogonal matrices (Jordan et al. 2024), all else by Adam.

    The gradient of a kernel is averaged and then replaced by the nearest orthogonal matrix, by five Newton-Schulz
    iterations. Its length is that of Adam's steps (Liu et al. 2025), so the learning rate is Adam's as well. Embeddings
    and the output projection, biases and layer norms are left to Adam with the paper's constants.

    Args:
        learning_rate: a number or a schedule.
        weight_decay: share of a weight, times the learning rate, that is subtracted at each step; none by default.
        ema_warmup: as for `Adam`.
        exclude_layers: patterns (`re.search`) of the paths of kernels that are left to Adam, besides embeddings.
        name: the name of the optimizer.
        **kwargs: the arguments of `keras.optimizers.Muon`: `momentum`, `global_clipnorm`, `use_ema`, ...
    """

    def __init__(
        self,
        learning_rate: Any = 0.001,
        weight_decay: float | None = None,
        ema_warmup: bool = False,
        exclude_layers: Sequence[str] = (r"^(?!multi_head_attention)[^/]+/output/",),
        name: str = "muon",
        **kwargs: Any,
    ):
        constants = {"adam_beta_2": 0.98, "epsilon": 1e-9, "adam_weight_decay": weight_decay}
        super().__init__(
            learning_rate, weight_decay=weight_decay, exclude_layers=[*exclude_layers], name=name, **constants | kwargs
        )
        self.ema_warmup = ema_warmup
        self.exclude_from_weight_decay(var_names=["bias", "gamma", "beta"])

    def _adamw_update_step(
        self, gradient: tf.Tensor, variable: tf.Variable, learning_rate: Any, m: Any, v: Any
    ) -> None:
        _adam(self, variable, gradient, learning_rate, (m, v), (self.adam_beta_1, self.adam_beta_2))


def make_optimizer(config: Config) -> keras.optimizers.Optimizer:
    """Return the optimizer that a config asks for; for float16 it scales the loss."""
    settings = config.training
    optimizer = {"adam": Adam, "muon": Muon}[settings.optimizer](
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
    return _inner(optimizer)._learning_rate


def moving_averages(optimizer: keras.optimizers.Optimizer) -> list[tuple[Any, Any]]:
    """Return each weight that an optimizer trains with its moving average; none without `use_ema`."""
    inner = _inner(optimizer)
    if not inner.use_ema:
        return []
    return list(zip(inner._trainable_variables, inner._model_variables_moving_average, strict=True))


def _inner(optimizer: keras.optimizers.Optimizer) -> keras.optimizers.Optimizer:
    """Return the optimizer that makes the updates, within one that scales the loss."""
    return getattr(optimizer, "inner_optimizer", optimizer)

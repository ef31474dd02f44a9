"""Layer normalisation."""

from typing import Any

import keras
from keras import ops

from tf_transformer.model import gradients
from tf_transformer.model.gradients import on_tensorflow


@on_tensorflow(gradients.normalize)
def normalize(x: Any, epsilon: float, training: bool | None = None) -> Any:
    """Bring every vector of x [..., D] to mean 0 and variance 1."""
    centred = x - ops.mean(x, axis=-1, keepdims=True)
    variance = ops.mean(ops.square(centred), axis=-1, keepdims=True)
    return centred * ops.rsqrt(variance + epsilon)


@keras.saving.register_keras_serializable("tf_transformer")
class LayerNorm(keras.layers.Layer):
    """Layer normalisation of the last axis, with a learned scale gamma and shift beta (Ba et al. 2016).

    It computes in float32, whatever the type of the input. On TensorFlow, its explicit gradient makes it faster than
    Keras's own layer.

    Args:
        epsilon: added to the variance.
    """

    def __init__(self, epsilon: float = 1e-6, **kwargs: Any):
        super().__init__(**kwargs)
        self.supports_masking = True  # it changes each position by itself
        self.epsilon = epsilon

    def build(self, input_shape: tuple[int | None, ...]) -> None:
        """Create the weights for inputs [..., D]."""
        shape = (input_shape[-1],)
        self.gamma = self.add_weight(name="gamma", shape=shape, initializer="ones", autocast=False)
        self.beta = self.add_weight(name="beta", shape=shape, initializer="zeros", autocast=False)

    def call(self, inputs: Any, training: bool | None = None) -> Any:
        """Normalise inputs [..., D]."""
        gamma, beta = (ops.cast(weight, "float32") for weight in (self.gamma, self.beta))
        y = normalize(ops.cast(inputs, "float32"), self.epsilon, training=training) * gamma + beta
        return ops.cast(y, self.compute_dtype)

    def compute_output_shape(self, input_shape: tuple[int | None, ...]) -> tuple[int | None, ...]:
        """Return the shape of the input."""
        return input_shape

    def get_config(self) -> dict[str, Any]:
        """Return the constructor's arguments."""
        return super().get_config() | {"epsilon": self.epsilon}

"""The affine map that all sub-layers are made of."""

from typing import Any

import keras
from keras import ops


@keras.saving.register_keras_serializable("tf_transformer")
class Linear(keras.layers.Layer):
    """`activation(x @ kernel + bias)`, x [..., D] -> [..., units].

    It flattens the leading axes first: `keras.layers.Dense` on [B, T, D] becomes a batched product whose gradient
    is a kernel for every row of the batch.

    Args:
        units: size of the last axis of the output.
        parts: how many projections are fused side by side (query, key and value: 3). Each part is initialised
            Glorot-uniform with its own fans, as if it stood alone.
        activation: name of a Keras activation; none by default.
        use_bias: whether to add a bias, initially zero.
    """

    def __init__(
        self,
        units: int,
        *,
        parts: int = 1,
        activation: str | None = None,
        use_bias: bool = True,
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        if units % parts:
            raise ValueError(f"units must divide by parts. Received: {units=}, {parts=}")
        self.supports_masking = True  # it changes every position alone
        self.units = units
        self.parts = parts
        self.activation = keras.activations.get(activation)
        self.use_bias = use_bias

    def build(self, input_shape: tuple[int | None, ...]) -> None:
        """Create the weights for inputs [..., D]."""
        # Made here, for each draws its seed when it is made: a strategy may call for the values more than once.
        initializers = [keras.initializers.GlorotUniform() for _ in range(self.parts)]

        def initial(shape: tuple[int, int], dtype: str) -> Any:
            part = (shape[0], shape[1] // self.parts)
            return ops.concatenate([draw(part, dtype=dtype) for draw in initializers], axis=1)

        self.kernel = self.add_weight(name="kernel", shape=(input_shape[-1], self.units), initializer=initial)
        if self.use_bias:
            self.bias = self.add_weight(name="bias", shape=(self.units,), initializer="zeros")

    def call(self, x: Any) -> Any:
        """Map x [..., D] to [..., units]."""
        y = ops.matmul(ops.reshape(x, (-1, x.shape[-1])), self.kernel)
        if self.use_bias:
            y = ops.add(y, self.bias)
        y = self.activation(y)
        return y if len(x.shape) == 2 else ops.reshape(y, (*ops.shape(x)[:-1], self.units))

    def compute_output_shape(self, input_shape: tuple[int | None, ...]) -> tuple[int | None, ...]:
        """Return [..., units]."""
        return (*input_shape[:-1], self.units)

    def get_config(self) -> dict[str, Any]:
        """Return the constructor's arguments."""
        return super().get_config() | {
            "units": self.units,
            "parts": self.parts,
            "activation": keras.activations.serialize(self.activation),
            "use_bias": self.use_bias,
        }

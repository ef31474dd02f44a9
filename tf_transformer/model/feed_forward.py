"""The feed-forward network (paper 3.3)."""

from typing import Any

import keras

from tf_transformer.model.linear import Linear
from tf_transformer.model.low_rank import LowRank


@keras.saving.register_keras_serializable("tf_transformer")
class FeedForward(LowRank, keras.layers.Layer):
    """The position-wise feed-forward network, activation(x W1 + b1) W2 + b2 (paper 3.3). x [B, T, D] -> [B, T, D].

    Args:
        d_model: width of input and output, D.
        dff: width inside, d_ff.
        activation: an element-wise one of Keras, by its name.
        activation_dropout_rate: after the activation; the paper has none there.
    """

    def __init__(
        self, d_model: int, dff: int, *, activation: str = "relu", activation_dropout_rate: float = 0.0, **kwargs: Any
    ):
        super().__init__(**kwargs)
        self.supports_masking = True  # it changes each position by itself
        self.config: dict[str, Any] = dict(
            d_model=d_model, dff=dff, activation=activation, activation_dropout_rate=activation_dropout_rate
        )
        policy = self.dtype_policy
        self.inner = Linear(dff, activation=activation, name="inner", dtype=policy)
        self.outer = Linear(d_model, name="outer", dtype=policy)
        self.activation_dropout = None
        if activation_dropout_rate:
            # Only where it drops: the seed of a Dropout is saved in checkpoints, and other models have none there.
            self.activation_dropout = keras.layers.Dropout(
                activation_dropout_rate, name="activation_dropout", dtype=policy
            )

    def build(self, input_shape: tuple[int | None, ...]) -> None:
        """Create the weights."""
        self.inner.build(input_shape)
        self.outer.build((*input_shape[:-1], self.config["dff"]))

    def call(self, x: Any, training: bool | None = None) -> Any:
        """Map x [B, T, D] -> [B, T, D]."""
        y = self.inner(x)
        if self.activation_dropout is not None:
            y = self.activation_dropout(y, training=training)
        return self.outer(y)

    def compute_output_shape(self, input_shape: tuple[int | None, ...]) -> tuple[int | None, ...]:
        """Return the shape of the input."""
        return input_shape

    def get_config(self) -> dict[str, Any]:
        """Return the constructor's arguments."""
        return super().get_config() | self.config

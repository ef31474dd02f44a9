"""The feed-forward sub-layer (paper 3.3)."""

from typing import Any

import keras

from tf_transformer.model.linear import Linear
from tf_transformer.model.low_rank import LowRank
from tf_transformer.model.residual import Residual


@keras.saving.register_keras_serializable("tf_transformer")
class FeedForward(LowRank, keras.layers.Layer):
    """The position-wise feed-forward sub-layer with its residual connection, dropout and layer norm (paper 3.3).

    x [B, T, D] -> [B, T, D].

    Args:
        d_model: width of input and output, D.
        dff: width inside.
        dropout_rate: on the output, before the residual connection.
        activation: of the feed-forward sub-layer, an element-wise one of Keras.
        activation_dropout_rate: inside the feed-forward sub-layer, after the activation; the paper has none there.
        norm: "post" normalises after each sub-layer, as the paper does; "pre" before it.
        norm_epsilon: added to the variance in layer norms.
    """

    def __init__(
        self,
        d_model: int,
        dff: int,
        dropout_rate: float = 0.1,
        *,
        activation: str = "relu",
        activation_dropout_rate: float = 0.0,
        norm: str = "post",
        norm_epsilon: float = 1e-6,
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        self.supports_masking = True  # it changes each position by itself
        self.config: dict[str, Any] = dict(
            d_model=d_model,
            dff=dff,
            dropout_rate=dropout_rate,
            activation=activation,
            activation_dropout_rate=activation_dropout_rate,
            norm=norm,
            norm_epsilon=norm_epsilon,
        )
        policy = self.dtype_policy
        self.inner = Linear(dff, activation=activation, name="inner", dtype=policy)
        self.outer = Linear(d_model, name="outer", dtype=policy)
        self.activation_dropout = None
        if activation_dropout_rate:
            # Made only where it drops: its seed is part of a checkpoint.
            self.activation_dropout = keras.layers.Dropout(
                activation_dropout_rate, name="activation_dropout", dtype=policy
            )
        self.residual = Residual(dropout_rate, norm=norm, norm_epsilon=norm_epsilon, name="residual", dtype=policy)

    def build(self, input_shape: tuple[int | None, ...]) -> None:
        """Create the weights."""
        self.inner.build(input_shape)
        self.outer.build((*input_shape[:-1], self.config["dff"]))
        self.residual.build(input_shape)

    def call(self, x: Any, training: bool | None = None) -> Any:
        """Map x [B, T, D] -> [B, T, D]."""
        y = self.inner(self.residual.enter(x))
        if self.activation_dropout is not None:
            y = self.activation_dropout(y, training=training)
        return self.residual.leave(x, self.outer(y), training)

    def compute_output_shape(self, input_shape: tuple[int | None, ...]) -> tuple[int | None, ...]:
        """Return the shape of the input."""
        return input_shape

    def get_config(self) -> dict[str, Any]:
        """Return the constructor's arguments."""
        return super().get_config() | self.config

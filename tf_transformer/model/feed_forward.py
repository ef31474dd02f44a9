"""The feed-forward sub-layer (paper 3.3)."""

from dataclasses import asdict
from typing import Any

import keras

from tf_transformer.config.model import FeedForwardOptions, NormOptions
from tf_transformer.model.linear import Linear
from tf_transformer.model.low_rank import LowRank
from tf_transformer.model.options import passed_on, taken, with_options
from tf_transformer.model.residual import Residual


@with_options(FeedForwardOptions)
@keras.saving.register_keras_serializable("tf_transformer")
class FeedForward(LowRank, keras.layers.Layer):
    """The position-wise feed-forward sub-layer with its residual connection, dropout and layer norm (paper 3.3).

    x [B, T, D] -> [B, T, D].

    Args:
        d_model: width of input and output, D.
        dff: width inside.
        dropout_rate: on the output, before the residual connection.
        {options}
    """

    def __init__(self, d_model: int, dff: int, dropout_rate: float = 0.1, **kwargs: Any):
        options, kwargs = taken(FeedForwardOptions, kwargs)
        super().__init__(**kwargs)
        self.supports_masking = True  # it changes each position by itself
        self.config: dict[str, Any] = dict(d_model=d_model, dff=dff, dropout_rate=dropout_rate, **asdict(options))
        policy = self.dtype_policy
        self.inner = Linear(dff, activation=options.activation, name="inner", dtype=policy)
        self.outer = Linear(d_model, name="outer", dtype=policy)
        self.activation_dropout = None
        if rate := options.activation_dropout_rate:
            # Made only where it drops: its seed is part of a checkpoint.
            self.activation_dropout = keras.layers.Dropout(rate, name="activation_dropout", dtype=policy)
        self.residual = Residual(dropout_rate, **passed_on(options, NormOptions), name="residual", dtype=policy)

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

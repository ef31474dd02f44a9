"""The residual connection around every sub-layer, with its dropout and layer norm (paper 3.1 and 5.4)."""

from typing import Any

import keras

from tf_transformer.model.layer_norm import LayerNorm


@keras.saving.register_keras_serializable("tf_transformer")
class Residual(keras.layers.Layer):
    """The residual connection around a sub-layer, with dropout and layer norm (paper 3.1 and 5.4, figure 1).

    The layer is not called itself; two methods stand around the sub-layer:

        y = sublayer(residual.sublayer_input(x))
        x = residual.add_and_norm(x, y)

    With norm="post", the paper, this is LayerNorm(x + dropout(sublayer(x))); with norm="pre", it is
    x + dropout(sublayer(LayerNorm(x))).

    Args:
        dropout_rate: on the output of the sub-layer.
        norm: "post" or "pre".
        norm_epsilon: added to the variance.

    Raises:
        ValueError: another norm.
    """

    def __init__(self, dropout_rate: float, *, norm: str = "post", norm_epsilon: float = 1e-6, **kwargs: Any):
        super().__init__(**kwargs)
        if norm not in ("post", "pre"):
            raise ValueError(f'norm must be "post" or "pre". Received: {norm!r}')
        self.is_pre = norm == "pre"
        self.dropout = keras.layers.Dropout(dropout_rate, name="dropout", dtype=self.dtype_policy)
        self.norm = LayerNorm(norm_epsilon, name="norm", dtype=self.dtype_policy)

    def build(self, input_shape: tuple[int | None, ...]) -> None:
        """Create the weights for x [..., D]."""
        self.norm.build(input_shape)

    def sublayer_input(self, x: Any, training: bool | None = None) -> Any:
        """Return the input of the sub-layer: LayerNorm(x) with norm="pre", x itself with norm="post"."""
        return self.norm(x, training=training) if self.is_pre else x

    def add_and_norm(self, x: Any, y: Any, training: bool | None = None) -> Any:
        """Return x + dropout(y), y being the output of the sub-layer; normalised with norm="post"."""
        x = x + self.dropout(y, training=training)
        return x if self.is_pre else self.norm(x, training=training)

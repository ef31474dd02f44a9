"""What the layers of encoder and decoder have in common (paper 3.1)."""

from typing import Any, ClassVar

import keras

from tf_transformer.model.attention import MultiHeadAttention
from tf_transformer.model.explicit_mask import ExplicitMaskLayer
from tf_transformer.model.feed_forward import FeedForward
from tf_transformer.model.residual import Residual


class TransformerLayer(ExplicitMaskLayer):
    """The sub-layers of one layer, each with its residual connection. A subclass calls them in its order.

    Args:
        d_model: width, D.
        num_heads: attention heads, H.
        dff: width inside the feed-forward sub-layer.
        dropout_rate: on the outputs of the sub-layers.
        attention_dropout_rate: on attention weights; the paper has none there.
        activation: of the feed-forward sub-layer, an element-wise one of Keras.
        activation_dropout_rate: inside the feed-forward sub-layer, after the activation; the paper has none there.
        norm: "post" normalises after each sub-layer, as the paper does; "pre" before it.
        norm_epsilon: added to the variance in layer norms.
        key_dim: width of the queries and keys of a head, d_k, if not d_model / num_heads (paper table 3, row B).
        value_dim: width of the values of a head, d_v, if not d_model / num_heads.
        **kwargs: Keras's own, such as `name` and `dtype`.
    """

    has_cross_attention: ClassVar[bool]
    """whether there is attention to a context between the two sub-layers that both have"""

    def __init__(
        self,
        *,
        d_model: int,
        num_heads: int,
        dff: int,
        dropout_rate: float = 0.1,
        attention_dropout_rate: float = 0.0,
        activation: str = "relu",
        activation_dropout_rate: float = 0.0,
        norm: str = "post",
        norm_epsilon: float = 1e-6,
        key_dim: int | None = None,
        value_dim: int | None = None,
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        self.config: dict[str, Any] = dict(
            d_model=d_model,
            num_heads=num_heads,
            dff=dff,
            dropout_rate=dropout_rate,
            attention_dropout_rate=attention_dropout_rate,
            activation=activation,
            activation_dropout_rate=activation_dropout_rate,
            norm=norm,
            norm_epsilon=norm_epsilon,
            key_dim=key_dim,
            value_dim=value_dim,
        )
        policy = self.dtype_policy
        attention: dict[str, Any] = dict(
            d_model=d_model,
            num_heads=num_heads,
            dropout_rate=attention_dropout_rate,
            key_dim=key_dim,
            value_dim=value_dim,
            dtype=policy,
        )
        residual: dict[str, Any] = dict(dropout_rate=dropout_rate, norm=norm, norm_epsilon=norm_epsilon, dtype=policy)
        self.self_attention = MultiHeadAttention(**attention, name="self_attention")
        self.self_attention_residual = Residual(**residual, name="self_attention_residual")
        if self.has_cross_attention:
            self.cross_attention = MultiHeadAttention(**attention, name="cross_attention")
            self.cross_attention_residual = Residual(**residual, name="cross_attention_residual")
        self.feed_forward = FeedForward(
            d_model,
            dff,
            activation=activation,
            activation_dropout_rate=activation_dropout_rate,
            name="feed_forward",
            dtype=policy,
        )
        self.feed_forward_residual = Residual(**residual, name="residual")

    def build_sublayers(self, x_shape: tuple[int | None, ...], *context_shape: Any) -> None:
        """Create the weights for x [B, T, D], and for a context [B, S, any] where there is cross-attention."""
        self.self_attention.build(x_shape)
        self.self_attention_residual.build(x_shape)
        if self.has_cross_attention:
            self.cross_attention.build(x_shape, *context_shape)
            self.cross_attention_residual.build(x_shape)
        self.feed_forward.build(x_shape)
        with keras.name_scope("feed_forward"):  # checkpoints name these weights feed_forward/residual/norm
            self.feed_forward_residual.build(x_shape)

    def get_config(self) -> dict[str, Any]:
        """Return the constructor's arguments."""
        return super().get_config() | self.config

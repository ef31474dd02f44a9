"""The encoder (paper 3.1)."""

from typing import Any

import keras

from tf_transformer.model.attention import MultiHeadAttention
from tf_transformer.model.explicit_mask import ExplicitMaskLayer
from tf_transformer.model.feed_forward import FeedForward
from tf_transformer.model.residual import Residual
from tf_transformer.model.stack import Stack


@keras.saving.register_keras_serializable("tf_transformer")
class EncoderLayer(ExplicitMaskLayer):
    """One layer of the encoder: self-attention and feed-forward (paper 3.1). x [B, S, D] -> [B, S, D].

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
    """

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
        self.feed_forward = FeedForward(
            d_model,
            dff,
            activation=activation,
            activation_dropout_rate=activation_dropout_rate,
            name="feed_forward",
            dtype=policy,
        )
        self.feed_forward_residual = Residual(**residual, name="residual")

    def build(self, input_shape: tuple[int | None, ...]) -> None:
        """Create the weights."""
        self.self_attention.build(input_shape)
        self.self_attention_residual.build(input_shape)
        self.feed_forward.build(input_shape)
        with keras.name_scope("feed_forward"):  # checkpoints name these weights feed_forward/residual/norm
            self.feed_forward_residual.build(input_shape)

    def call(
        self, x: Any, mask: Any = None, training: bool | None = None, return_attention_scores: bool = False
    ) -> Any:
        """Encode x [B, S, D] -> [B, S, D].

        Args:
            x: the source positions.
            mask: boolean, True = attend, broadcasting to [B, S, S].
            training: whether to apply dropout.
            return_attention_scores: whether to return the weights of the attention [B, H, S, S] as well. (The name is
                Keras's; they are the weights after the softmax.)
        """
        y = self.self_attention_residual.sublayer_input(x)
        y, weights = self.self_attention(y, mask=mask, training=training)
        x = self.self_attention_residual.add_and_norm(x, y, training)

        y = self.feed_forward_residual.sublayer_input(x)
        y = self.feed_forward(y, training=training)
        x = self.feed_forward_residual.add_and_norm(x, y, training)
        return (x, weights) if return_attention_scores else x

    def compute_output_shape(self, input_shape: tuple[int | None, ...]) -> tuple[int | None, ...]:
        """Return the shape of the input."""
        return input_shape

    def get_config(self) -> dict[str, Any]:
        """Return the constructor's arguments."""
        return super().get_config() | self.config


@keras.saving.register_keras_serializable("tf_transformer")
class Encoder(Stack):
    """The encoder: embeddings with positions, then a stack of layers (paper 3.1). ids [B, S] -> [B, S, D].

    The arguments are those of `Stack`.
    """

    layer_class = EncoderLayer

    def build(self, ids_shape: tuple[int | None, ...]) -> None:
        """Create the weights."""
        self.build_stack(ids_shape)

    def call(
        self, ids: Any, mask: Any = None, training: bool | None = None, return_attention_scores: bool = False
    ) -> Any:
        """Encode ids [B, S] -> [B, S, D].

        Args:
            ids: the source tokens.
            mask: boolean, True = attend, such as `padding_mask(ids)`.
            training: whether to apply dropout.
            return_attention_scores: whether to return, for every layer, the weights of its attention [B, H, S, S] as
                well.
        """
        x, weights = self.embedding(ids, training=training), []
        for layer in self.layers:
            x, layer_weights = layer(x, mask=mask, training=training, return_attention_scores=True)
            if return_attention_scores:
                weights.append(layer_weights)
        x = self.apply_final_norm(x)
        return (x, tuple(weights)) if return_attention_scores else x

    def compute_output_shape(self, ids_shape: tuple[int | None, ...]) -> tuple[int | None, ...]:
        """Return [B, S, D]."""
        return (*ids_shape, self.config["d_model"])

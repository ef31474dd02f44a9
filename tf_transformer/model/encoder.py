"""The encoder (paper 3.1), and the feed-forward sub-layer that the decoder has too (paper 3.3)."""

from typing import Any

import keras

from tf_transformer.model.attention import MultiHeadAttention
from tf_transformer.model.explicit_mask import ExplicitMaskLayer
from tf_transformer.model.layer_norm import LayerNorm
from tf_transformer.model.linear import Linear
from tf_transformer.model.positions import PositionalEmbedding
from tf_transformer.model.residual import Residual


@keras.saving.register_keras_serializable("tf_transformer")
class FeedForward(keras.layers.Layer):
    """The position-wise feed-forward sub-layer with its residual connection, dropout and layer norm (paper 3.3).

    x [B, T, D] -> [B, T, D].

    Args:
        d_model: width of input and output, D.
        dff: width inside.
        dropout_rate: on the output, before the residual connection.
        norm: "post" (the paper) or "pre".
        activation: name of a Keras activation.
    """

    def __init__(
        self,
        d_model: int,
        dff: int,
        dropout_rate: float = 0.1,
        *,
        norm: str = "post",
        activation: str = "relu",
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        self.config: dict[str, Any] = dict(
            d_model=d_model, dff=dff, dropout_rate=dropout_rate, norm=norm, activation=activation
        )
        policy = self.dtype_policy
        self.inner = Linear(dff, activation=activation, name="inner", dtype=policy)
        self.outer = Linear(d_model, name="outer", dtype=policy)
        self.residual = Residual(dropout_rate, norm=norm, name="residual", dtype=policy)

    def build(self, input_shape: tuple[int | None, ...]) -> None:
        """Create the weights."""
        self.inner.build(input_shape)
        self.outer.build((*input_shape[:-1], self.config["dff"]))
        self.residual.build(input_shape)

    def call(self, x: Any, training: bool | None = None) -> Any:
        """Map x [B, T, D] -> [B, T, D]."""
        return self.residual.leave(x, self.outer(self.inner(self.residual.enter(x))), training)

    def compute_output_shape(self, input_shape: tuple[int | None, ...]) -> tuple[int | None, ...]:
        """Return the shape of the input."""
        return input_shape

    def get_config(self) -> dict[str, Any]:
        """Return the constructor's arguments."""
        return super().get_config() | self.config


@keras.saving.register_keras_serializable("tf_transformer")
class EncoderLayer(ExplicitMaskLayer):
    """One layer of the encoder: self-attention and feed-forward (paper 3.1). x [B, S, D] -> [B, S, D].

    Args:
        d_model: width, D.
        num_heads: attention heads, H.
        dff: width inside the feed-forward sub-layer.
        dropout_rate: on the outputs of the sub-layers.
        norm: "post" (the paper) or "pre".
        attention_dropout_rate: on the attention weights.
        activation: name of a Keras activation for the feed-forward sub-layer.
    """

    def __init__(
        self,
        *,
        d_model: int,
        num_heads: int,
        dff: int,
        dropout_rate: float = 0.1,
        norm: str = "post",
        attention_dropout_rate: float = 0.0,
        activation: str = "relu",
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        self.config: dict[str, Any] = dict(
            d_model=d_model,
            num_heads=num_heads,
            dff=dff,
            dropout_rate=dropout_rate,
            norm=norm,
            attention_dropout_rate=attention_dropout_rate,
            activation=activation,
        )
        policy = self.dtype_policy
        self.self_attention = MultiHeadAttention(
            d_model=d_model,
            num_heads=num_heads,
            dropout_rate=attention_dropout_rate,
            name="self_attention",
            dtype=policy,
        )
        self.residual = Residual(dropout_rate, norm=norm, name="self_attention_residual", dtype=policy)
        self.feed_forward = FeedForward(
            d_model, dff, dropout_rate, norm=norm, activation=activation, name="feed_forward", dtype=policy
        )

    def build(self, input_shape: tuple[int | None, ...]) -> None:
        """Create the weights."""
        self.self_attention.build(input_shape)
        self.residual.build(input_shape)
        self.feed_forward.build(input_shape)

    def call(self, x: Any, mask: Any = None, training: bool | None = None) -> Any:
        """Encode x [B, S, D] -> [B, S, D]; `mask` is boolean, True = attend, and broadcasts to [B, S, S]."""
        y, _ = self.self_attention(self.residual.enter(x), mask=mask, training=training)
        return self.feed_forward(self.residual.leave(x, y, training), training=training)

    def compute_output_shape(self, input_shape: tuple[int | None, ...]) -> tuple[int | None, ...]:
        """Return the shape of the input."""
        return input_shape

    def get_config(self) -> dict[str, Any]:
        """Return the constructor's arguments."""
        return super().get_config() | self.config


@keras.saving.register_keras_serializable("tf_transformer")
class Encoder(ExplicitMaskLayer):
    """The encoder: embeddings with positions, then a stack of layers (paper 3.1). ids [B, S] -> [B, S, D].

    Args:
        num_layers: layers of the stack.
        d_model: width, D.
        num_heads: attention heads, H.
        dff: width inside the feed-forward sub-layers.
        vocab_size: number of source tokens.
        dropout_rate: on sub-layer outputs and on the embedding sums.
        norm: "post" (the paper), or "pre" with a final layer norm.
        positions: "sinusoidal" or "learned"; with `max_positions`, see `PositionalEmbedding`.
        max_positions: size of the learned table.
        attention_dropout_rate: on the attention weights.
        activation: name of a Keras activation for the feed-forward sub-layers.
    """

    def __init__(
        self,
        *,
        num_layers: int,
        d_model: int,
        num_heads: int,
        dff: int,
        vocab_size: int,
        dropout_rate: float = 0.1,
        norm: str = "post",
        positions: str = "sinusoidal",
        max_positions: int = 1024,
        attention_dropout_rate: float = 0.0,
        activation: str = "relu",
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        layer: dict[str, Any] = dict(
            d_model=d_model,
            num_heads=num_heads,
            dff=dff,
            dropout_rate=dropout_rate,
            norm=norm,
            attention_dropout_rate=attention_dropout_rate,
            activation=activation,
        )
        table: dict[str, Any] = dict(positions=positions, max_positions=max_positions)
        self.config: dict[str, Any] = dict(num_layers=num_layers, vocab_size=vocab_size, **layer, **table)
        policy = self.dtype_policy
        self.embedding = PositionalEmbedding(
            vocab_size, d_model, dropout_rate=dropout_rate, **table, name="embedding", dtype=policy
        )
        self.stack = [EncoderLayer(**layer, name=f"layer_{i}", dtype=policy) for i in range(num_layers)]
        self.final_norm = LayerNorm(name="final_norm", dtype=policy) if norm == "pre" else None

    def build(self, input_shape: tuple[int | None, ...]) -> None:
        """Create the weights."""
        self.embedding.build(input_shape)
        shape = (*input_shape, self.config["d_model"])
        for layer in self.stack:
            layer.build(shape)
        if self.final_norm is not None:
            self.final_norm.build(shape)

    def call(self, ids: Any, mask: Any = None, training: bool | None = None) -> Any:
        """Encode ids [B, S] -> [B, S, D]; `mask` is boolean, True = attend, such as `padding_mask(ids)`."""
        x = self.embedding(ids, training=training)
        for layer in self.stack:
            x = layer(x, mask=mask, training=training)
        return x if self.final_norm is None else self.final_norm(x)

    def compute_output_shape(self, input_shape: tuple[int | None, ...]) -> tuple[int | None, ...]:
        """Return [B, S, D]."""
        return (*input_shape, self.config["d_model"])

    def get_config(self) -> dict[str, Any]:
        """Return the constructor's arguments."""
        return super().get_config() | self.config

"""The encoder (paper 3.1)."""

from dataclasses import asdict
from typing import Any

import keras

from tf_transformer.config.model import AttentionOptions, FeedForwardOptions, LayerOptions, NormOptions, StackOptions
from tf_transformer.model.attention import MultiHeadAttention
from tf_transformer.model.explicit_mask import ExplicitMaskLayer
from tf_transformer.model.feed_forward import FeedForward
from tf_transformer.model.options import passed_on, taken, with_options
from tf_transformer.model.residual import Residual
from tf_transformer.model.stack import Stack


@with_options(LayerOptions)
@keras.saving.register_keras_serializable("tf_transformer")
class EncoderLayer(ExplicitMaskLayer):
    """One layer of the encoder: self-attention and feed-forward (paper 3.1). x [B, S, D] -> [B, S, D].

    Args:
        d_model: width, D.
        num_heads: attention heads, H.
        dff: width inside the feed-forward sub-layer.
        dropout_rate: on the outputs of the sub-layers.
        {options}
    """

    def __init__(self, *, d_model: int, num_heads: int, dff: int, dropout_rate: float = 0.1, **kwargs: Any):
        options, kwargs = taken(LayerOptions, kwargs)
        super().__init__(**kwargs)
        self.config: dict[str, Any] = dict(
            d_model=d_model, num_heads=num_heads, dff=dff, dropout_rate=dropout_rate, **asdict(options)
        )
        policy, rate = self.dtype_policy, options.attention_dropout_rate
        self.self_attention = MultiHeadAttention(
            d_model=d_model,
            num_heads=num_heads,
            dropout_rate=rate,
            **passed_on(options, AttentionOptions),
            name="self_attention",
            dtype=policy,
        )
        norm = passed_on(options, NormOptions)
        self.residual = Residual(dropout_rate, **norm, name="self_attention_residual", dtype=policy)
        self.feed_forward = FeedForward(
            d_model, dff, dropout_rate, **passed_on(options, FeedForwardOptions), name="feed_forward", dtype=policy
        )

    def build(self, input_shape: tuple[int | None, ...]) -> None:
        """Create the weights."""
        self.self_attention.build(input_shape)
        self.residual.build(input_shape)
        self.feed_forward.build(input_shape)

    def call(self, x: Any, mask: Any = None, training: bool | None = None) -> Any:
        """Encode x [B, S, D] -> [B, S, D]; `mask` is boolean, True = attend, and broadcasts to [B, S, S]."""
        return self.call_with_weights(x, mask, training)[0]

    def call_with_weights(self, x: Any, mask: Any = None, training: bool | None = None) -> tuple[Any, Any]:
        """As `call`, for a layer that is built; returns the output and the weights of its attention [B, H, S, S]."""
        y, weights = self.self_attention(self.residual.enter(x), mask=mask, training=training)
        return self.feed_forward(self.residual.leave(x, y, training), training=training), weights

    def compute_output_shape(self, input_shape: tuple[int | None, ...]) -> tuple[int | None, ...]:
        """Return the shape of the input."""
        return input_shape

    def get_config(self) -> dict[str, Any]:
        """Return the constructor's arguments."""
        return super().get_config() | self.config


@with_options(StackOptions)
@keras.saving.register_keras_serializable("tf_transformer")
class Encoder(Stack):
    """The encoder: embeddings with positions, then a stack of layers (paper 3.1). ids [B, S] -> [B, S, D].

    Args:
        num_layers: layers of the stack.
        d_model: width, D.
        num_heads: attention heads, H.
        dff: width inside the feed-forward sub-layers.
        vocab_size: number of source tokens.
        dropout_rate: on sub-layer outputs and on the embedding sums.
        {options}
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
        **kwargs: Any,
    ):
        sizes = dict(d_model=d_model, num_heads=num_heads, dff=dff, dropout_rate=dropout_rate)
        super().__init__(EncoderLayer, num_layers=num_layers, vocab_size=vocab_size, sizes=sizes, **kwargs)

    def build(self, ids_shape: tuple[int | None, ...]) -> None:
        """Create the weights."""
        self.build_stack(ids_shape)

    def call(self, ids: Any, mask: Any = None, training: bool | None = None) -> Any:
        """Encode ids [B, S] -> [B, S, D]; `mask` is boolean, True = attend, such as `padding_mask(ids)`."""
        x = self.embedding(ids, training=training)
        for layer in self.stack:
            x = layer(x, mask=mask, training=training)
        return self.normalised(x)

    def attention(self, ids: Any, mask: Any = None) -> tuple[Any, tuple[Any, ...]]:
        """Return the output of `call` and for every layer the weights of its attention [B, H, S, S]; no dropout."""
        x, weights = self.embedding(ids, training=False), []
        for layer in self.stack:
            x, of_layer = layer.call_with_weights(x, mask, training=False)
            weights.append(of_layer)
        return self.normalised(x), tuple(weights)

    def compute_output_shape(self, ids_shape: tuple[int | None, ...]) -> tuple[int | None, ...]:
        """Return [B, S, D]."""
        return (*ids_shape, self.config["d_model"])

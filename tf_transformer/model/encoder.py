"""The encoder (paper 3.1)."""

from typing import Any

import keras

from tf_transformer.model.layer import TransformerLayer
from tf_transformer.model.stack import Stack


@keras.saving.register_keras_serializable("tf_transformer")
class EncoderLayer(TransformerLayer):
    """One layer of the encoder: self-attention and feed-forward (paper 3.1). x [B, S, D] -> [B, S, D].

    The arguments are those of `TransformerLayer`.
    """

    has_cross_attention = False

    def build(self, input_shape: tuple[int | None, ...]) -> None:
        """Create the weights."""
        self.build_sublayers(input_shape)

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
        y = self.self_attention_residual.sublayer_input(x, training)
        y, weights = self.self_attention(y, mask=mask, training=training)
        x = self.self_attention_residual.add_and_norm(x, y, training)

        y = self.feed_forward_residual.sublayer_input(x, training)
        y = self.feed_forward(y, training=training)
        x = self.feed_forward_residual.add_and_norm(x, y, training)
        return (x, weights) if return_attention_scores else x

    def compute_output_shape(self, input_shape: tuple[int | None, ...]) -> tuple[int | None, ...]:
        """Return the shape of the input."""
        return input_shape


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
        x = self.apply_final_norm(x, training)
        return (x, tuple(weights)) if return_attention_scores else x

    def compute_output_shape(self, ids_shape: tuple[int | None, ...]) -> tuple[int | None, ...]:
        """Return [B, S, D]."""
        return (*ids_shape, self.config["d_model"])

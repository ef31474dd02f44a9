"""The decoder (paper 3.1)."""

from typing import Any, NamedTuple

import keras
from keras import ops

from tf_transformer.model.cache import Cache, KeyValue
from tf_transformer.model.layer import TransformerLayer
from tf_transformer.model.masks import causal_mask, combine_masks
from tf_transformer.model.scaled_dot_product import attention_bias
from tf_transformer.model.stack import Stack


class Memory(NamedTuple):
    """What the decoder reads of the source (the "memory" of paper 3.2.3), computed once per batch of sources."""

    layers: tuple[KeyValue, ...]
    """for every layer, the keys and values of the encoder's output"""
    bias: Any
    """[B, 1, S]: what the mask of the source adds to the scores; see `attention_bias`"""


@keras.saving.register_keras_serializable("tf_transformer")
class DecoderLayer(TransformerLayer):
    """One layer of the decoder: causal self-attention, attention to the source, feed-forward (paper 3.1).

    The arguments are those of `TransformerLayer`.
    """

    has_cross_attention = True

    def build(self, x_shape: tuple[int | None, ...], context_shape: Any) -> None:
        """Create the weights for x [B, T, D] and a context [B, S, any]."""
        self.build_sublayers(x_shape, context_shape)

    def call(
        self,
        x: Any,
        context: Any,
        mask: Any = None,
        context_mask: Any = None,
        training: bool | None = None,
        return_attention_scores: bool = False,
    ) -> Any:
        """Decode x [B, T, D], reading context [B, S, any], -> [B, T, D].

        Args:
            x: the target positions.
            context: the encoded source.
            mask: boolean, True = attend, broadcasting to [B, T, T], in addition to the causal mask that the layer
                itself applies.
            context_mask: boolean, True = attend, broadcasting to [B, T, S].
            training: whether to apply dropout.
            return_attention_scores: whether to return the weights of self-attention [B, H, T, T] and those on the
                context [B, H, T, S] as well.
        """
        mask = combine_masks(mask, causal_mask(ops.shape(x)[1]))

        y = self.self_attention_residual.sublayer_input(x, training)
        y, weights = self.self_attention(y, mask=mask, training=training)
        x = self.self_attention_residual.add_and_norm(x, y, training)

        y = self.cross_attention_residual.sublayer_input(x, training)
        y, cross_weights = self.cross_attention(y, context, mask=context_mask, training=training)
        x = self.cross_attention_residual.add_and_norm(x, y, training)

        y = self.feed_forward_residual.sublayer_input(x, training)
        y = self.feed_forward(y, training=training)
        x = self.feed_forward_residual.add_and_norm(x, y, training)
        return (x, weights, cross_weights) if return_attention_scores else x

    def step(
        self,
        x: Any,
        position: Any,
        cache: Cache,
        context: KeyValue,
        context_bias: Any,
        num_hypotheses: int | None = None,
    ) -> tuple[Any, Any, KeyValue]:
        """As `call`, for one new position x [B * K, D] after those in the cache, of K hypotheses for each of B sources.

        `context_bias` and `num_hypotheses` are `bias` and `num_hypotheses` of `MultiHeadAttention.step_to_context`.

        Returns:
            The output [B * K, D], its weights on the source [B, H, K, S] and the cache with the new position.
        """
        y = self.self_attention_residual.sublayer_input(x, training=False)
        y, _, new_cache = self.self_attention.step(y, position, cache)
        x = self.self_attention_residual.add_and_norm(x, y, training=False)

        y = self.cross_attention_residual.sublayer_input(x, training=False)
        y, weights = self.cross_attention.step_to_context(y, context, context_bias, num_hypotheses)
        x = self.cross_attention_residual.add_and_norm(x, y, training=False)

        y = self.feed_forward_residual.sublayer_input(x, training=False)
        y = self.feed_forward(y, training=False)
        x = self.feed_forward_residual.add_and_norm(x, y, training=False)
        return x, weights, new_cache

    def compute_output_shape(self, x_shape: tuple[int | None, ...], context_shape: Any) -> tuple[int | None, ...]:
        """Return the shape of x."""
        return x_shape


@keras.saving.register_keras_serializable("tf_transformer")
class Decoder(Stack):
    """The decoder: embeddings with positions, then a stack of layers (paper 3.1).

    The arguments are those of `Stack`.
    """

    layer_class = DecoderLayer

    def build(self, ids_shape: tuple[int | None, ...], context_shape: Any) -> None:
        """Create the weights."""
        self.build_stack(ids_shape, context_shape)

    def call(
        self,
        ids: Any,
        context: Any,
        mask: Any = None,
        context_mask: Any = None,
        training: bool | None = None,
        return_attention_scores: bool = False,
    ) -> Any:
        """Decode ids [B, T], reading context [B, S, D], -> [B, T, D].

        Args:
            ids: the target tokens.
            context: the encoded source.
            mask: as in `DecoderLayer`.
            context_mask: as in `DecoderLayer`.
            training: whether to apply dropout.
            return_attention_scores: whether to return, for every layer, the weights of self-attention [B, H, T, T] as
                well, and those on the source [B, H, T, S].
        """
        x, weights, cross_weights = self.embedding(ids, training=training), [], []
        for layer in self.layers:
            x, layer_weights, layer_cross_weights = layer(
                x, context, mask=mask, context_mask=context_mask, training=training, return_attention_scores=True
            )
            if return_attention_scores:
                weights.append(layer_weights)
                cross_weights.append(layer_cross_weights)
        x = self.apply_final_norm(x, training)
        return (x, tuple(weights), tuple(cross_weights)) if return_attention_scores else x

    def project_context(self, context: Any, context_mask: Any) -> Memory:
        """Project the encoded source [B, S, D] for every layer, once for all steps."""
        layers = tuple(layer.cross_attention.project_context(context) for layer in self.layers)
        return Memory(layers, attention_bias(context_mask))

    def empty_cache(self, batch: Any, length: Any = None) -> tuple[Cache, ...]:
        """Return the caches of all layers before the first position of `batch` rows; see `MultiHeadAttention`."""
        return tuple(layer.self_attention.empty_cache(batch, length) for layer in self.layers)

    def step(
        self, ids: Any, position: Any, cache: tuple[Cache, ...], memory: Memory, num_hypotheses: int | None = None
    ) -> tuple[Any, Any, Any]:
        """Decode the ids [B * K] at `position`, after those in the cache, of K hypotheses for each of B sources.

        `num_hypotheses` is K, where it is known; it is found from the sizes otherwise.

        Returns:
            The output [B * K, D], for every layer its weights on the source [B, H, K, S], and the new cache.
        """
        x = ops.squeeze(self.embedding(ops.expand_dims(ids, 1), start=position, training=False), 1)
        # Added as it comes from outside of the loop, with oneDNN, TensorFlow 2.21 returned uninitialised tensors.
        bias = ops.expand_dims(memory.bias, 1)
        all_weights, new_cache = [], []
        for layer, kept, context in zip(self.layers, cache, memory.layers, strict=True):
            x, weights, kept = layer.step(x, position, kept, context, bias, num_hypotheses)
            all_weights.append(weights)
            new_cache.append(kept)
        return self.apply_final_norm(x, training=False), tuple(all_weights), tuple(new_cache)

    def compute_output_shape(self, ids_shape: tuple[int | None, ...], context_shape: Any) -> tuple[int | None, ...]:
        """Return [B, T, D]."""
        return (*ids_shape, self.config["d_model"])

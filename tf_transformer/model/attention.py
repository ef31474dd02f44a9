"""Multi-head attention (paper 3.2.2)."""

from typing import Any

import keras
from keras import ops

from tf_transformer.model.cache import Cache, FixedKeyValue, KeyValue
from tf_transformer.model.explicit_mask import ExplicitMaskLayer
from tf_transformer.model.linear import Linear
from tf_transformer.model.masks import boolean
from tf_transformer.model.scaled_dot_product import scaled_dot_product_attention


@keras.saving.register_keras_serializable("tf_transformer")
class MultiHeadAttention(ExplicitMaskLayer):
    """Multi-head attention (paper 3.2.2), with heads of width d_model // num_heads.

    Called without a context, the layer is self-attention, which projects query, key and value with one fused product.
    With a context, it projects the query with one product, and key and value with another. The first call (or `build`)
    decides which of the two it is from then on.

    Args:
        d_model: width of query and output, D.
        num_heads: number of heads, H.
        dropout_rate: on the attention weights; the paper has none there.

    Raises:
        ValueError: d_model is not a multiple of num_heads.
    """

    def __init__(self, *, d_model: int, num_heads: int, dropout_rate: float = 0.0, **kwargs: Any):
        super().__init__(**kwargs)
        if num_heads < 1 or d_model % num_heads:
            raise ValueError(f"d_model must be a multiple of num_heads. Received: {d_model=}, {num_heads=}")
        self.d_model = d_model
        self.num_heads = num_heads
        self.dropout_rate = dropout_rate
        self.dropout = keras.layers.Dropout(dropout_rate, name="dropout", dtype=self.dtype_policy)
        self.output_projection = Linear(d_model, name="output", dtype=self.dtype_policy)

    def build(self, query_shape: tuple[int | None, ...], context_shape: Any = None) -> None:
        """Create the weights: for self-attention, or with a `context_shape` for attention to a context."""
        self.is_self_attention = context_shape is None
        d, policy = self.d_model, self.dtype_policy
        if self.is_self_attention:
            self.query_key_value = Linear(3 * d, parts=3, name="query_key_value", dtype=policy)
            self.query_key_value.build(query_shape)
        else:
            self.query = Linear(d, name="query", dtype=policy)
            self.query.build(query_shape)
            self.key_value = Linear(2 * d, parts=2, name="key_value", dtype=policy)
            self.key_value.build(context_shape)
        self.output_projection.build((*query_shape[:-1], d))

    def call(self, query: Any, context: Any = None, mask: Any = None, training: bool | None = None) -> Any:
        """Attend. query [B, T, D], context [B, S, any] -> output [B, T, D] and weights [B, H, T, S].

        Args:
            query: the positions that attend.
            context: the positions that are attended to; the query itself by default.
            mask: boolean, True = attend, broadcasting to [B, T, S]; see `padding_mask` and `causal_mask`. [B, S] is
                taken for a padding mask.
            training: whether to apply dropout.

        Raises:
            ValueError: a mask of another rank; a context, although the layer was built without one, or none,
                although it was built with one.
        """
        if (context is None) != self.is_self_attention:
            built = "self-attention" if self.is_self_attention else "attention to a context"
            raise ValueError(f"this layer was built for {built}; make another for the other kind. Received: {context=}")
        mask = None if mask is None else boolean(mask)
        if mask is not None and len(mask.shape) == 2:
            # Keras itself passes such a padding mask of the attended positions on from `Embedding(mask_zero=True)`.
            mask = ops.expand_dims(mask, axis=1)
        if context is None:
            query, key, value = self._split_heads(self.query_key_value(query), 3)
        else:
            (query,) = self._split_heads(self.query(query), 1)
            key, value = self.project_context(context)
        if mask is not None:
            if len(mask.shape) != 3:
                raise ValueError(
                    "mask must have three axes and broadcast to [B, T, S]; padding_mask(ids) and causal_mask(length) "
                    f"make such masks. Received: mask of shape {tuple(mask.shape)}"
                )
            mask = ops.expand_dims(mask, axis=1)
        drop = None
        if self.dropout_rate:
            drop = lambda weights: self.dropout(weights, training=training)  # noqa: E731
        output, weights = scaled_dot_product_attention(query, key, value, mask, drop)
        batch, _, length, _ = ops.shape(output)
        output = ops.reshape(ops.transpose(output, (0, 2, 1, 3)), (batch, length, self.d_model))
        return self.output_projection(output), weights

    def project_context(self, context: Any) -> KeyValue:
        """Project a context [B, S, any] to its keys and values, once for many calls of `step_to`."""
        return KeyValue(*self._split_heads(self.key_value(context), 2))

    def step(self, x: Any, position: Any, cache: Cache) -> tuple[Any, Any, Cache]:
        """Self-attention of one new position in each of R rows, to itself and to the cached ones before it.

        Args:
            x: the new positions, [R, D].
            position: 0 or more, scalar.
            cache: the positions before them (see `empty_cache`).

        Returns:
            The output [R, D], the weights [R, H, 1, S] and the cache with the new position; S is its length.
        """
        shape = (-1, 3, self.num_heads, 1, self.d_model // self.num_heads)
        query, key, value = ops.unstack(ops.reshape(self.query_key_value(x), shape), axis=1)
        output, weights, cache = cache.attend(query, KeyValue(key, value), position)
        return self.output_projection(ops.reshape(output, (-1, self.d_model))), weights, cache

    def step_to(self, x: Any, context: KeyValue, mask: Any) -> tuple[Any, Any]:
        """Attend to B projected contexts from one new position in each of B * K rows, K of them for each context.

        Args:
            x: the new positions, [B * K, D].
            context: what `project_context` returned.
            mask: boolean, True = attend, [B, 1, S].

        Returns:
            The output [B * K, D] and the weights [B, H, K, S].
        """
        # The K rows of a context attend to it as if they were positions of one query, so that it need not be repeated.
        shape = (ops.shape(context.key)[0], -1, self.num_heads, self.d_model // self.num_heads)
        query = ops.transpose(ops.reshape(self.query(x), shape), (0, 2, 1, 3))
        output, weights = scaled_dot_product_attention(query, *context, ops.expand_dims(mask, axis=1))
        output = ops.reshape(ops.transpose(output, (0, 2, 1, 3)), (-1, self.d_model))
        return self.output_projection(output), weights

    def empty_cache(self, batch: Any, length: Any = None) -> Cache:
        """Return a cache of no positions for `batch` rows: one that grows, or one with room for `length` positions."""
        shape = (batch, self.num_heads, 0 if length is None else length, self.d_model // self.num_heads)
        empty = ops.zeros(shape, dtype=self.compute_dtype)
        return KeyValue(empty, empty) if length is None else FixedKeyValue(empty, empty)

    def _split_heads(self, x: Any, parts: int) -> Any:
        """[B, T, parts * D] -> `parts` tensors [B, H, T, D/H]."""
        batch, length = ops.shape(x)[:2]
        x = ops.reshape(x, (batch, length, parts, self.num_heads, self.d_model // self.num_heads))
        return ops.unstack(ops.transpose(x, (2, 0, 3, 1, 4)), axis=0)

    def compute_output_spec(
        self, query: Any, context: Any = None, mask: Any = None, training: bool | None = None
    ) -> Any:
        """Return the specifications of output and weights."""
        batch, length = query.shape[:2]
        attended = (query if context is None else context).shape[1]
        return (
            keras.KerasTensor((batch, length, self.d_model), dtype=self.compute_dtype),
            keras.KerasTensor((batch, self.num_heads, length, attended), dtype=self.compute_dtype),
        )

    def get_config(self) -> dict[str, Any]:
        """Return the constructor's arguments."""
        return super().get_config() | {
            "d_model": self.d_model,
            "num_heads": self.num_heads,
            "dropout_rate": self.dropout_rate,
        }

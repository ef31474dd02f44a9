"""Multi-head attention (paper 3.2.2)."""

import functools
import itertools
from typing import Any

import keras
from keras import ops

from tf_transformer.model.cache import Cache, DynamicCache, KeyValue, StaticCache
from tf_transformer.model.explicit_mask import ExplicitMaskLayer
from tf_transformer.model.linear import Linear
from tf_transformer.model.masks import add_heads_axis, with_padding
from tf_transformer.model.scaled_dot_product import scaled_dot_product_attention


@keras.saving.register_keras_serializable("tf_transformer")
class MultiHeadAttention(ExplicitMaskLayer):
    """Multi-head attention (paper 3.2.2).

    Called without a context, the layer is self-attention, which projects query, key and value with one fused product.
    With a context, it projects the query with one product, and key and value with another. The first call (or `build`)
    decides which of the two it is from then on. All projections have biases, initially zero; those of the paper have
    none.

    Args:
        d_model: width of query and output, D.
        num_heads: number of heads, H.
        dropout_rate: on the attention weights; the paper has none there.
        key_dim: width of the queries and keys of a head, d_k, if not d_model / num_heads (paper table 3, row B).
        value_dim: width of the values of a head, d_v, if not d_model / num_heads.

    Raises:
        ValueError: d_model is not a multiple of num_heads, and no widths are given.
    """

    def __init__(
        self,
        *,
        d_model: int,
        num_heads: int,
        dropout_rate: float = 0.0,
        key_dim: int | None = None,
        value_dim: int | None = None,
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        self.widths = {"key_dim": key_dim, "value_dim": value_dim}
        if num_heads < 1 or 0 in self.widths.values() or (None in self.widths.values() and d_model % num_heads):
            raise ValueError(
                "d_model must be a multiple of num_heads, unless key_dim and value_dim are given. "
                f"Received: {d_model=}, {num_heads=}, {self.widths}"
            )
        self.key_dim = d_model // num_heads if key_dim is None else key_dim
        self.value_dim = d_model // num_heads if value_dim is None else value_dim
        self.d_model = d_model
        self.num_heads = num_heads
        self.dropout_rate = dropout_rate
        self.dropout = keras.layers.Dropout(dropout_rate, name="dropout", dtype=self.dtype_policy)
        self.output_projection = Linear(d_model, name="output", dtype=self.dtype_policy)

    def build(self, query_shape: tuple[int | None, ...], context_shape: Any = None) -> None:
        """Create the weights: for self-attention, or with a `context_shape` for attention to a context."""
        self.is_self_attention = context_shape is None
        key_width, value_width = self.num_heads * self.key_dim, self.num_heads * self.value_dim
        policy = self.dtype_policy
        if self.is_self_attention:
            self.query_key_value = Linear(
                2 * key_width + value_width,
                widths=(key_width, key_width, value_width),
                name="query_key_value",
                dtype=policy,
            )
            self.query_key_value.build(query_shape)
        else:
            self.query = Linear(key_width, name="query", dtype=policy)
            self.query.build(query_shape)
            widths = (key_width, value_width)
            self.key_value = Linear(sum(widths), widths=widths, name="key_value", dtype=policy)
            self.key_value.build(context_shape)
        self.output_projection.build((*query_shape[:-1], value_width))

    def call(self, query: Any, context: Any = None, mask: Any = None, training: bool | None = None) -> Any:
        """Attend. query [B, T, D], context [B, S, any] -> output [B, T, D] and weights [B, H, T, S].

        Args:
            query: the positions that attend.
            context: the positions that are attended to; the query itself by default.
            mask: boolean, True = attend, broadcasting to [B, T, S]; see `padding_mask` and `causal_mask`. [B, S] is
                taken for a padding mask. The padding that Keras knows of what is attended to is masked as well.
            training: whether to apply dropout.

        Raises:
            ValueError: a mask of another type or rank; a context, although the layer was built without one, or none,
                although it was built with one.
        """
        if (context is None) != self.is_self_attention:
            built = "self-attention" if self.is_self_attention else "attention to a context"
            raise ValueError(f"this layer was built for {built}; make another for the other kind. Received: {context=}")
        mask = with_padding(mask, query if context is None else context)
        if context is None:
            q, k, v = self.project(self.query_key_value, query)
        else:
            q = self.split_heads(self.query(query))
            k, v = self.project_context(context)
        dropout = functools.partial(self.dropout, training=training)
        y, weights = scaled_dot_product_attention(q, k, v, add_heads_axis(mask), dropout)
        return self.output_projection(self.merge_heads(y)), weights

    def project(self, projection: Linear, x: Any) -> list[Any]:
        """Project x [B, T, any] or [R, any], and split each of the fused projections as `split_heads` does."""
        widths = projection.widths
        parts = len(widths) if len(set(widths)) == 1 else list(itertools.accumulate(widths))[:-1]
        return [self.split_heads(part) for part in ops.split(projection(x), parts, axis=-1)]

    def split_heads(self, x: Any) -> Any:
        """[B, T, H * width] -> [B, H, T, width]; one position in each of R rows, [R, H * width] -> [R, H, 1, width]."""
        width = x.shape[-1] // self.num_heads
        if len(x.shape) == 2:
            return ops.reshape(x, (-1, self.num_heads, 1, width))  # the heads of a single position lie side by side
        length = x.shape[1] or ops.shape(x)[1]
        return ops.transpose(ops.reshape(x, (-1, length, self.num_heads, width)), (0, 2, 1, 3))

    def merge_heads(self, x: Any) -> Any:
        """[B, H, T, d_v] -> [B, T, H * d_v]."""
        length = x.shape[2] or ops.shape(x)[2]
        return ops.reshape(ops.transpose(x, (0, 2, 1, 3)), (-1, length, self.num_heads * self.value_dim))

    def empty_cache(self, batch: Any, length: Any = None) -> Cache:
        """Return a cache of no positions for `batch` rows: one that grows, or one with room for `length` positions."""
        room = 0 if length is None else length
        key, value = (
            ops.zeros((batch, self.num_heads, room, width), dtype=self.compute_dtype)
            for width in (self.key_dim, self.value_dim)
        )
        return DynamicCache(key, value) if length is None else StaticCache(key, value)

    def step(self, x: Any, position: Any, cache: Cache) -> tuple[Any, Any, KeyValue]:
        """Self-attention of one new position in each of R rows, to itself and to the cached ones before it.

        Args:
            x: the new positions, [R, D].
            position: 0 or more, scalar.
            cache: the positions before them (see `empty_cache`).

        Returns:
            The output [R, D], the weights [R, H, 1, S], and what the cache's `attend` returns last: the cache with the
            new position, of length S. (`ReadOnlyCache` gives the new position alone, and weights [R, H, 1, S + 1].)
        """
        q, k, v = self.project(self.query_key_value, x)
        y, weights, new_cache = cache.attend(q, KeyValue(k, v), position)
        y = ops.reshape(y, (-1, self.num_heads * self.value_dim))
        return self.output_projection(y), weights, new_cache

    def project_context(self, context: Any) -> KeyValue:
        """Project a context [B, S, any] to its keys and values, once for many calls of `step_to_context`."""
        return KeyValue(*self.project(self.key_value, context))

    def step_to_context(
        self, x: Any, context: KeyValue, bias: Any, num_hypotheses: int | None = None
    ) -> tuple[Any, Any]:
        """Attention of one new position in each of B * K rows to B contexts; K rows in succession read a context.

        Args:
            x: the new positions, [B * K, D].
            context: what `project_context` returned.
            bias: of the context's mask, [B, 1, 1, S]; see `attention_bias`.
            num_hypotheses: K, where it is known; it is found from the sizes of x and context otherwise.

        Returns:
            The output [B * K, D] and the weights [B, H, K, S].
        """
        q = self.query(x)
        if num_hypotheses != 1:
            # The rows of a context attend to it like the positions of one query, so that it need not be repeated.
            rows = (-1, num_hypotheses) if num_hypotheses else (ops.shape(context.key)[0], -1)
            q = ops.reshape(q, (*rows, q.shape[-1]))
        y, weights = scaled_dot_product_attention(self.split_heads(q), *context, bias=bias)
        y = y if num_hypotheses == 1 else self.merge_heads(y)
        return self.output_projection(ops.reshape(y, (-1, self.num_heads * self.value_dim))), weights

    def get_config(self) -> dict[str, Any]:
        """Return the constructor's arguments."""
        return super().get_config() | {
            "d_model": self.d_model,
            "num_heads": self.num_heads,
            "dropout_rate": self.dropout_rate,
            **self.widths,
        }

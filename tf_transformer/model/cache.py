"""Projected keys and values, which attention reads and a cache keeps between the steps of decoding."""

import math
from typing import Any, NamedTuple

from keras import ops

from tf_transformer.model.scaled_dot_product import scaled_dot_product_attention


class KeyValue(NamedTuple):
    """Keys and values of S positions."""

    key: Any
    """[B, H, S, d_k]"""
    value: Any
    """[B, H, S, d_v]"""


class DynamicCache(KeyValue):
    """A cache that grows by one position a step."""

    def attend(self, query: Any, new: KeyValue, position: Any) -> tuple[Any, Any, "DynamicCache"]:
        """Add a new position at the end, and attend from it: query [B, H, 1, d_k].

        Returns:
            The output [B, H, 1, d_v], the weights [B, H, 1, S], and the cache with the new position.
        """
        grown = DynamicCache(*(ops.concatenate([old, one], axis=2) for old, one in zip(self, new, strict=True)))
        output, weights = scaled_dot_product_attention(query, *grown)
        return output, weights, grown


class StaticCache(KeyValue):
    """A cache with room for S positions, which are filled one by one. No shape changes, as XLA requires.

    On TensorFlow, `ops.slice_update` is an op of XLA, so that this needs it.
    """

    def attend(self, query: Any, new: KeyValue, position: Any) -> tuple[Any, Any, "StaticCache"]:
        """As `DynamicCache.attend`, except that the new position is written to its place in the cache."""
        start = (0, 0, position, 0)
        filled = StaticCache(*(ops.slice_update(old, start, one) for old, one in zip(self, new, strict=True)))
        mask = ops.reshape(ops.arange(ops.shape(self.key)[2]) <= position, (1, 1, -1))
        output, weights = scaled_dot_product_attention(query, *filled, mask)
        return output, weights, filled


class ReadOnlyCache(KeyValue):
    """A cache that a step only reads. The step returns the new position alone, and the owner of the cache stores it.

    The cache has room for S positions. Those before the new one are filled; the others must be finite.
    """

    def attend(self, query: Any, new: KeyValue, position: Any) -> tuple[Any, Any, KeyValue]:
        """As `DynamicCache.attend`, but the weights are [B, H, 1, S + 1], and the last result is the new position.

        The new position comes last, after places that are not filled yet. Nothing as large as the cache is made.
        """
        query = query * (1 / math.sqrt(query.shape[-1]))
        unfilled = ops.cast(ops.arange(ops.shape(self.key)[2]) >= position, query.dtype)
        before = ops.matmul(query, ops.swapaxes(self.key, -1, -2)) + unfilled * -1e9
        here = ops.sum(query * new.key, axis=-1, keepdims=True)
        weights = ops.softmax(ops.concatenate([before, here], axis=-1), axis=-1)
        output = ops.matmul(weights[..., :-1], self.value) + weights[..., -1:] * new.value
        return output, weights, new


Cache = DynamicCache | StaticCache | ReadOnlyCache

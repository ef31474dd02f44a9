"""Projected keys and values: what attention reads, and what a cache keeps between the steps of decoding."""

from typing import Any, NamedTuple

from keras import ops


class KeyValue(NamedTuple):
    """Keys and values of S positions; as a cache it grows by one position a step."""

    key: Any
    """[B, H, S, D/H]"""
    value: Any
    """[B, H, S, D/H]"""

    def add(self, new: "KeyValue", position: Any) -> tuple["KeyValue", None]:
        """Return the cache with the new position [B, H, 1, D/H] at its end, and the mask of what it holds: none."""
        return KeyValue(*(ops.concatenate([old, one], axis=2) for old, one in zip(self, new, strict=True))), None


class FixedKeyValue(NamedTuple):
    """A cache with room for S positions, filled one by one: all shapes stay as they are, as XLA needs it.

    On the TensorFlow backend `add` makes an op of XLA.
    """

    key: Any
    """[B, H, S, D/H]"""
    value: Any
    """[B, H, S, D/H]"""

    def add(self, new: KeyValue, position: Any) -> tuple["FixedKeyValue", Any]:
        """Return the cache with the new position [B, H, 1, D/H] put in, and the mask [1, 1, S] of what is filled."""
        start = (0, 0, position, 0)
        filled = FixedKeyValue(*(ops.slice_update(old, start, one) for old, one in zip(self, new, strict=True)))
        return filled, ops.reshape(ops.arange(ops.shape(self.key)[2]) <= position, (1, 1, -1))


Cache = KeyValue | FixedKeyValue

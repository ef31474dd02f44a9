"""Attention masks: boolean, True = attend, of a shape that broadcasts to [B, T, S]."""

from typing import Any

import keras
from keras import ops

from tf_transformer.config.special_tokens import PAD


def padding_mask(ids: Any) -> Any:
    """Attend to every position of `ids` [B, S] that is not padding (id 0). Returns [B, 1, S]."""
    return ops.expand_dims(ops.not_equal(ids, PAD), axis=1)


def causal_mask(length: Any) -> Any:
    """Attend to a position itself and to those before it (paper 3.2.3). Returns [1, T, T], T = `length`."""
    positions = ops.arange(length)
    return ops.expand_dims(ops.expand_dims(positions, 1) >= ops.expand_dims(positions, 0), 0)


def both(mask: Any, other: Any) -> Any:
    """Attend where both masks do. `mask` [B, S], [B, T, S] or None for everywhere, `other` [B, T, S]."""
    return other if mask is None else ops.logical_and(_checked(mask), other)


def mask_of_heads(mask: Any) -> Any:
    """Return a mask [B, S] or [B, T, S] for the scores of all heads: [B, 1, 1, S] or [B, 1, T, S]. None stays None."""
    return None if mask is None else ops.expand_dims(_checked(mask), axis=1)


def _checked(mask: Any) -> Any:
    """Return the mask with three axes.

    Keras itself passes a padding mask of the attended positions, [B, S], on from `Embedding(mask_zero=True)`.

    Raises:
        ValueError: it is not boolean, because an additive mask, or one of 0 and 1, would mean something else; or it has
            neither two axes nor three.
    """
    if (dtype := keras.backend.standardize_dtype(mask.dtype)) != "bool":
        raise ValueError(
            "mask must be boolean, True = attend: give mask == 0 for an additive mask, mask == 1 for one of 0 and 1. "
            f"Received: a mask of type {dtype}"
        )
    if len(mask.shape) not in (2, 3):
        raise ValueError(
            "mask must have three axes and broadcast to [B, T, S]; padding_mask(ids) and causal_mask(length) make such "
            f"masks. Received: mask of shape {tuple(mask.shape)}"
        )
    return ops.expand_dims(mask, axis=1) if len(mask.shape) == 2 else mask

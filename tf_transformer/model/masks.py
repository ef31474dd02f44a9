"""Attention masks: boolean, True = attend, of a shape that broadcasts to [B, T, S]."""

from typing import Any

import keras
from keras import ops

from tf_transformer.config.special_tokens import PAD


def padding_mask(ids: Any) -> Any:
    """Return a mask [B, 1, S] of the positions of `ids` [B, S] that are not padding (id 0)."""
    return ops.expand_dims(ops.not_equal(ids, PAD), axis=1)


def causal_mask(length: Any) -> Any:
    """Return a mask [1, T, T], T = `length`: a position attends to itself and those before it (paper 3.2.3)."""
    positions = ops.arange(length)
    return ops.expand_dims(ops.expand_dims(positions, 1) >= ops.expand_dims(positions, 0), 0)


def with_padding(mask: Any, attended: Any) -> Any:
    """Return a mask that is False at the padding, too, that Keras knows of what is attended to.

    `Embedding(mask_zero=True)` attaches a mask [B, S] to its output, and layers hand it on.

    Args:
        mask: [B, S], [B, T, S] or None.
        attended: [B, S, any], the output of a layer.
    """
    padding = getattr(attended, "_keras_mask", None)
    return mask if padding is None else combine_masks(mask, ops.expand_dims(padding, axis=1))


def combine_masks(mask: Any, other: Any) -> Any:
    """Return the mask [B, T, S] that is True where both are: `mask` [B, S], [B, T, S] or None, `other` [B, T, S]."""
    return other if mask is None else ops.logical_and(_three_axes(mask), other)


def add_heads_axis(mask: Any) -> Any:
    """Return a mask [B, S] or [B, T, S] for the scores of all heads: [B, 1, 1, S] or [B, 1, T, S]. None stays None."""
    return None if mask is None else ops.expand_dims(_three_axes(mask), axis=1)


def _three_axes(mask: Any) -> Any:
    """Return the mask with three axes.

    Two axes are the padding mask that Keras's `Embedding(mask_zero=True)` passes on, in a model of one's own.

    Raises:
        ValueError: as `boolean`; or it has neither two axes nor three.
    """
    mask = boolean(mask)
    if len(mask.shape) not in (2, 3):
        raise ValueError(
            "mask must have three axes and broadcast to [B, T, S]; padding_mask(ids) and causal_mask(length) make such "
            f"masks. Received: mask of shape {tuple(mask.shape)}"
        )
    return ops.expand_dims(mask, axis=1) if len(mask.shape) == 2 else mask


def boolean(mask: Any) -> Any:
    """Return a mask, which may be an array or nested lists, as a tensor or array.

    Raises:
        ValueError: it is not boolean, because an additive mask, or one of 0 and 1, would mean something else.
    """
    mask = mask if hasattr(mask, "dtype") else ops.convert_to_tensor(mask)
    if (dtype := keras.backend.standardize_dtype(mask.dtype)) != "bool":
        raise ValueError(
            "mask must be boolean, True = attend: give mask == 0 for an additive mask, mask == 1 for one of 0 and 1. "
            f"Received: a mask of type {dtype}"
        )
    return mask

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


def boolean(mask: Any) -> Any:
    """Return the mask, which must be boolean.

    Raises:
        ValueError: it is not boolean; an additive mask, or one of 0 and 1, would mean something else.
    """
    if (dtype := keras.backend.standardize_dtype(mask.dtype)) != "bool":
        raise ValueError(
            "mask must be boolean, True = attend: give mask == 0 for an additive mask, mask == 1 for one of 0 and 1. "
            f"Received: a mask of type {dtype}"
        )
    return mask

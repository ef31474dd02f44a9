"""Scaled dot-product attention (paper 3.2.1)."""

import math
from typing import Any

from keras import ops

from tf_transformer.model.masks import boolean


def scaled_dot_product_attention(
    query: Any, key: Any, value: Any, mask: Any = None, dropout: Any = None, bias: Any = None
) -> Any:
    """Attend: softmax(query key^T / sqrt(d_k)) value (paper 3.2.1).

    The softmax is in float32 whatever the type of the inputs. A row that may attend to nothing gets
    equal weights.

    Args:
        query: [..., T, d_k].
        key: [..., S, d_k].
        value: [..., S, d_v].
        mask: boolean, True = attend; broadcasts to [..., T, S]. None attends everywhere.
        dropout: a function applied to the weights before they multiply the values.
        bias: the `attention_bias` of a mask, in place of the mask; one does for all layers.

    Raises:
        ValueError: the mask is not boolean.

    Returns:
        The output [..., T, d_v] and the weights [..., T, S] before dropout, of the type of `value`.
    """
    query = query * (1 / math.sqrt(query.shape[-1]))
    scores = ops.cast(ops.matmul(query, ops.swapaxes(key, -1, -2)), "float32")
    if mask is not None:
        bias = attention_bias(mask)
    if bias is not None:
        scores = scores + bias
    # A single position gets all the weight; Keras would warn of a softmax over one element.
    weights = ops.ones_like(scores) if scores.shape[-1] == 1 else ops.softmax(scores, axis=-1)
    weights = ops.cast(weights, value.dtype)
    return ops.matmul(weights if dropout is None else dropout(weights), value), weights


def attention_bias(mask: Any) -> Any:
    """Return what a boolean mask, True = attend, adds to the scores, float32: 0 where it is True, else -1e9.

    Raises:
        ValueError: another type.
    """
    mask = boolean(mask)
    # Far below every score, yet finite: a row without a True stays free of NaN. Adding is cheaper than `where`.
    return (1 - ops.cast(mask, "float32")) * -1e9

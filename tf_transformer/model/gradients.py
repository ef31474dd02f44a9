"""Gradients that are written out."""

from collections.abc import Callable
from typing import Any

from keras import ops


def with_gradient(function: Callable[[Any], tuple[Any, Callable[[Any], Any]]], x: Any) -> Any:
    """Call a function that returns its value, and what makes the gradient of `x` of that of the value.

    What else the function reads must be no variable: Keras passes on the gradient of `x` alone.
    """

    @ops.custom_gradient
    def call(x: Any) -> Any:
        value, gradient = function(x)

        def backward(*args: Any, upstream: Any = None) -> Any:
            return gradient(args[0] if upstream is None else upstream)  # as the backend gives it

        return value, backward

    return call(x)

"""Functions with explicit gradients."""

from collections.abc import Callable
from typing import Any

from keras import ops


def with_gradient(function: Callable[[Any], tuple[Any, Callable[[Any], Any]]], x: Any) -> Any:
    """Call a function that returns its value, and a function from the gradient of the value to that of `x`.

    The function may not read variables, because Keras passes on only the gradient of `x`.
    """

    @ops.custom_gradient
    def call(x: Any) -> Any:
        value, gradient = function(x)

        def backward(*args: Any, upstream: Any = None) -> Any:
            return gradient(args[0] if upstream is None else upstream)  # which of the two depends on the backend

        return value, backward

    return call(x)

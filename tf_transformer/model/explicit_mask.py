"""The base of the layers that take attention masks."""

from typing import Any

import keras


class ExplicitMaskLayer(keras.layers.Layer):
    """A layer that takes masks as arguments and attaches none to its output.

    Keras would attach a `mask` argument to the output and hand it on to losses and later layers, which rescale by it.
    """

    def __init__(self, **kwargs: Any):
        super().__init__(**kwargs)
        self.supports_masking = True

    def compute_mask(self, inputs: Any, previous_mask: Any) -> None:
        """Attach no mask to the output."""

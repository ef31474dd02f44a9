"""The base of the layers that take attention masks."""

from typing import Any

import keras

from tf_transformer.model.low_rank import LowRank


class ExplicitMaskLayer(LowRank, keras.layers.Layer):
    """A layer that takes attention masks as arguments, and passes padding masks of Keras on.

    Keras attaches a padding mask [B, T] to the output of `Embedding(mask_zero=True)`, and gives it to the next layer as
    `mask`. That layer must attach it to its own output for later layers. Keras would attach a mask that is given as an
    argument too, [B, T, S] or that of a context, and later layers and losses would take it for a padding mask.
    """

    def __init__(self, **kwargs: Any):
        super().__init__(**kwargs)
        self.supports_masking = True

    def compute_output_spec(self, *args: Any, **kwargs: Any) -> Any:
        """Return the specifications of all outputs; those of attention weights depend on the arguments of the call."""
        return keras.Operation.compute_output_spec(self, *args, **kwargs)

    def compute_mask(self, inputs: Any, previous_mask: Any) -> Any:
        """Return the mask to attach to the output: the padding mask that Keras has attached to the first input, if any.

        What Keras gives as `previous_mask` may be an argument of the call, which can be that of a context.
        """
        return getattr(inputs, "_keras_mask", None)

"""The affine map that all sub-layers are made of."""

from collections.abc import Sequence
from typing import Any

import keras
from keras import ops


@keras.saving.register_keras_serializable("tf_transformer")
class Linear(keras.layers.Layer):
    """`activation(x @ kernel + bias)`, x [..., D] -> [..., units].

    It flattens the leading axes first, because `keras.layers.Dense` on [B, T, D] becomes a batched product whose
    gradient has a kernel for every row of the batch.

    Args:
        units: size of the last axis of the output.
        widths: of the projections that are fused side by side, such as query, key and value; one of `units` by
            default. Each is initialised Glorot-uniform with its own fans, as if it stood alone.
        activation: name of a Keras activation; none by default.
        use_bias: whether to add a bias, initially zero.
        lora_rank: as in `enable_lora`, which `build` calls if this is given.
        lora_alpha: as in `enable_lora`.
    """

    def __init__(
        self,
        units: int,
        *,
        widths: Sequence[int] | None = None,
        activation: str | None = None,
        use_bias: bool = True,
        lora_rank: int | None = None,
        lora_alpha: float | None = None,
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        self.widths = [units] if widths is None else list(widths)
        if sum(self.widths) != units:
            raise ValueError(f"units must be the sum of widths. Received: {units=}, {widths=}")
        self.supports_masking = True  # it changes each position by itself
        self.units = units
        self.activation = keras.activations.get(activation)
        self.use_bias = use_bias
        self.lora_rank = lora_rank
        self.lora_alpha = lora_alpha
        self.lora_enabled = False

    def build(self, input_shape: tuple[int | None, ...]) -> None:
        """Create the weights for inputs [..., D]."""
        # Each draws its seed when it is made. A strategy may ask for the values more than once, so they are made here.
        initializers = [keras.initializers.GlorotUniform() for _ in self.widths]

        def initial(shape: tuple[int, int], dtype: str) -> Any:
            drawn = zip(initializers, self.widths, strict=True)
            return ops.concatenate([draw((shape[0], width), dtype=dtype) for draw, width in drawn], axis=1)

        self.kernel = self.add_weight(name="kernel", shape=(input_shape[-1], self.units), initializer=initial)
        if self.use_bias:
            self.bias = self.add_weight(name="bias", shape=(self.units,), initializer="zeros")
        self.built = True
        if self.lora_rank:
            self.enable_lora(self.lora_rank, lora_alpha=self.lora_alpha)

    def enable_lora(
        self,
        rank: int,
        a_initializer: Any = "he_uniform",
        b_initializer: Any = "zeros",
        lora_alpha: float | None = None,
    ) -> None:
        """Freeze the kernel [D, units], and learn a product of low rank beside it (LoRA, Hu et al. 2021).

        It does what `keras.layers.Dense.enable_lora` does, with the same names. The effective kernel is
        `kernel + lora_alpha / rank * lora_kernel_a @ lora_kernel_b`. Nothing changes at first, because the second
        factor is zero. Fused projections share the first factor.

        Args:
            rank: the rank of the product, R; the factors are [D, R] and [R, units].
            a_initializer: the initializer of the first factor.
            b_initializer: the initializer of the second factor.
            lora_alpha: scales the product; the rank by default.

        Raises:
            ValueError: a layer that is not built, or has such factors already.
        """
        if not self.built or self.lora_enabled:
            raise ValueError("LoRA can be enabled only once, on a layer that is built")
        self.lora_rank, self.lora_alpha = rank, rank if lora_alpha is None else lora_alpha
        self.lora_scale = self.lora_alpha / rank
        self._tracker.unlock()
        for name, shape, initializer in (
            ("lora_kernel_a", (self.kernel.shape[0], rank), a_initializer),
            ("lora_kernel_b", (rank, self.units), b_initializer),
        ):
            setattr(self, name, self.add_weight(name=name, shape=shape, initializer=initializer))
        self._tracker.lock()
        self.kernel.trainable = False
        self.lora_enabled = True

    def call(self, x: Any) -> Any:
        """Map x [..., D] to [..., units]."""
        rows = x if len(x.shape) == 2 else ops.reshape(x, (-1, x.shape[-1]))
        y = ops.matmul(rows, self.kernel)
        if self.lora_enabled:
            # Multiplying by the narrow factor first avoids a gradient of the size of the kernel.
            change = ops.matmul(ops.matmul(rows, self.lora_kernel_a), self.lora_kernel_b)
            y = ops.add(y, ops.multiply(change, self.lora_scale))
        if self.use_bias:
            y = ops.add(y, self.bias)
        y = self.activation(y)
        return y if len(x.shape) == 2 else ops.reshape(y, (*ops.shape(x)[:-1], self.units))

    def quantize(self, mode: str | None = None, **_: Any) -> None:
        """Refuse Keras's quantisation, in which int8 products take longer than float32 ones on CPUs.

        Raises:
            NotImplementedError: always; `Model.quantize` turns it into a warning.
        """
        raise NotImplementedError(not_quantized(self, mode))

    def compute_output_shape(self, input_shape: tuple[int | None, ...]) -> tuple[int | None, ...]:
        """Return [..., units]."""
        return (*input_shape[:-1], self.units)

    def get_config(self) -> dict[str, Any]:
        """Return the constructor's arguments."""
        return super().get_config() | {
            "units": self.units,
            "widths": self.widths,
            "activation": keras.activations.serialize(self.activation),
            "use_bias": self.use_bias,
            **({"lora_rank": self.lora_rank, "lora_alpha": self.lora_alpha} if self.lora_rank else {}),
        }


def not_quantized(layer: keras.layers.Layer, mode: str | None) -> str:
    """Return why a layer is not quantised, and what to do instead."""
    return (
        f"{type(layer).__name__} is not quantised, because Keras's {mode} is slower than float32 on CPUs. "
        "For 8-bit weights, use tf-transformer export --format litert --quantize int8"
    )

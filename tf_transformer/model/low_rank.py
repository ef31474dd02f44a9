"""Low-rank adaptation of layers that are made of projections."""

from typing import Any

from tf_transformer.model.linear import Linear

FACTORS = ("lora_kernel_a", "lora_kernel_b")
"""What Keras calls the low-rank factors of a kernel."""
ROWS = "lora_rows"
"""What is added to the last rows of a table of embeddings."""
LEARNED = (*FACTORS, ROWS)
"""The names of all that low-rank adaptation learns."""


class LowRank:
    """A base class beside Keras's own, for layers and models that give all their projections low-rank factors."""

    lora: dict[str, Any] | None = None
    """the arguments of `enable_lora`, once it was called"""

    def enable_lora(self, rank: int, lora_alpha: float | None = None) -> None:
        """Freeze all weights, and learn a product of low rank beside the kernel of every projection (Hu et al. 2021).

        Args:
            rank: the rank of the products.
            lora_alpha: scales them; the rank by default. See `Linear.enable_lora`.

        Raises:
            ValueError: a layer that is not built, or has such factors already.
        """
        for layer in self._flatten_layers(include_self=False):  # type: ignore[attr-defined]
            if isinstance(layer, Linear):
                layer.enable_lora(rank, lora_alpha=lora_alpha)
        for weight in self.trainable_variables:  # type: ignore[attr-defined]
            weight.trainable = weight.name in LEARNED
        self.lora = {"rank": rank, "lora_alpha": lora_alpha}

    def get_build_config(self) -> dict[str, Any] | None:
        """Return what a saved layer is built from: shapes, and the low-rank factors that it has."""
        config = super().get_build_config()  # type: ignore[misc]
        return config if self.lora is None else {**(config or {}), "lora": self.lora}

    def build_from_config(self, config: dict[str, Any]) -> None:
        """Build a layer that is being loaded."""
        config = dict(config)
        lora = config.pop("lora", None)
        super().build_from_config(config)  # type: ignore[misc]
        if lora:
            self.enable_lora(**lora)

"""What encoder and decoder have in common (paper 3.1)."""

from dataclasses import asdict
from typing import Any

from tf_transformer.config.model import LayerOptions, PositionOptions, StackOptions
from tf_transformer.model.embeddings import PositionalEmbedding, TokenEmbedding
from tf_transformer.model.explicit_mask import ExplicitMaskLayer
from tf_transformer.model.layer_norm import LayerNorm
from tf_transformer.model.options import passed_on, taken


class Stack(ExplicitMaskLayer):
    """Embeddings with positions, then layers of one kind; with norm="pre" a layer norm at the end.

    Args:
        layer: the class of the layers.
        num_layers: how many of them.
        vocab_size: number of tokens.
        tokens: a `TokenEmbedding` to share; a new one by default.
        sizes: what the layers take besides their options: d_model, num_heads, dff and dropout_rate.
        **kwargs: `StackOptions`, and Keras's own.
    """

    def __init__(
        self,
        layer: type,
        *,
        num_layers: int,
        vocab_size: int,
        sizes: dict[str, Any],
        tokens: TokenEmbedding | None = None,
        **kwargs: Any,
    ):
        options, kwargs = taken(StackOptions, kwargs)
        super().__init__(**kwargs)
        self.config: dict[str, Any] = dict(num_layers=num_layers, vocab_size=vocab_size, **sizes, **asdict(options))
        policy = self.dtype_policy
        self.embedding = PositionalEmbedding(
            vocab_size,
            sizes["d_model"],
            dropout_rate=sizes["dropout_rate"],
            tokens=tokens,
            **passed_on(options, PositionOptions),
            name="embedding",
            dtype=policy,
        )
        of_layer = sizes | passed_on(options, LayerOptions)
        self.stack = [layer(**of_layer, name=f"layer_{i}", dtype=policy) for i in range(num_layers)]
        self.final_norm = None
        if options.norm == "pre":
            self.final_norm = LayerNorm(options.norm_epsilon, name="final_norm", dtype=policy)

    def build_stack(self, ids_shape: tuple[int | None, ...], *context_shape: Any) -> None:
        """Create the weights for ids [B, T], and for a context where the layers read one."""
        self.embedding.build(ids_shape)
        shape = (*ids_shape, self.config["d_model"])
        for layer in self.stack:
            layer.build(shape, *context_shape)
        if self.final_norm is not None:
            self.final_norm.build(shape)

    def normalised(self, x: Any) -> Any:
        """Return the output of the last layer, normalised if the stack has a final norm."""
        return x if self.final_norm is None else self.final_norm(x)

    def get_config(self) -> dict[str, Any]:
        """Return the constructor's arguments, save for shared tokens: those belong to the model that shares them."""
        return super().get_config() | self.config

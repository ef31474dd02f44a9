"""What encoder and decoder have in common (paper 3.1)."""

from typing import Any, ClassVar

from tf_transformer.model.embeddings import PositionalEmbedding, TokenEmbedding
from tf_transformer.model.explicit_mask import ExplicitMaskLayer
from tf_transformer.model.layer_norm import LayerNorm


class Stack(ExplicitMaskLayer):
    """Embeddings with positions, then layers of one kind; with norm="pre" a layer norm at the end.

    Args:
        num_layers: layers of the stack.
        d_model: width, D.
        num_heads: attention heads, H.
        dff: width inside the feed-forward sub-layers.
        vocab_size: number of tokens, V.
        dropout_rate: on sub-layer outputs and on the embedding sums.
        attention_dropout_rate: on attention weights; the paper has none there.
        activation: of the feed-forward sub-layer, an element-wise one of Keras.
        activation_dropout_rate: inside the feed-forward sub-layer, after the activation; the paper has none there.
        norm: "post" normalises after each sub-layer, as the paper does; "pre" before it.
        norm_epsilon: added to the variance in layer norms.
        key_dim: width of the queries and keys of a head, d_k, if not d_model / num_heads (paper table 3, row B).
        value_dim: width of the values of a head, d_v, if not d_model / num_heads.
        positions: "sinusoidal" (any length; the paper), "learned" (up to max_positions; paper table 3, row E), or the
            sinusoids of "opus", "marian" or "m2m100" models.
        max_positions: rows of the learned position table. A longer input is an error where its length is known;
            elsewhere the caller must see to it.
        tokens: a `TokenEmbedding` to share (paper 3.4); a new one by default.
        **kwargs: Keras's own, such as `name` and `dtype`.
    """

    layer_class: ClassVar[type]
    """the kind of the layers"""

    def __init__(
        self,
        *,
        num_layers: int,
        d_model: int,
        num_heads: int,
        dff: int,
        vocab_size: int,
        dropout_rate: float = 0.1,
        attention_dropout_rate: float = 0.0,
        activation: str = "relu",
        activation_dropout_rate: float = 0.0,
        norm: str = "post",
        norm_epsilon: float = 1e-6,
        key_dim: int | None = None,
        value_dim: int | None = None,
        positions: str = "sinusoidal",
        max_positions: int = 1024,
        tokens: TokenEmbedding | None = None,
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        self.autocast = False  # ids that are floats would become others in a shorter type
        self.has_own_tokens = tokens is None
        policy = self.dtype_policy
        layer: dict[str, Any] = dict(
            d_model=d_model,
            num_heads=num_heads,
            dff=dff,
            dropout_rate=dropout_rate,
            attention_dropout_rate=attention_dropout_rate,
            activation=activation,
            activation_dropout_rate=activation_dropout_rate,
            norm=norm,
            norm_epsilon=norm_epsilon,
            key_dim=key_dim,
            value_dim=value_dim,
        )
        self.config: dict[str, Any] = dict(
            num_layers=num_layers, vocab_size=vocab_size, positions=positions, max_positions=max_positions, **layer
        )
        self.embedding = PositionalEmbedding(
            vocab_size,
            d_model,
            dropout_rate=dropout_rate,
            tokens=tokens,
            positions=positions,
            max_positions=max_positions,
            name="embedding",
            dtype=policy,
        )
        self.layers = [self.layer_class(**layer, name=f"layer_{i}", dtype=policy) for i in range(num_layers)]
        self.final_norm = None
        if norm == "pre":
            self.final_norm = LayerNorm(norm_epsilon, name="final_norm", dtype=policy)

    def build_stack(self, ids_shape: tuple[int | None, ...], *context_shape: Any) -> None:
        """Create the weights for ids [B, T], and for a context where the layers read one."""
        self.embedding.build(ids_shape)
        shape = (*ids_shape, self.config["d_model"])
        for layer in self.layers:
            layer.build(shape, *context_shape)
        if self.final_norm is not None:
            self.final_norm.build(shape)

    def apply_final_norm(self, x: Any, training: bool | None = None) -> Any:
        """Return final_norm(x), or x if the stack has no final norm."""
        return x if self.final_norm is None else self.final_norm(x, training=training)

    def get_config(self) -> dict[str, Any]:
        """Return the constructor's arguments.

        Raises:
            ValueError: the tokens are shared, so they belong to the model that shares them.
        """
        if not self.has_own_tokens:
            raise ValueError(
                "a stack with the tokens of another layer cannot be saved by itself: save the weights alone, or a "
                f"Transformer, which has both stacks. Received: {self.name}"
            )
        return super().get_config() | self.config

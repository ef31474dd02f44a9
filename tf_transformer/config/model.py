"""The settings of the model and of its layers."""

from dataclasses import dataclass

from tf_transformer.config.fields import Section, setting
from tf_transformer.config.special_tokens import SPECIAL_TOKENS
from tf_transformer.errors import InputError

ACTIVATIONS = (
    *("relu", "gelu", "silu", "swish", "elu", "selu", "celu", "leaky_relu", "relu6", "mish", "tanh", "sigmoid"),
    *("softplus", "softsign", "squareplus", "hard_silu", "hard_sigmoid", "hard_tanh", "linear"),
)
"""Keras's element-wise activations."""


@dataclass(frozen=True, kw_only=True)
class ModelConfig(Section):
    """The arguments of `Transformer`, which documents them."""

    num_layers: int = setting(6, "layers of the encoder, and of the decoder", at_least=1)
    num_decoder_layers: int | None = setting(None, "layers of the decoder, if not num_layers", at_least=1)
    d_model: int = setting(512, "width of the model", at_least=1)
    num_heads: int = setting(
        8, "attention heads; d_model must be divisible by it, unless their widths are given", at_least=1
    )
    dff: int = setting(2048, "width inside the feed-forward sub-layer", at_least=1)
    input_vocab_size: int | None = setting(
        None, "size of the source vocabulary; taken from the tokenizer", at_least=SPECIAL_TOKENS + 1
    )
    target_vocab_size: int | None = setting(
        None, "size of the target vocabulary; taken from the tokenizer", at_least=SPECIAL_TOKENS + 1
    )
    dropout_rate: float = setting(0.1, "dropout rate on sub-layer outputs and on embedding sums", at_least=0, below=1)
    norm: str = setting(
        "post", "layer norm after each sub-layer (post, the paper) or before it (pre)", choices=("post", "pre")
    )
    norm_epsilon: float = setting(1e-6, "number added to the variance in layer norms", above=0)
    activation: str = setting(
        "relu", "activation of the feed-forward sub-layer, an element-wise one of Keras", choices=ACTIVATIONS
    )
    activation_dropout_rate: float = setting(
        0.0,
        "dropout rate inside the feed-forward sub-layer, after the activation; the paper has no dropout there",
        at_least=0,
        below=1,
    )
    key_dim: int | None = setting(
        None,
        "width of the queries and keys of a head, d_k, if not d_model / num_heads (paper table 3, row B)",
        at_least=1,
    )
    value_dim: int | None = setting(None, "width of the values of a head, d_v, if not d_model / num_heads", at_least=1)
    attention_dropout_rate: float = setting(
        0.0, "dropout rate on attention weights; the paper has no dropout there", at_least=0, below=1
    )
    positions: str = setting(
        "sinusoidal",
        "sinusoidal (any length; the paper), learned (up to max_positions; paper table 3, row E), or the sinusoids of "
        "opus, marian or m2m100 models",
        choices=("sinusoidal", "learned", "opus", "marian", "m2m100"),
    )
    max_positions: int = setting(1024, "tokens in the learned position table; a longer input is an error", at_least=1)
    share_embeddings: str = setting(
        "none",
        "shared embeddings: none, target (output tied to target embedding) or all (paper 3.4)",
        choices=("none", "target", "all"),
    )
    output_bias: bool = setting(False, "whether the logits have a bias, as in Marian")

    def __post_init__(self) -> None:
        super().__post_init__()
        if None in (self.key_dim, self.value_dim) and self.d_model % self.num_heads:
            raise InputError(
                "d_model must be divisible by num_heads, unless key_dim and value_dim are given. "
                f"Received: d_model={self.d_model}, num_heads={self.num_heads}"
            )
        if self.positions != "learned" and self.d_model % 2:
            raise InputError(f"d_model must be even for {self.positions} positions. Received: {self.d_model}")

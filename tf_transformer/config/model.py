"""The settings of the model: what its layers take, and what it is made of."""

from dataclasses import dataclass

from tf_transformer.config.fields import Section, setting
from tf_transformer.config.special_tokens import SPECIAL_TOKENS
from tf_transformer.errors import InputError

ACTIVATIONS = (
    *("relu", "gelu", "silu", "swish", "elu", "selu", "celu", "leaky_relu", "relu6", "mish", "tanh", "sigmoid"),
    *("softplus", "softsign", "squareplus", "hard_silu", "hard_sigmoid", "hard_tanh", "linear"),
)
"""Keras's activations that map each element by itself."""


@dataclass(frozen=True, kw_only=True)
class NormOptions:
    """How sub-layers are normalised."""

    norm: str = setting(
        "post", "layer norm after each sub-layer (post, the paper) or before (pre)", choices=("post", "pre")
    )
    norm_epsilon: float = setting(1e-6, "added to the variance in layer norms", above=0)


@dataclass(frozen=True, kw_only=True)
class FeedForwardOptions(NormOptions):
    """What `FeedForward` takes besides its sizes."""

    activation: str = setting(
        "relu", "of the feed-forward sub-layer: an element-wise Keras activation", choices=ACTIVATIONS
    )


@dataclass(frozen=True, kw_only=True)
class LayerOptions(FeedForwardOptions):
    """What `EncoderLayer` and `DecoderLayer` take besides the tutorial's arguments."""

    attention_dropout_rate: float = setting(0.0, "on attention weights; the paper has none there", at_least=0, below=1)


@dataclass(frozen=True, kw_only=True)
class PositionOptions:
    """How a model knows the order of the tokens."""

    positions: str = setting(
        "sinusoidal",
        "sinusoidal (any length; the paper) or learned (up to max_positions; paper table 3, row E); opus, marian and "
        "m2m100 are the sinusoids of those models",
        choices=("sinusoidal", "learned", "opus", "marian", "m2m100"),
    )
    max_positions: int = setting(
        1024, "size of the learned position table, tokens; a longer input is an error", at_least=1
    )


@dataclass(frozen=True, kw_only=True)
class StackOptions(PositionOptions, LayerOptions):
    """What `Encoder`, `Decoder` and `Transformer` take besides the tutorial's arguments."""


@dataclass(frozen=True, kw_only=True)
class _Sizes(Section):
    """The tutorial's arguments of `Transformer`."""

    num_layers: int = setting(6, "layers of the encoder, and of the decoder", at_least=1)
    num_decoder_layers: int | None = setting(None, "layers of the decoder, where it has another number", at_least=1)
    d_model: int = setting(512, "width of the model", at_least=1)
    num_heads: int = setting(8, "attention heads; d_model must divide by it", at_least=1)
    dff: int = setting(2048, "width inside the feed-forward sub-layer", at_least=1)
    input_vocab_size: int | None = setting(None, "source tokens; taken from the tokenizer", at_least=SPECIAL_TOKENS + 1)
    target_vocab_size: int | None = setting(
        None, "target tokens; taken from the tokenizer", at_least=SPECIAL_TOKENS + 1
    )
    dropout_rate: float = setting(0.1, "on sub-layer outputs and on embedding sums", at_least=0, below=1)


@dataclass(frozen=True, kw_only=True)
class ModelConfig(StackOptions, _Sizes):
    """Exactly the arguments of `Transformer`; see there for what they mean."""

    share_embeddings: str = setting(
        "none",
        "none, target (output tied to target embedding), all (paper 3.4)",
        choices=("none", "target", "all"),
    )
    output_bias: bool = setting(False, "whether the logits have a bias, as those of Marian")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.d_model % self.num_heads:
            raise InputError(
                f"d_model must divide by num_heads. Received: d_model={self.d_model}, num_heads={self.num_heads}"
            )
        if self.positions != "learned" and self.d_model % 2:
            raise InputError(f"d_model must be even for {self.positions} positions. Received: {self.d_model}")

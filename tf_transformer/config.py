"""What a run is made of: frozen dataclasses, and presets."""

import dataclasses
import math
import types
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tf_transformer.errors import InputError, unknown

CHOICES = {
    "norm": ("post", "pre"),
    "positions": ("sinusoidal", "learned"),
    "share_embeddings": ("none", "target", "all"),
    "activation": (
        *("relu", "gelu", "silu", "swish", "elu", "selu", "celu", "leaky_relu", "relu6", "mish", "tanh", "sigmoid"),
        *("softplus", "softsign", "squareplus", "hard_silu", "hard_sigmoid", "hard_tanh", "linear"),
    ),
    "model_type": ("bpe", "unigram", "char", "word"),
    "normalization": ("nmt_nfkc", "nfkc", "nmt_nfkc_cf", "nfkc_cf", "identity"),
}
"""The fields that take one of a few words, and those words."""

SPECIAL_TOKENS = 4
"""Padding, unknown, start and end: ids 0 to 3 of every vocabulary."""


def _setting(default: Any, help: str) -> Any:
    return field(default=default, metadata={"help": help})


def _check(section: Any, at_least: Mapping[str, float] = types.MappingProxyType({}), rates: Iterable[str] = ()) -> None:
    """Raise InputError for a field of `section` that is out of its range."""
    for name, least in at_least.items():
        value = getattr(section, name)
        if value is not None and not least <= value < math.inf:
            raise InputError(f"{name} must be at least {least}. Received: {value}")
    for name in rates:
        if not 0 <= getattr(section, name) < 1:
            raise InputError(f"{name} must be at least 0 and below 1. Received: {getattr(section, name)}")
    for f in dataclasses.fields(section):
        if f.name in CHOICES and (value := getattr(section, f.name)) not in CHOICES[f.name]:
            raise InputError(f"{f.name}: {unknown('value', str(value), CHOICES[f.name])}")


@dataclass(frozen=True, kw_only=True)
class ModelConfig:
    """Exactly the arguments of `Transformer`; see there for what they mean."""

    num_layers: int = _setting(6, "layers of the encoder, and of the decoder")
    d_model: int = _setting(512, "width of the model")
    num_heads: int = _setting(8, "attention heads; d_model must divide by it")
    dff: int = _setting(2048, "width inside the feed-forward sub-layer")
    input_vocab_size: int | None = _setting(None, "source tokens; taken from the tokenizer")
    target_vocab_size: int | None = _setting(None, "target tokens; taken from the tokenizer")
    dropout_rate: float = _setting(0.1, "on sub-layer outputs and on embedding sums")
    norm: str = _setting("post", "layer norm after each sub-layer (post, the paper) or before (pre)")
    positions: str = _setting("sinusoidal", "sinusoidal (any length) or learned (up to max_positions)")
    max_positions: int = _setting(1024, "size of the learned position table, tokens")
    share_embeddings: str = _setting("none", "none, target (output tied to target embedding), all (paper 3.4)")
    attention_dropout_rate: float = _setting(0.0, "on attention weights")
    activation: str = _setting("relu", "of the feed-forward sub-layer: an element-wise Keras activation")

    def __post_init__(self) -> None:
        _check(
            self,
            dict.fromkeys(("num_layers", "d_model", "num_heads", "dff", "max_positions"), 1)
            | dict.fromkeys(("input_vocab_size", "target_vocab_size"), SPECIAL_TOKENS + 1),
            rates=("dropout_rate", "attention_dropout_rate"),
        )
        if self.d_model % self.num_heads:
            raise InputError(
                f"d_model must divide by num_heads. Received: d_model={self.d_model}, num_heads={self.num_heads}"
            )
        if self.positions == "sinusoidal" and self.d_model % 2:
            raise InputError(f"d_model must be even for sinusoidal positions. Received: {self.d_model}")


@dataclass(frozen=True, kw_only=True)
class TokenizerConfig:
    """How the SentencePiece model is trained, or which one is taken."""

    vocab_size: int = _setting(8_000, "tokens, special ones and bytes included")
    model_type: str = _setting("bpe", "bpe, unigram, char or word")
    shared: bool = _setting(True, "one model for both languages, not one each")
    byte_fallback: bool = _setting(True, "write unknown characters as bytes, so that none is lost")
    normalization: str = _setting("nmt_nfkc", "SentencePiece normalization rule; identity changes nothing")
    character_coverage: float = _setting(0.9995, "share of the characters of the text that get a token")
    file: str | None = _setting(None, "an existing SentencePiece model to use instead of training one")

    def __post_init__(self) -> None:
        _check(self, {"vocab_size": SPECIAL_TOKENS + 1})
        if not 0.9 <= self.character_coverage <= 1:
            raise InputError(f"character_coverage must be 0.9 to 1. Received: {self.character_coverage}")


@dataclass(frozen=True, kw_only=True)
class DataConfig:
    """What text is read and how it becomes batches."""

    corpus: str | None = _setting(None, "folder, .tsv[.gz], tfds:NAME[/CONFIG], toy or copy (--data)")
    source: str | None = _setting(None, "source language, as in the file names (--source)")
    target: str | None = _setting(None, "target language, as in the file names (--target)")
    train_split: str = _setting("train", "split to train on")
    validation_split: str | None = _setting(None, "split to validate on; by default val, valid, validation or dev")
    held_out: float = _setting(0.02, "of a .tsv: share held out for val, and again for test")
    held_out_seed: int = _setting(0, "of a .tsv: which pairs are held out")
    max_length: int = _setting(128, "tokens; a pair with a longer side is dropped, and counted")
    batch_tokens: int = _setting(4_096, "most source tokens and most target tokens a batch, padding included")

    def __post_init__(self) -> None:
        _check(self, {"max_length": 2, "batch_tokens": 2, "held_out_seed": 0})
        if not 0 < self.held_out < 0.5:
            raise InputError(f"held_out must be above 0 and below 0.5. Received: {self.held_out}")
        if self.batch_tokens < self.max_length:
            raise InputError(
                "batch_tokens must be at least max_length. "
                f"Received: batch_tokens={self.batch_tokens}, max_length={self.max_length}"
            )


@dataclass(frozen=True, kw_only=True)
class TrainingConfig:
    """How long and how the model is trained."""

    max_steps: int = _setting(100_000, "optimizer updates in all (--max-steps)")
    warmup_steps: int = _setting(4_000, "updates until the learning rate peaks (paper 5.3)")
    learning_rate_factor: float = _setting(1.0, "times the paper's learning rate")
    label_smoothing: float = _setting(0.1, "share of the probability spread over the vocabulary (paper 5.4)")
    seed: int = _setting(0, "of initial weights, dropout and the order of the data (--seed)")
    checkpoint_every: int = _setting(1_000, "updates between checkpoints; there is one each epoch besides")
    keep_last: int = _setting(5, "latest checkpoints to keep, besides the best")

    def __post_init__(self) -> None:
        _check(
            self,
            {"max_steps": 1, "warmup_steps": 1, "checkpoint_every": 1, "keep_last": 1, "seed": 0},
            rates=("label_smoothing",),
        )
        if self.seed >= 2**32:
            raise InputError(f"seed must be below 2**32. Received: {self.seed}")
        if not 0 < self.learning_rate_factor < math.inf:
            raise InputError(f"learning_rate_factor must be above 0, and finite. Received: {self.learning_rate_factor}")


@dataclass(frozen=True, kw_only=True)
class DecodingConfig:
    """How a translation is searched for."""

    max_extra_length: int = _setting(50, "most target tokens beyond the number of source tokens (paper 6.1)")

    def __post_init__(self) -> None:
        _check(self, {"max_extra_length": 1})


@dataclass(frozen=True, kw_only=True)
class Config:
    """A whole run. Derive one from another by `dataclasses.replace`."""

    model: ModelConfig = ModelConfig()
    tokenizer: TokenizerConfig = TokenizerConfig()
    data: DataConfig = DataConfig()
    training: TrainingConfig = TrainingConfig()
    decoding: DecodingConfig = DecodingConfig()

    def __post_init__(self) -> None:
        if self.model.share_embeddings == "all" and not (self.tokenizer.shared or self.tokenizer.file):
            raise InputError(
                "model.share_embeddings=all needs one vocabulary: set tokenizer.shared=true, or "
                "model.share_embeddings to target or none. Received: tokenizer.shared=false"
            )
        if self.model.positions == "learned" and self.data.max_length > self.model.max_positions:
            raise InputError(
                "model.max_positions must be at least data.max_length where positions are learned. "
                f"Received: model.max_positions={self.model.max_positions}, data.max_length={self.data.max_length}"
            )

    def as_dict(self) -> dict[str, Any]:
        """Return nested dictionaries that JSON and `override` take."""
        return dataclasses.asdict(self)


PRESETS: Mapping[str, Config] = types.MappingProxyType(
    {
        # 4 layers of 128: a laptop trains it on tens of thousands of sentences in half an hour.
        "tiny": Config(
            model=ModelConfig(
                num_layers=4,
                d_model=128,
                num_heads=4,
                dff=256,
                dropout_rate=0.15,
                # Within so few updates it learns several times faster than post-norm.
                norm="pre",
                share_embeddings="all",
            ),
            tokenizer=TokenizerConfig(vocab_size=4_000),
            data=DataConfig(batch_tokens=3_000),
            training=TrainingConfig(max_steps=2_200, warmup_steps=400, learning_rate_factor=0.7),
        ),
        # The sizes of the TensorFlow tutorial.
        "small": Config(
            model=ModelConfig(num_layers=4, d_model=128, num_heads=8, dff=512, share_embeddings="all"),
            training=TrainingConfig(max_steps=20_000, learning_rate_factor=2.0),
        ),
        # The paper's table 3.
        "base": Config(
            model=ModelConfig(share_embeddings="all"),
            tokenizer=TokenizerConfig(vocab_size=37_000),
            data=DataConfig(batch_tokens=25_000),
        ),
        "big": Config(
            model=ModelConfig(d_model=1024, num_heads=16, dff=4096, dropout_rate=0.3, share_embeddings="all"),
            tokenizer=TokenizerConfig(vocab_size=37_000),
            data=DataConfig(batch_tokens=25_000),
            training=TrainingConfig(max_steps=300_000, keep_last=20),
        ),
    }
)


def preset(name: str) -> Config:
    """Return the preset called `name`; InputError names the nearest for a wrong one."""
    if name not in PRESETS:
        raise unknown("preset", name, PRESETS)
    return PRESETS[name]

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
    "best_by": ("loss", "bleu"),
    "mixed_precision": ("float32", "bfloat16", "float16"),
    "normalization": ("nmt_nfkc", "nfkc", "nmt_nfkc_cf", "nfkc_cf", "identity"),
}
"""The fields that take one of a few words, and those words."""

SPECIAL_TOKENS = 4
"""Padding, unknown, start and end: ids 0 to 3 of every vocabulary."""

MOST = 1_000_000
"""The greatest of the sizes of a search: their sums must fit into 32 bits."""

MAX_NGRAM = 100
"""The longest n-grams that a search looks for: each token of one costs operations at every step."""


def _setting(default: Any, help: str) -> Any:
    return field(default=default, metadata={"help": help})


def _check(
    section: Any,
    at_least: Mapping[str, float] = types.MappingProxyType({}),
    rates: Iterable[str] = (),
    sizes: Iterable[str] = (),
) -> None:
    """Raise InputError for a field of `section` that is out of its range."""
    for name, least in at_least.items():
        value = getattr(section, name)
        if value is not None and not least <= value < math.inf:
            wrong = f"at least {least}" if value < least else "a finite number"
            raise InputError(f"{name} must be {wrong}. Received: {value}")
    for name in rates:
        if not 0 <= getattr(section, name) < 1:
            raise InputError(f"{name} must be at least 0 and below 1. Received: {getattr(section, name)}")
    for name in sizes:
        if (getattr(section, name) or 0) > MOST:
            raise InputError(f"{name} must be at most {MOST}. Received: {getattr(section, name)}")
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
    extra_corpora: tuple[str, ...] = _setting((), "more of them to train on (further --data)")
    weights: tuple[float, ...] = _setting((), "times an epoch that a pair of each corpus is seen; 1 each (--weights)")
    validation_corpus: str | None = _setting(
        None, "where the validation split is; corpus by default (--validation-data)"
    )
    source: str | None = _setting(None, "source language, as in the file names (--source)")
    target: str | None = _setting(None, "target language, as in the file names (--target)")
    train_split: str = _setting("train", "split to train on")
    validation_split: str | None = _setting(None, "split to validate on; by default val, valid, validation or dev")
    held_out: float = _setting(0.02, "of a .tsv: share held out for val, and again for test")
    held_out_seed: int = _setting(0, "of a .tsv: which pairs are held out")
    max_length: int = _setting(128, "tokens; a pair with a longer side is dropped, and counted")
    max_length_ratio: float | None = _setting(
        None, "longer over shorter side, tokens; a training pair above is dropped"
    )
    drop_duplicates: bool = _setting(False, "train on the first of equal pairs only")
    batch_tokens: int = _setting(4_096, "most source tokens and most target tokens a batch, padding included")
    bpe_dropout: float = _setting(0.0, "share of the BPE's merges left out by chance; sentences get longer")

    def __post_init__(self) -> None:
        least = {"max_length": 2, "batch_tokens": 2, "held_out_seed": 0, "max_length_ratio": 1}
        _check(self, least, rates=("bpe_dropout",))
        corpora = 1 + len(self.extra_corpora)
        if self.weights and len(self.weights) != corpora:
            raise InputError(f"weights must be one for each corpus, {corpora}. Received: {len(self.weights)}")
        if not all(0 < weight < math.inf for weight in self.weights):
            raise InputError(f"weights must be above 0, and finite. Received: {list(self.weights)}")
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
    learning_rate: float | None = _setting(None, "at the peak, instead of the paper's rate times the factor")
    weight_decay: float = _setting(0.0, "of AdamW, times the learning rate each update; 0 is Adam")
    clip_norm: float = _setting(0.0, "most global norm of the gradient; 0 does not clip")
    accumulate: int = _setting(1, "parts that an update is computed in, each of data.batch_tokens")
    label_smoothing: float = _setting(0.1, "share of the probability spread over the vocabulary (paper 5.4)")
    ema_decay: float = _setting(0.0, "of a moving average of the weights, which is then the model; 0: the weights")
    mixed_precision: str = _setting(
        "float32", "float32, bfloat16 or float16: what layers compute in (--mixed-precision)"
    )
    seed: int = _setting(0, "of initial weights, dropout and the order of the data (--seed)")
    deterministic: bool = _setting(False, "the same bits in every run, at some cost (--deterministic)")
    init_from: str | None = _setting(None, "run whose weights and tokenizer to start from (--init-from)")
    best_by: str = _setting("loss", "what the best checkpoint is best in: validation loss or bleu")
    early_stopping: int = _setting(0, "validations without a better one after which training stops; 0 never does")
    bleu_every: int = _setting(0, "epochs between BLEU scores on validation sentences; 0 has none")
    bleu_sentences: int = _setting(500, "first validation sentences that BLEU is of")
    bleu_tokenize: str = _setting("13a", "sacreBLEU's tokenizer; none for tokenised text")
    samples: int = _setting(3, "validation sentences whose translations each epoch shows")
    checkpoint_every: int = _setting(1_000, "updates between checkpoints; there is one each epoch besides")
    keep_last: int = _setting(5, "latest checkpoints to keep")
    keep_best: int = _setting(1, "best checkpoints to keep besides")

    def __post_init__(self) -> None:
        _check(
            self,
            dict.fromkeys(("max_steps", "warmup_steps", "accumulate", "bleu_sentences"), 1)
            | dict.fromkeys(("checkpoint_every", "keep_last", "keep_best"), 1)
            | dict.fromkeys(("weight_decay", "clip_norm", "early_stopping", "bleu_every", "samples", "seed"), 0),
            rates=("label_smoothing", "ema_decay"),
        )
        if self.seed >= 2**32:
            raise InputError(f"seed must be below 2**32. Received: {self.seed}")
        for name in ("learning_rate_factor", "learning_rate"):
            value = getattr(self, name)
            if value is not None and not 0 < value < math.inf:
                raise InputError(f"{name} must be above 0, and finite. Received: {value}")
        if self.best_by == "bleu" and not self.bleu_every:
            raise InputError("best_by=bleu needs bleu_every, such as 1. Received: bleu_every=0")


@dataclass(frozen=True, kw_only=True)
class DecodingConfig:
    """How a translation is searched for."""

    beam_size: int = _setting(4, "hypotheses kept at every step (paper 6.1); 1 is greedy search (--beam-size)")
    length_penalty: float = _setting(0.6, "alpha: scores are divided by ((5 + length) / 6)^alpha (--length-penalty)")
    coverage_penalty: float = _setting(0.0, "beta: reward for attending to every source token; 0: none")
    early_stopping: bool = _setting(False, "stop at beam_size translations, though a better one may follow")
    max_source_length: int = _setting(512, "source tokens, the end token among them, beyond which a sentence is cut")
    max_extra_length: int = _setting(50, "most target tokens beyond the number of source tokens (paper 6.1)")
    max_length: int | None = _setting(None, "most target tokens (--max-length)")
    min_length: int = _setting(0, "least target tokens")
    no_repeat_ngram: int = _setting(0, "size of the n-grams that a translation has once at most; 0 allows all")
    ban_unknown: bool = _setting(False, "never write the unknown token")
    temperature: float | None = _setting(
        None, "draw tokens by softmax(logits / it), no search (--sampling-temperature)"
    )
    top_k: int = _setting(0, "most tokens to draw from; 0 has no limit (--top-k)")
    top_p: float = _setting(1.0, "draw from the fewest tokens of this probability (--top-p)")
    seed: int = _setting(0, "of drawing (--seed)")
    attention_layer: int | None = _setting(None, "decoder layer, 1 the lowest, that aligns the tokens; none: the last")
    jit_compile: bool = _setting(False, "compile the search by XLA, once for each size of a batch (--jit-compile)")

    def __post_init__(self) -> None:
        _check(
            self,
            dict.fromkeys(("beam_size", "max_extra_length", "max_length", "attention_layer"), 1)
            | dict.fromkeys(("min_length", "no_repeat_ngram", "top_k", "seed", "coverage_penalty"), 0)
            | {"max_source_length": 2},
            sizes=("beam_size", "max_source_length", "max_extra_length", "max_length", "min_length", "top_k"),
        )
        if self.no_repeat_ngram > MAX_NGRAM:
            raise InputError(f"no_repeat_ngram must be at most {MAX_NGRAM}. Received: {self.no_repeat_ngram}")
        if not -10 <= self.length_penalty <= 10:
            raise InputError(f"length_penalty must be -10 to 10. Received: {self.length_penalty}")
        if self.temperature is not None and not 0 < self.temperature < math.inf:
            raise InputError(f"temperature must be above 0, and finite. Received: {self.temperature}")
        if not 0 < self.top_p <= 1:
            raise InputError(f"top_p must be above 0 and at most 1. Received: {self.top_p}")
        if self.seed >= 2**31:
            raise InputError(f"seed must be below 2**31. Received: {self.seed}")
        if self.coverage_penalty and (self.beam_size == 1 or self.temperature):
            raise InputError(
                "coverage_penalty ranks the hypotheses of a beam: give a beam_size above 1, and no temperature. "
                f"Received: beam_size={self.beam_size}, temperature={self.temperature}"
            )
        if self.temperature is None and (self.top_k or self.top_p < 1):
            raise InputError(
                "top_k and top_p are for drawing: give a temperature, such as 1. "
                f"Received: top_k={self.top_k}, top_p={self.top_p}"
            )

    @property
    def hypotheses(self) -> int:
        """How many translations a search finds: as many as the beam has, and one where it draws."""
        return 1 if self.temperature else self.beam_size

    def check_n_best(self, n: int) -> None:
        """Raise InputError where a search does not find so many translations."""
        if not 1 <= n <= self.hypotheses:
            why = "where a temperature is given: it draws one" if self.temperature else "the beam_size"
            raise InputError(f"n_best must be 1 to {self.hypotheses}, {why}. Received: {n}")


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
        if self.data.bpe_dropout and not (self.tokenizer.model_type == "bpe" or self.tokenizer.file):
            raise InputError(
                f"data.bpe_dropout needs a BPE. Received: tokenizer.model_type={self.tokenizer.model_type}"
            )
        if self.data.bpe_dropout and self.training.deterministic:
            raise InputError(
                "data.bpe_dropout draws without a seed: give no training.deterministic with it. "
                f"Received: data.bpe_dropout={self.data.bpe_dropout}"
            )
        if self.model.positions == "learned" and self.data.max_length > self.model.max_positions:
            raise InputError(
                "model.max_positions must be at least data.max_length where positions are learned. "
                f"Received: model.max_positions={self.model.max_positions}, data.max_length={self.data.max_length}"
            )

        if (self.decoding.attention_layer or 1) > self.model.num_layers:
            raise InputError(
                f"decoding.attention_layer must be at most model.num_layers, {self.model.num_layers}. "
                f"Received: {self.decoding.attention_layer}"
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
                dff=512,
                dropout_rate=0.2,
                # Within so few updates it learns several times faster than post-norm.
                norm="pre",
                share_embeddings="all",
            ),
            tokenizer=TokenizerConfig(vocab_size=10_000),
            # Small batches and a high rate learn more from each token; the moving average takes the noise away.
            data=DataConfig(batch_tokens=1_500),
            training=TrainingConfig(max_steps=6_000, warmup_steps=1_000, learning_rate_factor=1.8, ema_decay=0.998),
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

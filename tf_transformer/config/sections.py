"""The settings of a run, with a frozen dataclass for each section."""

import dataclasses
import math
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

from tf_transformer.config.fields import Section, setting
from tf_transformer.config.model import ModelConfig
from tf_transformer.config.special_tokens import SPECIAL_TOKENS
from tf_transformer.errors import MAX_LISTED, InputError, unknown

MAX_SIZE = 1_000_000
"""The largest value of a size of the search. Sums of sizes must fit into 32 bits."""

MAX_NGRAM = 100
"""The length of the longest n-grams that a search can look for. Each token of one costs operations at every step."""


LEAST_DIRECTED = 3
"""The least `max_source_length` if the language is a source token: one token each for language, text and end."""

MAX_TOKENS = 65_535
"""The most tokens of one side of a pair, because prepared corpora store lengths in 16 bits."""


@dataclass(frozen=True, kw_only=True)
class TokenizerConfig(Section):
    """How the SentencePiece model is trained, or which existing one is used."""

    vocab_size: int = setting(
        8_000, "tokens, including special tokens and bytes", option="--vocab-size", at_least=SPECIAL_TOKENS + 1
    )
    model_type: str = setting("bpe", "bpe, unigram, char or word", choices=("bpe", "unigram", "char", "word"))
    shared: bool = setting(True, "one model for both languages, instead of one for each")
    byte_fallback: bool = setting(True, "encode unknown characters as bytes, so that none is lost")
    normalization: str = setting(
        "nmt_nfkc",
        "SentencePiece normalization rule; identity changes nothing",
        choices=("nmt_nfkc", "nfkc", "nmt_nfkc_cf", "nfkc_cf", "identity"),
    )
    character_coverage: float = setting(
        0.9995, "share of the characters of the text that get a token", at_least=0.98, at_most=1
    )
    file: str | None = setting(
        None, "an existing SentencePiece model to use instead of training one", option="--tokenizer"
    )


@dataclass(frozen=True, kw_only=True)
class DataConfig(Section):
    """What text is read and how it becomes batches."""

    corpus: str | None = setting(None, "folder, .tsv[.gz|.zst], tfds:NAME[/CONFIG], toy or copy", option="--data")
    prepared: str | None = setting(None, "prepared corpus, written by `prepare`, to use instead of reading the text")
    extra_corpora: tuple[str, ...] = setting((), "further corpora to train on (further --data)")
    weights: tuple[float, ...] = setting(
        (), "how often an epoch sees the pairs of each corpus, such as 3,0.5; by default once", option="--weights"
    )
    validation_corpus: str | None = setting(
        None, "corpus with the validation split; by default the training corpus", option="--validation-data"
    )
    source: str | None = setting(None, "source language, as in the file names", option="--source")
    target: str | None = setting(None, "target language, as in the file names", option="--target")
    train_split: str = setting("train", "split to train on")
    validation_split: str | None = setting(None, "split to validate on; by default val, valid, validation or dev")
    held_out: float = setting(0.02, "share of a .tsv held out for val, and as much again for test", above=0, below=0.5)
    held_out_seed: int = setting(0, "seed that decides which pairs of a .tsv are held out", at_least=0)
    max_length: int = setting(
        128, "most tokens of a side; a pair with a longer side is dropped and counted", at_least=2, at_most=MAX_TOKENS
    )
    max_length_ratio: float | None = setting(
        None, "highest ratio of the longer side to the shorter, in tokens; training pairs above are dropped", at_least=1
    )
    drop_duplicates: bool = setting(False, "train only on the first of equal pairs")
    drop_copies: bool = setting(False, "drop training pairs whose source and target are the same text")
    min_score: float | None = setting(
        None, "lowest score, in the third column of a .tsv; training pairs below are dropped"
    )
    batch_tokens: int = setting(
        4_096,
        "most source tokens, and most target tokens, per batch, padding included; auto: what fits, by accumulate",
        at_least=2,
    )
    bpe_dropout: float = setting(
        0.0, "share of BPE merges left out at random, which makes sentences longer", at_least=0, below=1
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        corpora = 1 + len(self.extra_corpora)
        if self.weights and len(self.weights) != corpora:
            raise InputError(f"weights must be one per corpus, {corpora} in all. Received: {len(self.weights)}")
        if not all(0 < weight < math.inf for weight in self.weights):
            raise InputError(f"weights must be finite numbers above 0. Received: {list(self.weights)}")
        if self.batch_tokens < self.max_length:
            raise InputError(
                "batch_tokens must be at least max_length. "
                f"Received: batch_tokens={self.batch_tokens}, max_length={self.max_length}"
            )


STRATEGIES = ("auto", "mirrored", "one-device", "multiworker")
"""The ways to distribute training, as `make_strategy` takes them. This is not a setting, because a run may continue
with another one."""


@dataclass(frozen=True, kw_only=True)
class TrainingConfig(Section):
    """How the model is trained, and for how long."""

    max_steps: int = setting(100_000, "total number of updates", option="--max-steps", at_least=1)
    warmup_steps: int = setting(4_000, "updates until the learning rate peaks (paper 5.3)", at_least=1)
    learning_rate_factor: float = setting(1.0, "factor that the paper's learning rate is multiplied by", above=0)
    learning_rate: float | None = setting(
        None, "peak learning rate, instead of the paper's rate times the factor", above=0
    )
    optimizer: str = setting(
        "adam", "adam (the paper), or muon, which learns more from an update", choices=("adam", "muon")
    )
    schedule: str = setting(
        "inverse_sqrt",
        "learning rate after the warm-up: inverse_sqrt (the paper), constant, cosine (down to 0 at max_steps), or "
        "plateau (lowered when validations bring nothing better)",
        choices=("inverse_sqrt", "constant", "cosine", "plateau"),
    )
    plateau_patience: int = setting(
        3, "with schedule=plateau, validations without a better one until the rate is lowered", at_least=1
    )
    plateau_factor: float = setting(
        0.5, "with schedule=plateau, what the rate is multiplied by when it is lowered", above=0, below=1
    )
    weight_decay: float = setting(
        0.0, "weight decay of AdamW, multiplied by the learning rate in each update; 0 uses Adam", at_least=0
    )
    clip_norm: float = setting(0.0, "highest global norm of the gradient; 0 disables clipping", at_least=0)
    accumulate: int = setting(1, "number of parts of an update, each of data.batch_tokens", at_least=1)
    label_smoothing: float = setting(
        0.1, "share of the probability spread over the vocabulary (paper 5.4)", at_least=0, below=1
    )
    ema_decay: float = setting(
        0.0,
        "decay of a moving average of the weights, lower at first; the average becomes the model; 0 averages nothing",
        at_least=0,
        below=1,
    )
    mixed_precision: str = setting(
        "float32",
        "type that layers compute in: float32, bfloat16 or float16; weights, logits and loss stay float32",
        option="--mixed-precision",
        choices=("float32", "bfloat16", "float16"),
    )
    seed: int = setting(
        0, "seed of initial weights, dropout and the order of the data", option="--seed", at_least=0, below=2**32
    )
    deterministic: bool = setting(
        False, "get the same bits in every run, at some cost of speed", option="--deterministic"
    )
    init_from: str | None = setting(None, "run to start from with its weights and tokenizer", option="--init-from")
    lora_rank: int = setting(
        0,
        "train only low-rank factors of this rank, beside the frozen weights of init_from (LoRA); 0 trains all weights",
        at_least=0,
    )
    best_by: str = setting("loss", "metric of the best checkpoints: validation loss or bleu", choices=("loss", "bleu"))
    early_stopping: int = setting(
        0, "stop after this many validations without improvement; 0 never stops early", at_least=0
    )
    validate_every: int = setting(
        0, "updates between validations, besides those at the ends of epochs; 0 has these alone", at_least=0
    )
    bleu_every: int = setting(0, "validations between BLEU scores; 0 computes none", at_least=0)
    bleu_sentences: int = setting(500, "number of validation sentences, the first ones, for BLEU", at_least=1)
    bleu_tokenize: str = setting("13a", "sacreBLEU's tokenizer; none for tokenised text")
    samples: int = setting(3, "sentences whose translations are shown after every validation", at_least=0)
    checkpoint_every: int = setting(1_000, "updates between checkpoints, besides one at every validation", at_least=1)
    keep_last: int = setting(5, "number of latest checkpoints to keep", at_least=1)
    keep_best: int = setting(1, "number of best checkpoints to keep as well", at_least=1)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.best_by == "bleu" and not self.bleu_every:
            raise InputError("best_by=bleu needs bleu_every, such as 1. Received: bleu_every=0")


@dataclass(frozen=True, kw_only=True)
class DecodingConfig(Section):
    """How a translation is searched for."""

    beam_size: int = setting(
        4,
        "hypotheses kept at every step (paper 6.1); 1 is greedy search",
        option="--beam-size",
        at_least=1,
        at_most=MAX_SIZE,
    )
    length_penalty: float = setting(
        0.6,
        "alpha: scores are divided by ((5 + length) / 6)^alpha",
        option="--length-penalty",
        at_least=-10,
        at_most=10,
    )
    length_penalty_offset: float = setting(
        5.0, "k: scores are divided by ((k + length) / (k + 1))^alpha; 0 divides by length^alpha", at_least=0
    )
    coverage_penalty: float = setting(
        0.0, "beta: weight of the reward for attending to every source token; 0 gives none", at_least=0
    )
    early_stopping: bool = setting(False, "stop as soon as beam_size translations are found, though better may follow")
    likely_stopping: bool = setting(
        False,
        "stop when beam_size translations are found that no unfinished one would beat at its present length, as "
        "transformers does",
    )
    max_source_length: int = setting(
        512, "most source tokens, end token included; longer sentences are cut", at_least=2, at_most=MAX_SIZE
    )
    max_extra_length: int = setting(
        50, "most target tokens beyond the number of source tokens (paper 6.1)", at_least=1, at_most=MAX_SIZE
    )
    max_length: int | None = setting(
        None,
        "most target tokens, a limit besides max_extra_length",
        option="--max-length",
        at_least=1,
        at_most=MAX_SIZE,
    )
    min_length: int = setting(0, "fewest target tokens", at_least=0, at_most=MAX_SIZE)
    no_repeat_ngram: int = setting(
        0, "size of n-grams that must not occur twice in a translation; 0 allows all", at_least=0, at_most=MAX_NGRAM
    )
    ban_unknown: bool = setting(False, "never write the unknown token")
    temperature: float | None = setting(
        None,
        "sample tokens from softmax(logits / temperature) instead of searching",
        option="--sampling-temperature",
        above=0,
    )
    top_k: int = setting(
        0, "sample from this many of the likeliest tokens; 0 means all", option="--top-k", at_least=0, at_most=MAX_SIZE
    )
    top_p: float = setting(
        1.0, "sample from the fewest tokens with this total probability", option="--top-p", above=0, at_most=1
    )
    seed: int = setting(0, "seed of sampling", option="--seed", at_least=0, below=2**31)
    attention_layer: int | None = setting(
        None, "decoder layer whose attention aligns the tokens, 1 being the lowest; none means the last", at_least=1
    )
    jit_compile: bool = setting(
        False, "compile the search with XLA, once for each size of a batch", option="--jit-compile"
    )
    source_language: str | None = setting(
        None, "language of the text, for a model with several languages", option="--source-language"
    )
    target_language: str | None = setting(
        None, "language to translate into, for a model with several languages", option="--target-language"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.coverage_penalty and (self.beam_size == 1 or self.temperature):
            raise InputError(
                "coverage_penalty ranks the hypotheses of a beam: give a beam_size above 1, and no temperature. "
                f"Received: beam_size={self.beam_size}, temperature={self.temperature}"
            )
        if self.temperature is None and (self.top_k or self.top_p < 1):
            raise InputError(
                "top_k and top_p are for sampling: give a temperature, such as 1. "
                f"Received: top_k={self.top_k}, top_p={self.top_p}"
            )

    @property
    def hypotheses(self) -> int:
        """The number of hypotheses that a search keeps: beam_size, or one if it samples."""
        return 1 if self.temperature else self.beam_size

    def check_beam(self, what: str) -> None:
        """Raise InputError if this is not a beam search; `what` says what only that does."""
        if self.hypotheses < 2:
            raise InputError(
                f"only a beam search {what}: choose a beam_size of 2 or more and no temperature. "
                f"Received: beam_size={self.beam_size}, temperature={self.temperature}"
            )

    def check_constraints(self) -> None:
        """Raise InputError if the search does not take tokens that a hypothesis must contain."""
        self.check_beam("takes constraints")
        if self.jit_compile:
            raise InputError("a search that XLA compiles takes no constraints: leave jit_compile away")

    def most_source(self, positions: int | None, before: int) -> int:
        """Return the most source tokens that a search takes, including the end token.

        Args:
            positions: the number of positions that the model has learned; None if it takes any.
            before: the number of tokens before the text: 1 if the model has several languages, otherwise 0.

        Raises:
            InputError: there is no room for text besides the language and the end.
        """
        most = min(self.max_source_length, positions or self.max_source_length)
        if before and most < LEAST_DIRECTED:
            raise InputError(
                f"max_source_length must be at least {LEAST_DIRECTED} for a model with several languages, because the "
                f"language and the end are tokens too. Received: {most}"
            )
        return most

    def most_given(self, positions: int | None, before: int) -> int:
        """Return the most tokens of a given translation, including the end token. See `most_source`."""
        most = self.max_source_length + self.max_extra_length
        return most if positions is None else min(most, positions - before)

    def most_written(self, positions: int | None, before: int) -> int | None:
        """Return the most tokens that a search writes for any source; None means no limit. See `most_source`."""
        if positions is None:
            return self.max_length
        return min(positions - before, self.max_length or positions)

    def check_n_best(self, n: int) -> None:
        """Raise InputError if a search does not find `n` translations. With sampling, they are as many draws."""
        most = MAX_SIZE if self.temperature else self.beam_size
        if not 1 <= n <= most:
            why = "" if self.temperature else ", the beam_size"
            raise InputError(f"n_best must be 1 to {most}{why}. Received: {n}")

    def check_languages(self, languages: Collection[str]) -> None:
        """Raise InputError if a language is not among `languages`, which are () for a model of one direction.

        Both languages may be left open.
        """
        for name in ("source_language", "target_language"):
            language = getattr(self, name)
            if language is not None and not languages:
                raise InputError(
                    f"{name} must be left out, because the model has one direction only. Received: {language}"
                )
            if language is not None and language not in languages:
                raise InputError(f"{name}: {unknown('language', language, languages)}")

    def check_directed(self, languages: Collection[str]) -> None:
        """Raise InputError if a model has several languages and the source or target language is not given."""
        for side in ("source", "target"):
            if languages and getattr(self, f"{side}_language") is None:
                listed = ", ".join(languages) if len(languages) <= MAX_LISTED else f"{len(languages)} languages"
                raise InputError(f"the model translates between {listed}: give --{side}-language ({side}_language)")


@dataclass(frozen=True, kw_only=True)
class Config:
    """All settings of a run. Derive one config from another with `dataclasses.replace`."""

    model: ModelConfig = field(default_factory=ModelConfig)
    tokenizer: TokenizerConfig = field(default_factory=TokenizerConfig)
    data: DataConfig = field(default_factory=DataConfig)
    training: TrainingConfig = field(default_factory=TrainingConfig)
    decoding: DecodingConfig = field(default_factory=DecodingConfig)

    def __post_init__(self) -> None:
        if self.model.share_embeddings == "all" and not (self.tokenizer.shared or self.tokenizer.file):
            raise InputError(
                "model.share_embeddings=all needs one vocabulary: set tokenizer.shared=true, or "
                "model.share_embeddings to target or none. Received: tokenizer.shared=false"
            )
        if self.data.bpe_dropout and not (self.tokenizer.model_type == "bpe" or self.tokenizer.file):
            raise InputError(
                "data.bpe_dropout needs a BPE: set tokenizer.model_type=bpe. "
                f"Received: tokenizer.model_type={self.tokenizer.model_type}"
            )
        if self.model.positions == "learned" and self.data.max_length > self.model.max_positions:
            raise InputError(
                "model.max_positions must be at least data.max_length if positions are learned. "
                f"Received: model.max_positions={self.model.max_positions}, data.max_length={self.data.max_length}"
            )
        layers = self.model.num_decoder_layers or self.model.num_layers
        if (self.decoding.attention_layer or 1) > layers:
            raise InputError(
                f"decoding.attention_layer must be at most the number of decoder layers, {layers}. "
                f"Received: {self.decoding.attention_layer}"
            )

    def as_dict(self) -> dict[str, Any]:
        """Return nested dictionaries that JSON and `override` take."""
        return dataclasses.asdict(self)

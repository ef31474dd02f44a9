"""What a run is made of: frozen dataclasses, a section each."""

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
"""Of the sizes of a search: their sums must fit into 32 bits."""

MAX_NGRAM = 100
"""The longest n-grams that a search looks for: each token of one costs operations at every step."""


LEAST_DIRECTED = 3
"""Source tokens that a search must take where the language is one of them."""

MAX_TOKENS = 65_535
"""Of a side of a pair: prepared corpora keep lengths in 16 bits."""


@dataclass(frozen=True, kw_only=True)
class TokenizerConfig(Section):
    """How the SentencePiece model is trained, or which one is taken."""

    vocab_size: int = setting(
        8_000, "tokens, special ones and bytes included", option="--vocab-size", at_least=SPECIAL_TOKENS + 1
    )
    model_type: str = setting("bpe", "bpe, unigram, char or word", choices=("bpe", "unigram", "char", "word"))
    shared: bool = setting(True, "one model for both languages, not one each")
    byte_fallback: bool = setting(True, "write unknown characters as bytes, so that none is lost")
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
    prepared: str | None = setting(None, "what `prepare` has made of the corpora; their text is not read then")
    extra_corpora: tuple[str, ...] = setting((), "more of them to train on (further --data)")
    weights: tuple[float, ...] = setting(
        (), "times an epoch that a pair of each corpus is seen, such as 3,0.5; 1 each", option="--weights"
    )
    validation_corpus: str | None = setting(
        None, "where the validation split is; corpus by default", option="--validation-data"
    )
    source: str | None = setting(None, "source language, as in the file names", option="--source")
    target: str | None = setting(None, "target language, as in the file names", option="--target")
    train_split: str = setting("train", "split to train on")
    validation_split: str | None = setting(None, "split to validate on; by default val, valid, validation or dev")
    held_out: float = setting(0.02, "of a .tsv: share held out for val, and again for test", above=0, below=0.5)
    held_out_seed: int = setting(0, "of a .tsv: which pairs are held out", at_least=0)
    max_length: int = setting(
        128, "tokens; a pair with a longer side is dropped, and counted", at_least=2, at_most=MAX_TOKENS
    )
    max_length_ratio: float | None = setting(
        None, "longer over shorter side, tokens; a training pair above is dropped", at_least=1
    )
    drop_duplicates: bool = setting(False, "train on the first of equal pairs only")
    drop_copies: bool = setting(False, "drop training pairs whose source and target are the same text")
    min_score: float | None = setting(
        None, "of a .tsv with a third column of numbers: training pairs with a lower one are dropped"
    )
    batch_tokens: int = setting(
        4_096, "most source tokens and most target tokens a batch, padding included", at_least=2
    )
    bpe_dropout: float = setting(
        0.0, "share of the BPE's merges left out by chance; sentences get longer", at_least=0, below=1
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        corpora = 1 + len(self.extra_corpora)
        if self.weights and len(self.weights) != corpora:
            raise InputError(f"weights must be one for each corpus, {corpora}. Received: {len(self.weights)}")
        if not all(0 < weight < math.inf for weight in self.weights):
            raise InputError(f"weights must be above 0, and finite. Received: {list(self.weights)}")
        if self.batch_tokens < self.max_length:
            raise InputError(
                "batch_tokens must be at least max_length. "
                f"Received: batch_tokens={self.batch_tokens}, max_length={self.max_length}"
            )


STRATEGIES = ("auto", "mirrored", "one-device", "multiworker")
"""How training is distributed; what `make_strategy` takes. It is no setting: a run may go on by another."""


@dataclass(frozen=True, kw_only=True)
class TrainingConfig(Section):
    """How long and how the model is trained."""

    max_steps: int = setting(100_000, "optimizer updates in all", option="--max-steps", at_least=1)
    warmup_steps: int = setting(4_000, "updates until the learning rate peaks (paper 5.3)", at_least=1)
    learning_rate_factor: float = setting(1.0, "times the paper's learning rate", above=0)
    learning_rate: float | None = setting(None, "at the peak, instead of the paper's rate times the factor", above=0)
    weight_decay: float = setting(0.0, "of AdamW, times the learning rate each update; 0 is Adam", at_least=0)
    clip_norm: float = setting(0.0, "most global norm of the gradient; 0 does not clip", at_least=0)
    accumulate: int = setting(1, "parts that an update is computed in, each of data.batch_tokens", at_least=1)
    label_smoothing: float = setting(
        0.1, "share of the probability spread over the vocabulary (paper 5.4)", at_least=0, below=1
    )
    ema_decay: float = setting(
        0.0,
        "of a moving average of the weights, which is then the model; less at first; 0: the weights",
        at_least=0,
        below=1,
    )
    mixed_precision: str = setting(
        "float32",
        "float32, bfloat16 or float16: what layers compute in; weights, logits and loss stay float32",
        option="--mixed-precision",
        choices=("float32", "bfloat16", "float16"),
    )
    seed: int = setting(
        0, "of initial weights, dropout and the order of the data", option="--seed", at_least=0, below=2**32
    )
    deterministic: bool = setting(False, "the same bits in every run, at some cost", option="--deterministic")
    init_from: str | None = setting(None, "run whose weights and tokenizer to start from", option="--init-from")
    lora_rank: int = setting(
        0,
        "train low-rank factors of this rank alone, beside the weights of init_from (LoRA); 0: all weights",
        at_least=0,
    )
    best_by: str = setting(
        "loss", "what the best checkpoint is best in: validation loss or bleu", choices=("loss", "bleu")
    )
    early_stopping: int = setting(
        0, "validations without a better one after which training stops; 0 never does", at_least=0
    )
    bleu_every: int = setting(0, "epochs between BLEU scores on validation sentences; 0 has none", at_least=0)
    bleu_sentences: int = setting(500, "first validation sentences that BLEU is of", at_least=1)
    bleu_tokenize: str = setting("13a", "sacreBLEU's tokenizer; none for tokenised text")
    samples: int = setting(3, "validation sentences whose translations each epoch shows", at_least=0)
    checkpoint_every: int = setting(1_000, "updates between checkpoints; there is one each epoch besides", at_least=1)
    keep_last: int = setting(5, "latest checkpoints to keep", at_least=1)
    keep_best: int = setting(1, "best checkpoints to keep besides", at_least=1)

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
    coverage_penalty: float = setting(0.0, "beta: reward for attending to every source token; 0: none", at_least=0)
    early_stopping: bool = setting(False, "stop at beam_size translations, though a better one may follow")
    likely_stopping: bool = setting(
        False, "stop at beam_size translations that none of the present length beats, as transformers does"
    )
    max_source_length: int = setting(
        512, "source tokens, the end token among them, beyond which a sentence is cut", at_least=2, at_most=MAX_SIZE
    )
    max_extra_length: int = setting(
        50, "most target tokens beyond the number of source tokens (paper 6.1)", at_least=1, at_most=MAX_SIZE
    )
    max_length: int | None = setting(
        None, "most target tokens, besides max_extra_length", option="--max-length", at_least=1, at_most=MAX_SIZE
    )
    min_length: int = setting(0, "least target tokens", at_least=0, at_most=MAX_SIZE)
    no_repeat_ngram: int = setting(
        0, "size of the n-grams that a translation has once at most; 0 allows all", at_least=0, at_most=MAX_NGRAM
    )
    ban_unknown: bool = setting(False, "never write the unknown token")
    temperature: float | None = setting(
        None, "draw tokens by softmax(logits / it), no search", option="--sampling-temperature", above=0
    )
    top_k: int = setting(0, "most tokens to draw from; 0 has no limit", option="--top-k", at_least=0, at_most=MAX_SIZE)
    top_p: float = setting(1.0, "draw from the fewest tokens of this probability", option="--top-p", above=0, at_most=1)
    seed: int = setting(0, "of drawing", option="--seed", at_least=0, below=2**31)
    attention_layer: int | None = setting(
        None, "decoder layer, 1 the lowest, that aligns the tokens; none: the last", at_least=1
    )
    jit_compile: bool = setting(
        False, "compile the search by XLA, once for each size of a batch", option="--jit-compile"
    )
    source_language: str | None = setting(
        None, "language of the text, for a model of several", option="--source-language"
    )
    target_language: str | None = setting(
        None, "language to translate to, for a model of several", option="--target-language"
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
                "top_k and top_p are for drawing: give a temperature, such as 1. "
                f"Received: top_k={self.top_k}, top_p={self.top_p}"
            )

    @property
    def hypotheses(self) -> int:
        """How many translations a search finds: as many as the beam has, and one where it draws."""
        return 1 if self.temperature else self.beam_size

    def most_source(self, positions: int | None, before: int) -> int:
        """Return the most source tokens that a search takes, the end token among them.

        Args:
            positions: that the model has learned; None where any will do.
            before: tokens before the text: 1 where a model has several languages.

        Raises:
            InputError: there is no room for text beside them.
        """
        most = min(self.max_source_length, positions or self.max_source_length)
        if before and most < LEAST_DIRECTED:
            raise InputError(
                f"max_source_length must be at least {LEAST_DIRECTED} for a model of several languages: that of the "
                f"sentence is a token, and so is the end. Received: {most}"
            )
        return most

    def most_given(self, positions: int | None, before: int) -> int:
        """Return the most tokens of a translation that is given, the end token among them; as `most_source`."""
        most = self.max_source_length + self.max_extra_length
        return most if positions is None else min(most, positions - before)

    def most_written(self, positions: int | None, before: int) -> int | None:
        """Return the most tokens that a search writes whatever the source; None has no limit. As `most_source`."""
        if positions is None:
            return self.max_length
        return min(positions - before, self.max_length or positions)

    def check_n_best(self, n: int) -> None:
        """Raise InputError where a search does not find so many translations."""
        if not 1 <= n <= self.hypotheses:
            why = "where a temperature is given: it draws one" if self.temperature else "the beam_size"
            raise InputError(f"n_best must be 1 to {self.hypotheses}, {why}. Received: {n}")

    def check_languages(self, languages: Collection[str]) -> None:
        """Raise InputError where the languages are none of those of a model; () are those of a model of one direction.

        Both may be left open.
        """
        for name in ("source_language", "target_language"):
            language = getattr(self, name)
            if language is not None and not languages:
                raise InputError(f"{name}: the model has one direction, and takes no languages. Received: {language}")
            if language is not None and language not in languages:
                raise InputError(f"{name}: {unknown('language', language, languages)}")

    def check_directed(self, languages: Collection[str]) -> None:
        """Raise InputError where a model has several languages, and one of the two is not given."""
        for side in ("source", "target"):
            if languages and getattr(self, f"{side}_language") is None:
                listed = ", ".join(languages) if len(languages) <= MAX_LISTED else f"{len(languages)} languages"
                raise InputError(f"the model translates between {listed}: give --{side}-language ({side}_language)")


@dataclass(frozen=True, kw_only=True)
class Config:
    """A whole run. Derive one from another by `dataclasses.replace`."""

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
                f"data.bpe_dropout needs a BPE. Received: tokenizer.model_type={self.tokenizer.model_type}"
            )
        if self.model.positions == "learned" and self.data.max_length > self.model.max_positions:
            raise InputError(
                "model.max_positions must be at least data.max_length where positions are learned. "
                f"Received: model.max_positions={self.model.max_positions}, data.max_length={self.data.max_length}"
            )
        layers = self.model.num_decoder_layers or self.model.num_layers
        if (self.decoding.attention_layer or 1) > layers:
            raise InputError(
                f"decoding.attention_layer must be at most the layers of the decoder, {layers}. "
                f"Received: {self.decoding.attention_layer}"
            )

    def as_dict(self) -> dict[str, Any]:
        """Return nested dictionaries that JSON and `override` take."""
        return dataclasses.asdict(self)

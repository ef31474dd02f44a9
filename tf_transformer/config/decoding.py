"""The settings of a search."""

from collections.abc import Collection
from dataclasses import dataclass

from tf_transformer.config.fields import Section, setting
from tf_transformer.errors import MAX_LISTED, InputError, unknown

MAX_SIZE = 1_000_000
"""The largest value of a size of the search. Sums of sizes must fit into 32 bits."""

MAX_NGRAM = 100
"""The length of the longest n-grams that a search can look for. Each token of one costs operations at every step."""

LEAST_DIRECTED = 3
"""The least `max_source_length` if the language is a source token: one token each for language, text and end."""


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
        if self.max_length is not None and self.min_length > self.max_length:
            raise InputError(
                f"min_length must be at most max_length. Received: min_length={self.min_length}, "
                f"max_length={self.max_length}"
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

    @property
    def stopping(self) -> str:
        """The rule by which a beam search stops: "early", "heuristic" or "exact"."""
        return "early" if self.early_stopping else "heuristic" if self.likely_stopping else "exact"

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
                    f"{name} is for a model of several languages, and this one has one direction: leave it out. "
                    f"Received: {language}"
                )
            if language is not None and language not in languages:
                raise InputError(f"{name}: {unknown('language', language, languages)}")

    def check_directed(self, languages: Collection[str]) -> None:
        """Raise InputError if a model has several languages and the source or target language is not given."""
        for side in ("source", "target"):
            if languages and getattr(self, f"{side}_language") is None:
                listed = ", ".join(languages) if len(languages) <= MAX_LISTED else f"{len(languages)} languages"
                raise InputError(f"the model translates between {listed}: give --{side}-language ({side}_language)")

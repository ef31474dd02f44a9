"""Settings that have no effect beside others."""

from collections.abc import Callable, Iterable

from tf_transformer.config.sections import Config

Known = tuple[tuple[str, ...], Callable[[Config], bool], str]
"""Settings, when they have no effect, and why."""

IDLE: tuple[Known, ...] = (
    (
        ("training.learning_rate_factor",),
        lambda config: config.training.learning_rate is not None,
        "training.learning_rate gives the rate",
    ),
    (
        ("training.plateau_patience", "training.plateau_factor"),
        lambda config: config.training.schedule != "plateau",
        "training.schedule is not plateau",
    ),
    (
        ("training.schedule",),
        lambda config: config.training.max_steps <= config.training.warmup_steps,
        "training ends within the warm-up, training.warmup_steps",
    ),
    (
        ("training.bleu_sentences", "training.bleu_tokenize"),
        lambda config: not config.training.bleu_every,
        "training.bleu_every is 0",
    ),
    (
        tuple(
            f"tokenizer.{name}"
            for name in ("vocab_size", "model_type", "byte_fallback", "normalization", "character_coverage", "shared")
        ),
        lambda config: config.tokenizer.file is not None or config.training.init_from is not None,
        "the tokenizer exists already",
    ),
    (("model.max_positions",), lambda config: config.model.positions != "learned", "model.positions is not learned"),
    (
        ("decoding.beam_size", "decoding.early_stopping", "decoding.likely_stopping"),
        lambda config: config.decoding.temperature is not None,
        "with decoding.temperature the search draws tokens",
    ),
    (
        ("decoding.early_stopping", "decoding.likely_stopping"),
        lambda config: config.decoding.beam_size == 1 and config.decoding.temperature is None,
        "decoding.beam_size is 1",
    ),
    (
        ("decoding.likely_stopping",),
        lambda config: config.decoding.early_stopping,
        "decoding.early_stopping stops sooner",
    ),
    (
        ("decoding.length_penalty_offset",),
        lambda config: config.decoding.length_penalty == 0,
        "decoding.length_penalty is 0",
    ),
    (("decoding.seed",), lambda config: config.decoding.temperature is None, "only decoding.temperature draws tokens"),
)


def without_effect(config: Config, given: Iterable[str]) -> list[str]:
    """Return, in words, which of the settings that were given, such as `training.plateau_factor`, have no effect."""
    names = set(given)
    return [
        f"{name} has no effect: {why}"
        for settings, is_idle, why in IDLE
        for name in settings
        if name in names and is_idle(config)
    ]

"""The settings of the search that the folder of a model asks for."""

import logging
from pathlib import Path
from typing import NamedTuple

from tf_transformer.config import DecodingConfig
from tf_transformer.config.decoding import MAX_NGRAM, MAX_SIZE
from tf_transformer.errors import InputError
from tf_transformer.importers.folder import LARGEST, Settings, optional_object
from tf_transformer.importers.keys import not_ours

MAX_LENGTH = 512
"""The most tokens of a translation, if the folder does not say."""
MAX_SOURCE = 512
IDS = ("decoder_start_token_id", "eos_token_id", "pad_token_id")

log = logging.getLogger(__name__)


class Search(NamedTuple):
    """How a folder of transformers searches."""

    decoding: DecodingConfig
    banned: frozenset[int]
    """ids in the vocabulary of the folder that are never written"""
    first: int | None
    """the id that every translation begins with"""
    renormalized: bool
    """whether the probability of forbidden tokens goes to the others"""
    given: Settings
    """the settings that are not null"""


def search_of(folder: Path, config: Settings, languages: int = 0) -> Search:
    """Return how a folder of transformers searches: as its generation_config.json says, or else its config.json.

    A score of transformers is log P / n^alpha, where n counts the tokens, including the end token and the token of a
    language. Our search does not count the token of a language. With k = 1 the ranking is the same, and our scores are
    2^alpha times those of transformers. The `early_stopping` of transformers is True, False (likely stopping) or
    "never" (exact).

    Args:
        folder: the folder of the model.
        config: its config.json.
        languages: the number of language tokens that a translation begins with in transformers.

    Raises:
        InputError: a setting has a value that transformers could not use either.
    """
    given = _given(folder, config)
    for setting in not_ours(given.values):
        log.warning("%s: the search has no %s; ignored", given.file, setting)
    decoding, renormalized = _decoding_of(given, languages), given.flag("renormalize_logits", False)
    if renormalized and decoding.beam_size > 1 and (decoding.no_repeat_ngram or decoding.min_length):
        message = "%s: renormalize_logits is ignored for what no_repeat_ngram_size and min_length forbid in a step"
        log.warning(message, given.file)
    return Search(
        decoding=decoding,
        banned=_banned(given),
        first=given.integer("forced_bos_token_id") if "forced_bos_token_id" in given.values else None,
        renormalized=renormalized,
        given=given,
    )


def _given(folder: Path, config: Settings) -> Settings:
    """Return the settings that are not null.

    generation_config.json holds all of them. Only where it was made from config.json, that one adds what it lacks, and
    the ids of special tokens are always those of the model.
    """
    file = folder / "generation_config.json"
    generation = Settings(file, optional_object(file))
    from_config = generation.values.get("_from_model_config", not generation.values)
    below = config.chosen() if from_config else config.chosen(*IDS)
    return Settings(file, generation.chosen().values, below)


def _decoding_of(given: Settings, languages: int) -> DecodingConfig:
    # transformers counts the start token in these lengths, but not in those of new tokens, which have precedence.
    before = 1 + languages
    lengths = {}
    for side, default in (("max", MAX_LENGTH), ("min", 0)):
        if f"{side}_new_tokens" in given.values:
            lengths[side] = given.integer(f"{side}_new_tokens", at_most=MAX_SIZE) - languages
        else:
            lengths[side] = given.integer(f"{side}_length", default, at_most=MAX_SIZE) - before
    longest, shortest = max(lengths["max"], 1), max(lengths["min"], 0)
    if shortest > longest:
        raise InputError(
            f"{given.file}: min_length must be at most max_length. Received: {shortest + before} and {longest + before}"
        )
    early = given.values.get("early_stopping", False)
    if early not in (True, False, "never"):
        raise given.error("early_stopping", "true, false or 'never'", early)
    return DecodingConfig(
        beam_size=given.integer("num_beams", 1, at_least=1, at_most=MAX_SIZE),
        length_penalty=given.number("length_penalty", 1.0, at_least=-10, at_most=10),
        length_penalty_offset=float(languages),
        early_stopping=early is True,
        likely_stopping=early is False,
        no_repeat_ngram=given.integer("no_repeat_ngram_size", 0, at_most=MAX_NGRAM),
        min_length=shortest,
        max_length=longest,
        max_extra_length=longest,
        max_source_length=MAX_SOURCE,
    )


def _banned(given: Settings) -> frozenset[int]:
    """Return the ids that are never written. Sequences of several ids are warned of."""
    words = given.values.get("bad_words_ids", [])
    if not (isinstance(words, list) and all(isinstance(word, list) and word for word in words)):
        raise given.error("bad_words_ids", "a list of lists of ids", words)
    if several := [word for word in words if len(word) > 1]:
        log.warning("%s: the search has no bad_words_ids of several tokens; ignored: %.60s", given.file, several)
    suppressed = given.values.get("suppress_tokens", [])
    if not isinstance(suppressed, list):
        raise given.error("suppress_tokens", "a list of ids", suppressed)
    ids = [*(word[0] for word in words if len(word) == 1), *suppressed]
    for id in ids:
        if isinstance(id, bool) or not isinstance(id, int) or not 0 <= id <= LARGEST:
            raise given.error("bad_words_ids and suppress_tokens", "made of ids", id)
    return frozenset(ids)

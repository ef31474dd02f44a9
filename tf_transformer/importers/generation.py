"""The settings of the search that the folder of a model asks for."""

import logging
from pathlib import Path
from typing import Any

from tf_transformer.config import DecodingConfig
from tf_transformer.importers.folder import optional_json

MAX_LENGTH = 512
"""The most tokens of a translation, if the folder does not say."""
MAX_SOURCE = 512
NOT_OURS = ("repetition_penalty", "diversity_penalty", "encoder_no_repeat_ngram_size", "num_beam_groups")
"""Settings that our search does not have, and that do nothing at 1, 0 or None."""

log = logging.getLogger(__name__)


def decoding_of(folder: Path, config: dict[str, Any], languages: int = 0) -> DecodingConfig:
    """Return the settings of the search of a folder of transformers. Its generation_config.json overrides config.json.

    A score of transformers is log P / n^alpha, where n counts the tokens, including the end token and the token of a
    language. Our search does not count the token of a language. With k = 1 the ranking is the same, and our scores are
    2^alpha times those of transformers. The `early_stopping` of transformers is True, False (likely stopping) or
    "never" (exact).

    Args:
        folder: the folder of the model.
        config: the content of its config.json.
        languages: the number of language tokens that a translation begins with in transformers.
    """
    given = config | optional_json(folder / "generation_config.json")

    def setting(name: str, default: Any) -> Any:
        value = given.get(name)
        return default if value is None else value

    for name in NOT_OURS:
        if setting(name, 0) not in (0, 1, 0.0, 1.0):
            log.warning("%s: the search has no %s=%s; ignored", folder, name, given[name])
    if setting("do_sample", False):
        log.warning("%s: the model is meant for sampling; beam search is used", folder)
    before = 1 + languages  # transformers counts the start token
    longest = max(setting("max_length", MAX_LENGTH) - before, 1)
    return DecodingConfig(
        beam_size=setting("num_beams", 1),
        length_penalty=float(setting("length_penalty", 1.0)),
        length_penalty_offset=float(languages),
        early_stopping=setting("early_stopping", False) is True,
        likely_stopping=setting("early_stopping", False) is False,
        no_repeat_ngram=setting("no_repeat_ngram_size", 0),
        min_length=max(setting("min_length", 0) - before, 0),
        max_length=longest,
        max_extra_length=longest,
        max_source_length=MAX_SOURCE,
    )

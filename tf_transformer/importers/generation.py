"""How the folder of a model says that it is to be searched with."""

import logging
from pathlib import Path
from typing import Any

from tf_transformer.config import DecodingConfig
from tf_transformer.importers.folder import optional_json

MAX_LENGTH = 512
"""Tokens of a translation where the folder says nothing of them."""
MAX_SOURCE = 512
NOT_OURS = ("repetition_penalty", "diversity_penalty", "encoder_no_repeat_ngram_size", "num_beam_groups")
"""Settings of the search that ours has not, and that do nothing at 1, 0 or none."""

log = logging.getLogger(__name__)


def decoding_of(folder: Path, config: dict[str, Any], languages: int = 0) -> DecodingConfig:
    """Return the settings of the search of a folder of transformers: those of its generation_config.json come first.

    A score is log P / n^alpha there, n the tokens with the end token; the token of a language is one of them, which in
    ours it is not: with k = 1 the ranking is the same, and scores are 2^alpha times theirs. Its `early_stopping` is
    True, False (likely stopping) or "never" (exact).

    Args:
        folder: of the model.
        config: what its config.json says.
        languages: tokens of languages that a translation has there at its beginning.
    """
    given = config | optional_json(folder / "generation_config.json")

    def setting(name: str, default: Any) -> Any:
        value = given.get(name)
        return default if value is None else value

    for name in NOT_OURS:
        if setting(name, 0) not in (0, 1, 0.0, 1.0):
            log.warning("%s: the search has no %s=%s; passed over", folder, name, given[name])
    if setting("do_sample", False):
        log.warning("%s: it is meant to be sampled from; a beam is taken", folder)
    before = 1 + languages  # theirs counts the start token
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

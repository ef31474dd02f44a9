"""Target lines that the normalisation of their tokenizer changes: a model can never write what they had."""

import logging
from collections.abc import Sequence
from typing import Any

from tf_transformer.tokenizers.vocabulary import Vocabulary

SHARE = 0.001
"""The share of target lines from which on a warning says so."""
NOTHING: dict[str, Any] = {"lines": 0, "example": None}
"""What `changed_by` returns where nothing is changed."""

log = logging.getLogger(__name__)


def changed_by(vocabulary: Vocabulary, lines: Sequence[str]) -> dict[str, Any]:
    """Return how many lines a normalisation changes in more than white space and case, and a word that it changes.

    The result is fit for JSON.
    """
    if vocabulary.keeps_text:
        return NOTHING
    changed = [line for line in lines if vocabulary.is_changed(line)]
    if not changed:
        return NOTHING
    before = next((word for word in changed[0].split() if vocabulary.is_changed(word)), changed[0])
    return {"lines": len(changed), "example": [before, vocabulary.normalized(before)]}


def warn_of_changed(found: Sequence[dict[str, Any]], total: int) -> None:
    """Warn if a normalisation changes more than `SHARE` of the target lines.

    Args:
        found: what `changed_by` returned for each part of the text.
        total: the number of lines.
    """
    count = sum(part["lines"] for part in found)
    if count <= SHARE * total:
        return
    before, after = next(part["example"] for part in found if part["example"])
    log.warning(
        "the normalisation of the tokenizer changes %d of %d target lines (%.1f%%), which no translation can then "
        "contain: of %r it makes %r. Train a tokenizer with tokenizer.normalization=nfc to keep every character",
        *(count, total, 100 * count / total, before, after),
    )

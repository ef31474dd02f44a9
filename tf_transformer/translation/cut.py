"""Sentences that are longer than a search takes."""

import logging
from collections.abc import Iterable, Sequence

log = logging.getLogger(__name__)


def warn_of_cut(sentences: Sequence[str], cut: Iterable[int], numbers: Sequence[int] | None = None) -> None:
    """Warn of each of the sentences that was cut, by its number where they have numbers.

    Args:
        sentences: all of a batch.
        cut: places of those that were cut.
        numbers: what the sentences are called.
    """
    for i in cut:
        log.warning(
            "%scut: it has more than max_source_length tokens, or than the model has positions: %.60s ...",
            f"line {numbers[i]} was " if numbers else "",
            sentences[i],
        )

"""Translating any number of lines in batches, in bounded memory."""

import itertools
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

from tf_transformer.errors import InputError

MIN_LENGTH = 16
"""The fewest tokens that a line counts as, because the translation of a short line may be longer than the line."""

BATCH_TOKENS = 2048
"""The most tokens per batch, unless another number is given."""
WINDOW = 2048
"""Lines that are read before the first translation is yielded, unless another number is given."""

log = logging.getLogger(__name__)
Line = TypeVar("Line")
Translated = TypeVar("Translated")


def translate_lines(
    translate: Callable[[list[Line], Sequence[int]], Sequence[Translated]],
    lines: Iterable[Line],
    *,
    count: Callable[[list[Line]], list[int]],
    batch_tokens: int = BATCH_TOKENS,
    window: int = WINDOW,
    has_more: Callable[[], bool] = lambda: True,
) -> Iterator[Translated]:
    """Translate lines in batches of similar lengths, and yield the translations in the order of the lines.

    A batch that fails is split in halves until the line that fails is alone.

    Args:
        translate: translates a batch. Its second argument is the numbers of the lines, from 1, for messages.
        lines: the lines, read one window at a time.
        count: returns the number of tokens of each line.
        batch_tokens: the most tokens per batch. Each line counts as long as the longest of its batch, and at least
            as `MIN_LENGTH`. A longer line goes alone.
        window: the most lines that are read before the first translation is yielded.
        has_more: whether another line can be read without waiting; if not, those that were read are translated.

    Raises:
        InputError: a line cannot be translated; the translations of the lines before it have been yielded.
    """
    numbered = enumerate(lines, 1)
    while True:
        waiting, unreadable = _window(numbered, window, has_more)
        found: dict[int, Translated | InputError] = {}
        lengths = count([line for _, line in waiting]) if waiting else []
        for batch in batches_of(lengths, batch_tokens):
            found.update(zip(batch, _one_by_one(translate, [waiting[i] for i in batch]), strict=True))
        for i in range(len(waiting)):
            translated = found.pop(i)
            if isinstance(translated, InputError):
                raise translated
            yield translated
        if unreadable:
            raise unreadable
        if not waiting:
            return


def _window(
    lines: Iterator[tuple[int, Line]], size: int, has_more: Callable[[], bool]
) -> tuple[list[tuple[int, Line]], InputError | None]:
    """Return the next lines, none at the end, and the error that kept the line after them from being read, if any."""
    waiting: list[tuple[int, Line]] = []
    try:
        for line in itertools.islice(lines, size):
            waiting.append(line)
            if not has_more():
                break
    except InputError as error:
        return waiting, error
    return waiting, None


def batches_of(lengths: Sequence[int], batch_tokens: int) -> Iterator[list[int]]:
    """Yield batches of at most `batch_tokens` tokens: the indices of their lines, in ascending order of length."""
    batch: list[int] = []
    for i in sorted(range(len(lengths)), key=lengths.__getitem__):
        # A batch is as wide as its longest line, which is its last.
        if batch and (len(batch) + 1) * max(lengths[i], MIN_LENGTH) > batch_tokens:
            yield batch
            batch = []
        batch.append(i)
    if batch:
        yield batch


def _one_by_one(
    translate: Callable[[list[Line], Sequence[int]], Sequence[Translated]], batch: list[tuple[int, Line]]
) -> list[Translated | InputError]:
    """Translate a batch of numbered lines. In the place of a line that fails is an error with its number."""
    try:
        numbers, lines = zip(*batch, strict=True)
        return [*translate(list(lines), numbers)]
    except InputError as error:
        if len(batch) == 1:
            return [InputError(f"line {batch[0][0]}: {error}")]
        half = len(batch) // 2
        return [*_one_by_one(translate, batch[:half]), *_one_by_one(translate, batch[half:])]


def warn_of_cut(sentences: Sequence[str], cut: Iterable[int], numbers: Sequence[int] | None = None) -> None:
    """Warn of each sentence that was cut, with its number if the sentences have numbers.

    Args:
        sentences: all sentences of a batch.
        cut: the indices of those that were cut.
        numbers: the numbers of the sentences.
    """
    for i in cut:
        log.warning(
            "%scut, because it has more tokens than max_source_length or than the model has positions: %.60s ...",
            f"line {numbers[i]} was " if numbers else "",
            sentences[i],
        )

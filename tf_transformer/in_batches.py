"""Any number of lines through something that takes a batch, in bounded memory."""

import itertools
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

from tf_transformer.errors import InputError

MIN_LENGTH = 16
"""Tokens that a line counts for at least: what is written is longer than a source of a word."""

log = logging.getLogger(__name__)
Line = TypeVar("Line")
Translated = TypeVar("Translated")


def translate_lines(
    translate: Callable[[list[Line], Sequence[int]], Sequence[Translated]],
    lines: Iterable[Line],
    *,
    count: Callable[[list[Line]], list[int]],
    batch_tokens: int = 2048,
    window: int = 2048,
) -> Iterator[Translated]:
    """Translate lines in batches of like lengths, and give the translations in the order of the lines.

    A batch that fails is halved, until what fails is a line alone.

    Args:
        translate: translates a batch; its second argument is the numbers of the lines, from 1, for what it may say
            of one.
        lines: read a window at a time.
        count: the tokens of each line.
        batch_tokens: most tokens a batch, each line counted as long as the longest, and as `MIN_LENGTH` at least; a
            longer line goes alone.
        window: lines that are read before the first of them is given back.

    Raises:
        InputError: a line cannot be translated; the translations of those before it have been given.
    """
    numbered = enumerate(lines, 1)
    while True:
        waiting, unreadable = _window(numbered, window)
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
        if len(waiting) < window:
            return


def _window(lines: Iterator[tuple[int, Line]], size: int) -> tuple[list[tuple[int, Line]], InputError | None]:
    """Return the next lines, and what kept the one after them from being read."""
    waiting: list[tuple[int, Line]] = []
    try:
        waiting.extend(itertools.islice(lines, size))
    except InputError as error:
        return waiting, error
    return waiting, None


def batches_of(lengths: Sequence[int], batch_tokens: int) -> Iterator[list[int]]:
    """Cut the places of lines, sorted by their lengths, into batches of at most so many tokens."""
    batch: list[int] = []
    for i in sorted(range(len(lengths)), key=lengths.__getitem__):
        # A batch is as wide as its longest line, the last.
        if batch and (len(batch) + 1) * max(lengths[i], MIN_LENGTH) > batch_tokens:
            yield batch
            batch = []
        batch.append(i)
    if batch:
        yield batch


def _one_by_one(
    translate: Callable[[list[Line], Sequence[int]], Sequence[Translated]], batch: list[tuple[int, Line]]
) -> list[Translated | InputError]:
    """Translate a batch of numbered lines; what fails is an error that names the line, in its place."""
    try:
        numbers, lines = zip(*batch, strict=True)
        return [*translate(list(lines), numbers)]
    except InputError as error:
        if len(batch) == 1:
            return [InputError(f"line {batch[0][0]}: {error}")]
        half = len(batch) // 2
        return [*_one_by_one(translate, batch[:half]), *_one_by_one(translate, batch[half:])]


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

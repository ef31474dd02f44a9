"""The work for a request: its sentences, and what has been found for them."""

import bisect
import math
import threading
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from tf_transformer.serving.limits import Refused
from tf_transformer.text.batching import MIN_LENGTH

MAX_VALUES = 1 << 20
"""The most values of an answer whose width depends on its sentences, such as [B, T, S], which else has no bound."""

Sentence = tuple[bytes, ...]
"""One row of the inputs of a signature: a string for each input."""
Arrays = dict[str, np.ndarray]
"""For each output of a signature, an array [B, ...]."""


class Waiting(threading.Event):
    """A request, while somebody waits for its answer; set when nobody does any more, or when the answer is complete."""

    reason = "the server was busy with the requests of others, and has not begun this one: try again later"
    """why there is no answer yet, for the client that has waited too long"""


class Job:
    """The sentences of a request, and their results.

    Args:
        signature: the signature to call.
        sentences: the sentences, [B].
        tokens: the number of tokens of each sentence, [B].
        over: is set when nobody waits for the answer any more, or when it is complete. Sentences that have not begun by
            then never do.
    """

    def __init__(self, signature: str, sentences: Sequence[Sentence], tokens: Sequence[int], over: Waiting):
        self.signature = signature
        self.sentences = sentences
        self.over = over
        self.arrived = time.monotonic()
        self._lengths = [max(count, MIN_LENGTH) for count in tokens]
        # The longest are last and begin first, so that an answer that is too large is noticed early.
        self._left = sorted(range(len(sentences)), key=self._lengths.__getitem__)
        self.tokens_left = sum(self._lengths)
        self._parts: list[tuple[list[int], Arrays]] = []
        self._found = 0
        self._adding = threading.Lock()  # two batches may have sentences of this job
        self._error: Exception | None = None

    @property
    def has_begun(self) -> bool:
        """Whether all sentences have been translated or are being translated."""
        return not self._left

    def longest(self, most: float = math.inf) -> int:
        """Return the length of the longest sentence that has not begun and has at most `most` tokens."""
        end = self._end(most)
        return self._lengths[self._left[end - 1]] if end else MIN_LENGTH

    def take(self, rows: int, most: float = math.inf) -> list[int]:
        """Begin up to `rows` sentences, the longest with at most `most` tokens, and return their indices."""
        end = self._end(most)
        start = max(0, end - rows)
        places = self._left[start:end]
        del self._left[start:end]
        self.tokens_left -= sum(self._lengths[i] for i in places)
        if places:
            self.over.reason = "send fewer sentences"
        return places

    def add(self, places: list[int], found: Arrays, is_bounded: bool) -> None:
        """Keep the results of some sentences.

        Args:
            places: the indices of the sentences, as `take` returned them.
            found: for each output, an array with a row for each of these sentences.
            is_bounded: whether rows have the same width for all sentences.

        Raises:
            Refused: the answer would have more than `MAX_VALUES`.
        """
        with self._adding:
            self._parts.append((places, found))
            self._found += len(places)
            self._check(found, is_bounded)

    def _check(self, found: Arrays, is_bounded: bool) -> None:
        if not is_bounded:
            values = sum(len(self.sentences) * math.prod(self._widths(name)) for name in found)
            if values > MAX_VALUES:
                raise Refused(400, f"the answer would have {values} values, but may have {MAX_VALUES}: send less text")
        if self._found == len(self.sentences):
            self.over.set()

    def fail(self, error: Exception) -> None:
        """End the job with an error."""
        self._error = error
        self.over.set()

    def result(self) -> Arrays:
        """Wait for the results, [B, ...], in the order of the sentences. Rows of different widths are padded.

        Raises:
            Refused: nobody waits any more, or the answer would be too large.
            Exception: what the model raised.
        """
        self.over.wait()
        if self._error is not None:
            raise self._error
        if not self._parts or self._found < len(self.sentences):
            raise Refused(504, "nobody waits for the answer")
        return {name: self._joined(name) for name in self._parts[0][1]}

    def _end(self, most: float) -> int:
        return bisect.bisect_right(self._left, most, key=self._lengths.__getitem__)

    def _widths(self, name: str) -> tuple[int, ...]:
        return tuple(map(max, zip(*(found[name].shape[1:] for _, found in self._parts), strict=True)))

    def _joined(self, name: str) -> np.ndarray:
        kind = self._parts[0][1][name].dtype
        fill = b"" if kind.hasobject else 0
        joined = np.full((len(self.sentences), *self._widths(name)), fill, kind)
        for places, found in self._parts:
            cells: Any = (np.array(places, int), *map(slice, found[name].shape[1:]))
            joined[cells] = found[name]
        return joined

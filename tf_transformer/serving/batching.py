"""Sentences of many requests, batched for one model: whose turn it is, and who goes along."""

import bisect
import math
import threading
import time
from collections.abc import Callable, Container, Sequence
from typing import Any

import numpy as np

from tf_transformer.serving.limits import Refused

MIN_TOKENS = 16
"""Tokens that a sentence counts for at least: what is written is longer than a source of a word."""
LIKE = 4
"""How many times as long as the sentences whose turn it is those may be that go along: the others wait for them."""
MAX_VALUES = 1 << 20
"""Numbers and strings of an answer whose width depends on its sentences: [B, T, S] of many long ones has no bound."""

Sentence = tuple[bytes, ...]
"""What a signature takes for one row: a string for each of its inputs."""
Arrays = dict[str, np.ndarray]
"""For each output of a signature an array [B, ...]."""


class Job:
    """The sentences of a request, and what has been found for them.

    Args:
        signature: what they are for.
        sentences: [B].
        tokens: of each of them, [B].
        over: set by who no longer waits for the answer, and when there is one. What has not begun then never is.
    """

    def __init__(self, signature: str, sentences: Sequence[Sentence], tokens: Sequence[int], over: threading.Event):
        self.signature = signature
        self.sentences = sentences
        self.over = over
        self.arrived = time.monotonic()
        self._lengths = [max(count, MIN_TOKENS) for count in tokens]
        # The longest are last, and begin: that an answer is too large is soon seen.
        self._left = sorted(range(len(sentences)), key=self._lengths.__getitem__)
        self.tokens_left = sum(self._lengths)
        self._parts: list[tuple[list[int], Arrays]] = []
        self._found = 0
        self._error: Exception | None = None

    @property
    def has_begun(self) -> bool:
        """Whether all of its sentences are translated, or being so."""
        return not self._left

    def longest(self, most: float = math.inf) -> int:
        """Return the tokens of the longest sentence that has not begun and has at most so many."""
        end = self._end(most)
        return self._lengths[self._left[end - 1]] if end else MIN_TOKENS

    def take(self, rows: int, most: float = math.inf) -> list[int]:
        """Begin so many sentences at most, the longest of those with at most so many tokens; gives their places."""
        end = self._end(most)
        start = max(0, end - rows)
        places = self._left[start:end]
        del self._left[start:end]
        self.tokens_left -= sum(self._lengths[i] for i in places)
        return places

    def add(self, places: list[int], found: Arrays, is_bounded: bool) -> None:
        """Keep what was found for sentences.

        Args:
            places: those that were taken.
            found: for each output an array with a row for each of them.
            is_bounded: whether the width of its rows is that of all sentences.

        Raises:
            Refused: the answer would have more than `MAX_VALUES`.
        """
        self._parts.append((places, found))
        self._found += len(places)
        if not is_bounded:
            values = sum(len(self.sentences) * math.prod(self._widths(name)) for name in found)
            if values > MAX_VALUES:
                raise Refused(400, f"the answer would have {values} values, and may have {MAX_VALUES}: send less")
        if self._found == len(self.sentences):
            self.over.set()

    def fail(self, error: Exception) -> None:
        """End with an error."""
        self._error = error
        self.over.set()

    def result(self) -> Arrays:
        """Wait for what was found, [B, ...], in the order of the sentences; where widths differ it is filled up.

        Raises:
            Refused: nobody waits any more; the answer would be too large.
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


Batch = list[tuple[Job, list[int]]]
"""Jobs with the places of those of their sentences that are in it; first the one whose turn it is."""


class Batcher:
    """Translates jobs in batches, in a thread of its own.

    Jobs take turns: one that is longer than a batch goes to the end of the queue after each. What room a batch has is
    given to the jobs behind, in their order. A job that is over is dropped before its next batch.

    Args:
        call: calls a signature with sentences.
        together: signatures of which sentences of different jobs may share a batch.
        max_tokens: of a batch, each sentence counted as long as its longest; a longer sentence goes alone.
        wait: seconds that a job waits for others while its batch has room.
        count: told the sentences of each batch.
    """

    def __init__(
        self,
        call: Callable[[str, Sequence[Sentence]], Arrays],
        together: Container[str],
        *,
        max_tokens: int,
        wait: float,
        count: Callable[[int], None],
    ):
        self._call = call
        self._together = together
        self._max_tokens = max_tokens
        self._wait = wait
        self._count = count
        self._jobs: list[Job] = []
        self._changed = threading.Condition()
        self._worker: threading.Thread | None = None
        self._is_closed = False

    def submit(self, job: Job) -> None:
        """Put a job at the end of the queue."""
        with self._changed:
            self._jobs.append(job)
            if self._worker is None:
                # Python does not wait for it at its end.
                self._worker = threading.Thread(target=self._work, name="batches", daemon=True)
                self._worker.start()
            self._changed.notify()

    def close(self) -> None:
        """End the thread once the queue is empty; a job that comes later has one to itself."""
        with self._changed:
            self._is_closed = True
            self._changed.notify()

    def _work(self) -> None:
        while batch := self._next():
            try:
                self._translate(batch)
            except Exception as error:
                # Whatever it is, it is theirs: those who come after them are answered.
                for job, _ in batch:
                    job.fail(error)
            first, _ = batch[0]
            if not first.has_begun:
                with self._changed:
                    self._jobs.append(first)

    def _next(self) -> Batch | None:
        """Wait for a batch; None ends the thread."""
        with self._changed:
            while True:
                self._jobs = [job for job in self._jobs if not job.over.is_set()]
                if self._jobs:
                    seconds = self._seconds_to_wait()
                    if seconds <= 0:
                        return self._take()
                    self._changed.wait(seconds)
                elif self._is_closed:
                    self._worker = None
                    return None
                else:
                    self._changed.wait()

    def _seconds_to_wait(self) -> float:
        first = self._jobs[0]
        if first.signature not in self._together:
            return 0.0
        if sum(job.tokens_left for job in self._jobs if job.signature == first.signature) >= self._max_tokens:
            return 0.0
        return first.arrived + self._wait - time.monotonic()

    def _take(self) -> Batch:
        first, *others = self._jobs
        longest = first.longest()
        like = LIKE * longest
        batch = [(first, first.take(max(1, self._max_tokens // longest)))]
        rows = len(batch[0][1])
        if first.signature in self._together:
            for job in (job for job in others if job.signature == first.signature):
                most = min(like, self._max_tokens // (rows + 1))
                longest = max(longest, job.longest(most))
                places = job.take(max(0, self._max_tokens // longest - rows), most)
                if places or job.has_begun:
                    batch.append((job, places))
                    rows += len(places)
        self._jobs = [job for job in others if not job.has_begun]
        return batch

    def _translate(self, batch: Batch) -> None:
        signature = batch[0][0].signature
        found = self._call(signature, [job.sentences[i] for job, places in batch for i in places])
        self._count(sum(len(places) for _, places in batch))
        start = 0
        for job, places in batch:
            end = start + len(places)
            job.add(places, {name: array[start:end] for name, array in found.items()}, signature in self._together)
            start = end

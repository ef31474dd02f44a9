"""Batching the sentences of many requests for one model."""

import bisect
import math
import threading
import time
from collections.abc import Callable, Container, Sequence
from typing import Any

import numpy as np

from tf_transformer.serving.limits import Refused
from tf_transformer.text.batching import MIN_LENGTH

LIKE = 4
"""How many times longer than the sentences whose turn it is, which wait for them, others in their batch may be."""
MAX_VALUES = 1 << 20
"""The most values of an answer whose width depends on its sentences, such as [B, T, S], which else has no bound."""

Sentence = tuple[bytes, ...]
"""One row of the inputs of a signature: a string for each input."""
Arrays = dict[str, np.ndarray]
"""For each output of a signature, an array [B, ...]."""


class Job:
    """The sentences of a request, and their results.

    Args:
        signature: the signature to call.
        sentences: the sentences, [B].
        tokens: the number of tokens of each sentence, [B].
        over: is set when nobody waits for the answer any more, or when it is complete. Sentences that have not begun by
            then never do.
    """

    def __init__(self, signature: str, sentences: Sequence[Sentence], tokens: Sequence[int], over: threading.Event):
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
        self._parts.append((places, found))
        self._found += len(places)
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


Batch = list[tuple[Job, list[int]]]
"""The jobs in a batch, each with the indices of its sentences there. The job whose turn it is comes first."""


class Batcher:
    """Translates jobs in batches, in a thread of its own.

    Jobs take turns. One that needs several batches goes to the end of the queue after each of them. Room that is left
    in a batch is given to the jobs behind, in their order. A job that is over is dropped before its next batch.

    Args:
        call: calls a signature with sentences.
        together: the signatures for which sentences of different jobs may share a batch.
        max_tokens: the most tokens of a batch. Each sentence counts as long as the longest; a longer one goes alone.
        wait: the number of seconds that a job waits for others while its batch has room.
        count: is called with the number of sentences of each batch.
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
                # Python does not wait for a daemon thread at exit.
                self._worker = threading.Thread(target=self._work, name="batches", daemon=True)
                self._worker.start()
            self._changed.notify()

    def close(self) -> None:
        """End the thread once the queue is empty. A job that comes later starts a thread of its own."""
        with self._changed:
            self._is_closed = True
            self._changed.notify()

    def _work(self) -> None:
        while batch := self._next():
            try:
                self._translate(batch)
            except Exception as error:
                # Any error belongs to the jobs of this batch; later jobs are still answered.
                for job, _ in batch:
                    job.fail(error)
            first, _ = batch[0]
            if not first.has_begun:
                with self._changed:
                    self._jobs.append(first)

    def _next(self) -> Batch | None:
        """Wait for a batch and return it; None ends the thread."""
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

"""Batching the sentences of many requests for one model."""

import math
import threading
import time
from collections.abc import Callable, Container, Sequence

from tensorflow.python.eager.cancellation import CancellationManager

from tf_transformer.serving.jobs import Arrays, Job, Sentence

LIKE = 4
"""How many times longer than the sentences whose turn it is, which wait for them, others in their batch may be."""
Call = Callable[[str, Sequence[Sentence], CancellationManager], Arrays]
"""Calls a signature with sentences; the manager is told to cancel the call once nobody waits for it."""


Batch = list[tuple[Job, list[int]]]
"""The jobs in a batch, each with the indices of its sentences there. The job whose turn it is comes first."""


class Lane:
    """A thread that translates batches, one after the other.

    Args:
        most: the most tokens that a job may have left, so that it is taken here.
    """

    def __init__(self, most: float):
        self.most = most
        self.thread: threading.Thread | None = None
        self.batch: Batch = []
        """the batch that is being translated"""
        self.cancellation = CancellationManager()
        """what cancels it"""


class Batcher:
    """Translates jobs in batches, in threads of its own.

    Jobs take turns. One that needs several batches goes to the end of the queue after each of them. Room that is left
    in a batch is given to the jobs behind, in their order. A job that is over is dropped before its next batch.

    Args:
        call: calls a signature with sentences.
        together: the signatures for which sentences of different jobs may share a batch.
        max_tokens: the most tokens of a batch. Each sentence counts as long as the longest; a longer one goes alone.
        wait: the number of seconds that a job waits for others while its batch has room.
        count: is called with the number of sentences of each batch.
        is_ready: says whether a signature can be called. Jobs for others are left in the queue; see `notify`.
        small: jobs with at most this many tokens left may also use a second thread, kept for them. They need not wait
            for a large batch. 0 for no such thread.
    """

    def __init__(
        self,
        call: Call,
        together: Container[str],
        *,
        max_tokens: int,
        wait: float,
        count: Callable[[int], None],
        is_ready: Callable[[str], bool] = lambda signature: True,
        small: int = 0,
    ):
        self._call = call
        self._together = together
        self._max_tokens = max_tokens
        self._wait = wait
        self._count = count
        self._is_ready = is_ready
        self._jobs: list[Job] = []
        self._changed = threading.Condition()
        self._lanes = [Lane(math.inf), *([Lane(small)] if small else [])]
        self._is_closed = False

    def submit(self, job: Job) -> None:
        """Put a job at the end of the queue."""
        with self._changed:
            self._jobs.append(job)
            for lane in self._lanes:
                if lane.thread is None:
                    # Python does not wait for a daemon thread at exit.
                    lane.thread = threading.Thread(target=self._work, args=(lane,), name="batches", daemon=True)
                    lane.thread.start()
            self._changed.notify_all()

    def notify(self) -> None:
        """Look again at what can be called, and cancel the batches for which nobody waits any more."""
        with self._changed:
            for lane in self._lanes:
                if lane.batch and all(job.over.is_set() for job, _ in lane.batch):
                    lane.cancellation.start_cancel()
            self._changed.notify_all()

    def close(self) -> None:
        """End the threads once the queue is empty. A job that comes later starts threads of its own."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()

    def _work(self, lane: Lane) -> None:
        while self._next(lane):
            try:
                self._translate(lane)
            except Exception as error:
                # Any error belongs to the jobs of this batch; later jobs are still answered.
                for job, _ in lane.batch:
                    job.fail(error)
            with self._changed:
                first, _ = lane.batch[0]
                lane.batch = []
                if not first.has_begun:
                    self._jobs.append(first)
                self._changed.notify_all()

    def _next(self, lane: Lane) -> bool:
        """Wait for a batch; False ends the thread."""
        with self._changed:
            while True:
                self._jobs = [job for job in self._jobs if not job.over.is_set()]
                mine = [job for job in self._jobs if job.tokens_left <= lane.most and self._is_ready(job.signature)]
                if mine:
                    seconds = self._seconds_to_wait(mine)
                    if seconds <= 0:
                        lane.batch, lane.cancellation = self._take(mine), CancellationManager()
                        return True
                    self._changed.wait(seconds)
                elif self._is_closed and not self._jobs:
                    lane.thread = None
                    return False
                else:
                    self._changed.wait()

    def _seconds_to_wait(self, jobs: list[Job]) -> float:
        first = jobs[0]
        if first.signature not in self._together:
            return 0.0
        if sum(job.tokens_left for job in jobs if job.signature == first.signature) >= self._max_tokens:
            return 0.0
        return first.arrived + self._wait - time.monotonic()

    def _take(self, jobs: list[Job]) -> Batch:
        first, *others = jobs
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
        # The first is not in the queue until its batch is done: it has its turn then.
        self._jobs = [job for job in self._jobs if job is not first and not job.has_begun]
        return batch

    def _translate(self, lane: Lane) -> None:
        batch = lane.batch
        signature = batch[0][0].signature
        sentences = [job.sentences[i] for job, places in batch for i in places]
        found = self._call(signature, sentences, lane.cancellation)
        self._count(sum(len(places) for _, places in batch))
        start = 0
        for job, places in batch:
            end = start + len(places)
            job.add(places, {name: array[start:end] for name, array in found.items()}, signature in self._together)
            start = end

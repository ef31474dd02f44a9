"""The batches of an epoch, whose windows are planned one by one."""

import itertools
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from typing import NamedTuple

import numpy as np

from tf_transformer.data.plan import NO_PAIR
from tf_transformer.data.windows import Window


class Planned(NamedTuple):
    """A window with its batches."""

    window: Window
    batches: list[np.ndarray]
    """the rows of each batch, as `plan` returns them"""


class Epoch:
    """The batches of an epoch, from a given window and a given batch in it.

    Args:
        number: the number of the epoch, from 0.
        windows: the blocks of each window.
        plan: returns a window with its batches, given its number and its blocks.
        planner: runs `plan` for one window while the window before it is trained on.
        first: the number of windows to leave out.
        skip: the number of batches to leave out of the next window.
    """

    def __init__(
        self,
        number: int,
        windows: list[np.ndarray],
        plan: Callable[[int, np.ndarray], Planned],
        planner: Executor,
        first: int = 0,
        skip: int = 0,
    ):
        self.number = number
        self.windows = windows
        self.first = first
        self.skip = skip
        self._plan = plan
        self._planner = planner
        self._plans: dict[int, Future[Planned]] = {}
        self._tokens: list[np.ndarray] = []
        """target tokens of the batches of each window from the first on, as far as they are known"""
        self._sharing = threading.RLock()
        self._know_first()

    def __iter__(self) -> Iterator[tuple[Window, np.ndarray]]:
        """Yield each batch with its window."""
        for number in range(self.first, len(self.windows)):
            window, batches = self._planned(number)
            self._forget_before(number)
            if number + 1 < len(self.windows):
                self._begin(number + 1)
            yield from zip(itertools.repeat(window), batches, strict=False)
            del window, batches  # the next window takes as much memory

    @property
    def known(self) -> int:
        """The number of batches in the windows that have been planned."""
        return sum(map(len, self._tokens))

    @property
    def length(self) -> int:
        """The number of batches. Windows that have not been planned yet are taken to be like those that have been."""
        later = len(self.windows) - self.first - len(self._tokens)
        return self.known + round(later * (self.known + self.skip) / max(1, len(self._tokens)))

    @property
    def latest(self) -> Planned:
        """The last window that has been planned."""
        return self._planned(self.first + len(self._tokens) - 1)

    def is_last(self, batch: int) -> bool:
        """Say whether a batch is the last one."""
        with self._sharing:
            while batch + 1 >= self.known:
                if not self._know():
                    return True
        return False

    def place(self, consumed: int) -> tuple[int, int]:
        """Return the numbers of windows, and of batches in the next window, before which `consumed` batches lie.

        The last batch must not be among the consumed ones.
        """
        self.is_last(consumed - 1)
        for number, tokens in enumerate(self._tokens, self.first):
            if consumed < len(tokens):
                return number, consumed + (self.skip if number == self.first else 0)
            consumed -= len(tokens)
        raise IndexError(consumed)

    def target_tokens(self, batch: int) -> int:
        """Return the number of target tokens that a batch learns, not counting padding."""
        self.is_last(batch)
        for tokens in self._tokens:
            if batch < len(tokens):
                return int(tokens[batch])
            batch -= len(tokens)
        raise IndexError(batch)

    def _know_first(self) -> None:
        """Count the batches of windows until there is one: the weights may leave the first windows without any."""
        while not self.known:
            if not self._know():
                return

    def _know(self) -> bool:
        """Count the tokens of the batches of one more window, and say whether there was one."""
        number = self.first + len(self._tokens)
        if number >= len(self.windows):
            return False
        window, batches = self._planned(number)
        given = int(window.has_languages)
        pairs = [rows[rows != NO_PAIR] for rows in batches]
        tokens = [window.lengths[rows, 1].sum(dtype=np.int64) - given * len(rows) for rows in pairs]
        self._tokens.append(np.array(tokens, np.int64))
        return True

    def _planned(self, number: int) -> Planned:
        """Return a window with its batches."""
        return self._begin(number).result()

    def _forget_before(self, number: int) -> None:
        """Forget all windows before one, except the tokens of their batches."""
        with self._sharing:
            while self.first + len(self._tokens) <= number:
                self._know()
            for old in [old for old in self._plans if old < number]:
                del self._plans[old]

    def _begin(self, number: int) -> "Future[Planned]":
        """Begin to plan a window, if that has not been begun yet, and return the future of its plan."""
        with self._sharing:
            if number not in self._plans:
                self._plans[number] = self._planner.submit(self._plan_one, number)
            return self._plans[number]

    def _plan_one(self, number: int) -> Planned:
        window, batches = self._plan(number, self.windows[number])
        skip = min(self.skip, len(batches) - 1) if number == self.first and batches else 0
        return Planned(window, batches[skip:])

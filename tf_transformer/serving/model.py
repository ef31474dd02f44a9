"""The model that is served: its newest version, and what comes in until it is answered."""

import asyncio
import concurrent.futures
import logging
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import tensorflow as tf

from tf_transformer.errors import InputError
from tf_transformer.serving.limits import Limits, Refused
from tf_transformer.serving.metrics import Metrics
from tf_transformer.serving.tensors import Columns, check_size
from tf_transformer.serving.version import DEFAULT, Version

Answer = TypeVar("Answer")

log = logging.getLogger(__name__)


class Model:
    """A model of numbered versions, of which the newest is served.

    Args:
        path: a folder of version folders, or one SavedModel.
        name: what clients call it; by default what the folder is called.
        limits: of requests and batches.
        metrics: where requests are counted.

    Raises:
        InputError: there is no version, or it cannot be loaded.
    """

    def __init__(self, path: str | Path, name: str | None, limits: Limits, metrics: Metrics):
        self.path = Path(path).resolve()
        self.limits = limits
        self.metrics = metrics
        if (number := self._newest()) is None:
            raise InputError(f"{path} is no SavedModel, and has no version folder, such as {path}/1, that is one")
        # Of saved_models/NAME/1 the name is NAME.
        self.name = name or (self.path.parent if self._is_one and self.path.name.isdecimal() else self.path).name
        if "/" in self.name:
            raise InputError(f"a name is part of an address, and has no slash. Received: {self.name}")
        self._failed: object = None
        self._earlier_batches = 0
        self._running = 0
        self._threads = concurrent.futures.ThreadPoolExecutor(limits.max_queue, "predict")
        self._preparing = concurrent.futures.ThreadPoolExecutor(1, "prepare")
        self.version = Version(self._folder(number), number, limits)
        # Who asks for no other signature need not wait for them.
        self.version.warm_up({DEFAULT} & self.version.inputs.keys())
        self.prepared: concurrent.futures.Future[Any] = self._preparing.submit(self._warm_up_others, self.version)
        """Of the last version that was loaded: done when it is warm."""
        metrics.watch(self)

    async def predict(
        self,
        version: Version,
        signature: str,
        columns: Columns,
        answer: Callable[[dict[str, np.ndarray]], Answer],
    ) -> Answer:
        """Call a signature of a version.

        Args:
            version: as `find` returned it.
            signature: one that it has.
            columns: for each input of it the sentences, [B].
            answer: makes of its outputs, arrays [B, ...], what is answered; beside the event loop, since it may take
                long.

        Raises:
            Refused: too much; too many requests; no answer in time.
        """
        self._check_size(columns)
        if self._running >= self.limits.max_queue:
            raise Refused(429, f"the server has {self._running} requests, as many as it takes: try again later")
        self._running += 1
        given_up = threading.Event()

        def work() -> Answer:
            return answer(version.run(signature, columns, given_up))

        working = asyncio.get_running_loop().run_in_executor(self._threads, work)
        working.add_done_callback(self._done)
        try:
            # What runs goes on; it cannot be stopped.
            answered = await asyncio.wait_for(asyncio.shield(working), self.limits.timeout)
        except TimeoutError:
            raise Refused(504, f"no translation within {self.limits.timeout:g} s: send fewer sentences") from None
        except tf.errors.OpError as error:
            log.exception("the model failed")
            raise Refused(500, f"the model failed: {error.message.splitlines()[0]}") from None
        finally:
            given_up.set()
        self.metrics.sentences.inc(len(next(iter(columns.values()))))
        return answered

    @property
    def batches(self) -> int:
        """The batches that all versions have translated."""
        return self._earlier_batches + self.version.batches

    @property
    def running(self) -> int:
        """The requests that wait or run."""
        return self._running

    @property
    def is_busy(self) -> bool:
        """Whether threads work that Python would wait for at its end."""
        return self._running > 0 or not self.prepared.done()

    def find(self, name: str, number: int | None = None) -> Version:
        """Return the version that a client names.

        Raises:
            Refused: there is none.
        """
        version = self.version
        if name != self.name or number not in (None, version.number):
            wanted = f"Latest({name})" if number is None else f"Specific({name}, {number})"
            raise Refused(404, f"Servable not found for request: {wanted}. Here is {self.name}, {version.number}")
        return version

    def check_signature(self, version: Version, signature: str) -> None:
        """Raise Refused where a version has no such signature."""
        if signature not in version.inputs:
            valid = ", ".join(sorted(version.inputs))
            raise Refused(400, f"there is no signature {signature[:100]!r}: there are {valid}")

    async def watch(self, seconds: float) -> None:
        """Look for a newer version every so many seconds, for ever; a version is taken when it is warm."""
        while True:
            await asyncio.sleep(seconds)
            await self.refresh()

    async def refresh(self) -> None:
        """Take the newest version; what cannot be loaded is logged, and the version that is served stays."""
        stamp: object = None
        try:
            number = self._newest()
            if number is None or number == self.version.number:
                return
            folder = self._folder(number)
            # One that failed is tried again when its files are others: it may have been half copied.
            stamp = number, sorted((file.name, file.stat().st_mtime_ns) for file in folder.rglob("*"))
            if stamp == self._failed:
                return
            self.prepared = self._preparing.submit(self._prepare, folder, number)
            version = await asyncio.wrap_future(self.prepared)
        except Exception as error:
            # Whatever it was, the version that is served still works, and the next look may find a better one.
            self._failed = stamp
            self.metrics.failed_loads.inc()
            log.error("version %d stays: %s", self.version.number, error)
            return
        self._earlier_batches += self.version.batches
        self.version = version
        log.info("serving version %d", number)

    def _prepare(self, folder: Path, number: int) -> Version:
        version = Version(folder, number, self.limits)
        version.warm_up(version.inputs)
        return version

    def _warm_up_others(self, version: Version) -> None:
        try:
            version.warm_up(version.inputs.keys() - {DEFAULT})
        except InputError as error:
            log.error("%s", error)

    def _check_size(self, columns: Columns) -> None:
        sizes = {len(column) for column in columns.values()}
        if len(sizes) != 1:
            raise Refused(400, f"inputs must have the same number of sentences. Received: {sorted(sizes)}")
        check_size(max(sizes), self.limits.max_sentences)
        characters = sum(len(text.decode("utf-8", "replace")) for column in columns.values() for text in column)
        if characters > self.limits.max_characters:
            raise Refused(400, f"a request may have {self.limits.max_characters} characters. Received: {characters}")

    def _done(self, working: "asyncio.Future[Any]") -> None:
        self._running -= 1
        if not working.cancelled():
            working.exception()  # that of a request that nobody waits for any more

    @property
    def _is_one(self) -> bool:
        return (self.path / "saved_model.pb").exists()

    def _newest(self) -> int | None:
        return max(self._folders(), default=None)

    def _folder(self, number: int) -> Path:
        return self._folders()[number]

    def _folders(self) -> dict[int, Path]:
        if self._is_one:
            return {int(self.path.name) if self.path.name.isdecimal() else 1: self.path}
        folders = (file.parent for file in self.path.glob("*/saved_model.pb"))
        return {int(folder.name): folder for folder in folders if folder.name.isdecimal()}

"""The model that is served: its newest version, and what comes in until it is answered."""

import asyncio
import concurrent.futures
import logging
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import tensorflow as tf

from tf_transformer.errors import InputError
from tf_transformer.serving.batching import Arrays
from tf_transformer.serving.limits import Limits, Refused
from tf_transformer.serving.metrics import Metrics
from tf_transformer.serving.signatures import COUNT, DEFAULT
from tf_transformer.serving.tensors import Columns, check_size
from tf_transformer.serving.version import Version
from tf_transformer.serving.versions import Found, Versions

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
        InputError: there is no version, or none that can be loaded.
    """

    def __init__(self, path: str | Path, name: str | None, limits: Limits, metrics: Metrics):
        path = Path(path)
        self.path = path.resolve()
        self.limits = limits
        self.metrics = metrics
        self._versions = Versions(self.path)
        # Of saved_models/NAME/1 the name is NAME.
        is_version = self._versions.is_one and self.path.name.isdecimal()
        self.name = name or (self.path.parent if is_version else self.path).name
        if "/" in self.name:
            raise InputError(f"a name is part of an address, and has no slash. Received: {self.name}")
        self._running = 0
        self._threads = concurrent.futures.ThreadPoolExecutor(limits.max_queue, "predict")
        self._preparing = concurrent.futures.ThreadPoolExecutor(1, "prepare")
        self.version = self._first(path)
        self.prepared: concurrent.futures.Future[Any] = self._preparing.submit(self._warm_up_others, self.version)
        """Of the last version that was loaded: done when it is warm."""
        metrics.watch(self)

    async def predict(
        self, version: Version, signature: str, columns: Columns, answer: Callable[[Arrays], Answer]
    ) -> Answer:
        """Call a signature of a version. To cancel it is to give it up: nothing more of it is begun.

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
        over = threading.Event()

        def work() -> Answer:
            return answer(version.run(signature, columns, over))

        working = asyncio.get_running_loop().run_in_executor(self._threads, work)
        working.add_done_callback(self._done)
        try:
            # A batch that runs cannot be stopped; its thread hears of it by `over`.
            return await asyncio.wait_for(asyncio.shield(working), self.limits.timeout)
        except TimeoutError:
            raise Refused(504, f"no translation within {self.limits.timeout:g} s: send fewer sentences") from None
        except tf.errors.OpError as error:
            log.exception("the model failed")
            raise Refused(500, f"the model failed: {error.message.splitlines()[0]}") from None
        finally:
            over.set()

    @property
    def running(self) -> int:
        """The requests that wait or run."""
        return self._running

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
        if signature not in version.signatures.inputs:
            valid = ", ".join(sorted(version.signatures.inputs))
            raise Refused(400, f"there is no signature {signature[:100]!r}: there are {valid}")

    async def watch(self, seconds: float) -> None:
        """Look for a newer version every so many seconds, for ever; a version is taken when it is warm."""
        while True:
            await asyncio.sleep(seconds)
            await self.refresh()

    async def refresh(self) -> None:
        """Take the newest version that can be loaded; why others cannot is logged."""
        for found in self._versions.to_try(self.version.number):
            self.prepared = self._preparing.submit(self._prepare, found)
            try:
                version = await asyncio.wrap_future(self.prepared)
            except Exception as error:
                # Whatever it was, the version that is served still works, and the next one may be better.
                self._versions.failed(found)
                self.metrics.failed_loads.inc()
                log.error("version %d stays: %s", self.version.number, error)
            else:
                self.version.close()
                self.version = version
                log.info("serving version %d", version.number)
                return

    def _first(self, path: Path) -> Version:
        """Load the newest version that can be."""
        errors: list[tuple[int, InputError]] = []
        for found in self._versions.to_try(None):
            try:
                version = self._load(found)
                # Who asks for no other signature need not wait for them.
                version.warm_up({DEFAULT, COUNT} & version.signatures.inputs.keys())
            except InputError as error:
                self._versions.failed(found)
                self.metrics.failed_loads.inc()
                errors.append((found.number, error))
            else:
                _log_passed_over(errors)
                return version
        if not errors:
            raise InputError(f"{path} is no exported model, and has no version folder, such as {path}/1, that is one")
        _log_passed_over(errors[1:])
        raise errors[0][1]

    def _load(self, found: Found) -> Version:
        return Version(found.folder, found.number, self.limits, self.metrics.count_batch)

    def _prepare(self, found: Found) -> Version:
        version = self._load(found)
        version.warm_up(version.signatures.inputs)
        return version

    def _warm_up_others(self, version: Version) -> None:
        try:
            version.warm_up(version.signatures.inputs.keys() - {DEFAULT, COUNT})
        except InputError as error:
            log.error("%s", error)

    def _check_size(self, columns: Columns) -> None:
        sizes = {len(column) for column in columns.values()}
        if len(sizes) != 1:
            raise Refused(400, f"inputs must have the same number of sentences. Received: {sorted(sizes)}")
        check_size(max(sizes), self.limits.max_sentences)

    def _done(self, working: "asyncio.Future[Any]") -> None:
        self._running -= 1
        if not working.cancelled():
            working.exception()  # that of a request that nobody waits for any more


def _log_passed_over(errors: list[tuple[int, InputError]]) -> None:
    for number, error in errors:
        log.error("version %d is passed over: %s", number, error)

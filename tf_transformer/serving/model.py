"""The model that is served, with its newest version and the requests for it."""

import asyncio
import concurrent.futures
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import tensorflow as tf

from tf_transformer.errors import InputError
from tf_transformer.runs.descriptions import is_export
from tf_transformer.runs.runtimes import faster_than, runtime_of
from tf_transformer.runs.signatures import COUNT, DEFAULT, N_BEST
from tf_transformer.serving.jobs import Arrays, Waiting
from tf_transformer.serving.limits import Limits, Refused
from tf_transformer.serving.metrics import Metrics
from tf_transformer.serving.tensors import Columns, check_size
from tf_transformer.serving.version import Version
from tf_transformer.serving.versions import VersionFolder, Versions

Answer = TypeVar("Answer")

FIRST = {DEFAULT, N_BEST, COUNT}
"""The signatures that are warm when a server begins to serve. Clients of these need not wait for the others."""

log = logging.getLogger(__name__)


class ServedModel:
    """A model with numbered versions, of which the newest is served.

    Args:
        path: a folder of version folders, or one exported model.
        name: the name by which clients ask for it; by default that of the folder.
        limits: the limits of requests and batches.
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
        # The name of saved_models/NAME/1 is NAME.
        is_version = self._versions.is_one and self.path.name.isdecimal()
        self.name = name or (self.path.parent if is_version else self.path).name
        if "/" in self.name:
            raise InputError(f"the name is part of an address, and must not have a slash. Received: {self.name}")
        self._running = 0
        self._threads = concurrent.futures.ThreadPoolExecutor(limits.max_queue, "predict")
        self._preparing = concurrent.futures.ThreadPoolExecutor(1, "prepare")
        self.version = self._first(path)
        self.prepared: concurrent.futures.Future[Any] = self._preparing.submit(self._warm_up_others, self.version)
        """The preparation of the last version that was loaded, done when that version is warm."""
        metrics.watch(self)

    async def predict(
        self, version: Version, signature: str, columns: Columns, answer: Callable[[Arrays], Answer]
    ) -> Answer:
        """Call a signature of a version. If the call is cancelled, no further part of it is begun.

        Args:
            version: a version that `find` returned.
            signature: the name of one of its signatures.
            columns: for each input of the signature, the sentences [B].
            answer: turns the outputs, arrays [B, ...], into the answer. It is called outside the event loop, because it
                may take long.

        Raises:
            Refused: the request is too large, there are too many requests, or there is no answer in time.
        """
        self._check_size(columns)
        return await self.run(lambda over: answer(version.run(signature, columns, over)))

    async def run(self, work: Callable[[Waiting], Answer]) -> Answer:
        """Do work for a request on a thread, within the limits of requests and of time.

        Args:
            work: is given an event, which is set when nobody waits for its result any more.

        Raises:
            Refused: there are too many requests, or there is no result in time.
        """
        if self._running >= self.limits.max_queue:
            raise Refused(429, f"the server has {self._running} requests, the most that it takes: try again later")
        self._running += 1
        over = Waiting()
        working = asyncio.get_running_loop().run_in_executor(self._threads, work, over)
        working.add_done_callback(self._done)
        try:
            # A thread cannot be stopped; `over` tells it that nobody waits any more.
            return await asyncio.wait_for(asyncio.shield(working), self.limits.timeout)
        except TimeoutError:
            raise Refused(504, f"no translation within {self.limits.timeout:g} s: {over.reason}") from None
        except (Refused, asyncio.CancelledError):
            raise
        except tf.errors.OpError as error:
            log.exception("the model failed")
            raise Refused(500, f"the model failed: {error.message.splitlines()[0]}") from None
        except BaseException:  # a panic in Rust is no Exception
            log.exception("the server failed")
            raise Refused(500, "the server failed; its log says why") from None
        finally:
            over.set()

    @property
    def running(self) -> int:
        """The number of requests that wait or run."""
        return self._running

    def find(self, name: str, number: int | None = None) -> Version:
        """Return the version that a client names.

        Raises:
            Refused: there is no such version.
        """
        version = self.version
        if name != self.name or number not in (None, version.number):
            wanted = f"Latest({name})" if number is None else f"Specific({name}, {number})"
            raise Refused(
                404, f"Servable not found for request: {wanted}. The server has {self.name}, {version.number}"
            )
        return version

    def check_signature(self, version: Version, signature: str) -> None:
        """Raise Refused if a version has no such signature."""
        if signature not in version.signatures.inputs:
            valid = ", ".join(sorted(version.signatures.inputs))
            raise Refused(400, f"there is no signature {signature[:100]!r}: call one of {valid}")

    async def watch(self, seconds: float) -> None:
        """Look for a newer version every `seconds` seconds, forever. A newer version is served once it is warm.

        What fails, such as a folder in a network, may work again at the next look; it is logged when it begins.
        """
        failed = ""
        while True:
            await asyncio.sleep(seconds)
            try:
                await self.refresh()
                failed = ""
            except Exception as error:
                if repr(error) != failed:
                    log.exception("version %d is still served: looking for others failed", self.version.number)
                failed = repr(error)

    async def refresh(self) -> None:
        """Serve the newest version that can be loaded, and log why others cannot be loaded."""
        for found in self._versions.to_try(self.version.number):
            self.prepared = self._preparing.submit(self._prepare, found)
            try:
                version = await asyncio.wrap_future(self.prepared)
            except Exception as error:
                # After any error, the version that is served still works, and the next one may load.
                self._versions.failed(found)
                self.metrics.failed_loads.inc()
                log.error("version %d is still served: %s", self.version.number, error)
            else:
                self.version.close()
                self.version = version
                log.info("serving version %d", version.number)
                return

    def _first(self, path: Path) -> Version:
        """Load the newest version that can be loaded."""
        errors: list[tuple[int, InputError]] = []
        for found in self._versions.to_try(None):
            try:
                version = self._load(found)
                version.warm_up(FIRST & version.signatures.inputs.keys())
            except InputError as error:
                self._versions.failed(found)
                self.metrics.failed_loads.inc()
                errors.append((found.number, error))
            else:
                _log_passed_over(errors)
                return version
        if not errors:
            models = sorted(found.parent for found in path.glob("*/*") if is_export(found))
            hint = f": did you mean {models[0]}?" if models else ""
            raise InputError(
                f"{path} is not an exported model, and has no version folder that is one, such as {path}/1{hint}"
            )
        _log_passed_over(errors[1:])
        raise errors[0][1]

    def _load(self, found: VersionFolder) -> Version:
        try:
            version = Version(found.folder, found.number, self.limits, self.metrics.count_batch)
        except OSError as error:
            raise InputError(f"cannot read {found.folder}: {error.strerror or error}") from None
        log.info("version %d: %s", found.number, runtime_of(found.folder))
        if faster := faster_than(found.folder):
            log.info("%s", faster)
        return version

    def _prepare(self, found: VersionFolder) -> Version:
        version = self._load(found)
        version.warm_up(version.signatures.inputs, gives_way=True)
        return version

    def _warm_up_others(self, version: Version) -> None:
        try:
            version.warm_up(version.signatures.inputs.keys() - FIRST, gives_way=True)
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
            working.exception()  # asyncio would complain of an error that nobody retrieves


def _log_passed_over(errors: list[tuple[int, InputError]]) -> None:
    for number, error in errors:
        log.error("version %d is skipped: %s", number, error)

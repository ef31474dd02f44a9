"""The REST and gRPC servers of a model in one process."""

import asyncio
import contextlib
import logging
import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import uvicorn
from grpc_health.v1.health_pb2 import HealthCheckResponse  # type: ignore[import-untyped]

from tf_transformer.errors import InputError
from tf_transformer.serving.grpc_service import HEALTHY, make_server
from tf_transformer.serving.http.files import FileKinds
from tf_transformer.serving.http.middleware import ACCESS, LastAnswers
from tf_transformer.serving.http.origin import Origins
from tf_transformer.serving.http.rest import make_app
from tf_transformer.serving.keys import Keys
from tf_transformer.serving.limits import Limits
from tf_transformer.serving.metrics import Metrics
from tf_transformer.serving.model import ServedModel
from tf_transformer.serving.ports import Ports

LAST_SECONDS = 1.0
"""Seconds that connections stay open at the end, for requests that clients have already sent."""

log = logging.getLogger(__name__)


def serve(
    path: str | Path,
    ports: Ports,
    *,
    name: str | None = None,
    poll_seconds: float = 2.0,
    limits: Limits | None = None,
    origins: Origins = frozenset(),
    access_log: bool = False,
    keys: Keys | None = None,
    kinds: FileKinds | None = None,
) -> None:
    """Serve a model until SIGTERM or SIGINT. Requests in flight are then finished, and the process ends.

    Args:
        path: a folder of version folders, of which the newest is served, or one exported model.
        ports: the ports to listen at.
        name: the name of the model; by default that of the folder.
        poll_seconds: the number of seconds between looks for a newer version.
        limits: the limits of requests and batches.
        origins: the origins whose pages may use the server from a browser, besides its own.
        access_log: whether to log each request.
        keys: the keys that clients must give to translate; None for none.
        kinds: the files and pages that can be translated; None for none.

    Raises:
        InputError: there is no model, or a damaged one; or another server has taken an address meanwhile.
    """
    limits, keys = limits or Limits(), keys or Keys()
    model = ServedModel(path, name, limits, Metrics())
    logging.getLogger(ACCESS).setLevel(logging.INFO if access_log else logging.WARNING)
    asyncio.run(_serve(model, ports, LastAnswers(make_app(model, origins, keys, kinds)), poll_seconds, keys))
    # Python would wait for what still runs, such as a batch that nobody waits for or a version that is being loaded.
    logging.shutdown()
    os._exit(0)


class _Server(uvicorn.Server):
    """A server that leaves signals to us, because gRPC must handle them too, and that ends connections gently."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Capture no signals."""
        yield

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Let no new client in, but answer what connected clients still send, which uvicorn would cut off."""
        for server in self.servers:
            server.close()
        loop = asyncio.get_running_loop()
        end = loop.time() + LAST_SECONDS
        while self.server_state.connections and loop.time() < end:
            await asyncio.sleep(0.02)
        await super().shutdown(sockets)


async def _serve(model: ServedModel, ports: Ports, app: LastAnswers, poll_seconds: float, keys: Keys) -> None:
    listener = ports.open_rest()
    address = ports.release_grpc()
    try:
        grpc_server, grpc_port, health = make_server(model, address, keys)
    except RuntimeError as error:
        raise InputError(f"cannot listen at {address} ({error}): give another --grpc-port, or --host") from None
    grace = model.limits.timeout + 1
    config = uvicorn.Config(
        app,
        log_config=None,
        log_level="warning",
        access_log=False,
        server_header=False,
        lifespan="off",
        proxy_headers=False,
        timeout_graceful_shutdown=round(grace),
    )
    server = _Server(config)
    ending: list[asyncio.Task[None]] = []

    async def end_grpc() -> None:
        await health.enter_graceful_shutdown()
        await grpc_server.stop(grace)

    def end(number: int) -> None:
        if ending:
            os._exit(128 + number)
        server.should_exit = app.is_ending = True
        ending.append(asyncio.ensure_future(end_grpc()))

    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, end, number)

    async def say_ready() -> None:
        await asyncio.wait([asyncio.wrap_future(model.prepared)])
        for name in HEALTHY:
            await health.set(name, HealthCheckResponse.SERVING)

    for name in HEALTHY:
        await health.set(name, HealthCheckResponse.NOT_SERVING)
    await grpc_server.start()
    readying = asyncio.create_task(say_ready())
    watching = asyncio.create_task(model.watch(poll_seconds))
    log.info(
        "serving %s, version %d: http://%s:%d, gRPC %s:%d",
        *(model.name, model.version.number, ports.host, listener.getsockname()[1], ports.host, grpc_port),
    )
    await server.serve(sockets=[listener])
    watching.cancel()
    readying.cancel()
    while model.running and not ending[0].done():
        await asyncio.sleep(0.02)
    # Only clients that watch the health are left, and they would stay forever.
    await grpc_server.stop(LAST_SECONDS)
    await asyncio.gather(*ending)

"""Both servers of a model in one process, from the first request to the last."""

import asyncio
import contextlib
import logging
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import uvicorn

from tf_transformer.errors import InputError
from tf_transformer.serving.grpc_service import make_server
from tf_transformer.serving.limits import Limits
from tf_transformer.serving.metrics import Metrics
from tf_transformer.serving.model import Model
from tf_transformer.serving.ports import Ports
from tf_transformer.serving.rest import make_app

log = logging.getLogger(__name__)


def serve(
    path: str | Path,
    ports: Ports,
    *,
    name: str | None = None,
    poll_seconds: float = 2.0,
    limits: Limits | None = None,
) -> None:
    """Serve a model until SIGTERM or SIGINT; what is in flight then is finished first, and the process ends.

    Args:
        path: a folder of version folders, of which the newest is served, or one SavedModel.
        ports: where to listen.
        name: of the model, by default that of the folder.
        poll_seconds: between looks for a newer version.
        limits: what is refused.

    Raises:
        InputError: no model there, or a damaged one; an address that another server has taken meanwhile.
    """
    limits = limits or Limits()
    model = Model(path, name, limits, Metrics())
    asyncio.run(_serve(model, ports, poll_seconds))
    # Python would wait for what still runs: a batch that nobody waits for, a version that is loaded or warmed up.
    logging.shutdown()
    os._exit(0)


class _Server(uvicorn.Server):
    """A server that leaves signals to us: gRPC must hear of them as well."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Capture none."""
        yield


async def _serve(model: Model, ports: Ports, poll_seconds: float) -> None:
    listener = ports.open_rest()
    address = ports.release_grpc()
    try:
        grpc_server, grpc_port = make_server(model, address)
    except RuntimeError as error:
        raise InputError(f"cannot listen at {address}, {error}: give another --grpc-port, or --host") from None
    grace = model.limits.timeout + 1
    config = uvicorn.Config(
        make_app(model),
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

    def end(number: int) -> None:
        if ending:
            os._exit(128 + number)
        server.should_exit = True
        ending.append(asyncio.ensure_future(grpc_server.stop(grace)))

    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, end, number)
    await grpc_server.start()
    watching = asyncio.create_task(model.watch(poll_seconds))
    log.info(
        "serving %s, version %d: http://%s:%d, gRPC %s:%d",
        *(model.name, model.version.number, ports.host, listener.getsockname()[1], ports.host, grpc_port),
    )
    await server.serve(sockets=[listener])
    watching.cancel()
    await asyncio.gather(*ending)

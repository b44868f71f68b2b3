"""Runs the query service as a process of its own."""

import logging
import signal
import socket
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path

import uvicorn
from starlette.applications import Starlette

from repertory.compose import Parts
from repertory.errors import UsageError
from repertory.settings import Settings
from repertory_query.app import create_app
from repertory_query.connection import Connection
from repertory_query.limits import MAX_ADDRESS_LENGTH
from repertory_query.service import Service

READERS = 2  # threads of keyword arms
SHUTDOWN_TIMEOUT_S = 10  # for running requests

_log = logging.getLogger(__name__)


def run(settings: Settings) -> None:
    """Serve until the process receives a signal to end.

    Raises:
        ConfigurationError: The settings are not those of a team's server.
        UsageError: The address cannot be served on.
    """
    parts = Parts(settings, Path.cwd())
    queue = parts.queue()
    with (
        termination_signals() as stopping,
        listening(settings) as listener,
        ThreadPoolExecutor(READERS, "keywords") as reader,
        parts.live_search(reader) as live,
        closing(Service(parts, live, queue)) as service,
    ):
        serve(create_app(service, settings), listener, stopping)


@contextmanager
def termination_signals() -> Iterator[list[int]]:
    """The received SIGINTs and SIGTERMs; KeyboardInterrupt at the end if there was a SIGINT.

    Nothing is raised in between: threads import modules as they begin, and an exception from a
    signal's handler can be swallowed there, or leave the interpreter's import lock held for
    ever. A second signal ends the process at once.
    """
    received: list[int] = []

    def note(number: int, _: object) -> None:
        received.append(number)
        signal.signal(number, signal.SIG_DFL)

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, note)
    yield received
    if signal.SIGINT in received:
        raise KeyboardInterrupt


def listening(settings: Settings) -> socket.socket:
    """A socket on the address to serve on.

    Raises:
        UsageError: The address is unavailable.
    """
    host, port = settings.values.host, settings.values.port
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server((host, port), family=family, backlog=2_048)
        # Connections take it over; asyncio sets it only where the protocol is named. Without it
        # the body of an answer waits 40 ms for the client to acknowledge the head.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return listener
    except OSError as error:
        reason = (error.strerror or str(error)).partition(" (while ")[0]  # without the address
        raise UsageError(
            f"Cannot serve on {host} port {port}: {reason}; choose others with "
            "--host and --port, or end what uses it."
        ) from error


def configuration(app: Starlette) -> uvicorn.Config:
    """How an application is served."""
    return uvicorn.Config(
        app,
        http=Connection,
        h11_max_incomplete_event_size=2 * MAX_ADDRESS_LENGTH,
        ws="none",
        lifespan="on",  # the MCP servers run as long as the application
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=SHUTDOWN_TIMEOUT_S,
    )


def serve(app: Starlette, listener: socket.socket, stopping: Sequence[int] = ()) -> None:
    """Serve an application until SIGTERM or SIGINT; running requests are finished.

    Then the signal is raised again, so that the caller can shut down in order.

    Args:
        app: The application.
        listener: The socket it is served on.
        stopping: Ends it as soon as it is not empty, for signals that came before the server
            handled them itself; see ``termination_signals``.
    """
    host, port = listener.getsockname()[:2]
    _log.info("serving", extra={"host": host, "port": port})
    server = _Server(configuration(app), stopping)
    try:
        server.run(sockets=[listener])
    finally:
        _log.info("ending", extra={"requests": server.server_state.total_requests})


class _Server(uvicorn.Server):
    """A server that also ends on signals that came before it handled them."""

    def __init__(self, config: uvicorn.Config, stopping: Sequence[int]) -> None:
        super().__init__(config)
        self._stopping = stopping

    async def on_tick(self, counter: int) -> bool:
        return await super().on_tick(counter) or bool(self._stopping)

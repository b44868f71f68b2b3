"""Runs the query service as a separate process."""

import logging
import socket
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import uvicorn
from starlette.types import ASGIApp

from repertory import telemetry
from repertory.compose import Parts
from repertory.embedding import download
from repertory.live_search.live import NOTHING_INDEXED
from repertory.settings import Settings
from repertory.system.memory import exempt_existing_objects
from repertory_query.access.limits import MAX_ADDRESS_LENGTH
from repertory_query.access.rates import Rates
from repertory_query.app import create_app
from repertory_query.backend.service import Service
from repertory_query.records.query_process import QueryProcess
from repertory_query.server.connection import Connection
from repertory_query.server.listening import listening
from repertory_query.server.signals import termination_signals

READERS = 2  # threads of keyword arms
SHUTDOWN_TIMEOUT_S = 10  # for running requests
READY_TIMEOUT_S = 30.0  # for which a new process leaves all connections to the others

_log = logging.getLogger(__name__)


def run(settings: Settings) -> None:
    """Serve until the process receives a signal to end.

    Raises:
        ConfigurationError: The settings are not those of a team's server.
        UsageError: The address cannot be served on.
    """
    with termination_signals() as stopping, listening(settings) as listener:
        answer(settings, listener, stopping)


def answer(
    settings: Settings,
    listener: socket.socket,
    stopping: Sequence[int],
    member: QueryProcess | None = None,
    *,
    waits: bool = False,
) -> None:
    """Answer on a socket until a signal to end; see ``serve``.

    Args:
        settings: The active settings.
        listener: The socket.
        stopping: The signals that were received.
        member: Which of several processes this is; None if it is the only one.
        waits: Accept no connections until searches can be answered; another process accepts them.
    """
    parts = Parts(settings, Path.cwd())
    queue = parts.queue()
    telemetry.begin("repertory-api", wanted=settings.values.telemetry)
    with (
        ThreadPoolExecutor(READERS, "keywords") as reader,
        parts.live_search(reader) as live,
        closing(Service(parts, live, queue, member.process if member else None)) as service,
    ):
        deadline = time.monotonic() + READY_TIMEOUT_S
        while waits and not stopping and time.monotonic() < deadline:
            waits = not (live.wait(0.1) or live.missing.get("index") == NOTHING_INDEXED)
        requests, number = (member.requests, member.number) if member else (None, 0)
        rates = Rates(settings.values.requests_per_minute, requests, number)
        serve(create_app(service, settings, rates, member=member), listener, stopping)


def configuration(app: ASGIApp) -> uvicorn.Config:
    """The uvicorn configuration for an application."""
    return uvicorn.Config(
        app,
        http=Connection,
        h11_max_incomplete_event_size=2 * MAX_ADDRESS_LENGTH,
        ws="none",
        lifespan="on",  # it starts and ends the MCP servers
        log_config=None,
        access_log=False,
        server_header=False,
        # Trust a proxy on this machine to name its callers, which can only reduce their rights.
        # Without this, uvicorn would read the trusted proxies from FORWARDED_ALLOW_IPS.
        proxy_headers=True,
        forwarded_allow_ips=["127.0.0.1", "::1"],
        timeout_graceful_shutdown=SHUTDOWN_TIMEOUT_S,
    )


def serve(
    app: ASGIApp,
    listener: socket.socket,
    stopping: Sequence[int] = (),
    ending: Callable[[], None] = lambda: None,
    is_over: Callable[[], bool] = lambda: False,
) -> None:
    """Serve an application until a signal to end, and finish running requests.

    Then the signal is raised again, so that the caller can shut down in order.

    Args:
        app: The application.
        listener: The socket on which it is served.
        stopping: Ends the server once it is not empty, for signals that were received before the
            server handled them itself; see ``termination_signals``.
        ending: Called on the event loop before waiting for running requests.
        is_over: Whether to end without a signal; called many times a second.
    """
    host, port = listener.getsockname()[:2]
    _log.info("serving", extra={"host": host, "port": port})
    server = _Server(configuration(app), lambda: bool(stopping) or is_over(), ending)
    exempt_existing_objects()
    try:
        server.run(sockets=[listener])
    finally:
        _log.info("ending", extra={"requests": server.server_state.total_requests})


class _Server(uvicorn.Server):
    """A server that ends when ``is_over`` says so, and calls ``ending`` before waiting."""

    def __init__(
        self, config: uvicorn.Config, is_over: Callable[[], bool], ending: Callable[[], None]
    ) -> None:
        super().__init__(config)
        self._is_over = is_over
        self._ending = ending

    async def on_tick(self, counter: int) -> bool:
        return await super().on_tick(counter) or self._is_over()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        download.end()
        self._ending()
        await super().shutdown(sockets)

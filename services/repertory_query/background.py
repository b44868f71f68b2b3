"""What an application does beside answering: usage digests, samples, metrics to a collector."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import anyio.to_thread
from prometheus_client.metrics_core import Metric

from repertory.errors import RepertoryError
from repertory.insights import insights_of
from repertory.usage.digest import send_due
from repertory.usage.store import DAY_S
from repertory_query.backend.pool import Pool
from repertory_query.backend.service import Service
from repertory_query.records.history import INTERVAL_S
from repertory_query.records.metrics import REQUESTS, Metrics
from repertory_query.records.recent import BOUNDS

FIRST_DIGEST_S = 60.0  # after the start, when the index is usually ready
DIGEST_INTERVAL_S = 3_600.0  # between two attempts

_log = logging.getLogger(__name__)


@asynccontextmanager
async def sending_digests(url: str | None, service: Service, pool: Pool) -> AsyncIterator[None]:
    """Send a digest once a day.

    Args:
        url: The webhook; nothing is sent without one.
        service: The server.
        pool: The threads on which a digest is made and sent.
    """
    if not url:
        yield
        return

    def attempt() -> bool:
        since = time.time() - DAY_S
        return send_due(url, service.parts.usage, lambda: insights_of(service, since))

    async def run() -> None:
        await anyio.sleep(FIRST_DIGEST_S)
        while True:
            try:
                if await pool.run(attempt):
                    _log.info("digest_sent")
            except RepertoryError as error:
                _log.warning("digest_not_sent", extra={"reason": str(error)})
            # A boundary: a failed digest must not end the server.
            except Exception:
                _log.exception("digest_failed")
            await anyio.sleep(DIGEST_INTERVAL_S)

    async with _beside(run):
        yield


@asynccontextmanager
async def sampling(sample: Callable[[], None]) -> AsyncIterator[None]:
    """Take a sample at intervals, on another thread because it may block."""

    async def run() -> None:
        while True:
            try:
                await anyio.to_thread.run_sync(sample, abandon_on_cancel=True)
            except Exception:  # a boundary: a missing sample must not end the server
                _log.exception("no_sample")
            await anyio.sleep(INTERVAL_S)

    async with _beside(run):
        yield


@asynccontextmanager
async def _beside(run: Callable[[], Coroutine[Any, Any, None]]) -> AsyncIterator[None]:
    """Run an endless task until the block ends."""
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run)
        yield
        tasks.cancel_scope.cancel()


@asynccontextmanager
async def sending_metrics(metrics: Metrics, service: Service) -> AsyncIterator[None]:
    """Send metrics to an OpenTelemetry collector at intervals and at the end, if configured."""
    if not service.settings.values.telemetry:
        yield
        return
    from repertory.telemetry import export  # noqa: PLC0415 - an optional extra

    if not export.is_wanted("METRICS"):
        yield
        return
    from repertory.telemetry.meters import Meters  # noqa: PLC0415 - an optional extra

    def families() -> Iterator[Metric]:
        return metrics.families(service.stats(), service.call_outcomes, service.recent.counts())

    name = "repertory-api" if service.parts.is_team else "repertory"  # as in the traces
    meters = Meters(export.resource(name, service.workspace.directory_key), families)
    requests = meters.histogram(*REQUESTS, BOUNDS)
    metrics.on_request = requests.record
    try:
        yield
    finally:
        metrics.on_request = None
        await asyncio.to_thread(meters.close)

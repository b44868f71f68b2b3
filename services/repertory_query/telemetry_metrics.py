"""Sends the metrics of an application to an OpenTelemetry collector, if configured."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

from prometheus_client.metrics_core import Metric

from repertory_query.metrics import REQUESTS, Metrics
from repertory_query.recent import BOUNDS
from repertory_query.service import Service


@asynccontextmanager
async def sending_metrics(metrics: Metrics, service: Service) -> AsyncIterator[None]:
    """Send metrics at intervals, and once more at the end."""
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

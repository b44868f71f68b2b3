"""``/stats``, ``/healthz``, ``/readyz`` and ``/metrics``: the state of the server."""

from starlette.requests import Request
from starlette.responses import Response

from repertory.remote.server_identity import HEADER
from repertory.stats import Stats
from repertory.wire import Liveness, Readiness
from repertory_query.access.callers import Access
from repertory_query.api.operations import Nothing, Operations, answer
from repertory_query.backend.caller_view import (
    for_caller,
    sees_all,
    stats_for,
    visible_to,
    without_paths,
)
from repertory_query.backend.pool import Pool
from repertory_query.backend.service import Service
from repertory_query.records.actions import AuditedRoute
from repertory_query.records.metrics import Metrics


def routes(service: Service, pool: Pool, metrics: Metrics, access: Access) -> list[AuditedRoute]:
    """The routes."""
    operations = Operations("state")

    @operations.get("/stats", Nothing, returns=Stats, action=None, summary="Statistics")
    async def get_stats(request: Request, _: Nothing) -> Response:
        """Report the indexed items, their freshness, running work and problems."""
        caller = request.state.caller
        found = await pool.run(visible_to(caller, service).stats)
        return answer(stats_for(caller, found))

    @operations.get("/healthz", Nothing, returns=Liveness, action=None, summary="Alive")
    async def get_health(request: Request, _: Nothing) -> Response:
        """Report that the process answers."""
        return answer(Liveness(alive=True, proof=access.proof(request.headers.get(HEADER, ""))))

    @operations.get(
        "/readyz", Nothing, returns=Readiness, unready=Readiness, action=None, summary="Ready"
    )
    async def get_readiness(_: Request, __: Nothing) -> Response:
        """Report whether a search can be answered, and which parts are unavailable."""
        missing = {part: without_paths(why) for part, why in service.missing.items()}
        found = Readiness(ready=service.is_ready, missing=missing)
        return answer(found, 200 if found.ready else 503)

    @operations.get(
        "/metrics",
        Nothing,
        content={"text/plain": {"type": "string"}},
        action=None,
        summary="Metrics",
    )
    async def get_metrics(request: Request, _: Nothing) -> Response:
        """Return all metrics for Prometheus."""
        accept = request.headers.get("accept", "")
        caller = request.state.caller
        visible = for_caller(caller, service)
        callers = visible.recent.by_caller() if sees_all(caller) else {}
        text, media_type = await pool.run(
            lambda: metrics.text(
                accept, visible.stats(), visible.call_outcomes, visible.recent.counts(), callers
            )
        )
        return Response(text, headers={"Content-Type": media_type})

    return operations.routes

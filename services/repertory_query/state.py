"""``/stats``, ``/healthz``, ``/readyz`` and ``/metrics``: how the server is."""

from functools import partial

import msgspec
from fastapi import APIRouter, Request, Response

from repertory_query import schemas
from repertory_query.metrics import Metrics
from repertory_query.pool import Pool
from repertory_query.service import Service


def router(service: Service, pool: Pool, metrics: Metrics) -> APIRouter:
    """The routes."""
    routes = APIRouter(tags=["state"])

    @routes.get("/stats", response_model=schemas.Stats, summary="Statistics")
    async def stats() -> Response:
        """Say what is indexed, how fresh it is, what is being done and what is wrong."""
        found = await pool.run(service.stats)
        return Response(msgspec.json.encode(found), media_type="application/json")

    @routes.get("/healthz", response_model=schemas.Alive, summary="Alive")
    async def healthz() -> Response:
        """Say that the process answers."""
        return Response(b'{"alive":true}', media_type="application/json")

    @routes.get(
        "/readyz",
        response_model=schemas.Ready,
        responses={503: {"model": schemas.Ready, "description": "Nothing can be searched."}},
        summary="Ready",
    )
    async def readyz() -> Response:
        """Say whether a search can be answered, and what is missing for a whole answer."""
        found = {"ready": service.is_ready, "missing": service.missing}
        status = 200 if found["ready"] else 503
        return Response(msgspec.json.encode(found), status, media_type="application/json")

    @routes.get(
        "/metrics",
        response_class=Response,
        responses={200: {"content": {"text/plain": {}}, "description": "Prometheus's text."}},
        summary="Metrics",
    )
    async def prometheus(request: Request) -> Response:
        """Give all metrics to Prometheus."""
        accept = request.headers.get("accept", "")
        text, media_type = await pool.run(partial(metrics.text, accept))
        return Response(text, headers={"Content-Type": media_type})

    return routes

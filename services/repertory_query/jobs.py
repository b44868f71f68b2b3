"""``/rebuild`` and ``/queue``: what is to be done, and what could not be."""

from functools import partial

import msgspec
from fastapi import APIRouter, Response

from repertory_query import schemas
from repertory_query.access import Admin
from repertory_query.pool import Pool
from repertory_query.service import Service


def router(service: Service, pool: Pool) -> APIRouter:
    """The routes."""
    routes = APIRouter(tags=["jobs"])

    @routes.post("/rebuild", response_model=schemas.Rebuild, status_code=202, summary="Rebuild")
    async def rebuild(_: Admin) -> Response:
        """Begin to build the index anew, beside the one that is searched; `/stats` follows it."""
        begun = await pool.run(service.rebuild)
        return Response(msgspec.json.encode(begun), 202, media_type="application/json")

    @routes.get("/queue", response_model=schemas.Queue, summary="Jobs")
    async def queue() -> Response:
        """Say which jobs wait, are being done, and failed."""
        found = await pool.run(service.jobs)
        return Response(msgspec.json.encode(found), media_type="application/json")

    @routes.post("/queue/retry", response_model=schemas.Retried, summary="Retry failed jobs")
    async def retry(_: Admin, body: schemas.Retry) -> Response:
        """Put jobs that failed back on the queue."""
        count = await pool.run(partial(service.retry, body.ids))
        return Response(msgspec.json.encode({"retried": count}), media_type="application/json")

    return routes

"""``/export``: a collection that this process has open, for a backup by its user.

This is a private interface: it is not documented, and only accepts the token of the server's user.
"""

from collections.abc import Iterator

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import BaseRoute

from repertory.errors import StoreError
from repertory.wire import EXPORT
from repertory_query.access.callers import OWNER
from repertory_query.backend.pool import Pool
from repertory_query.backend.service import Service
from repertory_query.records.actions import Action, AuditedRoute


def routes(service: Service, pool: Pool) -> list[BaseRoute]:
    """The route."""

    async def export(request: Request) -> Response:
        if request.state.caller is not OWNER:
            raise HTTPException(403, "Only the user who runs this server may export its index.")
        from repertory.backup import frames  # noqa: PLC0415 - rarely needed

        name = request.path_params["collection"]

        def content() -> Iterator[bytes]:
            with service.parts.store.open(name) as collection:
                yield b""  # from now on, closing the generator closes the collection
                yield from frames.of_points(collection.points())

        points = content()
        try:
            await pool.run(lambda: next(points))
        except StoreError as error:
            raise HTTPException(404, str(error)) from error
        return StreamingResponse(points, media_type="application/octet-stream")

    action = Action("export", "collection")
    return [AuditedRoute("GET", f"{EXPORT}/{{collection}}", export, action=action)]

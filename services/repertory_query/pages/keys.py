"""The page that lists, creates and revokes API keys, like `repertory keys`."""

from collections.abc import Mapping
from functools import partial

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from repertory.errors import UsageError
from repertory.keys import Scope
from repertory_query.access.callers import Access
from repertory_query.backend.pool import Pool
from repertory_query.backend.service import Service
from repertory_query.pages.page import PageRoute, page, posted_fields, redirection
from repertory_query.records.actions import Action
from repertory_query.records.auditing import name_items

PATH = "/status/keys"


def routes(service: Service, pool: Pool, access: Access) -> list[BaseRoute]:
    """The routes, which need the scope ``admin``."""
    keys = access.keys

    def shown(
        request: Request,
        status: int = 200,
        *,
        sent: Mapping[str, str] | None = None,
        token: str = "",
        detail: str = "",
        is_first: bool = False,
    ) -> Response:
        """The page, with a new key or an error in the form, if any."""
        return page(
            request,
            "keys.html",
            status,
            keys=keys.list(),
            scopes=list(Scope),
            is_team=service.parts.is_team,
            required=keys.required,
            has_people=access.has_people,
            sent=sent or {},
            token=token,
            detail=detail,
            is_first=is_first,
        )

    async def list_keys(request: Request) -> Response:
        """List the keys."""
        return await pool.run(partial(shown, request))

    async def create(request: Request) -> Response:
        """Create a key, and show it once."""
        sent = await posted_fields(request)
        name = sent.get("name", "").strip()
        groups = sent.get("groups", "").replace(",", " ").split()
        name_items(request, [name])

        def created() -> Response:
            is_first = not keys.required
            try:
                scope = Scope(sent.get("scope", Scope.READ))
            except ValueError as error:
                raise UsageError("The scope is read, call or admin.") from error
            try:
                token = keys.create(name, scope, list(dict.fromkeys(groups)))
            except UsageError as error:
                return shown(request, 422, detail=str(error), sent=sent)
            return shown(request, token=token, sent={"name": name}, is_first=is_first)

        return await pool.run(created)

    async def revoke(request: Request) -> Response:
        """Revoke a key at once."""
        name = (await posted_fields(request)).get("name", "")
        name_items(request, [name])
        await pool.run(partial(keys.revoke, name))
        return redirection(request, PATH)

    return [
        PageRoute("GET", PATH, list_keys, action=None, scope=Scope.ADMIN),
        PageRoute("POST", PATH, create, action=Action("key-create"), scope=Scope.ADMIN),
        PageRoute(
            "POST",
            f"{PATH}/revoke",
            revoke,
            action=Action("key-revoke"),
            scope=Scope.ADMIN,
        ),
    ]

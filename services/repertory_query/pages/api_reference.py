"""The page of the HTTP API, made from the OpenAPI document of this server."""

from collections.abc import Iterator

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from repertory.keys import Scope
from repertory_query.access.callers import Access
from repertory_query.api.examples import Schema, request_of
from repertory_query.pages.connecting import key_in_shell
from repertory_query.pages.page import PageRoute, page

PATH = "/api"


def routes(document: Schema, access: Access) -> list[BaseRoute]:
    """The route of the page.

    Args:
        document: The OpenAPI document.
        access: Access control, to say whether a request needs a key.
    """

    def shown(request: Request) -> Response:
        key = key_in_shell(request, access)
        found = _operations(document, access.url(request), f'"{key}"' if key else "")
        return page(request, "api.html", operations=[*found])

    async def show(request: Request) -> Response:
        """Show every operation, with an example request to copy."""
        return await run_in_threadpool(shown, request)

    return [PageRoute("GET", PATH, show, action=None, scope=Scope.READ)]


def _operations(document: Schema, url: str, bearer: str) -> Iterator[Schema]:
    """Each operation of the document, with its method, its path and a request for a shell."""
    for path, methods in document["paths"].items():
        for method, one in methods.items():
            request = request_of(method, path, one, document, url, bearer)
            yield {**one, "method": method.upper(), "path": path, "request": request}

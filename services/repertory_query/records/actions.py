"""The actions of routes, as they are named in the audit log."""

from collections.abc import Callable
from typing import Any

import msgspec
from starlette.routing import Route


class Action(msgspec.Struct, frozen=True):
    """The action of a route.

    Attributes:
        name: The name of the action.
        what: The parameter of the path or the query string with the item's id; empty if the handler
            names the items.
        has_text: Whether its parameters and body are a query or arguments, which may be recorded.
        needs: The parameter without which the request has no effect, if any.
    """

    name: str
    what: str = ""
    has_text: bool = False
    needs: str = ""


# The MCP server records its actions itself. Only requests that are refused before they reach it are
# recorded here.
MCP = Action("mcp")


class AuditedRoute(Route):
    """A route with an action for the audit log.

    Args:
        method: Its only method.
        path: The path, with parameters in Starlette's syntax.
        endpoint: Answers a request.
        action: The recorded action; None if requests are not recorded.
        face: The interface that it belongs to.
    """

    def __init__(
        self,
        method: str,
        path: str,
        endpoint: Callable[..., Any],
        *,
        action: Action | None,
        face: str = "http",
    ) -> None:
        super().__init__(path, endpoint, methods=[method])
        self.method = method
        self.action = action
        self.face = face

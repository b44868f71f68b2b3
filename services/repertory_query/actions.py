"""What the routes do, as the audit log names it."""

from collections.abc import Callable
from typing import Any

import msgspec
from starlette.routing import Route


class Action(msgspec.Struct, frozen=True):
    """What a route does.

    Attributes:
        name: The action.
        what: The parameter of the path or the address with an id; empty if the handler knows it.
        has_text: Whether its parameters and body are a query or arguments, which may be recorded.
        needs: The parameter without which the request does nothing.
    """

    name: str
    what: str = ""
    has_text: bool = False
    needs: str = ""


# The MCP server records what it does itself; only requests that are refused before they reach it
# are recorded here.
MCP = Action("mcp")


class AuditedRoute(Route):
    """A route that says what it does.

    Args:
        method: Its one method.
        path: The path, with parameters as Starlette writes them.
        endpoint: Answers a request.
        action: What it is recorded as; None if it is not recorded.
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

"""OAuth protected resource metadata (RFC 9728), by which MCP hosts find the provider."""

from typing import TYPE_CHECKING

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from repertory_query.mcp.toolset_names import PATHS

if TYPE_CHECKING:
    from repertory_query.sign_in.openid import OpenId

METADATA = "/.well-known/oauth-protected-resource"


def routes(openid: "OpenId | None") -> list[BaseRoute]:
    """The routes, one for the server and one for each MCP path; empty without a provider."""
    if openid is None:
        return []

    def described(path: str) -> Route:
        body = msgspec.json.encode(
            {
                "resource": openid.public_url + path,
                "authorization_servers": [openid.provider.issuer],
                "scopes_supported": openid.scopes.split(),
                "bearer_methods_supported": ["header"],
                "resource_name": "Repertory",
            }
        )

        async def metadata(_: Request) -> Response:
            """Name the provider that signs people in."""
            return Response(body, media_type="application/json")

        return Route(METADATA + path, metadata)

    return [described(path) for path in ("", *PATHS)]


def pointer(public_url: str, path: str) -> str:
    """The part of a challenge that points to the metadata for a path."""
    of = path if path in PATHS else ""
    return f', resource_metadata="{public_url}{METADATA}{of}"'

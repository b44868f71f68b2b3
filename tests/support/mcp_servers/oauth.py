# ruff: noqa: D102, ARG002 - the SDK's protocol defines the methods
"""An authorization server and the MCP server that it protects, built on the SDK, in one process.

The script prints the URL of the MCP server. With ``registers`` or ``sse``, clients register
themselves; with ``closed PORT``, there is only one manually registered client. Tests change and
read ``Behaviour`` with ``POST /test``. ``/authorize`` grants every request.
"""

import contextlib
import json
import secrets
import socket
import sys
import time
from dataclasses import asdict, dataclass, field
from typing import Any

import anyio
import uvicorn
from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    AuthorizationParams,
    OAuthAuthorizationServerProvider,
    RefreshToken,
    TokenError,
    construct_redirect_uri,
)
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions
from mcp.server.mcpserver import MCPServer
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken
from pydantic import AnyUrl
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send


@dataclass
class Behaviour:
    """The behaviour that tests can change, and the counts and requests that they can read."""

    lifetime: int = 3600
    state: str = ""  # replaces the state in the redirect
    error: str = ""  # the error in the redirect, instead of a code
    iss: str = ""  # the issuer in the redirect
    issuer: str = ""  # replaces the issuer in the metadata
    metadata: dict[str, Any] = field(default_factory=dict)  # more metadata, if issuer is set
    token_status: int = 0  # status of the token endpoint's error; 0 for normal answers
    token_error: str = ""  # code of the token endpoint's error
    slow: float = 0.0  # seconds by which the token endpoint delays its answers
    lockout: bool = False  # whether the MCP server rejects all tokens
    registrations: int = 0
    renewals: int = 0
    refused_renewals: int = 0
    authorizations: list[str] = field(default_factory=list)  # headers sent to the MCP server
    resources: list[str] = field(default_factory=list)  # resources in token requests
    challenges: int = 0  # authorization requests with a PKCE challenge


behaviour = Behaviour()


class Provider(OAuthAuthorizationServerProvider[AuthorizationCode, RefreshToken, AccessToken]):
    """Clients and tokens in memory. A refresh token can be used once."""

    def __init__(self) -> None:
        self.clients: dict[str, OAuthClientInformationFull] = {}
        self.codes: dict[str, AuthorizationCode] = {}
        self.access: dict[str, AccessToken] = {}
        self.refresh: dict[str, RefreshToken] = {}
        self.resources: dict[str, str | None] = {}  # by refresh token

    async def get_client(self, client_id: str) -> OAuthClientInformationFull | None:
        return self.clients.get(client_id)

    async def register_client(self, client_info: OAuthClientInformationFull) -> None:
        behaviour.registrations += 1
        self.clients[client_info.client_id] = client_info

    async def authorize(
        self, client: OAuthClientInformationFull, params: AuthorizationParams
    ) -> str:
        behaviour.challenges += bool(params.code_challenge)
        state, uri = behaviour.state or params.state, str(params.redirect_uri)
        if behaviour.error:
            return construct_redirect_uri(uri, error=behaviour.error, state=state)
        code = AuthorizationCode(
            code=secrets.token_urlsafe(24),
            scopes=params.scopes or [],
            expires_at=time.time() + 60,
            client_id=client.client_id,
            code_challenge=params.code_challenge,
            redirect_uri=params.redirect_uri,
            redirect_uri_provided_explicitly=params.redirect_uri_provided_explicitly,
            resource=params.resource,
        )
        self.codes[code.code] = code
        return construct_redirect_uri(uri, code=code.code, state=state, iss=behaviour.iss or None)

    async def load_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: str
    ) -> AuthorizationCode | None:
        return self.codes.get(authorization_code)

    async def exchange_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: AuthorizationCode
    ) -> OAuthToken:
        del self.codes[authorization_code.code]
        return self._issue(client.client_id, authorization_code.scopes, authorization_code.resource)

    async def load_refresh_token(
        self, client: OAuthClientInformationFull, refresh_token: str
    ) -> RefreshToken | None:
        found = self.refresh.get(refresh_token)
        behaviour.refused_renewals += found is None
        return found

    async def exchange_refresh_token(
        self, client: OAuthClientInformationFull, refresh_token: RefreshToken, scopes: list[str]
    ) -> OAuthToken:
        if self.refresh.pop(refresh_token.token, None) is None:
            raise TokenError("invalid_grant")
        behaviour.renewals += 1
        resource = self.resources.pop(refresh_token.token)
        return self._issue(client.client_id, scopes, resource)

    async def load_access_token(self, token: str) -> AccessToken | None:
        found = self.access.get(token)
        return found if found and (found.expires_at or 0) > time.time() else None

    async def revoke_token(self, token: AccessToken | RefreshToken) -> None:
        self.access.pop(token.token, None)
        self.refresh.pop(token.token, None)

    def revoke(self, *, everything: bool) -> None:
        """Revoke all access tokens, and all refresh tokens as well."""
        self.access.clear()
        if everything:
            self.refresh.clear()

    def _issue(self, client_id: str, scopes: list[str], resource: str | None) -> OAuthToken:
        access, refresh = (f"{kind}-{secrets.token_urlsafe(24)}" for kind in ("acc", "ref"))
        self.access[access] = AccessToken(
            token=access,
            client_id=client_id,
            scopes=scopes,
            expires_at=int(time.time()) + max(behaviour.lifetime, 1) + 60,
            resource=resource,
        )
        self.refresh[refresh] = RefreshToken(token=refresh, client_id=client_id, scopes=scopes)
        self.resources[refresh] = resource
        return OAuthToken(
            access_token=access,
            refresh_token=refresh,
            expires_in=behaviour.lifetime,
            scope=" ".join(scopes),
        )


def application(url: str, provider: Provider, *, registers: bool) -> ASGIApp:
    """The authorization server and the MCP server at one address."""
    server = guarded(url, provider, registers=registers)
    mcp = server.sse_app() if url.endswith("/sse") else server.streamable_http_app()
    issuer = url.rpartition("/")[0]

    async def test(request: Request) -> Response:
        for name, value in (await request.json()).items():
            if name == "revoke":
                provider.revoke(everything=value == "all")
            else:
                setattr(behaviour, name, value)
        return JSONResponse(asdict(behaviour))

    async def token(scope: Scope, receive: Receive, send: Send) -> None:
        async def late(message: Message) -> None:
            if message["type"] == "http.response.start":  # the old refresh token is already used
                await anyio.sleep(behaviour.slow)
            await send(message)

        refusal = {"error": behaviour.token_error} if behaviour.token_error else {}
        status = behaviour.token_status
        answer = JSONResponse(refusal, status_code=status) if status else mcp
        await answer(scope, _noting(receive), _identifying(late))

    async def metadata(scope: Scope, receive: Receive, send: Send) -> None:
        urls = {
            "authorization_endpoint": f"{issuer}/authorize",
            "token_endpoint": f"{issuer}/token",
        }
        forged = JSONResponse({"issuer": behaviour.issuer, **urls, **behaviour.metadata})
        await (forged if behaviour.issuer else mcp)(scope, receive, send)

    async def noted(scope: Scope, receive: Receive, send: Send) -> None:
        headers = dict(scope["headers"])
        behaviour.authorizations.append(headers.get(b"authorization", b"").decode())
        challenge = {"WWW-Authenticate": "Bearer"}
        locked = Response(status_code=401, headers=challenge)
        await (locked if behaviour.lockout else mcp)(scope, receive, send)

    places: dict[str, ASGIApp] = {
        "/test": Starlette(routes=[Route("/test", test, methods=["POST"])]),
        "/token": token,
        "/.well-known/oauth-authorization-server": metadata,
        "/mcp": noted,
    }

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await places.get(scope.get("path", ""), mcp)(scope, receive, send)

    return app


def guarded(url: str, provider: Provider, *, registers: bool) -> MCPServer:
    """The protected MCP server, which has one tool."""
    auth = {
        "issuer_url": url.rpartition("/")[0],
        "resource_server_url": url,
        "required_scopes": ["use"],
        "validate_token_resource": True,
        "client_registration_options": ClientRegistrationOptions(
            enabled=registers, valid_scopes=["use"], default_scopes=["use"]
        ),
    }
    server = MCPServer(
        "guarded", auth=AuthSettings.model_validate(auth), auth_server_provider=provider
    )

    @server.tool()
    def unlock(door: str) -> str:
        """Open a door that is locked."""
        return f"{door} is open"

    return server


def by_hand(port: str) -> OAuthClientInformationFull:
    """The manually registered client."""
    return OAuthClientInformationFull(
        client_id="by-hand",
        client_secret="by-hand-secret",
        redirect_uris=[AnyUrl(f"http://127.0.0.1:{port}/callback")],
        scope="use",
        token_endpoint_auth_method="client_secret_post",
    )


def _identifying(send: Send) -> Send:
    """Add a URL that identifies the user to a JSON answer, as some issuers do."""
    begun: list[Message] = []

    async def changed(message: Message) -> None:
        if message["type"] == "http.response.start":
            begun.append(message)
            return
        body = message.get("body", b"")
        if body.startswith(b"{"):
            body = json.dumps(json.loads(body) | {"id": "https://issuer.example/id/1"}).encode()
        start = begun.pop()
        headers = [
            (name, str(len(body)).encode() if name == b"content-length" else value)
            for name, value in start["headers"]
        ]
        await send({**start, "headers": headers})
        await send({**message, "body": body})

    return changed


def _noting(receive: Receive) -> Receive:
    async def noted() -> Message:
        message = await receive()
        for pair in message.get("body", b"").decode().split("&"):
            name, _, value = pair.partition("=")
            if name == "resource":
                behaviour.resources.append(value)
        return message

    return noted


with socket.socket() as listener:
    listener.bind(("127.0.0.1", 0))
    listener.listen()
    address = f"http://127.0.0.1:{listener.getsockname()[1]}"
    address += "/sse" if sys.argv[1] == "sse" else "/mcp"
    print(address, flush=True)
    provider = Provider()
    if sys.argv[1] == "closed":
        provider.clients["by-hand"] = by_hand(sys.argv[2])
    app = application(address, provider, registers=sys.argv[1] != "closed")
    with contextlib.suppress(KeyboardInterrupt):
        uvicorn.Server(uvicorn.Config(app, log_level="error")).run(sockets=[listener])

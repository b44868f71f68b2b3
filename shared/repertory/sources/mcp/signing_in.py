"""Signs a person in at a server with OAuth, in a browser.

Imports the SDK, which is slow: import it only to contact a server.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import anyio
import httpx2
from filelock import Timeout
from mcp.client.auth import (
    OAuthClientProvider,
    OAuthFlowError,
    OAuthRegistrationError,
    OAuthTokenError,
)
from mcp.client.auth.oauth2 import OAuthContext
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientInformationFull, OAuthMetadata
from pydantic import AnyUrl, BaseModel

from repertory.errors import SourceError, UsageError
from repertory.sources.mcp.oauth import (
    FlowStorage,
    check_address,
    provider_of,
    redirect_uri,
    send,
    with_tokens,
)
from repertory.sources.mcp.redirects import Redirects
from repertory.sources.mcp.server import ServerConfig, Transport
from repertory.sources.mcp.sign_ins import SignIn, SignIns, key_of
from repertory.sources.mcp.traffic import Traffic, quote
from repertory.sources.mcp.transports import http_client, silence
from repertory.sources.mcp.variables import Launch, fill_in
from repertory.text import one_line

TIMEOUT_S = 300.0  # for the person

Show = Callable[[str, Redirects, str], None]

_GREETING = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "repertory", "version": "0"},
    },
}


def sign_in(server: ServerConfig, show: Show, timeout: float = TIMEOUT_S) -> None:
    """Sign in at a server, and store the tokens.

    Args:
        server: A trusted server.
        show: Called with the URL of the sign-in page, the receiver of the redirect, and the result
            of ``other_receiver``. It tells the person and returns, or raises UsageError.
        timeout: Seconds that the person has for the sign-in.

    Raises:
        UsageError: The server does not support a sign-in.
        SourceError: The sign-in failed. The message contains no secrets.
    """
    launch = fill_in(server)
    _check(server, launch)
    silence()
    try:
        anyio.run(_sign_in, server, launch, show, timeout)
    except SourceError as error:
        text = launch.redact(str(error)).rstrip(".")
        raise SourceError(f"Not signed in at the MCP server {server.name}: {text}.") from None


def _check(server: ServerConfig, launch: Launch) -> None:
    """Reject servers that do not support a sign-in."""
    if server.transport is Transport.STDIO:
        raise UsageError(
            f"The MCP server {server.name} is a program of this machine; only servers over HTTP "
            "take a sign-in."
        )
    if launch.has_authorization:
        raise UsageError(
            f"The MCP server {server.name} has an Authorization header in its configuration, "
            "which is sent instead; remove it to sign in."
        )


async def _sign_in(server: ServerConfig, launch: Launch, show: Show, timeout: float) -> None:
    sign_ins, url = SignIns(Path(launch.sign_ins)), launch.url
    check_address(url, url)
    with Redirects(launch.callback_port) as redirects:
        storage = _storage(launch, redirects.port)
        provider = provider_of(url, storage, redirects.port)
        former = sign_ins.read(url)
        person = _Person(provider, launch, former, redirects, show, timeout)
        provider.context.redirect_handler = person.ask
        provider.context.callback_handler = person.answer
        with _translated(provider):
            await _drive(provider, launch)
    found = _found(server, launch, provider.context)
    if storage.new_tokens is None:
        raise SourceError("it does not ask for a sign-in")
    try:  # with the lock, so that a running renewal does not overwrite it
        async with sign_ins.lock(url):
            sign_ins.write(url, with_tokens(found, storage.new_tokens))
    except Timeout:
        raise SourceError("another process is renewing the former sign-in; try again") from None


@contextmanager
def _translated(provider: OAuthClientProvider) -> Iterator[None]:
    """Translate the errors of the SDK, without the tokens and codes that they may quote."""
    try:
        yield
    except OAuthRegistrationError:
        _check_metadata(provider)
        raise SourceError(
            "its authorization server does not register clients itself; register Repertory there "
            f"with the redirect address {redirect_uri('PORT')}, and write "
            '"oauth": {"clientId": …, "clientSecret": …, "callbackPort": PORT} into the '
            "server's configuration"
        ) from None
    except OAuthTokenError:
        raise SourceError("its authorization server gives no valid tokens") from None
    except OAuthFlowError as error:
        raise SourceError(quote(str(error))) from None
    except ValueError as error:
        raise SourceError(f"its metadata cannot be read: {type(error).__name__}") from None
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        raise SourceError(f"it cannot be reached: {type(error).__name__}") from None


def _found(server: ServerConfig, launch: Launch, context: OAuthContext) -> SignIn:
    """The sign-in that a flow resulted in, without its tokens."""
    metadata, client_info = context.oauth_metadata, context.client_info
    if metadata is None or client_info is None:
        raise SourceError("it does not ask for a sign-in")
    client = _plain(client_info)
    if launch.client_id:  # its secret stays in the configuration only
        client.pop("client_secret", None)
    resource = context.protected_resource_metadata
    return SignIn(
        server=server.name,
        key=key_of(launch.url),
        issuer=str(metadata.issuer),
        client=client,
        metadata=_plain(metadata),
        resource=_plain(resource) if resource else None,
        at=time.time(),
    )


def _plain(model: BaseModel) -> dict[str, Any]:
    return model.model_dump(mode="json", exclude_none=True)


def _storage(launch: Launch, port: int) -> FlowStorage:
    """The storage of a flow, with the configured client; without one, the flow registers one."""
    storage = FlowStorage(None)
    if launch.client_id:
        storage.client = OAuthClientInformationFull(
            client_id=launch.client_id,
            client_secret=launch.client_secret or None,
            redirect_uris=[AnyUrl(redirect_uri(port))],
        )
    return storage


async def _drive(provider: OAuthClientProvider, launch: Launch) -> None:
    """Run the SDK's flow: discovery, registration, the person, and the first tokens."""
    greeting = httpx2.Request(
        "POST",
        launch.url,
        json=_GREETING,
        headers={**launch.headers, "Accept": "application/json, text/event-stream"},
    )
    flow = provider.async_auth_flow(greeting)
    try:
        request = await anext(flow)
        async with http_client(Traffic(), is_mcp=False) as client:
            response = await send(client, request, launch.url)
            if response.status_code != 401:  # some servers need a sign-in only for tool calls
                response = httpx2.Response(401, request=request)
            while True:
                request = await flow.asend(response)
                if request is greeting:
                    return
                response = await send(client, request, launch.url)
    finally:
        await flow.aclose()


def other_receiver(metadata: OAuthMetadata) -> str:
    """The host that gets the authorization code, if the sign-in page belongs to another one.

    A server may name the sign-in page of one issuer and the token endpoint of another, which then
    gets access to the account. Empty if the page belongs to the host of the token endpoint or of
    the issuer, or if the redirect must name the issuer (RFC 9207), which is then checked.
    """
    urls = (metadata.authorization_endpoint, metadata.token_endpoint, metadata.issuer)
    page, receiver, issuer = (urlsplit(str(url)).hostname or "" for url in urls)
    is_named = metadata.authorization_response_iss_parameter_supported
    return "" if is_named or _is_related(page, receiver) or _is_related(page, issuer) else receiver


def _is_related(host: str, other: str) -> bool:
    """Whether hosts are equal, or one is a subdomain of the other."""
    return host == other or host.endswith(f".{other}") or other.endswith(f".{host}")


def _check_metadata(provider: OAuthClientProvider) -> OAuthMetadata:
    """The issuer's metadata; SourceError if missing."""
    if provider.context.oauth_metadata is None:
        raise SourceError("it names no authorization server for a sign-in (RFC 9728, RFC 8414)")
    return provider.context.oauth_metadata


class _Person:
    """Sends the person to the issuer, and waits for the redirect."""

    def __init__(
        self,
        provider: OAuthClientProvider,
        launch: Launch,
        former: SignIn | None,
        redirects: Redirects,
        show: Show,
        timeout: float,
    ) -> None:
        self._provider = provider
        self._launch = launch
        self._former = former
        self._redirects = redirects
        self._show = show
        self._timeout = timeout

    async def ask(self, address: str) -> None:
        """Check the issuer, and show the address of its sign-in page."""
        context = self._provider.context
        metadata = _check_metadata(self._provider)
        if "S256" not in (metadata.code_challenge_methods_supported or ()):
            raise SourceError("its authorization server does not support PKCE with S256")
        check_address(address, self._launch.url)
        check_address(str(metadata.token_endpoint), self._launch.url)
        self._check_issuer(str(metadata.issuer))
        client = context.client_info
        if client and self._launch.client_secret and self._launch.client_id:
            methods = metadata.token_endpoint_auth_methods_supported or ["client_secret_basic"]
            basic, post = "client_secret_basic", "client_secret_post"
            client.token_endpoint_auth_method = post if post in methods else basic
        self._redirects.expect(dict(httpx2.URL(address).params)["state"])
        self._show(address, self._redirects, other_receiver(metadata))

    def _check_issuer(self, issuer: str) -> None:
        """Reject an issuer other than that of the configured client, which may have a secret.

        Raises:
            SourceError: It is another issuer.
        """
        former, client_id = self._former, self._launch.client_id
        is_same = former is not None and former.client.get("client_id") == client_id
        if client_id and former and is_same and former.issuer != issuer:
            raise SourceError(
                f"it names the issuer {one_line(issuer)}, and the client of its configuration was "
                f"one of {one_line(former.issuer)}; if that is right, run `repertory logout` first"
            )

    async def answer(self) -> AuthorizationCodeResult:
        """The parameters of the issuer's redirect."""
        with anyio.move_on_after(self._timeout):
            found: dict[str, Any] = await self._redirects.wait()
            if error := found.get("error"):
                more = found.get("error_description", "")
                raise SourceError(
                    "the authorization server refused: "
                    + quote(f"{error}: {more}" if more else str(error))
                )
            return AuthorizationCodeResult(
                code=found.get("code", ""), state=found.get("state"), iss=found.get("iss")
            )
        raise SourceError(f"there was no sign-in within {self._timeout:g} s")

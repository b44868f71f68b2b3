"""Requests to a server with OAuth. Each carries the stored token, which is renewed in time.

No browser is opened here. Without tokens, or if the issuer has revoked them, the server waits for a
sign-in; see ``signing_in``.

Imports the SDK, which is slow: import it only to contact a server.
"""

import time
from collections.abc import AsyncGenerator, Callable
from urllib.parse import urlsplit

import anyio
import httpx2
import msgspec
from filelock import Timeout
from mcp.client.auth import OAuthClientProvider
from mcp.shared.auth import (
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthMetadata,
    OAuthToken,
    ProtectedResourceMetadata,
)
from pydantic import AnyUrl

from repertory.errors import SourceError, StoreError
from repertory.sources.mcp.sign_ins import SignIn, SignIns
from repertory.sources.mcp.traffic import Traffic
from repertory.sources.mcp.variables import Launch
from repertory.system.addresses import is_confidential, is_this_machine
from repertory.text import cut, one_line

TIMEOUT_S = 15.0  # without a byte, for each request to an issuer
RENEWAL_TIMEOUT_S = 20.0  # less than the timeout of the lock
PATH = "/callback"  # the path that the issuer redirects to

MAX_REASON_LENGTH = 60  # characters of an issuer's error

NewClient = Callable[[], httpx2.AsyncClient]


class _Refusal(msgspec.Struct):
    """The error response of an issuer."""

    error: str = ""


class TokenAuth(httpx2.Auth):
    """Adds the stored token to the requests of one connection.

    The tokens are read for each request, because another process may have renewed them.

    Args:
        sign_ins: The stored sign-ins; None without a data directory.
        launch: The server.
        traffic: Records whether the server waits for a sign-in.
        new_client: Creates the client for requests to the issuer.
    """

    def __init__(
        self, sign_ins: SignIns | None, launch: Launch, traffic: Traffic, new_client: NewClient
    ) -> None:
        self._sign_ins = sign_ins
        self._launch = launch
        self._traffic = traffic
        self._new_client = new_client

    async def async_auth_flow(
        self, request: httpx2.Request
    ) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        """Send a request with a token; retry once with a renewed one if the server rejects it."""
        sign_in = self._read()
        if sign_in and sign_in.is_expired:
            sign_in = await self._renewed(sign_in)
        response = yield self._signed(request, sign_in)
        if response.status_code == 401 and sign_in:
            sign_in = await self._renewed(sign_in)
            if sign_in:
                response = yield self._signed(request, sign_in)
        if response.status_code == 401:
            self._traffic.awaits_sign_in |= self._traffic.was_signed_in or _asks(response)

    def _signed(self, request: httpx2.Request, sign_in: SignIn | None) -> httpx2.Request:
        if sign_in:
            self._traffic.was_signed_in = True
            self._traffic.awaits_sign_in, self._traffic.renewal_error = False, ""
            self._launch.secrets.update(sign_in.secrets())
            request.headers["Authorization"] = f"Bearer {sign_in.access_token}"
        return request

    def _read(self) -> SignIn | None:
        """The sign-in; None if it is missing, has no tokens or belongs to another client."""
        found = self._sign_ins.read(self._launch.url) if self._sign_ins else None
        if found is None or not found.access_token:
            self._traffic.was_signed_in |= found is not None
            return None
        configured = self._launch.client_id
        return found if configured in ("", found.client.get("client_id")) else None

    async def _renewed(self, used: SignIn) -> SignIn | None:
        """The sign-in with new tokens; None if the issuer has revoked it.

        Only one process at a time renews them, because an issuer may accept a refresh token once.

        Raises:
            SourceError: The issuer is unavailable, or the lock is held for too long.
            StoreError: The data directory cannot be written.
        """
        assert self._sign_ins is not None
        url = self._launch.url
        try:
            async with self._sign_ins.lock(url):
                found = self._read()
                if found is None or found.access_token != used.access_token:
                    return found  # another process was faster
                # The timeout of a scan must not lose tokens, which the issuer sends only once.
                with anyio.fail_after(RENEWAL_TIMEOUT_S, shield=True):
                    tokens = await self._ask_issuer(found)
                    renewed = with_tokens(found, tokens)
                    self._sign_ins.write(url, renewed)
                return renewed if tokens else None
        except Timeout:
            self._traffic.renewal_error = "another process is renewing its sign-in"
            raise SourceError(self._traffic.renewal_error) from None
        except TimeoutError:
            self._traffic.renewal_error = "its sign-in cannot be renewed: the issuer is too slow"
            raise SourceError(self._traffic.renewal_error) from None
        except (SourceError, StoreError) as error:
            self._traffic.renewal_error = str(error)
            raise

    async def _ask_issuer(self, found: SignIn) -> OAuthToken | None:
        """Request new tokens; None if the issuer rejects the refresh token."""
        storage = FlowStorage(found, self._launch.client_secret)
        provider = provider_of(self._launch.url, storage)
        provider.context.oauth_metadata = OAuthMetadata.model_validate(found.metadata)
        if found.resource:
            provider.context.protected_resource_metadata = ProtectedResourceMetadata.model_validate(
                found.resource
            )
        # Let it count as expired: it has expired, or the server rejected it.
        provider.context.token_expiry_time = 1.0
        unsent = httpx2.Request("POST", self._launch.url)
        flow = provider.async_auth_flow(unsent)
        status, reason = 0, ""
        try:
            request = await anext(flow)
            async with self._new_client() as client:
                while request is not unsent:
                    response = await send(client, request, self._launch.url)
                    status, reason = response.status_code, _reason_of(response)
                    request = await flow.asend(response)
        except httpx2.TransportError as error:
            raise SourceError(f"its sign-in cannot be renewed: {type(error).__name__}") from None
        finally:
            await flow.aclose()
        # Other errors may be temporary, such as a missing client secret, so the tokens are kept.
        is_refused = not status or (status in (400, 401) and reason == "invalid_grant")
        if storage.new_tokens is None and not is_refused:
            why = f"HTTP status {status}" + (f" ({reason})" if reason else "")
            raise SourceError(f"its sign-in cannot be renewed: {why}")
        return storage.new_tokens


def _reason_of(response: httpx2.Response) -> str:
    """The error code in an issuer's response; empty without one."""
    try:
        code = msgspec.json.decode(response.content, type=_Refusal).error
    except (httpx2.ResponseNotRead, msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return ""
    return cut(one_line(code), MAX_REASON_LENGTH)


class FlowStorage:
    """The storage of one flow of the SDK: the client's registration, and its tokens."""

    def __init__(self, found: SignIn | None, client_secret: str = "") -> None:
        self.client: OAuthClientInformationFull | None = None
        self.tokens: OAuthToken | None = None
        self.new_tokens: OAuthToken | None = None
        if found:
            secret = {"client_secret": client_secret} if client_secret else {}
            self.client = OAuthClientInformationFull.model_validate(found.client | secret)
            self.tokens = OAuthToken.model_validate(found.tokens) if found.tokens else None

    async def get_tokens(self) -> OAuthToken | None:
        """The tokens."""
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        """Store new tokens."""
        self.tokens = self.new_tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        """The client's registration at the issuer."""
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        """Store the client's registration at the issuer."""
        self.client = client_info


def redirect_uri(port: int | str) -> str:
    """The address on this machine that an issuer redirects to."""
    return f"http://127.0.0.1:{port}{PATH}"


def provider_of(url: str, storage: FlowStorage, port: int = 0) -> OAuthClientProvider:
    """The SDK's flow for a server, without a way to ask the user."""
    return OAuthClientProvider(
        url,
        OAuthClientMetadata(client_name="Repertory", redirect_uris=[AnyUrl(redirect_uri(port))]),
        storage,
    )


def with_tokens(sign_in: SignIn, tokens: OAuthToken | None) -> SignIn:
    """A copy of a sign-in with other tokens, or without tokens."""
    if tokens is None:
        return msgspec.structs.replace(sign_in, tokens=None, expires_at=None)
    lifetime = tokens.expires_in
    return msgspec.structs.replace(
        sign_in,
        tokens=tokens.model_dump(mode="json", exclude_none=True),
        expires_at=None if lifetime is None else time.time() + lifetime,
    )


async def send(client: httpx2.AsyncClient, request: httpx2.Request, server: str) -> httpx2.Response:
    """Send a request of a flow, which contains secrets, after ``check_address``.

    Raises:
        SourceError: The address may not get them.
    """
    check_address(str(request.url), server)
    request.headers["Accept-Encoding"] = "identity"
    request.extensions["timeout"] = httpx2.Timeout(TIMEOUT_S).as_dict()
    return await client.send(request, follow_redirects=False)


def check_address(url: str, server: str) -> None:
    """Check that an address is encrypted, and local only if the server is local, too.

    Raises:
        SourceError: It is not.
    """
    parts = urlsplit(url)
    is_near = is_this_machine(parts.hostname or "")
    if is_near and not is_this_machine(urlsplit(server).hostname or ""):
        raise SourceError(f"it names an address of this machine for its sign-in: {parts.netloc}")
    if not is_confidential(url):
        raise SourceError(f"its sign-in is not encrypted: {parts.scheme}://{parts.netloc}")


def _asks(response: httpx2.Response) -> bool:
    """Whether a server asks for OAuth, rather than for another header."""
    challenges = response.headers.get("WWW-Authenticate", "").lower().split(",")
    return any(one.strip().startswith("bearer") for one in challenges)

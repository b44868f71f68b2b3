"""The provider's documents: its endpoints and its keys, fetched when needed and cached."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar
from urllib.parse import urlsplit

import httpx
import msgspec
from joserfc.errors import JoseError
from joserfc.jwk import ECKey, Key, KeySet, OKPKey, RSAKey

from repertory.errors import ConfigurationError
from repertory.system.addresses import is_confidential
from repertory.system.certificates import trusted
from repertory_query.sign_in.failures import ProviderError

DISCOVERY = "/.well-known/openid-configuration"
TIMEOUT_S = 5.0  # for a whole document
MAX_SIZE = 1 << 20  # bytes of a document
FRESH_S = 3_600.0  # until a document is fetched again
STALE_S = 86_400.0  # until a document is no longer used while the provider is unavailable
RETRY_INTERVAL_S = 2.0  # after a failure; requests in between fail at once
REFRESH_INTERVAL_S = 30.0  # the same while an older document is cached
REFETCH_INTERVAL_S = 10.0  # between fetches that callers can cause, by tokens with unknown keys
MAX_KEYS = 50

T = TypeVar("T")


class Endpoints(msgspec.Struct, frozen=True):
    """The used fields of the discovery document."""

    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    jwks_uri: str
    userinfo_endpoint: str = ""
    token_endpoint_auth_methods_supported: tuple[str, ...] = ("client_secret_basic",)
    authorization_response_iss_parameter_supported: bool = False


class Provider:
    """An OpenID provider. It is contacted when first needed, not at the start.

    Args:
        issuer: Its URL.

    Raises:
        ConfigurationError: The URL is neither https nor on this machine.
    """

    def __init__(self, issuer: str) -> None:
        if not is_safe(issuer):
            raise ConfigurationError(
                f"oidc.issuer is {issuer!r}; it must be the https URL of an OpenID provider."
            )
        self.issuer = issuer
        self.name = urlsplit(issuer).netloc
        self._endpoints = _CachedDocument(self._fetch_endpoints)
        self._keys = _CachedDocument(self._fetch_keys)

    async def endpoints(self) -> Endpoints:
        """The endpoints of the provider.

        Raises:
            ProviderError: It is unavailable, or its document is invalid.
        """
        return await self._endpoints.get()

    async def keys(self, *, again: bool = False, at_once: bool = False) -> tuple[Key, ...]:
        """The keys with which the provider signs.

        Args:
            again: Whether to fetch them again, because a token names an unknown key.
            at_once: Whether to do so without a rate limit, because that token came from the
                provider itself. Anyone can send other tokens.

        Raises:
            ProviderError: It is unavailable, or its documents are invalid.
        """
        return await self._keys.get(again=again, at_once=at_once)

    async def _fetch_endpoints(self) -> Endpoints:
        url = self.issuer.rstrip("/") + DISCOVERY
        try:
            found = msgspec.json.decode(await fetch(url), type=Endpoints)
        except msgspec.MsgspecError as error:
            raise ProviderError(f"{url} is not a discovery document: {error}.") from error
        if found.issuer != self.issuer:
            raise ProviderError(
                f"{url} names the issuer {found.issuer[:200]!r}; set oidc.issuer to exactly that."
            )
        used = (found.authorization_endpoint, found.token_endpoint, found.jwks_uri)
        for one in (*used, *([found.userinfo_endpoint] if found.userinfo_endpoint else [])):
            if not is_safe(one):
                raise ProviderError(f"{url} names {one[:200]!r}, which is not https.")
        return found

    async def _fetch_keys(self) -> tuple[Key, ...]:
        url = (await self.endpoints()).jwks_uri
        try:
            keys = KeySet.import_key_set(msgspec.json.decode(await fetch(url))).keys
        except (msgspec.MsgspecError, JoseError, ValueError, KeyError, TypeError) as error:
            raise ProviderError(f"{url} is not a set of keys.") from error
        # No symmetric keys: in a public document, they are not secret.
        usable = [key for key in keys if isinstance(key, RSAKey | ECKey | OKPKey)]
        return tuple(key for key in usable if key.get("use") in (None, "sig"))[:MAX_KEYS]


class _CachedDocument(Generic[T]):
    """A cached document that is fetched again when it is old, and kept while that fails."""

    def __init__(self, fetch: Callable[[], Awaitable[T]]) -> None:
        self._fetch = fetch
        self._value: T | None = None
        self._failure = ProviderError("The sign-in provider was not asked yet.")
        self._fetched = self._failed = self._again = -STALE_S
        self._lock = asyncio.Lock()

    async def get(self, *, again: bool = False, at_once: bool = False) -> T:
        is_usable = time.monotonic() - self._fetched < STALE_S
        if self._lock.locked() and self._value is not None and is_usable and not again:
            return self._value  # only one request waits for a slow provider
        async with self._lock:
            now = time.monotonic()
            if again and not at_once:
                again = now - self._again >= REFETCH_INTERVAL_S
                self._again = now if again else self._again
            is_due = again or self._value is None or now - self._fetched >= FRESH_S
            interval = RETRY_INTERVAL_S if self._value is None else REFRESH_INTERVAL_S
            if is_due and (at_once or now - self._failed >= interval):
                try:
                    self._value, self._fetched = await self._fetch(), now
                except ProviderError as error:
                    self._failure, self._failed = error, time.monotonic()
            if self._value is None or now - self._fetched >= STALE_S:
                raise self._failure
            return self._value


async def fetch(url: str, token: str = "") -> bytes:
    """Fetch a document of the provider.

    Args:
        url: Its URL; redirects are not followed.
        token: The access token to send, if needed.

    Raises:
        ProviderError: It does not arrive within five seconds, or is too large.
    """
    headers = {"Accept": "application/json"}
    if token:
        headers["Authorization"] = f"Bearer {token}"
    try:
        async with (
            asyncio.timeout(TIMEOUT_S),
            httpx.AsyncClient(verify=trusted()) as http,
            http.stream("GET", url, headers=headers) as response,
        ):
            if response.status_code != 200:
                status = response.status_code
                raise ProviderError(f"The sign-in provider answers {url} with status {status}.")
            body = b""
            async for part in response.aiter_bytes():
                body += part
                if len(body) > MAX_SIZE:
                    raise ProviderError(f"{url} has more than {MAX_SIZE:,} bytes.")
            return body
    # UnicodeError: the host is not a valid international name.
    except (httpx.HTTPError, httpx.InvalidURL, TimeoutError, UnicodeError) as error:
        raise unavailable(url) from error


def unavailable(url: str) -> ProviderError:
    """The error for a provider that does not answer at a URL."""
    name = urlsplit(url).netloc
    return ProviderError(
        f"The sign-in provider {name} does not answer; try again later, or use a key."
    )


def is_safe(url: str) -> bool:
    """Whether a URL is confidential, and has neither credentials nor a fragment."""
    if not is_confidential(url):
        return False
    parts = urlsplit(url)
    return not (parts.username or parts.password or parts.fragment)

"""Signing in at an OpenID provider: the authorization code flow with PKCE, and bearer tokens."""

import asyncio
import re
import secrets
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

import httpx2  # the transport of Authlib's client
import msgspec
from authlib.integrations.httpx_client import AsyncOAuth2Client, OAuthError

from repertory.errors import ConfigurationError
from repertory.system.addresses import url_of
from repertory.system.certificates import trusted
from repertory.system.paths import expanded
from repertory.system.untrusted_files import read_bytes
from repertory.text import is_same_secret
from repertory.values import Values
from repertory_query.mcp.toolset_names import PATHS
from repertory_query.sign_in.addresses import CALLBACK
from repertory_query.sign_in.failures import ProviderError, TokenError
from repertory_query.sign_in.person import Person, person_of
from repertory_query.sign_in.provider import (
    TIMEOUT_S,
    Endpoints,
    Provider,
    fetch,
    is_safe,
    unavailable,
)
from repertory_query.sign_in.sessions import (
    MAX_LENGTH,
    PENDING_S,
    SESSION_S,
    PendingSignIn,
    Seal,
    Session,
)
from repertory_query.sign_in.tokens import claims_of, may_be_token

MIN_SECRET_LENGTH = 16  # the keys of the cookies are derived from it
MAX_SECRET_SIZE = 4_096


class OpenId:
    """Signs people in at one provider.

    Args:
        values: The settings.

    Attributes:
        provider: The provider.
        public_url: The URL of this server, without a trailing slash.
        scopes: The requested OAuth scopes, separated by spaces.
        session, pending: The seals for the cookies of a session and of a pending sign-in.

    Raises:
        ConfigurationError: A setting is missing or invalid.
    """

    def __init__(self, values: Values) -> None:
        if not values.oidc_client_id:
            raise ConfigurationError("oidc.client_id is missing; the provider shows it.")
        self.provider = Provider(values.oidc_issuer)
        self.public_url = _public_url(values)
        self._client_id = values.oidc_client_id
        self._secret = _secret(values)
        self.scopes = values.oidc_scopes
        self._claims = (values.oidc_name_claim, values.oidc_groups_claim)
        # Servers with the same client do not share cookies, unless they have the same URL.
        whose = f"{values.oidc_issuer} {self._client_id} {self.public_url}"
        self.session = Seal(self._secret, f"session {whose}", SESSION_S)
        self.pending = Seal(self._secret, f"sign-in {whose}", PENDING_S)

    def redirect_url(self, root: str = "") -> str:
        """The URL to which the provider redirects browsers; it must be registered there."""
        return f"{self.public_url}{root}{CALLBACK}"

    async def begin(self, root: str, target: str) -> tuple[str, str]:
        """Begin a sign-in: return the URL at the provider, and the cookie for the browser.

        Args:
            root: The prefix of the project.
            target: The address to go to afterwards; a very long one is dropped.

        Raises:
            ProviderError: The provider is unavailable.
        """
        endpoints = await self.provider.endpoints()
        state, nonce, verifier = (secrets.token_urlsafe(32) for _ in range(3))
        async with self._client(endpoints, root) as client:
            url, _ = client.create_authorization_url(
                endpoints.authorization_endpoint, state, verifier, nonce=nonce
            )
        cookie = self.pending.close(PendingSignIn(state, nonce, verifier, target))
        if len(cookie) > MAX_LENGTH:
            cookie = self.pending.close(PendingSignIn(state, nonce, verifier, f"{root}/"))
        return str(url), cookie

    async def finish(self, root: str, given: Mapping[str, str], cookie: str) -> tuple[Person, str]:
        """Finish a sign-in: return the person, and the address to go to.

        Args:
            root: As for ``begin``.
            given: The parameters that the provider added to the URL.
            cookie: The cookie that ``begin`` made for this browser.

        Raises:
            TokenError: These parameters belong to no sign-in of this browser, or refuse it.
            ProviderError: The provider is unavailable.
        """
        pending = self.pending.open(cookie, PendingSignIn)
        if pending is None or not is_same_secret(given.get("state", ""), pending.state):
            raise TokenError("This sign-in began in another browser or too long ago; begin again.")
        endpoints = await self.provider.endpoints()
        issuer = given.get("iss", "")
        is_named = endpoints.authorization_response_iss_parameter_supported or issuer
        if is_named and issuer != self.provider.issuer:
            raise TokenError("The answer comes from another provider; begin again.")
        if "code" not in given:
            raise TokenError(f"The provider refuses to sign you in ({_code(given.get('error'))}).")
        async with self._client(endpoints, root) as client:
            tokens = await self._exchange(client, endpoints, given["code"], pending.verifier)
        claims = await claims_of(
            str(tokens.get("id_token", "")), self.provider, [self._client_id], pending.nonce
        )
        if claims.get("azp", self._client_id) != self._client_id:
            raise TokenError("The token is not valid here: its azp does not match.")
        return self._person(await self._completed(claims, endpoints, tokens)), pending.target

    async def person_of_token(self, token: str) -> Person:
        """The person for a bearer token: an ID token, or an access token that is a JWT.

        Raises:
            TokenError: The token is not valid here.
            ProviderError: The provider is unavailable, and its keys are not cached.
        """
        if not may_be_token(token):
            raise TokenError(
                "The key is invalid or was revoked; a token of the provider must be a signed JWT."
            )
        return self._person(await claims_of(token, self.provider, self._audiences()))

    def session_of(self, person: Person) -> str:
        """The session cookie for a person who has signed in.

        Raises:
            TokenError: The person has too many groups for a cookie.
        """
        cookie = self.session.close(Session(person.name, tuple(person.groups)))
        if len(cookie) > MAX_LENGTH:
            raise TokenError("You have too many groups; let the provider send only those needed.")
        return cookie

    def person_of_session(self, cookie: str) -> Person | None:
        """The person that a session cookie names; None if it is invalid."""
        found = self.session.open(cookie, Session)
        return Person(found.name, frozenset(found.groups)) if found else None

    def _audiences(self) -> list[str]:
        """The audiences of bearer tokens for us: our client id, and our URLs."""
        url = self.public_url
        return [self._client_id, url, f"{url}/", *(f"{url}{path}" for path in PATHS)]

    def _client(self, endpoints: Endpoints, root: str) -> AsyncOAuth2Client:
        methods = endpoints.token_endpoint_auth_methods_supported
        basic, post = "client_secret_basic", "client_secret_post"
        return AsyncOAuth2Client(
            self._client_id,
            self._secret,
            token_endpoint_auth_method=post if post in methods and basic not in methods else basic,
            scope=self.scopes,
            redirect_uri=self.redirect_url(root),
            code_challenge_method="S256",
            timeout=TIMEOUT_S,
            verify=trusted(),
        )

    async def _exchange(
        self, client: AsyncOAuth2Client, endpoints: Endpoints, code: str, verifier: str
    ) -> Mapping[str, Any]:
        """The tokens for a code."""
        url = endpoints.token_endpoint
        try:
            async with asyncio.timeout(2 * TIMEOUT_S):
                found = await client.fetch_token(url, code=code, code_verifier=verifier)
        except OAuthError as error:
            raise TokenError(
                f"The provider refuses to sign you in ({_code(error.error)}); begin again."
            ) from error
        except (httpx2.HTTPError, TimeoutError) as error:
            raise unavailable(url) from error
        except ValueError as error:
            raise ProviderError(f"{url} did not return JSON.") from error
        return dict(found)

    async def _completed(
        self, claims: dict[str, Any], endpoints: Endpoints, tokens: Mapping[str, Any]
    ) -> dict[str, Any]:
        """The claims of an ID token, completed by those of the userinfo endpoint if needed."""
        url, token = endpoints.userinfo_endpoint, tokens.get("access_token")
        if not (url and isinstance(token, str)) or all(name in claims for name in self._claims):
            return claims
        try:
            more = msgspec.json.decode(await fetch(url, token), type=dict[str, Any])
        except msgspec.MsgspecError as error:  # it may be signed, which is not needed over TLS
            raise ProviderError(f"{url} did not return a JSON object.") from error
        if more.get("sub") != claims["sub"]:
            raise TokenError("The provider answers for another person; begin again.")
        return more | claims

    def _person(self, claims: Mapping[str, Any]) -> Person:
        name_claim, groups_claim = self._claims
        if name_claim == "email" and claims.get("email_verified") in (False, "false"):
            raise TokenError("The provider has not verified your e-mail address.")
        try:
            return person_of(claims.get(name_claim) or claims["sub"], claims.get(groups_claim))
        except ValueError as error:
            raise TokenError(f"The token cannot be used: {error}.") from error


def _public_url(values: Values) -> str:
    url = (values.public_url or url_of(values.host, values.port)).rstrip("/")
    parts = urlsplit(url)
    if not is_safe(url) or parts.path or parts.query:
        raise ConfigurationError(
            f"server.public_url is {url!r}; with a sign-in, it must be https and only a host, "
            "such as https://repertory.example.org."
        )
    return url


def _secret(values: Values) -> str:
    given, file = values.oidc_client_secret, values.oidc_client_secret_file
    if bool(given) == bool(file):
        raise ConfigurationError(
            "Set one of oidc.client_secret and oidc.client_secret_file; the provider shows the "
            "secret of this client."
        )
    if file:
        try:
            place = str(expanded(file))
            given = read_bytes(place, MAX_SECRET_SIZE).decode().strip()
        except (OSError, UnicodeDecodeError) as error:
            why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
            raise ConfigurationError(
                f"oidc.client_secret_file {file} cannot be read: {why}."
            ) from error
    if not given or len(given) < MIN_SECRET_LENGTH:
        raise ConfigurationError(
            f"The client secret has fewer than {MIN_SECRET_LENGTH} characters; sessions are "
            "encrypted with it, so let the provider make a longer one."
        )
    return given


def _code(error: object) -> str:
    """The provider's error code, if it is safe to show."""
    return error if isinstance(error, str) and re.fullmatch(r"[a-z_]{1,40}", error) else "error"

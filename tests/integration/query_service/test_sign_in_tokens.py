"""Programs and MCP hosts with a token of the OpenID provider, on a real server."""

import asyncio
import base64
import json
import time
from pathlib import Path

import httpx
import httpx2
import pytest
from joserfc import jwt
from joserfc.jwk import OctKey
from joserfc.jws import JWSRegistry
from joserfc.registry import HeaderParameter
from mcp import Client
from mcp.client.auth import OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthToken,
)
from pydantic import AnyUrl

from repertory.keys import Keys, Scope
from repertory_query.mcp.toolset_names import PATHS
from tests.support.listening import KEY
from tests.support.openid_provider import CLIENT_ID, HOST_ID, OpenIdProvider, rsa_key
from tests.support.query_service import RunningService, bearer, problem
from tests.support.signing_in import authorized, fields, signing_in
from tests.support.waiting import TIMEOUT_S


def test_a_program_may_send_a_token_of_the_provider(url: str, provider: OpenIdProvider) -> None:
    """ID tokens for the client and access tokens for the URL give the rights of the groups."""
    for header, audience in (
        ({}, CLIENT_ID),
        ({"typ": "JWT"}, ["another", CLIENT_ID]),
        ({"typ": "at+jwt"}, url),
        ({"typ": "application/at+jwt"}, f"{url}/mcp"),
    ):
        anna = provider.token("anna", header, aud=audience)
        assert httpx.get(f"{url}/items", headers=bearer(anna)).status_code == 200
        assert httpx.post(f"{url}/queue/retry", json={"ids": []}, headers=bearer(anna)).is_success
        ben = provider.token("ben", header, aud=audience)
        refused = httpx.post(f"{url}/rebuild", json={}, headers=bearer(ben))
        assert "none of your groups" in problem(refused, 403)
    robot = provider.token("anna", preferred_username=None, sub="robot-7")
    assert httpx.get(f"{url}/items", headers=bearer(robot)).status_code == 200
    carl = httpx.get(f"{url}/items", headers=bearer(provider.token("carl")))
    assert "None of your groups" in problem(carl, 403)


def test_keys_work_beside_sign_ins(
    server: RunningService, provider: OpenIdProvider, tmp_path: Path
) -> None:
    """Without a key or a token every request is refused, also from this machine."""
    keys = Keys(tmp_path / "keys.json")
    with signing_in(server, provider, keys=str(keys.path)) as url:
        assert "a token of 127.0.0.1" in problem(httpx.get(f"{url}/items"), 401)
        key = keys.create("robot", Scope.READ)
        assert httpx.get(f"{url}/items", headers=bearer(key)).status_code == 200
        wrong = httpx.get(f"{url}/items", headers=bearer("rpt_wrong"))
        assert "The key is invalid" in problem(wrong, 401)


@pytest.mark.parametrize(
    ("header", "changed", "why"),
    [
        ({}, {"aud": "another"}, "aud"),
        ({}, {"aud": []}, "aud"),
        ({}, {"aud": {CLIENT_ID: 1}}, "aud"),
        ({}, {"iss": "https://another.example"}, "iss"),
        ({}, {"iss": None}, "iss"),
        ({}, {"exp": 1}, "expired"),
        ({}, {"exp": None}, "exp"),
        ({}, {"exp": "later"}, "exp"),
        ({}, {"sub": 7}, "sub"),
        ({}, {"events": {"http://schemas.openid.net/event/backchannel-logout": {}}}, "neither"),
        ({"typ": "logout+jwt"}, {}, "neither"),
        ({"typ": "dpop+jwt"}, {}, "neither"),
        ({"kid": "unknown"}, {}, "not signed"),
    ],
)
def test_a_token_with_wrong_claims_is_refused(
    url: str, provider: OpenIdProvider, header: dict[str, str], changed: dict[str, object], why: str
) -> None:
    """The error has the reason and where to get another token."""
    token = provider.token("anna", header, **changed)
    refused = httpx.get(f"{url}/items", headers=bearer(token))
    assert why in problem(refused, 401)
    challenge = refused.headers["www-authenticate"]
    assert 'error="invalid_token"' in challenge
    assert f'resource_metadata="{url}/.well-known/oauth-protected-resource"' in challenge


def test_a_clock_may_differ_by_a_minute(url: str, provider: OpenIdProvider) -> None:
    """A difference of 30 seconds is accepted, and one of 90 seconds is refused."""
    now = int(time.time())
    for age, status in ((30, 200), (90, 401)):
        token = provider.token("anna", exp=now - age)
        assert httpx.get(f"{url}/items", headers=bearer(token)).status_code == status
        token = provider.token("anna", nbf=now + age, iat=now + age)
        assert httpx.get(f"{url}/items", headers=bearer(token)).status_code == status


def test_a_forged_token_is_refused(url: str, provider: OpenIdProvider) -> None:
    """Keys and algorithms that its own header names are not trusted."""
    good = provider.token("anna")
    head, body, signature = good.split(".")
    other = rsa_key(provider.key.kid)
    claims = jwt.decode(good, provider.key).claims
    own = {"alg": "RS256", "kid": provider.key.kid, "jwk": other.as_dict(private=False)}
    secret = OctKey.import_key("0" * 32)
    for token in (
        f"{head}.{body}.",
        f"{head}.{body}.{signature[:-8]}AAAAAAAA",
        f"{_part({'alg': 'none'})}.{body}.",
        f"{_part({'alg': 'None'})}.{body}.{signature}",
        f"{_part({'alg': 'RS1'})}.{body}.{signature}",
        f"{_part({'alg': 'ES256', 'kid': provider.key.kid})}.{body}.{signature}",
        f"{_part({'alg': ['RS256']})}.{body}.{signature}",
        f"{_part([])}.{body}.{signature}",
        f"{_part({'alg': 'RS256', 'kid': {}})}.{body}.{signature}",
        jwt.encode(own, claims, other, ["RS256"]),
        jwt.encode({"alg": "HS256", "kid": provider.key.kid}, claims, secret, ["HS256"]),
        "..",
        "a.b.c",
        f"{head}.{'A' * 20_000}.{signature}",
        provider.token("anna", more="x" * 20_000),  # valid, but too long
    ):
        assert httpx.get(f"{url}/items", headers=bearer(token)).status_code == 401
    extended = JWSRegistry({"x": HeaderParameter("Of others", "str")}, ["RS256"])
    critical = {"alg": "RS256", "kid": provider.key.kid, "crit": ["x"], "x": "1"}
    strict = jwt.encode(critical, claims, provider.key, registry=extended)
    assert httpx.get(f"{url}/items", headers=bearer(strict)).status_code == 401


def _part(value: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


def test_programs_find_the_provider(
    server: RunningService, url: str, provider: OpenIdProvider
) -> None:
    """The metadata of each MCP address are public (RFC 9728)."""
    for path in ("", *PATHS):
        found = httpx.get(f"{url}/.well-known/oauth-protected-resource{path}").json()
        assert found["resource"] == f"{url}{path}"
        assert found["authorization_servers"] == [provider.issuer]
        asked = httpx.post(f"{url}{path}", json={}).headers.get("www-authenticate", "")
        assert not path or f'/.well-known/oauth-protected-resource{path}"' in asked
    asked = httpx.post(f"{url}/projects/{KEY}/mcp", json={}).headers["www-authenticate"]
    assert "resource_metadata" not in asked  # these describe only the server's own project
    assert server.client().get("/.well-known/oauth-protected-resource").status_code == 404


class _Storage:
    """The credentials that an MCP host stores; it is registered with the provider."""

    tokens: OAuthToken | None = None

    def __init__(self, redirect: str) -> None:
        self.client = OAuthClientInformationFull(
            client_id=HOST_ID, redirect_uris=[AnyUrl(redirect)], token_endpoint_auth_method="none"
        )

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info


def test_an_mcp_host_signs_a_person_in(url: str, provider: OpenIdProvider) -> None:
    """The MCP SDK finds the provider by itself, and gets a token for the address."""
    redirect = "http://127.0.0.1:1/of-the-host"
    provider.redirect_urls.append(redirect)
    answered: dict[str, str] = {}

    async def redirected(address: str) -> None:
        answered.update(fields(await asyncio.to_thread(authorized, address, "ben")))

    async def called_back() -> AuthorizationCodeResult:
        return AuthorizationCodeResult(
            code=answered["code"], state=answered["state"], iss=answered["iss"]
        )

    async def search() -> str:
        storage = _Storage(redirect)
        metadata = OAuthClientMetadata(
            redirect_uris=[AnyUrl(redirect)], token_endpoint_auth_method="none"
        )
        auth = OAuthClientProvider(f"{url}/mcp", metadata, storage, redirected, called_back)
        async with (
            httpx2.AsyncClient(auth=auth, timeout=TIMEOUT_S) as http,
            Client(streamable_http_client(f"{url}/mcp", http_client=http)) as client,
        ):
            found = await client.call_tool("search", {"query": "rotate API keys"})
        return str(found.content)

    assert "key-rotation" in asyncio.run(search())

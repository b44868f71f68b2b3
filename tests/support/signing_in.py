"""A server with sign-in at an OpenID provider, and a browser that signs in."""

import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import parse_qs, urlsplit

import httpx

from tests.support.listening import served
from tests.support.openid_provider import CLIENT_ID, CLIENT_SECRET, OpenIdProvider
from tests.support.ports import free_port
from tests.support.query_service import RunningService

CALLBACK = "/login/callback"


def sign_in_settings(provider: OpenIdProvider, **more: object) -> dict[str, object]:
    """The settings of a server whose users sign in at a provider."""
    return {
        "oidc_issuer": provider.issuer,
        "oidc_client_id": CLIENT_ID,
        "oidc_client_secret": CLIENT_SECRET,
        "read_groups": "team-a, team-b",
        "admin_groups": "ops",
        **more,
    }


@contextmanager
def signing_in(running: RunningService, provider: OpenIdProvider, **more: object) -> Iterator[str]:
    """Serve a running service whose users sign in at a provider; yields the URL."""
    given = {"port": free_port(), **more}
    with served(running, **sign_in_settings(provider, **given)) as url:
        public = str(more.get("public_url", url))
        provider.redirect_urls += [f"{public}{CALLBACK}"]
        yield url


class Browser(httpx.Client):
    """An HTTP client with cookies that does not follow redirects."""

    def __init__(self, url: str, verify: ssl.SSLContext | bool = True) -> None:
        limits = httpx.Limits(max_keepalive_connections=0)  # no connection stays open
        headers = {"Accept": "text/html"}
        super().__init__(base_url=url, headers=headers, timeout=30, limits=limits, verify=verify)

    def begin(self, target: str = "/") -> str:
        """Begin to sign in; returns the URL at the provider."""
        answer = self.get("/login/openid", params={"target": target})
        assert answer.status_code == 303, answer.text
        return str(answer.headers["location"])

    def sign_in(self, name: str, target: str = "/") -> httpx.Response:
        """Sign in; returns the response to the callback that follows the provider's redirect."""
        return self.get(authorized(self.begin(target), name))

    def sign_out(self, **headers: str) -> httpx.Response:
        """Sign out with the request that the page's button sends."""
        return self.post("/logout", headers={"Origin": str(self.base_url).rstrip("/"), **headers})

    def has_session(self) -> bool:
        """Whether the browser is signed in."""
        return self.get("/items", headers={"Accept": "*/*"}).status_code == 200


def authorized(address: str, name: str) -> str:
    """Sign in at the provider; returns the URL to which the provider redirects."""
    answer = httpx.post(address, data={"name": name}, timeout=30)
    assert answer.status_code == 302, answer.text
    return str(answer.headers["location"])


def fields(address: str) -> dict[str, str]:
    """The query parameters of a URL."""
    return {name: values[0] for name, values in parse_qs(urlsplit(address).query).items()}

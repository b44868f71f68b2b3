"""A real Caddy with deploy/Caddyfile as a TLS proxy of a real server."""

import os
import shutil
import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import httpx
import pytest

from repertory.keys import Keys, Scope
from tests.support.openid_provider import OpenIdProvider
from tests.support.ports import free_port
from tests.support.query_service import RunningService, bearer
from tests.support.signing_in import Browser, fields, signing_in
from tests.support.waiting import until

CADDYFILE = Path(__file__).parents[3] / "deploy" / "Caddyfile"
HERE = (
    "{\n admin off\n skip_install_trust\n auto_https disable_redirects\n}\n"  # no port below 1024
)
MCP = {"Accept": "application/json, text/event-stream"}


class Proxied(NamedTuple):
    """The URL of Caddy, a context that trusts its authority, a client, and a key of the server."""

    url: str
    trust: ssl.SSLContext
    client: httpx.Client
    key: str


@pytest.fixture(scope="module")
def proxied(
    server: RunningService,
    running_provider: OpenIdProvider,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Proxied]:
    """A server behind Caddy that people sign in to."""
    caddy = shutil.which("caddy")
    if not caddy:
        pytest.skip("There is no caddy here.")
    folder, port = tmp_path_factory.mktemp("caddy"), free_port()
    public = f"https://localhost:{port}"
    configuration = folder / "Caddyfile"
    configuration.write_text(HERE + CADDYFILE.read_text("utf-8"), "utf-8")
    authority = folder / "data" / "caddy" / "pki" / "authorities" / "local" / "root.crt"
    keys = folder / "keys.json"
    key = Keys(keys).create("agent", Scope.READ)
    with signing_in(server, running_provider, public_url=public, keys=str(keys)) as upstream:
        environment = {
            **os.environ,
            "HOME": str(folder),
            "XDG_DATA_HOME": str(folder / "data"),
            "REPERTORY_DOMAIN": f"localhost:{port}",
            "REPERTORY_UPSTREAM": upstream.removeprefix("http://"),
        }
        command = [caddy, "run", "--config", str(configuration), "--adapter", "caddyfile"]
        process = subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL)
        try:
            until(authority.exists, process)
            trust = ssl.create_default_context(cafile=str(authority))

            def is_ready() -> bool:
                try:
                    return httpx.get(f"{public}/readyz", verify=trust).status_code == 200
                except httpx.HTTPError:
                    return False

            until(is_ready, process)
            with httpx.Client(base_url=public, verify=trust, timeout=30) as client:
                yield Proxied(public, trust, client, key)
        finally:
            process.terminate()
            process.wait()


def test_a_search_goes_through_tls(proxied: Proxied) -> None:
    """The proxy is local, but a request without a key is still refused."""
    _, _, client, key = proxied
    answer = client.get("/v1/search?q=rotate+keys", headers=bearer(key))
    assert "key-rotation" in str(answer.json()["results"][0])
    assert answer.headers["strict-transport-security"].startswith("max-age=")
    assert client.get("/v1/search?q=rotate").status_code == 401


def test_mcp_goes_through_tls(proxied: Proxied) -> None:
    """A tool is called; a host without a key gets the public address of the metadata."""
    url, _, client, key = proxied
    message = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": "search", "arguments": {"query": "rotate keys"}},
    }
    called = client.post("/mcp", json=message, headers=MCP | bearer(key))
    assert "key-rotation" in called.text
    refused = client.post("/mcp", json=message, headers=MCP)
    assert refused.status_code == 401
    assert f"{url}/.well-known/oauth-protected-resource" in refused.headers["www-authenticate"]


def test_people_sign_in_through_tls(proxied: Proxied) -> None:
    """The provider redirects to the public URL, and the cookie is sent only over TLS."""
    url, trust, *_ = proxied
    with Browser(url, verify=trust) as browser:
        assert fields(browser.begin())["redirect_uri"] == f"{url}/login/callback"
        back = browser.sign_in("anna", "/status")
        assert (back.status_code, back.headers["location"]) == (303, "/status")
        made = back.headers.get_list("set-cookie")
        (session,) = (one for one in made if one.startswith("__Host-repertory_session=ey"))
        assert "Secure" in session
        assert browser.has_session()
        assert browser.sign_out().headers["location"] == "/login"
        assert not browser.has_session()


def test_the_caddyfile_fits_the_compose_file() -> None:
    """Caddy's default upstream is the port that compose publishes on this machine."""
    published = (CADDYFILE.parents[1] / "docker-compose.yml").read_text("utf-8")
    assert "REPERTORY_PUBLISH:-127.0.0.1:7700}" in published
    assert "{$REPERTORY_UPSTREAM:127.0.0.1:7700}" in CADDYFILE.read_text("utf-8")

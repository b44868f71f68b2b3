"""Sign-in at `repertory serve`, and the checks of it in `repertory doctor`."""

import json
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from repertory.values import Values
from repertory_admin.checks.sign_in import sign_in
from tests.support.command_line import Cli
from tests.support.openid_provider import (
    CLIENT_ID,
    CLIENT_SECRET,
    OpenIdProvider,
    openid_provider,
)
from tests.support.ports import free_port
from tests.support.query_service import bearer
from tests.support.server_process import Serve
from tests.support.signing_in import Browser, sign_in_settings
from tests.support.waiting import until


@pytest.fixture(scope="module")
def provider() -> Iterator[OpenIdProvider]:
    """An OpenID provider."""
    with openid_provider() as found:
        yield found


def _settings(provider: OpenIdProvider) -> dict[str, str]:
    """The environment variables of a server with sign-in."""
    return {
        "REPERTORY_OIDC_ISSUER": provider.issuer,
        "REPERTORY_OIDC_CLIENT_ID": CLIENT_ID,
        "REPERTORY_OIDC_CLIENT_SECRET": CLIENT_SECRET,
        "REPERTORY_ACCESS_READ_GROUPS": "team-a",
    }


def test_people_sign_in_at_a_server(
    own: Cli, project: Path, tmp_path: Path, provider: OpenIdProvider
) -> None:
    """People get the rights of their groups; the log names them, but not the client secret."""
    port = free_port()
    own.environment |= _settings(provider)
    provider.redirect_urls.append(f"http://127.0.0.1:{port}/login/callback")
    log = tmp_path / "log"
    with Serve(own, project, log, "--port", str(port)) as server:
        browser = Browser(server.url)
        assert browser.get("/").status_code == 401
        browser.sign_in("anna")
        assert "Signed in as anna" in browser.get("/status").text
        assert browser.post("/rebuild", headers={"Origin": server.url}).status_code == 403
        assert browser.get("/items", headers=bearer(server.token)).status_code == 200
        until(lambda: '"owner"' in log.read_text())
    text = log.read_text()
    callers = {json.loads(line).get("caller") for line in text.splitlines() if "caller" in line}
    assert {"user:anna", "owner"} <= callers
    assert CLIENT_SECRET not in text


def test_a_server_does_not_start_with_incomplete_sign_in_settings(
    own: Cli, project: Path, provider: OpenIdProvider
) -> None:
    """A server with incomplete sign-in settings does not start."""
    half = _settings(provider) | {"REPERTORY_OIDC_ISSUER": ""}
    done = own.run(project, "serve", "--port", "0", **half)
    assert done.returncode == 2
    assert "oidc.issuer is missing" in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr


def test_doctor_asks_the_provider(own: Cli, project: Path, provider: OpenIdProvider) -> None:
    """`doctor` asks the provider and shows the redirect URL that it must allow."""
    done = own.run(project, "doctor", "--output", "json", **_settings(provider))
    (found,) = (one for one in json.loads(done.stdout)["checks"] if one["subject"] == "sign-in")
    assert found["state"] == "good"
    assert found["text"] == (
        f"{provider.issuer} answers, with 1 key; it must allow the redirect URL "
        "http://127.0.0.1:7700/login/callback"
    )


@pytest.mark.parametrize(
    ("changed", "found"),
    [
        ({"oidc_issuer": "", "oidc_client_id": "", "oidc_client_secret": None}, []),
        ({"host": "0.0.0.0"}, [("good", "it must allow"), ("unsure", "server.public_url is not")]),
        ({"oidc_issuer": "http://127.0.0.1:9"}, [("bad", "127.0.0.1:9 does not answer")]),
        ({"oidc_client_secret": "short"}, [("bad", "fewer than 16 characters")]),
        ({"read_groups": "", "admin_groups": ""}, [("bad", "access.read_groups")]),
        ({"proxy_addresses": "10.0.0.1"}, [("good", "it must"), ("good", "10.0.0.1 may name")]),
    ],
)
def test_doctor_names_faults_of_the_sign_in(
    provider: OpenIdProvider, changed: dict[str, object], found: list[tuple[str, str]]
) -> None:
    """`doctor` reports faults of sign-in settings or the provider; nothing without sign-in."""
    values = msgspec.convert(sign_in_settings(provider, **changed), Values)
    for one, (state, text) in zip(sign_in(values), found, strict=True):
        assert one.state == state
        assert text in one.text


def test_the_secret_is_not_shown(own: Cli, project: Path, provider: OpenIdProvider) -> None:
    """`config show` does not show the client secret."""
    done = own.run(project, "config", "show", **_settings(provider))
    assert "oidc.client_secret" in done.stdout
    assert CLIENT_SECRET not in done.stdout + done.stderr

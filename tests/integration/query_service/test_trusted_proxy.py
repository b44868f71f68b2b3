"""A trusted proxy names the person in headers, on a real server."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from starlette.testclient import TestClient

from repertory.errors import ConfigurationError
from repertory.keys import Keys, Scope
from repertory_query.app import create_app
from tests.support.listening import served
from tests.support.query_service import RunningService, bearer, problem, settings_of

SETTINGS = {"read_groups": "team-a, team-b", "admin_groups": "ops"}
ANNA = {"X-Forwarded-User": "anna", "X-Forwarded-Groups": "team-a,ops"}
BEN = {"X-Forwarded-User": "ben", "X-Forwarded-Groups": "team-b"}


@pytest.fixture(scope="module")
def url(server: RunningService) -> Iterator[str]:
    """A server that trusts a proxy on this machine."""
    with served(server, proxy_addresses="127.0.0.1, 10.1.0.0/16", **SETTINGS) as found:
        yield found


def test_a_proxy_names_the_person(url: str) -> None:
    """The groups of the person decide the scope; a request without a name is refused."""
    assert httpx.get(f"{url}/items", headers=ANNA).status_code == 200
    assert httpx.post(f"{url}/queue/retry", headers=ANNA, json={"ids": []}).status_code == 200
    assert httpx.get(f"{url}/items", headers=BEN).status_code == 200
    refused = httpx.post(f"{url}/rebuild", headers=BEN, json={})
    assert "none of your groups" in problem(refused, 403)
    carl = httpx.get(f"{url}/items", headers={"X-Forwarded-User": "carl"})
    assert "None of your groups" in problem(carl, 403)
    assert "asks for a key" in problem(httpx.get(f"{url}/items"), 401)
    page = httpx.get(f"{url}/", headers={**ANNA, "Accept": "text/html"})
    assert page.status_code == 200
    assert "Sign out" not in page.text  # only the proxy can sign out


def test_the_page_of_keys_mentions_people_who_sign_in(
    server: RunningService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """People are admitted without keys, and the first key does not lock them out."""
    flags = {"proxy_addresses": "127.0.0.1", "keys": str(tmp_path / "keys.json"), **SETTINGS}
    headers = {**ANNA, "Accept": "text/html"}
    with served(server, **flags) as url:
        own = httpx.get(f"{url}/status/keys", headers=headers).text
        assert "only the user who started it, and people who sign in." in own
        monkeypatch.setattr(type(server.parts), "is_team", True)
        team = httpx.get(f"{url}/status/keys", headers=headers).text
        assert "There are no keys, so every caller has to sign in." in team
        headers["Origin"] = url
        made = httpx.post(f"{url}/status/keys", headers=headers, data={"name": "ci"}).text
        assert "The key of ci" in made
        assert "needs a key" not in made


def test_only_the_address_of_the_connection_decides(url: str, server: RunningService) -> None:
    """X-Forwarded-For can neither add nor remove trust."""
    for address in ("192.0.2.7", "10.1.2.3", "127.0.0.1", "10.1.2.3, 192.0.2.7"):
        forwarded = {"X-Forwarded-For": address}
        assert httpx.get(f"{url}/items", headers={**ANNA, **forwarded}).status_code == 200
    with served(server, proxy_addresses="10.1.2.3", **SETTINGS) as strict:
        for headers in ({}, {"X-Forwarded-For": "10.1.2.3"}, {"Forwarded": "for=10.1.2.3"}):
            refused = httpx.get(f"{strict}/items", headers={**ANNA, **headers})
            assert "only a proxy in proxy.addresses" in problem(refused, 403)


@pytest.mark.parametrize(
    ("address", "status"),
    [
        ("10.1.255.255", 200),
        ("::ffff:10.1.0.7", 200),
        ("127.0.0.1", 200),
        ("10.2.0.1", 403),
        ("::1", 403),
        ("127.0.0.2", 403),
        ("192.0.2.7", 403),
        ("testclient", 403),
        ("", 403),
    ],
)
def test_only_configured_proxies_are_trusted(
    server: RunningService, caplog: pytest.LogCaptureFixture, address: str, status: int
) -> None:
    """A name from another address is refused and logged."""
    flags = {"proxy_addresses": "127.0.0.1, 10.1.0.0/16", **SETTINGS}
    app = create_app(server.service, settings_of(server.project, **flags))
    client = TestClient(app, client=(address, 50_000))
    assert client.get("/items", headers=BEN).status_code == status
    logged = [one for one in caplog.records if one.message == "proxy_header_refused"]
    assert bool(logged) is (status == 403)


def test_a_key_takes_precedence_over_the_name_of_a_proxy(
    server: RunningService, tmp_path: Path
) -> None:
    """A key does not make a name from an untrusted address acceptable."""
    keys = Keys(tmp_path / "keys.json")
    key = bearer(keys.create("robot", Scope.READ))
    with served(server, proxy_addresses="127.0.0.1", keys=str(keys.path), **SETTINGS) as url:
        assert httpx.get(f"{url}/items", headers=key).status_code == 200
        both = httpx.post(f"{url}/rebuild", headers={**ANNA, **key}, json={})
        assert "key with the scope admin" in problem(both, 403)
        wrong = {"Authorization": "Bearer of-the-proxy"}
        assert httpx.get(f"{url}/items", headers={**ANNA, **wrong}).status_code == 200
        assert httpx.get(f"{url}/items", headers=wrong).status_code == 401
    with served(server, proxy_addresses="10.0.0.1", keys=str(keys.path), **SETTINGS) as strict:
        assert httpx.get(f"{strict}/items", headers={**ANNA, **key}).status_code == 403


@pytest.mark.parametrize(
    ("headers", "why"),
    [
        ([("X-Forwarded-User", "anna"), ("X-Forwarded-User", "ben")], "twice"),
        ([("X-Forwarded-User", "anna"), ("x-forwarded-user", "anna")], "twice"),
        ([*BEN.items(), ("X-Forwarded-Groups", "ops")], "twice"),
        ([*BEN.items(), ("X_Forwarded_User", "anna")], "spelled"),
        ([*BEN.items(), ("X-Forwarded_Groups", "ops")], "spelled"),
        ([("X_Forwarded_User", "anna")], "spelled"),
        ([("X-Forwarded-User", ""), ("X-Forwarded-Groups", "ops")], "empty"),
        ([("X-Forwarded-User", "anna"), ("X-Forwarded-Groups", "")], "empty"),
        ([("X-Forwarded-User", b"\xff")], "UTF-8"),
        ([("X-Forwarded-Groups", "ops")], "no person"),
        ([("X-Forwarded-User", "a"), ("X-Forwarded-Groups", ",".join("g" * 201))], "200 groups"),
    ],
)
def test_headers_that_contradict_themselves_are_refused(
    url: str, headers: list[tuple[str, str]], why: str
) -> None:
    """A trusted proxy may forward headers that a caller added."""
    assert why in problem(httpx.get(f"{url}/items", headers=headers), 403)


def test_pages_of_other_sites_change_nothing(url: str) -> None:
    """The proxy names the person in every request of a browser, also in those of other sites."""
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    for headers in (
        {"Origin": "https://attacker.example"},
        {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Dest": "empty"},
        form,  # a form without an Origin
        {"Content-Type": "text/plain"},
    ):
        refused = httpx.post(f"{url}/status/retry", headers={**ANNA, **headers}, content=b"id=x")
        assert "another site" in problem(refused, 403)
    own = {**ANNA, **form, "Origin": url}
    assert httpx.post(f"{url}/status/retry", headers=own, content=b"").status_code == 303


def test_other_headers_can_be_named(server: RunningService) -> None:
    """The default headers are then ignored."""
    named = {"proxy_user_header": "Remote-User", "proxy_groups_header": "Remote-Groups"}
    with served(server, proxy_addresses="127.0.0.1", **named, **SETTINGS) as url:
        own = {"remote-user": "anna", "remote-groups": "ops"}
        assert httpx.get(f"{url}/items", headers=own).status_code == 200
        assert httpx.get(f"{url}/items", headers=ANNA).status_code == 401


def test_without_a_configured_proxy_the_headers_are_ignored(server: RunningService) -> None:
    """They neither give rights nor cause an error."""
    far = server.client(address="192.0.2.7")
    assert far.get("/items", headers=ANNA).status_code == 200
    assert far.post("/rebuild", headers=ANNA, json={}).status_code == 403


@pytest.mark.parametrize(
    ("flags", "why"),
    [
        ({"proxy_addresses": "proxy.example", **SETTINGS}, "proxy.addresses has 'proxy.example'"),
        ({"proxy_addresses": "0.0.0.0/0", **SETTINGS}, "which is everyone"),
        ({"proxy_addresses": "10.0.0.1, ::/0", **SETTINGS}, "which is everyone"),
        ({"proxy_addresses": "10.0.0.1"}, "access.read_groups"),
        ({"proxy_addresses": "10.0.0.1", "proxy_user_header": "X_User"}, "--proxy-user-header"),
        (
            {"proxy_addresses": "10.0.0.1", "proxy_user_header": "x-forwarded-groups", **SETTINGS},
            "are the same",
        ),
    ],
)
def test_an_invalid_setting_prevents_the_start(
    server: RunningService, flags: dict[str, str], why: str
) -> None:
    """The error names the setting."""
    with pytest.raises(ConfigurationError, match=why):
        create_app(server.service, settings_of(server.project, **flags))

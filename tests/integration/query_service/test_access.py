"""Which callers the query service admits over HTTP, and how it limits their requests."""

from pathlib import Path
from socket import gethostname

import pytest
from starlette.exceptions import HTTPException
from starlette.testclient import TestClient

from repertory.keys import Keys, Scope
from repertory.remote.server_identity import HEADER, proof_of
from repertory_query.access.callers import Owner
from repertory_query.access.limits import MAX_ADDRESS_LENGTH, check_address
from repertory_query.app import create_app
from tests.support.query_service import RunningService, bearer, problem, settings_of

JSON = {"Content-Type": "application/json"}
OWNER = Owner("secret", "of browsers")
ADMIN_CALLS = (("/rebuild", None), ("/queue/retry", {"ids": None}))


def test_without_keys_this_machine_may_do_everything(server: RunningService) -> None:
    """Without keys, other machines may only read; a change needs a key."""
    near, far = server.client(), server.client(address="192.0.2.7")
    assert far.get("/search", params={"q": "x"}).status_code == 200
    for path, body in ADMIN_CALLS:
        response = far.post(path, json=body)
        assert "repertory keys create" in problem(response, 403)
        assert response.headers["www-authenticate"].startswith("Bearer")
    assert near.post("/queue/retry", json={"ids": None}).json() == {"retried": 0}
    assert (
        server.client(address="::ffff:127.0.0.1").post("/queue/retry", json={"ids": []}).is_success
    )


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost:7700", 200),
        ("127.0.0.1", 200),
        ("[::1]:7700", 200),
        ("app.localhost:7700", 200),
        (f"{gethostname()}:7700", 200),
        ("query:7700", 403),
        ("0x7f000001", 403),
        ("repertory.example.org", 200),
        ("REPERTORY.example.org.:80", 200),
        ("attacker.example", 403),
        ("localhost.attacker.example", 403),
        ("127.0.0.1.attacker.example", 403),
        ("127.0.0.1%.attacker.example", 403),
        ("[::1", 403),
        ("", 403),
    ],
)
def test_without_keys_a_foreign_host_name_is_refused(
    server: RunningService, host: str, status: int
) -> None:
    """DNS rebinding: a page whose host name points to this machine gets no answer."""
    app = create_app(server.service, settings_of(server.project, host="repertory.example.org"))
    response = TestClient(app).get("/items", headers={"Host": host})
    assert response.status_code == status


def test_without_keys_pages_of_other_sites_are_refused(client: TestClient) -> None:
    """A browser on this machine may have such a page open, and this machine needs no key."""
    for origin in ("https://attacker.example", "null", "http://localhost:1", "http://[::1"):
        response = client.post("/rebuild", headers={"Origin": origin})
        assert "another site" in problem(response, 403)
        assert "www-authenticate" not in response.headers  # no key would help
    same = client.get("/items", headers={"Origin": "http://localhost"})
    assert same.status_code == 200


@pytest.mark.parametrize(
    ("site", "destination", "status"),
    [
        ("cross-site", "image", 403),
        ("same-site", "script", 403),
        ("cross-site", "iframe", 403),
        ("same-site", "empty", 403),
        ("cross-site", "document", 200),
        ("same-origin", "empty", 200),
        ("none", "document", 200),
    ],
)
def test_other_sites_may_only_link_here(
    client: TestClient, site: str, destination: str, status: int
) -> None:
    """Browsers send no Origin with such loads, so the Sec-Fetch headers decide."""
    headers = {"Sec-Fetch-Site": site, "Sec-Fetch-Dest": destination}
    assert client.get("/search?q=x", headers=headers).status_code == status


def test_other_sites_post_nothing(client: TestClient) -> None:
    """Scripts and forms of other sites are refused, even if the browser sends no Origin."""
    for destination in ("empty", "document", "iframe"):
        headers = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Dest": destination}
        assert "another site" in problem(client.post("/queue/retry", headers=headers), 403)
    for media_type in ("application/x-www-form-urlencoded", "text/plain", "multipart/form-data"):
        response = client.post("/rebuild", content=b"", headers={"Content-Type": media_type})
        assert "application/json" in problem(response, 422)


def test_answers_are_neither_cached_nor_shared(client: TestClient) -> None:
    """A cached answer could reach callers without the key."""
    for path in ("/search?q=x", "/items", "/stats", "/openapi.json", "/no"):
        headers = client.get(path).headers
        assert headers["cache-control"] == "no-store"
        assert headers["cross-origin-resource-policy"] == "same-origin"
        assert headers["x-content-type-options"] == "nosniff"


def test_with_keys_every_request_needs_one(server: RunningService, tmp_path: Path) -> None:
    """Health checks are the only exception."""
    file = tmp_path / "keys.json"
    keys = Keys(file)
    reader = bearer(keys.create("reader", Scope.READ))
    boss = {"Authorization": f"bearer {keys.create('boss', Scope.ADMIN)}"}
    client = server.client(host="anything.example", address="192.0.2.7", keys=str(file))

    for path in ("/search?q=x", "/items", "/stats", "/metrics", "/queue", "/openapi.json", "/no"):
        response = client.get(path)
        assert "Authorization: Bearer" in problem(response, 401)
        assert response.headers["www-authenticate"] == 'Bearer realm="repertory"'
        if path != "/no":
            assert client.get(path, headers=reader).status_code == 200
    for path in ("/healthz", "/readyz"):
        assert client.get(path).status_code == 200
    for wrong in ("Bearer rpt_wrong", "Bearer ", "Basic eDp5", "rpt", "Bearer \xff"):
        response = client.get("/items", headers={b"Authorization": wrong.encode("latin-1")})
        assert problem(response, 401)
    for path, body in ADMIN_CALLS:
        response = client.post(path, json=body, headers=reader)
        assert "scope admin" in problem(response, 403)
        assert 'scope="admin"' in response.headers["www-authenticate"]
    assert client.post("/queue/retry", json={"ids": []}, headers=boss).status_code == 200


def test_calling_a_tool_needs_the_scope_call(server: RunningService, tmp_path: Path) -> None:
    """With the scope, the error says what else prevents the call."""
    response = server.client(address="192.0.2.7").post("/tools/any__tool", json={})
    assert "repertory keys create" in problem(response, 403)
    keys = Keys(tmp_path / "keys.json")
    client = server.client(keys=str(tmp_path / "keys.json"))
    for scope, words in ((Scope.READ, "scope call"), (Scope.CALL, "Calling tools is off here")):
        headers = bearer(keys.create(scope, scope))
        assert words in problem(client.post("/tools/any__tool", headers=headers), 403)


def test_a_key_is_replaced_without_a_restart(server: RunningService, tmp_path: Path) -> None:
    """Both keys are valid for a while; a revoked key is invalid at once."""
    file = tmp_path / "keys.json"
    client = server.client(keys=str(file))
    assert client.get("/items").status_code == 200
    keys = Keys(file)
    old, new = keys.create("old", Scope.READ), keys.create("new", Scope.READ)

    def status(token: str) -> int:
        return client.get("/items", headers=bearer(token)).status_code

    assert client.get("/items").status_code == 401
    assert (status(old), status(new)) == (200, 200)
    keys.revoke("old")
    assert (status(old), status(new)) == (401, 200)


# Limits


def test_requests_are_limited_per_key(server: RunningService, tmp_path: Path) -> None:
    """A caller over its limit learns when to retry; other callers are not affected."""
    keys = Keys(tmp_path / "keys.json")
    tokens = [keys.create(name, Scope.READ) for name in ("eager", "calm")]
    eager, calm = (bearer(token) for token in tokens)
    client = server.client(keys=str(tmp_path / "keys.json"), requests_per_minute=5)
    statuses = [client.get("/items", headers=eager).status_code for _ in range(5)]
    refused = client.get("/items", headers=eager)
    assert statuses == [200] * 5
    assert "5 requests a minute" in problem(refused, 429)
    assert 1 <= int(refused.headers["retry-after"]) <= 120
    assert client.get("/items", headers=calm).status_code == 200
    assert client.get("/healthz", headers=eager).status_code == 200


def test_requests_are_limited_per_address(server: RunningService) -> None:
    """Without keys, each client address has its own limit."""
    app = create_app(server.service, settings_of(server.project, requests_per_minute=2))
    one, other = (TestClient(app, "http://localhost", client=(at, 1)) for at in ("::1", "::2"))
    assert [one.get("/items").status_code for _ in range(3)] == [200, 200, 429]
    assert other.get("/items").status_code == 200


def test_bodies_are_limited_with_or_without_a_length(client: TestClient) -> None:
    """The server refuses a body of more than one megabyte."""
    fits = b'{"queries": [{"q": "x"}]}'.ljust(1_000_000)
    assert client.post("/search", content=fits, headers=JSON).status_code == 200
    assert client.post("/search", content=iter([fits]), headers=JSON).status_code == 200
    assert "1,000,000 bytes" in problem(client.post("/search", content=b" " * 1_000_001), 413)
    chunks = (b" " * 100_000 for _ in range(100))
    assert "1,000,000 bytes" in problem(client.post("/search", content=chunks), 413)
    assert "send less at once" in problem(client.post("/tools/x__y", content=b" " * 1_000_001), 413)


def test_an_address_that_is_too_long_is_refused() -> None:
    """The error suggests POST."""
    scope = {"raw_path": b"/search", "query_string": b"q=" + b"x" * MAX_ADDRESS_LENGTH}
    with pytest.raises(HTTPException, match=r"414: .*by POST"):
        check_address(scope)


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/search?q=%ff%fe", 400),
        ("/search?q=x&%ff=1", 400),
        ("/items/%ff", 400),
        ("/search?q=%00%01%1b[31m", 200),
        ("/search?q=%ef%bf%bd%f0%9f%8c%8d", 200),
        ("/search?q=x&q=y", 200),
        ("/search?" + "&".join(f"tag={number}" for number in range(200)) + "&q=x", 422),
        ("/search?q=" + "%E7%8E%8B" * 4_000, 200),
    ],
)
def test_urls_are_limited_and_must_be_utf_8(client: TestClient, path: str, status: int) -> None:
    """Control characters and a query of the maximum length are accepted."""
    response = client.get(path)
    assert response.status_code == status
    if status >= 400:
        assert problem(response, status)


def test_a_users_own_server_answers_nobody_else(server: RunningService) -> None:
    """Other accounts of the machine get only health checks, the sign-in page and its styles."""
    settings = settings_of(server.project)
    app = create_app(server.service, settings, owner=OWNER)
    client = TestClient(app, "http://127.0.0.1", client=("127.0.0.1", 50_000))
    for path in ("/search?q=x", "/items", "/stats", "/metrics", "/openapi.json", "/", "/mcp"):
        assert "repertory keys token" in problem(client.get(path), 401)
    for path in ("/tools/any__tool", "/rebuild", "/queue/retry", "/mcp", "/functions/search"):
        assert client.post(path, json={}).status_code == 401
    for path in ("/healthz", "/readyz", "/static/style.css", "/login"):
        assert client.get(path).status_code == 200
    for wrong in ("Bearer ", "Bearer other", "Basic secret", "secret"):
        assert client.get("/items", headers={"Authorization": wrong}).status_code == 401


def test_a_users_own_server_proves_itself(server: RunningService) -> None:
    """It answers a challenge with a proof made from the owner's token; a team's server does not."""
    settings = settings_of(server.project)
    own = TestClient(create_app(server.service, settings, owner=OWNER))
    given = own.get("/healthz", headers={HEADER: "anything"}).json()
    assert given == {"alive": True, "proof": proof_of("secret", "anything")}
    for app, challenge in ((own, ""), (own, "x" * 101), (server.client(), "anything")):
        assert app.get("/healthz", headers={HEADER: challenge}).json() == {"alive": True}


def test_the_users_own_processes_may_do_everything(server: RunningService, tmp_path: Path) -> None:
    """The owner's secret works from any address, with or without keys, but only on this server."""
    Keys(tmp_path / "keys.json").create("someone", Scope.READ)
    own, body = {"Authorization": "Bearer secret"}, {"ids": None}
    for flags in ({}, {"keys": str(tmp_path / "keys.json")}):
        settings = settings_of(server.project, **flags)
        app = create_app(server.service, settings, owner=OWNER)
        client = TestClient(app, client=("192.0.2.7", 50_000))
        assert client.post("/queue/retry", json=body, headers=own).status_code == 200
        assert client.post("/queue/retry", json=body).status_code in (401, 403)
        other = TestClient(create_app(server.service, settings), client=("192.0.2.7", 50_000))
        assert other.post("/queue/retry", json=body, headers=own).status_code in (401, 403)
        nothing = {"Authorization": "Bearer "}
        assert other.post("/queue/retry", json=body, headers=nothing).status_code in (401, 403)

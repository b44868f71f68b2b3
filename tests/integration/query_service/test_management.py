"""The administration pages over HTTP: history, rebuilds, trust, policies and keys."""

import hashlib
import html
import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.testclient import TestClient

from repertory.keys import Keys, Scope
from repertory.sources.registry import digest_to_trust
from repertory.trust import TrustStore
from repertory_query.access.callers import Owner
from repertory_query.app import create_app
from repertory_query.pages import policies as policy_pages
from repertory_query.pages import review as review_pages
from tests.support.audits import lines_of
from tests.support.builders import write, write_skill
from tests.support.query_service import RunningService, bearer, metrics, settings_of
from tests.support.waiting import until

CONFIG = """\
# The shop's catalogue.
[[sources]]
type = "skills"
path = "skills"

[[sources]]
type = "mcp"
config = ".mcp.json"

[[policy]]
item = "key-rotation"  # by name
boost = 0.2 # for now
"""
SERVERS = {"notes": {"command": "no-such-program", "env": {"TOKEN": "hunter2"}}}
OWN = {"Origin": "http://localhost"}
ITEM = "skills/key-rotation"
POSTS = {
    "/status/retry": {},
    "/status/rebuild": {},
    "/status/reviews": {"items": '["a@b"]'},
    "/status/trust": {"file": "a", "digest": "b"},
    "/status/policies": {"item": "a", "version": "b"},
    "/status/policies/preview": {"item": "a", "version": "b"},
    "/status/keys": {"name": "mallory", "scope": "admin"},
    "/status/keys/revoke": {"name": "a"},
}
PAGES = (
    "/status/history",
    "/status/insights",
    "/status/reviews",
    "/status/policies",
    "/status/policies/edit",
)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with a skill, and an MCP server that is not trusted yet."""
    project = tmp_path_factory.mktemp("managed") / "project"
    write_skill(project, "key-rotation", "Rotate API keys without downtime")
    return project


@pytest.fixture(scope="module")
def running(project: Path) -> Iterator[RunningService]:
    """The server of the project."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(project.parent / "home"))
        _configure(project, CONFIG.partition("[[policy]]")[0])
        with RunningService(project) as running:
            running.scan()  # without the policy, which would change the awaited state
            yield running


@pytest.fixture
def server(running: RunningService) -> RunningService:
    """The server, with its configuration and trust reset."""
    _configure(running.project, CONFIG)
    running.parts.workspace.trust._path.unlink(missing_ok=True)
    return running


def _configure(project: Path, text: str) -> None:
    write(project / "repertory.toml", text)
    write(project / ".mcp.json", json.dumps({"mcpServers": SERVERS}))


@pytest.fixture
def client(server: RunningService) -> TestClient:
    """A browser on the same machine as a server without keys."""
    return browser(server.client())


@pytest.fixture
def owner(server: RunningService, tmp_path: Path) -> TestClient:
    """The browser of the user who started the server."""
    flags = {"audit_folder": str(tmp_path / "audit"), "keys": str(tmp_path / "keys.json")}
    settings = settings_of(server.project, **flags)
    app = create_app(server.service, settings, owner=Owner("token", "of browsers"))
    client = browser(TestClient(app, "http://localhost", client=("127.0.0.1", 50_000)))
    client.get("/login?token=token")
    return client


def browser(client: TestClient) -> TestClient:
    """Make a client behave like a browser: it asks for pages, and sends an Origin."""
    client.headers.update({"Accept": "text/html", **OWN})
    client.follow_redirects = False
    return client


def fields_of(page: str) -> dict[str, str]:
    """The hidden fields of the last form on a page."""
    form = page.rpartition("<form")[2]
    found = re.findall(r'<input type="hidden" name="([^"]*)" value="([^"]*)"', form)
    return {html.unescape(name): html.unescape(value) for name, value in found}


def changed(client: TestClient, at: int | None, **fields: str) -> httpx.Response:
    """The answer to a previewed change of a policy."""
    query = "" if at is None else f"?at={at}"
    form = fields_of(client.get(f"/status/policies/edit{query}").text)
    return client.post("/status/policies/preview", data=form | fields)  # type: ignore[return-value]


# Access


def test_only_the_scope_admin_manages(server: RunningService, tmp_path: Path) -> None:
    """Keys with other scopes and other machines are refused."""
    keys = Keys(tmp_path / "keys.json")
    tokens = {scope: keys.create(f"{scope}-key", scope) for scope in Scope}
    client = browser(server.client(keys=str(tmp_path / "keys.json")))
    for scope in (Scope.READ, Scope.CALL):
        client.headers.update(bearer(tokens[scope]))
        for page in (*PAGES, "/status/keys"):
            assert client.get(page).status_code == 403, page
        for page, data in POSTS.items():
            assert client.post(page, data=data).status_code == 403, page
        assert 'href="/status/keys"' not in client.get("/status").text
        assert "The last hour" not in client.get("/status").text
    far = browser(server.client(address="192.0.2.7"))
    assert {far.post(page, data=data).status_code for page, data in POSTS.items()} == {403}
    assert [key.name for key in keys.list()] == ["read-key", "call-key", "admin-key"]
    client.headers.update(bearer(tokens[Scope.ADMIN]))
    for page in (*PAGES, "/status/keys"):
        assert client.get(page).status_code == 200, page
    assert 'href="/status/keys"' in client.get("/status").text


def test_a_page_of_another_site_changes_nothing(owner: TestClient, server: RunningService) -> None:
    """The browser sends its session cookie, so the Origin decides."""
    for origin in ({"Origin": "http://evil.example"}, {"Origin": ""}):
        for page, data in POSTS.items():
            assert owner.post(page, data=data, headers=origin).status_code == 403, page
    del owner.headers["Origin"]
    assert {owner.post(page, data=data).status_code for page, data in POSTS.items()} == {403}
    assert (server.project / "repertory.toml").read_text() == CONFIG


# History


def test_the_status_page_shows_the_history(client: TestClient, server: RunningService) -> None:
    """Charts for the chosen period have text alternatives, and a table has the same numbers."""
    for query in ("rotate keys", "zxqv wobble"):
        client.get("/v1/search", params={"q": query, "threshold": 0.9})
    server.service.sample()
    page = client.get("/status?hours=6").text
    assert "The last 6 hours" in page
    labels = re.findall(r'<svg [^>]*role="img" aria-label="([^"]*)"', page)
    assert [label.partition(":")[0] for label in labels] == [
        "Searches",
        "Time to answer",
        "Without results",
        "Lag of a save",
        "Pending items",
        "Failed jobs",
    ]
    assert client.get("/status?hours=6&part=true").text.strip() in page
    assert "The last hour" in client.get("/status?hours=7").text
    table = client.get("/status/history").text
    counts = re.findall(r'<td class="number">([\d,]+)</td>', table)
    assert int(counts[0]) >= 2
    assert "style=" not in page + table  # the policy of the pages forbids it


def test_recent_searches_can_be_limited_to_those_without_results(client: TestClient) -> None:
    """The filter removes searches that found something."""
    for query in ("rotate keys", "zxqv wobble"):
        client.get("/v1/search", params={"q": query, "threshold": 0.9})
    every, empty = (client.get(f"/status?empty={one}").text for one in ("false", "true"))
    shown = [
        {text for text in ("q=rotate+keys", "q=zxqv+wobble") if text in page}
        for page in (every, empty)
    ]
    assert shown == [{"q=rotate+keys", "q=zxqv+wobble"}, {"q=zxqv+wobble"}]


def test_metrics_and_the_history_count_the_same_searches(
    client: TestClient, server: RunningService
) -> None:
    """Cached searches and searches without results are included."""
    before = metrics(client)
    client.get("/v1/search", params={"q": "wobble zxqv", "threshold": 1})
    client.get("/v1/search", params={"q": "wobble zxqv", "threshold": 1})  # from the cache
    client.get("/v1/search", params={"q": "wobble zxqv", "threshold": 1, "format": "markdown"})
    after = metrics(client)
    for name in ("repertory_search_duration_seconds_count", "repertory_empty_searches_total"):
        assert after[name] - before[name] == 3, name
    counts = server.service.recent.counts()
    assert after["repertory_search_duration_seconds_count"] == counts.searches
    assert after["repertory_empty_searches_total"] == counts.empty


def test_the_application_takes_samples(server: RunningService) -> None:
    """It does so from its start, without a request."""
    with TestClient(create_app(server.service, server.settings)):
        until(lambda: server.service.history.latest is not None)


def test_the_page_starts_a_rebuild(client: TestClient, server: RunningService) -> None:
    """The index moves to a new collection."""
    before = server.parts.store.alias(server.parts.active)
    done = client.post("/status/rebuild")
    assert (done.status_code, done.headers["location"]) == (303, "/status")

    def is_rebuilt() -> bool:
        server.tick()
        return server.parts.store.alias(server.parts.active) != before

    until(is_rebuilt)


# Policies


def test_a_change_is_shown_before_it_is_written(owner: TestClient, server: RunningService) -> None:
    """Nothing is written before the confirmation; then only the shown lines change."""
    file = server.project / "repertory.toml"
    assert "key-rotation" in owner.get("/status/policies").text
    assert 'value="0.2"' in owner.get("/status/policies/edit?at=0").text
    shown = changed(owner, 0, item="key-rotation", boost="0.5", aliases="swap\nnew key\n")
    assert file.read_text() == CONFIG
    text = html.unescape(re.sub(r"<[^>]+>", "", shown.text))
    assert "-boost = 0.2 # for now\n+boost = 0.5 # for now\n+aliases" in text
    assert f'href="/view/{ITEM}"' in shown.text  # the item of the policy
    done = owner.post("/status/policies", data=fields_of(shown.text))
    assert (done.status_code, done.headers["location"]) == (303, "/status/policies")
    expected = CONFIG.replace("boost = 0.2 #", "boost = 0.5 #") + 'aliases = ["swap", "new key"]\n'
    assert file.read_text() == expected


def test_items_and_explanations_link_to_a_policy(owner: TestClient, server: RunningService) -> None:
    """The form has the item and the query, and edits the policy of the item if there is one."""
    link = f'href="/status/policies/edit?item={ITEM.replace("/", "%2F")}'
    assert f'{link}"' in owner.get(f"/view/{ITEM}").text
    explained = owner.get("/why", params={"q": "swap  it", "item": ITEM}).text
    assert f'{link}&amp;pin=swap++it"' in explained
    form = owner.get("/status/policies/edit", params={"item": ITEM, "pin": "swap  it"}).text
    assert re.search(r'<textarea id="pin"[^>]*>swap it</textarea>', form)
    assert "at" not in fields_of(form)

    file = server.project / "repertory.toml"
    file.write_text(CONFIG.replace('"key-rotation"', f'"{ITEM}"') + 'pin = ["swap it"]\n')
    form = owner.get("/status/policies/edit", params={"item": ITEM, "pin": "new key"}).text
    assert re.search(r'<textarea id="pin"[^>]*>swap it\nnew key</textarea>', form)
    assert 'name="at" value="0"' in form
    assert 'value="0.2"' in form
    reader = server.client(address="192.0.2.7")
    assert "policies/edit" not in reader.get(f"/view/{ITEM}", headers={"Accept": "text/html"}).text


def test_a_policy_is_added_and_removed(owner: TestClient, server: RunningService) -> None:
    """Removing the policy restores the original file."""
    file = server.project / "repertory.toml"
    shown = changed(owner, None, item="other", pin="read a file", when_not_to_use="for\ntests")
    assert "No indexed item" in shown.text
    owner.post("/status/policies", data=fields_of(shown.text))
    assert tomllib.loads(file.read_text())["policy"][1] == {
        "item": "other",
        "pin": ["read a file"],
        "when_not_to_use": "for tests",
    }
    shown = changed(owner, 1, action="remove")
    assert "Remove this policy?" in shown.text
    owner.post("/status/policies", data=fields_of(shown.text))
    assert file.read_text() == CONFIG


def test_a_file_that_has_changed_is_not_overwritten(
    owner: TestClient, server: RunningService
) -> None:
    """A form that is older than the file is refused, for the preview and for the confirmation."""
    file = server.project / "repertory.toml"
    shown = changed(owner, 0, item="key-rotation", boost="0.5")
    other = CONFIG.replace("key-rotation", "another-item")
    file.write_text(other)
    for page in ("/status/policies", "/status/policies/preview"):
        refused = owner.post(page, data=fields_of(shown.text))
        assert refused.status_code == 409
        assert "has changed since" in refused.text
        assert file.read_text() == other


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"item": ""}, "needs an `item`"),
        ({"item": "a", "boost": "7"}, "a number from -1 to 1"),
        ({"item": "a", "boost": "nan"}, "a number from -1 to 1"),
        ({"item": "a", "boost": "much"}, "a number from -1 to 1"),
        ({"item": "a", "pin": "\n".join(map(str, range(21)))}, "at most 20 phrases"),
        ({"item": "a", "aliases": "<script>"}, ""),
    ],
)
def test_an_invalid_policy_is_refused(
    owner: TestClient, server: RunningService, fields: dict[str, str], words: str
) -> None:
    """The preview and the confirmation refuse it."""
    shown = changed(owner, 0, **fields)
    assert "<script>" not in shown.text.replace('<script src="', "")
    if not words:
        return
    assert shown.status_code == 422
    assert words in html.unescape(shown.text)
    form = fields_of(owner.get("/status/policies/edit?at=0").text)
    assert owner.post("/status/policies", data=form | fields).status_code == 422
    assert (server.project / "repertory.toml").read_text() == CONFIG


@pytest.mark.parametrize("is_trusted", [True, False])
def test_a_change_of_a_policy_keeps_the_trust_of_the_file(
    owner: TestClient, server: RunningService, *, is_trusted: bool
) -> None:
    """A trusted file stays trusted, and another one does not become trusted."""
    file = server.project / "repertory.toml"
    # A boost this high takes full effect only with trust.
    file.write_text(CONFIG.replace("0.2", "0.6"))
    trust = server.parts.workspace.trust
    if is_trusted:
        trust.trust(file)
    shown = changed(owner, 0, item="key-rotation", boost="0.7")
    assert owner.post("/status/policies", data=fields_of(shown.text)).status_code == 303
    assert "0.7" in file.read_text()
    assert trust.is_trusted(file) == is_trusted


def test_an_invalid_configuration_is_named(client: TestClient, server: RunningService) -> None:
    """The page shows the error and its line instead of a form."""
    (server.project / "repertory.toml").write_text("[[policy]]\nitem = \n")
    response = client.get("/status/policies")
    assert response.status_code == 422
    assert "repertory.toml:2" in response.text


# Trust


def test_a_configuration_is_trusted_only_as_it_was_shown(
    owner: TestClient, server: RunningService
) -> None:
    """The page hides secrets; another file or a digest of other content is refused."""
    file = server.project / ".mcp.json"
    page = owner.get("/status/reviews").text
    assert "notes (runs no-such-program)" in page
    assert "hunter2" not in page
    digest, _ = re.findall(r'name="digest" value="([\w:]+)"', page)  # 2nd: repertory.toml
    assert digest == digest_to_trust(file, file.read_bytes())
    trust, form = server.parts.workspace.trust, {"file": str(file), "digest": digest}
    for wrong in ({**form, "file": "/etc/passwd"}, {**form, "digest": "0" * 64}):
        assert owner.post("/status/trust", data=wrong).status_code == 422
    assert not trust.is_trusted(file, digest_to_trust)
    assert owner.post("/status/trust", data=form).status_code == 303
    assert trust.is_trusted(file, digest_to_trust)
    assert str(file) not in owner.get("/status/reviews").text
    assert "policies for all items" in owner.get("/status/reviews").text


def test_only_the_owner_can_trust_a_configuration(
    client: TestClient, server: RunningService
) -> None:
    """Trust runs programs as the server's user, so other administrators see only the command."""
    page = client.get("/status/reviews").text
    file = server.project / ".mcp.json"
    assert f"repertory config trust {file}" in page
    assert "/status/trust" not in page
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    form = {"file": str(file), "digest": digest}
    assert client.post("/status/trust", data=form).status_code == 403
    assert not TrustStore(server.settings.data_dir / "trusted.json").is_trusted(file)


# Keys


def test_a_key_is_shown_once(owner: TestClient, server: RunningService, tmp_path: Path) -> None:
    """The key works until it is revoked, and no page shows it again."""
    made = owner.post("/status/keys", data={"name": "ben", "scope": "call", "groups": "a, b"})
    [token] = re.findall(r"rpt_[\w-]+", made.text)
    assert made.headers["cache-control"] == "no-store"
    assert token not in owner.get("/status/keys").text
    [key] = Keys(tmp_path / "keys.json").list()
    assert (key.name, key.scope, key.groups) == ("ben", Scope.CALL, ("a", "b"))
    client = server.client(keys=str(tmp_path / "keys.json"))
    client.headers.update(bearer(token))
    assert client.get("/v1/items").status_code == 200
    assert owner.post("/status/keys/revoke", data={"name": "ben"}).status_code == 303
    assert client.get("/v1/items").status_code == 401


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"name": "no way"}, "cannot be named"),
        ({"name": ""}, "cannot be named"),
        ({"name": "ben", "scope": "root"}, "read, call or admin"),
        ({"name": "anna"}, "already"),
        ({"name": "ben", "groups": "x" * 500}, "group"),
    ],
)
def test_an_invalid_key_is_refused(
    owner: TestClient, tmp_path: Path, fields: dict[str, str], words: str
) -> None:
    """The page gives the same reason as the command."""
    owner.post("/status/keys", data={"name": "anna"})
    refused = owner.post("/status/keys", data=fields)
    assert refused.status_code == 422
    assert words in html.unescape(refused.text)
    assert [key.name for key in Keys(tmp_path / "keys.json").list()] == ["anna"]
    assert owner.post("/status/keys/revoke", data={"name": "zoe"}).status_code == 422


# The audit log


def test_each_action_is_recorded(owner: TestClient, server: RunningService, tmp_path: Path) -> None:
    """The audit log names the object of each action, but no key and no value of a form."""
    settings = settings_of(server.project, audit_folder=str(tmp_path / "audit"))
    made = owner.post("/status/keys", data={"name": "ben"})
    owner.post("/status/keys/revoke", data={"name": "ben"})
    owner.post("/status/keys/revoke", data={"name": "ben"})
    shown = changed(owner, 0, item="key-rotation", aliases="s3cret")
    owner.post("/status/policies", data=fields_of(shown.text))
    file = str(server.project / ".mcp.json")
    digest = digest_to_trust(Path(file), Path(file).read_bytes())
    owner.post("/status/trust", data={"file": file, "digest": digest})
    owner.post("/status/rebuild")
    lines: list[dict[str, Any]] = lines_of(settings)[1:]  # after the sign-in
    assert [(one["action"], one.get("what", []), one["outcome"]) for one in lines] == [
        ("key-create", ["ben"], "ok"),
        ("key-revoke", ["ben"], "ok"),
        ("key-revoke", ["ben"], "refused"),
        ("policy", ["key-rotation"], "ok"),
        ("trust", [file], "ok"),
        ("rebuild", [], "ok"),
    ]
    assert {(one["caller"], one["face"]) for one in lines} == {("owner", "page")}
    [token] = re.findall(r"rpt_[\w-]+", made.text)
    text = json.dumps(lines)
    assert token not in text
    assert "s3cret" not in text


# A team


def test_a_process_of_a_team_says_what_it_cannot_do(
    owner: TestClient, server: RunningService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The configuration and its trust are on the machine of the watch service."""
    monkeypatch.setattr(type(server.parts), "is_team", True)
    for page in ("/status/policies", "/status/policies/edit"):
        assert "where <code>repertory watch</code> runs" in owner.get(page).text
    for page in ("/status/policies", "/status/policies/preview"):
        assert owner.post(page, data={"item": "a", "version": "b"}).status_code == 409
    assert "repertory config trust FILE" in owner.get("/status/reviews").text
    assert owner.post("/status/trust", data={"file": "a", "digest": "b"}).status_code == 403
    assert "so callers need none" in owner.get("/status/keys").text
    made = owner.post("/status/keys", data={"name": "anna", "scope": "admin"}).text
    assert "From now on every caller" in made
    assert (policy_pages.PATH, review_pages.TRUST) == ("/status/policies", "/status/trust")

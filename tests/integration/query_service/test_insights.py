"""The usage that a server records, who may see the report, and the digest."""

import asyncio
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import msgspec
import pytest
from starlette.testclient import TestClient

from repertory.compose import Parts
from repertory.keys import Keys, Scope
from repertory.usage.events import Search, Use
from repertory.usage.recorder import UsageRecorder
from repertory.usage.wire import Insights, UnansweredQueries
from repertory_query import background
from repertory_query.pages.insights import FIRST
from tests.support.builders import write_shop
from tests.support.http_stub import serving
from tests.support.listening import served
from tests.support.mcp_sessions import http_session
from tests.support.query_service import RunningService, bearer, problem, settings_of
from tests.support.waiting import until

SKILL = "project/key-rotation"


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    """A server that records queries as text."""
    project = tmp_path_factory.mktemp("plain") / "project"
    write_shop(project)
    with RunningService(project, insights_record="plain") as running:
        running.scan()
        yield running


class Used:
    """A server with keys, and the usage that it records of its callers."""

    def __init__(self, server: RunningService, folder: Path, monkeypatch: Any) -> None:  # noqa: ANN401 - of pytest
        self._recorders: list[UsageRecorder] = []
        make = server.parts.usage_recorder

        def made() -> UsageRecorder:
            self._recorders.append(make())
            return self._recorders[-1]

        monkeypatch.setattr(server.parts, "usage_recorder", made)
        keys = Keys(folder / "keys.json")
        self.tokens = {scope: keys.create(f"{scope}-key", scope) for scope in Scope}
        self.flags = {"keys": str(folder / "keys.json")}
        self.server = server
        self.client: TestClient = server.client(**self.flags)
        self._seen = 0
        self.new()

    def ask(self, method: str, target: str, scope: Scope = Scope.ADMIN, **more: Any) -> Any:  # noqa: ANN401 - a response
        """Send a request with a key, and return the response."""
        headers = bearer(self.tokens[scope])
        return self.client.request(method, target, headers=headers, **more)

    def new(self) -> list[tuple[str, str]]:
        """Queries and used items that were recorded since the last call, with their callers."""
        assert all(one.flush() for one in self._recorders)
        events = self.server.parts.usage.read()
        fresh, self._seen = events[self._seen :], len(events)
        return [
            (one.query if isinstance(one, Search) else one.item, one.caller)
            for one in fresh
            if isinstance(one, Search | Use)
        ]


@pytest.fixture
def used(plain: RunningService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Used:
    """A server that records queries as text, and its recorded usage."""
    return Used(plain, tmp_path, monkeypatch)


@pytest.mark.parametrize(
    ("method", "target", "more", "expected"),
    [
        ("GET", "/v1/search?q=rotate", {}, ["rotate"]),
        ("GET", "/search?q=rotate&format=markdown", {}, ["rotate"]),
        ("POST", "/v1/search", {"json": {"queries": [{"q": "one"}, {"q": "two"}]}}, ["one", "two"]),
        ("GET", "/?q=rotate", {}, ["rotate"]),
        ("GET", f"/v1/items/{SKILL}", {}, [SKILL]),
        ("GET", f"/view/{SKILL}", {}, [SKILL]),
        ("GET", f"/v1/skills/file?item={SKILL}&place=none.txt", {}, [SKILL]),
        ("GET", "/v1/items/no", {}, []),
        ("POST", "/v1/items", {"json": {"ids": [SKILL]}}, []),  # clients show hits with it
        ("GET", "/v1/items", {}, []),
        ("GET", f"/v1/explain?q=rotate&item={SKILL}", {}, []),
        ("GET", "/v1/insights", {}, []),
        ("GET", "/v1/insights/unanswered", {}, []),
        ("GET", "/healthz", {}, []),
    ],
)
def test_searches_and_read_items_are_recorded(
    used: Used, method: str, target: str, more: dict[str, Any], expected: list[str]
) -> None:
    """Each search and each item read alone is recorded once, with the name of the key."""
    used.ask(method, target, Scope.ADMIN, **more)
    assert sorted(used.new()) == [(one, "key:admin-key") for one in expected]
    used.ask(method, target, Scope.READ, **more)
    shown = [] if "insights" in target else expected
    assert sorted(used.new()) == [(one, "key:read-key") for one in shown]


def test_uses_over_mcp_are_recorded(used: Used) -> None:
    """Each use of a tool or a resource is recorded once."""

    async def ask(url: str) -> None:
        async with http_session(f"{url}/mcp", used.tokens[Scope.READ]) as client:
            for name, arguments, expected in (
                ("search", {"query": "rotate"}, ["rotate"]),
                ("get", {"id": SKILL}, [SKILL]),
                ("get", {"id": "no"}, []),
            ):
                await client.call_tool(name, arguments)
                assert used.new() == [(one, "key:read-key") for one in expected]
            resources = (await client.list_resources()).resources
            await client.read_resource(resources[0].uri)
            assert len(used.new()) == 1

    with served(used.server, **used.flags) as url:
        asyncio.run(ask(url))


def test_the_report_is_for_administrators(used: Used) -> None:
    """The API and the page refuse keys with other scopes."""
    for target in ("/v1/insights", "/v1/insights/unanswered", "/status/insights"):
        for scope in (Scope.READ, Scope.CALL):
            assert used.ask("GET", target, scope).status_code == 403
        assert used.ask("GET", target).status_code == 200
        assert used.client.get(target).status_code == 401


def test_searches_without_results_are_reported(used: Used) -> None:
    """The report names the item that the caller used next, and the nearest item."""
    for _ in range(2):
        used.ask("GET", "/search?q=zyxwv+quarks&threshold=0.99")
        used.ask("GET", f"/items/{SKILL}")
    used.ask("GET", "/search?q=<b>bosons</b>&threshold=0.99", Scope.READ)
    used.new()
    found = msgspec.json.decode(used.ask("GET", "/v1/insights").content, type=Insights)
    by_query = {one.queries[0]: one for one in found.unanswered}
    assert by_query["zyxwv quarks"].items == [SKILL]
    assert by_query["<b>bosons</b>"].items == []
    assert {one.items[0] for one in found.never_found} >= {"project/postmortem"}

    recent = used.server.service.recent.newest_first()
    answered = used.ask("GET", "/v1/insights/unanswered").content
    listed = msgspec.json.decode(answered, type=UnansweredQueries)
    known = {one.query: one for one in listed.queries}
    assert known["zyxwv quarks"].used == [SKILL]
    assert known["<b>bosons</b>"].nearest
    assert listed.total == len(listed.queries)
    assert used.new() == []  # the queries that find the nearest items are not recorded
    assert used.server.service.recent.newest_first() == recent

    page = used.ask("GET", "/status/insights").text
    assert "zyxwv quarks" in page
    assert "&lt;b&gt;bosons&lt;/b&gt;" in page
    assert "<b>bosons" not in page
    assert f'href="/view/{SKILL}"' in page
    begun = f"/status/policies/edit?item={SKILL.replace('/', '%2F')}&amp;aliases=zyxwv+quarks"
    assert f'<a href="{begun}">Add the alias</a>' in page


def test_a_long_list_is_collapsed(used: Used) -> None:
    """The first entries are shown, advice is given once, and the sections are linked."""
    for letter in "bcdfghjklm":
        used.ask("GET", f"/search?q=zx{3 * letter}&threshold=0.99")
    used.new()
    page = used.ask("GET", "/status/insights").text
    section = page.partition('<section id="unanswered">')[2].partition("</section>")[0]
    shown, _, opened = section.partition("<details>")
    assert shown.count('<th scope="row">') == FIRST
    assert opened.count('<th scope="row">') >= 2
    assert '<a href="#unanswered">Found nothing</a>' in page
    advice = page.partition('<section id="neverFound">')[2].partition("</section>")[0]
    assert advice.count("add an alias") == 1


def test_queries_are_hashed_by_default(
    server: RunningService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hashed queries are counted, but no page, answer or file has their text."""
    used = Used(server, tmp_path, monkeypatch)
    for _ in range(2):
        used.ask("GET", "/search?q=swordfish&threshold=0.99")
        used.ask("GET", f"/items/{SKILL}")
    used.new()
    answered, page = used.ask("GET", "/v1/insights").text, used.ask("GET", "/status/insights").text
    assert json.loads(answered)["withoutResults"]
    assert json.loads(answered)["recording"] == "hashed"
    assert "swordfish" not in answered + page
    assert "Add an alias: callers used" in page
    assert "Add the alias</a>" not in page
    assert b"swordfish" not in server.parts.usage.path.read_bytes()
    assert json.loads(used.ask("GET", "/v1/insights/unanswered").text) == {
        "queries": [],
        "total": 0,
    }


def test_recording_can_be_switched_off(tmp_path: Path) -> None:
    """No file is written then."""
    parts = Parts(settings_of(tmp_path / "project", insights_record="off"), tmp_path / "project")
    usage = parts.usage_recorder()
    usage.used("key:ci", ["a"])
    assert usage.flush()
    assert not (tmp_path / "data" / "usage").exists()


def test_an_unusable_store_fails_no_search(
    server: RunningService, client: TestClient, tmp_path: Path
) -> None:
    """The report is an error that says what to do."""
    folder = server.parts.usage.path.parent
    aside = folder.rename(tmp_path / "aside") if folder.exists() else None
    folder.write_text("a file where the folder should be")
    try:
        assert client.get("/search?q=rotate").status_code == 200
        refused = client.get("/v1/insights")
    finally:
        folder.unlink()
        if aside:
            aside.rename(folder)
    assert "choose another --data-dir" in problem(refused, 503)


def test_a_digest_is_sent_while_the_server_runs(
    server: RunningService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is sent once to the configured webhook, without the text of hashed queries."""
    monkeypatch.setattr(background, "FIRST_DIGEST_S", 0.05)
    monkeypatch.setattr(background, "DIGEST_INTERVAL_S", 0.05)
    sent: list[str] = []
    arrived = threading.Event()

    def take(request: BaseHTTPRequestHandler) -> None:
        sent.append(request.rfile.read(int(request.headers["Content-Length"])).decode())
        request.send_response(200)
        request.send_header("Content-Length", "0")
        request.end_headers()
        arrived.set()

    with serving(take) as webhook, server.client(insights_webhook=webhook) as client:
        assert client.get("/search?q=swordfish&threshold=0.99").status_code == 200
        until(arrived.is_set)
    assert len(sent) == 1
    assert " found nothing" in json.loads(sent[0])["text"]
    assert "swordfish" not in sent[0]

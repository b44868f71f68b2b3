"""The audit log of a server: one line for each action, without secrets."""

import asyncio
import re
import stat
from pathlib import Path
from typing import Any, NoReturn

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from starlette.testclient import TestClient

from repertory.audit import Audit
from repertory.functions.table import FUNCTIONS, PORTABLE
from repertory.keys import Keys, Scope
from repertory.settings import Settings
from repertory_query.backend.service import Service
from repertory_query.records import auditing
from tests.support.audits import lines_of
from tests.support.listening import served
from tests.support.mcp_sessions import http_session
from tests.support.query_service import RunningService, bearer, rpc, settings_of, use_tool

SKILL = "project/key-rotation"
SECRET = "hunter2-swordfish"
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


class Recorded:
    """A server with keys, and the audit lines that its actions add."""

    def __init__(self, server: RunningService, folder: Path, **flags: object) -> None:
        keys = Keys(folder / "keys.json")
        self.tokens = {scope: keys.create(f"{scope}-key", scope) for scope in Scope}
        self.flags = {"keys": str(folder / "keys.json"), "audit_folder": str(folder / "audit")}
        self.flags |= flags  # type: ignore[arg-type]  # of any type
        self.server = server
        self.settings: Settings = settings_of(server.project, **self.flags)
        self.client: TestClient = server.client(**self.flags)
        self._seen = 0

    def ask(self, method: str, target: str, scope: Scope = Scope.ADMIN, **more: Any) -> int:  # noqa: ANN401 - what httpx takes
        """Send a request with a key, and return the status."""
        headers = bearer(self.tokens[scope])
        return self.client.request(method, target, headers=headers, **more).status_code

    def new(self) -> list[dict[str, Any]]:
        """The audit lines since the last call."""
        lines = lines_of(self.settings)
        seen, self._seen = self._seen, len(lines)
        return lines[seen:]

    def one(self) -> dict[str, Any]:
        """The only new audit line."""
        [line] = self.new()
        return line

    def text(self) -> str:
        """The raw text of all files of the audit log."""
        files = Path(str(self.flags["audit_folder"])).glob("audit.jsonl*")
        return "".join(file.read_text() for file in files)


@pytest.fixture
def recorded(server: RunningService, tmp_path: Path) -> Recorded:
    """A server that writes its audit log to a folder of its own."""
    return Recorded(server, tmp_path)


ACTIONS = [
    ("GET", "/v1/search?q=rotate", {}, "search", []),
    ("GET", "/search?q=rotate&format=markdown", {}, "search", []),
    ("GET", "/search?q=rotate&format=openai", {}, "search", []),
    ("POST", "/v1/search", {"json": {"queries": [{"q": "a"}, {"q": "b"}]}}, "search", []),
    ("GET", f"/v1/explain?q=rotate&item={SKILL}", {}, "explain", [SKILL]),
    ("GET", "/v1/items", {}, "list", []),
    ("POST", "/v1/items", {"json": {"ids": [SKILL, "no"]}}, "read", [SKILL, "no"]),
    ("GET", f"/v1/items/{SKILL}", {}, "read", [SKILL]),
    ("POST", "/v1/skills/files", {"json": {"ids": [SKILL]}}, "read", [SKILL]),
    ("GET", "/v1/runtime/tools.ts", {}, "read", []),
    ("GET", f"/v1/reviews/history?item={SKILL}", {}, "read", [SKILL]),
    ("POST", "/v1/reviews/approve", {"json": {"items": ["no@5f1d7a84c2e9"]}}, "approve", []),
    ("POST", "/v1/queue/retry", {"json": {"ids": None}}, "retry", []),
    ("POST", "/v1/functions/search", {"json": {"searchQuery": "x"}}, "search", []),
    ("POST", "/functions/Vector.SearchSkills", {"json": {"query": "x"}}, "search", []),
    ("GET", "/v1/insights", {}, "insights", []),
    ("GET", "/v1/insights/unanswered", {}, "insights", []),
    ("GET", "/?q=rotate", {}, "search", []),
    ("GET", "/catalogue", {}, "list", []),
    ("GET", f"/why?q=rotate&item={SKILL}", {}, "explain", [SKILL]),
    ("GET", f"/view/{SKILL}", {}, "read", [SKILL]),
    ("GET", f"/try/{SKILL}", {}, "read", [SKILL]),
]


@pytest.mark.parametrize(("method", "target", "more", "action", "what"), ACTIONS)
def test_each_action_writes_one_line(
    recorded: Recorded,
    method: str,
    target: str,
    more: dict[str, Any],
    action: str,
    what: list[str],
) -> None:
    """The line has the caller, items, outcome, project, face, time and duration."""
    status = recorded.ask(method, target, **more)
    line = recorded.one()
    assert status == 200
    assert (line["action"], line["caller"], line.get("what", [])) == (
        action,
        "key:admin-key",
        what,
    )
    assert (line["outcome"], line["status"]) == ("ok", 200)
    assert (line["project"], line["face"]) == (
        str(recorded.server.project),
        "page" if target.startswith(("/?", "/catalogue", "/why", "/view", "/try")) else "http",
    )
    assert TIME.fullmatch(line["at"])
    assert line["ms"] >= 0
    assert not {"text", "more", "lost"} & line.keys()


@pytest.mark.parametrize(
    "target",
    [
        "/healthz",
        "/readyz",
        "/stats",
        "/metrics",
        "/queue",
        "/status",
        "/",
        "/connect",
        "/login",
        "/no",
    ],
)
def test_requests_that_show_no_item_are_not_recorded(recorded: Recorded, target: str) -> None:
    """Probes, statistics and pages without items write no line."""
    recorded.ask("GET", target)
    assert recorded.new() == []


def test_refused_requests_are_recorded(recorded: Recorded) -> None:
    """The line has the status, even if the request reached no handler."""
    recorded.ask("POST", "/tools/notes__add", Scope.READ, json={})
    line = recorded.one()
    assert (line["action"], line["what"], line["caller"]) == (
        "call",
        ["notes__add"],
        "key:read-key",
    )
    assert (line["outcome"], line["status"]) == ("refused", 403)
    recorded.ask("GET", "/v1/items/no")
    assert recorded.one()["status"] == 404
    recorded.ask("GET", f"/v1/skills/file?item={SKILL}&place=no.md")
    line = recorded.one()
    assert (line["what"], line["status"]) == ([SKILL], 404)
    recorded.client.get("/v1/items/some", headers=bearer(SECRET))
    line = recorded.one()
    assert (line["action"], line["what"], line["caller"], line["status"]) == (
        "read",
        ["some"],
        "address:127.0.0.1",
        401,
    )
    recorded.client.post("/mcp", json={})
    line = recorded.one()
    assert (line["action"], line["outcome"], line["status"]) == ("mcp", "refused", 401)


def test_sign_ins_of_browsers_are_recorded(recorded: Recorded) -> None:
    """Valid and invalid keys and sign-outs are recorded, but never the key itself."""
    client = recorded.client
    origin = {"Origin": "http://localhost"}
    for key, outcome in ((SECRET, "refused"), (recorded.tokens[Scope.READ], "ok")):
        client.post("/login", data={"key": key}, headers=origin, follow_redirects=False)
        line = recorded.one()
        assert (line["action"], line["outcome"], line["face"]) == ("sign-in", outcome, "page")
        client.get(f"/login?token={key}", follow_redirects=False)
        assert recorded.one()["outcome"] == "refused"
    client.post("/logout", headers=origin, follow_redirects=False)
    assert recorded.one()["action"] == "sign-out"
    assert SECRET not in recorded.text()
    assert recorded.tokens[Scope.READ] not in recorded.text()


def test_an_unexpected_failure_over_mcp_is_recorded(
    recorded: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A failing tool or list over MCP is recorded with the same status as over HTTP."""

    def broken(*_: object, **__: object) -> NoReturn:
        raise RuntimeError

    monkeypatch.setattr(Service, "search", broken)
    monkeypatch.setattr(Service, "page", broken)
    assert recorded.ask("GET", "/v1/items") == 500
    assert recorded.one()["status"] == 500
    recorded.client.headers.update(bearer(recorded.tokens[Scope.ADMIN]))
    with recorded.client as client:
        use_tool(client, "search", query="rotate")
        assert recorded.one()["status"] == 500
        rpc(client, "resources/list")
        assert recorded.one()["status"] == 500


def test_uses_of_mcp_are_recorded(recorded: Recorded) -> None:
    """Each use of a tool, list or resource writes one line, however many calls it causes."""
    uses: list[tuple[str, dict[str, Any], str, list[str], str]] = [
        ("search", {"query": "rotate"}, "search", [], "ok"),
        ("get", {"id": SKILL}, "read", [SKILL], "ok"),
        ("get", {"id": "no/such"}, "read", ["no/such"], "refused"),
        (
            "call",
            {"tool": "notes__add", "arguments": {"a": SECRET}},
            "call",
            ["notes__add"],
            "refused",
        ),
        ("no_such_tool", {}, "mcp", [], "refused"),
    ]

    async def ask(url: str) -> None:
        async with http_session(f"{url}/mcp", recorded.tokens[Scope.READ]) as client:
            await client.list_tools()
            for name, arguments, action, what, outcome in uses:
                recorded.new()
                try:
                    await client.call_tool(name, arguments)
                except Exception as error:
                    assert name == "no_such_tool", error  # noqa: PT017 - only that one fails
                line = recorded.one()
                assert (line["action"], line.get("what", []), line["outcome"]) == (
                    action,
                    what,
                    outcome,
                )
                assert (line["face"], line["caller"]) == ("mcp", "key:read-key")
            resources = (await client.list_resources()).resources
            assert recorded.one()["action"] == "list"
            await client.read_resource(resources[0].uri)
            line = recorded.one()
            assert (line["action"], len(line["what"])) == ("read", 1)

    with served(recorded.server, **recorded.flags) as url:
        asyncio.run(ask(url))
    assert SECRET not in recorded.text()


@settings(
    max_examples=40,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(st.text(min_size=3, max_size=40), st.text("abcxyz\n\r\x1b\u2028\x85\x00", max_size=20))
def test_the_audit_log_has_no_secrets_and_no_forged_lines(
    recorded: Recorded, salt: str, controls: str
) -> None:
    """Texts, arguments and keys are left out; no caller can add a line or a control character."""
    secret = f"S3CRET{salt.encode().hex()}"
    forged = f'{controls}{{"action": "forged"}}\n{controls}'
    recorded.ask("GET", "/search", params={"q": secret})
    recorded.ask("POST", "/search", json={"queries": [{"q": secret}]})
    recorded.ask("POST", "/tools/any__tool", json={"argument": secret})
    recorded.ask("POST", "/functions/search", json={"searchQuery": secret})
    recorded.ask("POST", "/items", json={"ids": [forged]})
    recorded.ask("GET", f"/items/{SKILL}?token={secret}")
    recorded.client.post("/login", data={"key": secret}, headers={"Origin": "http://localhost"})
    recorded.client.get("/items", headers=bearer(secret))
    recorded.client.get("/items", headers={"Cookie": f"repertory_key={secret}"})
    lines = recorded.new()
    assert len(lines) in (8, 9)  # the limit on refusals may drop one
    text = recorded.text()
    assert secret not in text
    assert not [token for token in recorded.tokens.values() if token in text]
    assert text.isascii()
    assert all(letter.isprintable() or letter == "\n" for letter in text)
    assert "forged" not in {line["action"] for line in lines}


def test_texts_are_recorded_if_configured(server: RunningService, tmp_path: Path) -> None:
    """Queries and arguments are then recorded, but still no key."""
    recorded = Recorded(server, tmp_path, audit_texts=True)
    recorded.ask("GET", "/search?q=rotate+keys")
    assert "rotate keys" in recorded.one()["text"]
    recorded.ask("POST", "/v1/tools/any__tool", json={"city": "Rome"})
    assert "Rome" in recorded.one()["text"]
    recorded.client.post("/login", data={"key": SECRET}, headers={"Origin": "http://localhost"})
    assert "text" not in recorded.one()


def test_the_audit_log_can_be_switched_off(server: RunningService, tmp_path: Path) -> None:
    """No file is written then."""
    recorded = Recorded(server, tmp_path, audit_off=True)
    assert recorded.ask("GET", "/search?q=rotate") == 200
    assert recorded.new() == []
    assert not (tmp_path / "audit").exists()


def test_only_the_owner_can_read_the_audit_log(recorded: Recorded) -> None:
    """The modes of its folder and files exclude all other accounts."""
    recorded.ask("GET", "/search?q=rotate")
    recorded.one()
    folder = Path(str(recorded.flags["audit_folder"]))
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(file.stat().st_mode) for file in folder.iterdir()} == {0o600}


def test_callers_without_a_key_cannot_flood_the_audit_log(
    recorded: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lines of refused callers are limited; other lines are not."""
    monkeypatch.setattr(auditing, "MAX_REFUSALS", 3)
    for _ in range(10):
        assert recorded.client.get("/items").status_code == 401
    recorded.ask("GET", "/items")
    assert [line["status"] for line in recorded.new()] in ([401] * 3 + [200], [401] * 6 + [200])


def test_an_unwritable_audit_folder_fails_no_request(
    server: RunningService, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The log warns once; the first line after the recovery has the number of lost lines."""
    recorded = Recorded(server, tmp_path)
    folder = tmp_path / "audit"
    folder.write_text("a file where the folder should be")
    file = Audit(recorded.settings, server.project).file
    for _ in range(3):
        assert recorded.ask("GET", "/search?q=rotate") == 200
        assert not file.flush()
    warnings = [one for one in caplog.records if one.getMessage() == "audit_not_written"]
    assert len(warnings) == 1
    assert file.check()
    folder.unlink()
    assert not file.check()
    for _ in range(2):
        recorded.ask("GET", "/search?q=rotate")
        assert file.flush()
    assert [line.get("lost", 0) for line in recorded.new()] == [3, 0]


def test_each_function_is_recorded_by_its_action(recorded: Recorded) -> None:
    """The name of the function does not matter."""
    for name, function in (FUNCTIONS | PORTABLE).items():
        assert recorded.ask("POST", f"/functions/{name}", json={}) == 422
        assert recorded.one()["action"] == function.action
    assert FUNCTIONS["Vector.VectorUpdate"].action == "update"


def test_every_route_that_changes_something_is_recorded(recorded: Recorded) -> None:
    """Of the POST routes, only the preview of a policy has no action: it changes nothing."""
    app: Any = recorded.client.app
    routes = [route for route in app.routes if "POST" in (getattr(route, "methods", None) or ())]
    assert len(routes) > 40
    silent = {route.path for route in routes if getattr(route, "action", None) is None}
    assert silent == {"/status/policies/preview"}


@pytest.fixture(autouse=True)
def no_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Refusals are not limited unless a test sets a limit."""
    monkeypatch.setattr(auditing, "MAX_REFUSALS", 10_000)

"""No face shows an absolute path of the server to a caller without the scope admin."""

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.testclient import TestClient

from repertory.catalogue.item import Item, Kind
from repertory.coordination.failures import Failure
from repertory.errors import StoreError
from repertory.keys import Keys, Scope
from repertory_query.visible import _placed, without_paths
from tests.support.command_line import TOOLS
from tests.support.query_service import RunningService, looked_at, skill

SKILL = "outside/key-rotation"
MCP = {"Accept": "application/json, text/event-stream"}


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    """A server of sources outside of its folder, with a problem, a failed job and a busy worker."""
    top = tmp_path_factory.mktemp("private")
    project, elsewhere = top / "project", top / "elsewhere"
    skill(elsewhere, "key-rotation", "Rotate API keys without downtime")
    broken = elsewhere / "skills" / "broken" / "SKILL.md"
    broken.parent.mkdir()
    broken.write_text("---\nname: [\n---\n")
    (elsewhere / "notes").mkdir()
    (elsewhere / "notes" / "shop.md").write_text("# Shop\n\nThe web shop and its checkout.\n")
    (elsewhere / "files.json").write_text(json.dumps(TOOLS))
    project.mkdir()
    (project / "repertory.toml").write_text(
        f"""
        [[sources]]
        type = "skills"
        name = "outside"
        path = "{elsewhere}/skills"
        [[sources]]
        type = "documents"
        name = "papers"
        path = "{elsewhere}"
        [[sources]]
        type = "tools"
        name = "files"
        path = "{elsewhere}/files.json"
        [[sources]]
        type = "skills"
        name = "gone"
        path = "{elsewhere}/gone"
        """
    )
    with looked_at(project, tmp_path_factory.mktemp("home")) as running:
        coordination = running.parts.coordination
        coordination.failures.add(
            Failure(
                id="f1",
                collection="c",
                items={"a": ""},
                error=f"It cannot be read from {elsewhere}/skills/a.",
                at=time.time(),
                attempts=3,
                job={},
            )
        )
        yield running


@pytest.fixture
def private(running: RunningService) -> str:
    """The folder whose name no caller may learn."""
    return str(running.project.parent)


@pytest.fixture(params=["another machine", "a key to read"])
def reader(
    running: RunningService, request: pytest.FixtureRequest, tmp_path: Path
) -> Iterator[TestClient]:
    """A caller who may only read."""
    if request.param == "another machine":
        with running.client(address="192.0.2.7") as client:
            yield client
        return
    keys = Keys(tmp_path / "keys.json")
    token = keys.create("reader", Scope.READ)
    with running.client(address="192.0.2.7", keys=str(tmp_path / "keys.json")) as client:
        client.headers["Authorization"] = f"Bearer {token}"
        yield client


def requests(client: TestClient) -> dict[str, str]:
    """What each route sends to a client."""
    page = {"Accept": "text/html"}
    sent = {
        path: client.get(path).text
        for path in (
            "/search?q=rotate+keys&threshold=0&limit=100",
            *(f"/search?q=rotate&threshold=0&format={one}" for one in ("markdown", "mcp", "types")),
            *(f"/search?q=rotate&threshold=0&format={one}" for one in ("anthropic", "openai")),
            f"/explain?q=rotate&item={SKILL}",
            "/items",
            f"/items/{SKILL}",
            "/items/nobody",
            "/stats",
            "/queue",
            "/readyz",
            "/metrics",
            "/runtime/tools.ts",
        )
    }
    sent |= {
        f"page {path}": client.get(path, headers=page).text
        for path in ("/", "/?q=rotate&threshold=0", "/?kind=skill", f"/view/{SKILL}", "/status")
    }
    sent["POST /items"] = client.post("/items", json={"ids": [SKILL]}).text
    sent["POST /search"] = client.post("/search", json={"queries": [{"q": "rotate"}]}).text
    calls: dict[str, object] = {
        "search": {"query": "rotate keys", "threshold": 0},
        "get": {"id": SKILL},
    }
    for name, arguments in calls.items():
        params = {"name": name, "arguments": arguments}
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        sent[f"MCP {name}"] = client.post("/mcp", json=message, headers=MCP).text
    return sent


def test_a_reader_sees_no_absolute_path(reader: TestClient, private: str) -> None:
    """On no route, in no format, in no message."""
    sent = requests(reader)
    assert not [route for route, text in sent.items() if private in text]
    assert "key-rotation/SKILL.md" in sent["/items"]
    assert "key-rotation/SKILL.md" in sent["MCP get"]
    assert "notes/shop.md" in sent["/items"]
    stats = json.loads(sent["/stats"])
    assert {one["location"] for one in stats["sources"]} >= {"skills", "files.json"}
    assert json.loads(sent["/queue"])["failed"][0]["error"] == "It cannot be read from a."


def test_the_local_user_sees_where_things_are(running: RunningService, private: str) -> None:
    """So does a key to administer; what was cached for one caller is not sent to another."""
    with running.client() as client:
        sent = requests(client)
    for route in ("/items", f"/items/{SKILL}", "/stats", "/queue", "page /status", "MCP search"):
        assert private in sent[route], route
    assert private in sent["/search?q=rotate+keys&threshold=0&limit=100"]


def test_an_error_shows_a_reader_no_path(
    running: RunningService, reader: TestClient, private: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Over HTTP, as a page and over MCP."""

    def failing(*_: object) -> None:
        raise StoreError(f"{private}/store cannot be read.")

    monkeypatch.setattr(type(running.service), "item", failing)
    message = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": "get", "arguments": {"id": "x"}},
    }
    with running.client() as local:
        for client, shown in ((reader, False), (local, True)):
            told = [
                client.get("/items/x").text,
                client.get("/view/x", headers={"Accept": "text/html"}).text,
                client.post("/mcp", json=message, headers=MCP).text,
            ]
            assert [private in text for text in told] == [shown] * 3
            assert all("cannot be read" in text for text in told)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("The model at /srv/models/bge is away.", "The model at bge is away."),
        ("/home/me/a.md:3: it is broken", "a.md:3: it is broken"),
        ("It is “/srv/a b/c”, or '/srv/x/'.", "It is “a b/c”, or 'x'."),
        (
            "See https://example.org/a/b and /openapi.json.",
            "See https://example.org/a/b and /openapi.json.",
        ),
        ("relative/path/of.md and either/or", "relative/path/of.md and either/or"),
        (
            "http://[::1]/a/b and http://localhost:7700/a/b",
            "http://[::1]/a/b and http://localhost:7700/a/b",
        ),
        ("at file:///srv/a/b, key=/srv/a/b", "at b, key=b"),
        ("", ""),
    ],
)
def test_a_text_keeps_the_last_parts_of_paths(text: str, shown: str) -> None:
    """URLs, relative paths and addresses of this server stay."""
    assert without_paths(text) == shown


def test_a_home_whose_name_has_spaces_is_cut_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is known, where other folders end at a space."""
    monkeypatch.setenv("HOME", "/Users/Jo Doe")
    assert without_paths("/Users/Jo Doe/skills/a.md: it is broken") == "a.md: it is broken"


@given(st.lists(st.text("abé_-", min_size=1, max_size=4), min_size=2, max_size=6))
def test_an_items_path_is_a_part_of_it(parts: list[str]) -> None:
    """It is relative, and ends as the whole path does, whatever the id is."""
    path = "/" + "/".join(parts)
    for item_id in ("x", "source/" + parts[-1], "source/" + "/".join(parts[-2:]), "s/" + parts[0]):
        item = Item(id=item_id, kind=Kind.DOCUMENT, name="x", source="source", path=path)
        shown = _placed(item).path
        assert not shown.startswith("/")
        assert path.endswith(shown)

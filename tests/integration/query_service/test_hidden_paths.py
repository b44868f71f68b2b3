"""Callers without the scope admin see no absolute path of the server."""

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
from repertory.errors import ModelError, StoreError
from repertory.keys import Keys, Scope
from repertory_query.backend.caller_view import _with_short_path, without_paths
from repertory_query.backend.served_index import ServedIndex
from tests.support.builders import write, write_skill
from tests.support.command_line import TOOLS
from tests.support.query_service import RunningService, bearer, indexed_server, rpc, use_tool

SKILL = "outside/key-rotation"


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    """A server with sources outside its folder, a broken item and a failed job."""
    top = tmp_path_factory.mktemp("the private") / "Jo Doe, team (2)"
    project, elsewhere = top / "project", top / "elsewhere"
    write_skill(elsewhere, "key-rotation", "Rotate API keys without downtime")
    broken = elsewhere / "skills" / "broken" / "SKILL.md"
    write(broken, "---\nname: [\n---\n")
    (elsewhere / "notes").mkdir()
    (elsewhere / "notes" / "shop.md").write_text("# Shop\n\nThe web shop and its checkout.\n")
    (elsewhere / "files.json").write_text(json.dumps(TOOLS))
    project.mkdir(parents=True)
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
    home, named = tmp_path_factory.mktemp("home"), project / "repertory.toml"
    with indexed_server(project, home, config=named) as running:
        coordination = running.parts.coordination
        coordination.failures.add(
            Failure(
                id="f1",
                collection="c",
                items={"a": ""},
                error=f"It cannot be read from {elsewhere}/skills/a.",
                at=time.time(),
                attempts=3,
            )
        )
        yield running


@pytest.fixture
def private(running: RunningService) -> str:
    """The folder whose path must stay hidden."""
    return str(running.project.parent)


@pytest.fixture(params=["another machine", "a key to read"])
def reader(
    running: RunningService, request: pytest.FixtureRequest, tmp_path: Path
) -> Iterator[TestClient]:
    """A caller with the scope read."""
    if request.param == "another machine":
        with running.client(address="192.0.2.7") as client:
            yield client
        return
    keys = Keys(tmp_path / "keys.json")
    token = keys.create("reader", Scope.READ)
    with running.client(address="192.0.2.7", keys=str(tmp_path / "keys.json")) as client:
        client.headers.update(bearer(token))
        yield client


def test_callers_do_not_see_the_output_of_an_mcp_server() -> None:
    """The output may contain a secret in a form that is not recognised."""
    text = "The MCP server lab ended{}."
    for said in ("; it wrote: key c2VjcmV0. Bye", "; it wrote text that is not MCP: c2Vj"):
        assert without_paths(text.format(said)) == text.format("")


def requests(client: TestClient) -> dict[str, str]:
    """The answers of all routes that are tested, by route."""
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
            "/items/unknown",
            "/openapi.json",
            "/stats",
            "/queue",
            "/readyz",
            "/metrics",
            "/runtime/tools.ts",
        )
    }
    sent |= {
        f"page {path}": client.get(path, headers=page).text
        for path in (
            "/",
            "/?q=rotate&threshold=0",
            "/?kind=skill",
            "/catalogue",
            "/connect",
            f"/why?q=rotate&item={SKILL}",
            f"/view/{SKILL}",
            "/status",
        )
    }
    sent["POST /items"] = client.post("/items", json={"ids": [SKILL]}).text
    sent["POST /search"] = client.post("/search", json={"queries": [{"q": "rotate"}]}).text
    functions: dict[str, object] = {
        "search": {"searchQuery": "rotate"},
        "skill.discovery.search": {"query": "rotate", "limit": 3},
        "Vector.SearchSkills": {"query": "rotate"},
    }
    for name, arguments in functions.items():
        sent[f"function {name}"] = client.post(f"/functions/{name}", json=arguments).text
    sent["MCP search"] = use_tool(client, "search", query="rotate keys", threshold=0).text
    sent["MCP get"] = use_tool(client, "get", id=SKILL).text
    sent["MCP project"] = use_tool(client, "search", "/mcp/project", searchQuery="rotate").text
    for method in ("tools/list", "resources/list"):
        sent[f"MCP {method}"] = rpc(client, method).text
    return sent


def test_a_reader_sees_no_absolute_path(reader: TestClient, private: str) -> None:
    """Paths in all routes, formats and messages are relative."""
    sent = requests(reader)
    assert not [route for route, text in sent.items() if private in text]
    assert "key-rotation/SKILL.md" in sent["/items"]
    assert "key-rotation/SKILL.md" in sent["MCP get"]
    assert "notes/shop.md" in sent["/items"]
    stats = json.loads(sent["/stats"])
    assert {one["location"] for one in stats["sources"]} >= {"skills", "files.json"}
    assert json.loads(sent["/queue"])["failed"][0]["error"] == "It cannot be read from a."


def test_the_local_user_sees_absolute_paths(running: RunningService, private: str) -> None:
    """An answer that was cached for a reader is not sent to the local user."""
    with running.client() as client:
        sent = requests(client)
    for route in ("/items", f"/items/{SKILL}", "/stats", "/queue", "page /status", "MCP search"):
        assert private in sent[route], route
    assert private in sent["/search?q=rotate+keys&threshold=0&limit=100"]


def test_an_error_shows_a_reader_no_path(
    running: RunningService, reader: TestClient, private: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Errors over HTTP, on pages and over MCP show the path only to the local user."""

    def failing(*_: object) -> None:
        raise StoreError(f"{private}/store cannot be read.")

    monkeypatch.setattr(ServedIndex, "item", failing)
    with running.client() as local:
        for client, shown in ((reader, False), (local, True)):
            sent = [
                client.get("/items/x").text,
                client.get("/view/x", headers={"Accept": "text/html"}).text,
                use_tool(client, "get", id="x").text,
            ]
            assert [private in text for text in sent] == [shown] * 3
            assert all("cannot be read" in text for text in sent)


def test_a_failing_function_shows_a_reader_no_path(
    reader: TestClient, private: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error names only the last part of the path."""

    def failing(*_: object) -> None:
        raise ModelError(f"The model folder {private}/model is missing.")

    for name in (
        "similar_skills",
        "search_project",
        "explain",
        "page",
        "contents",
        "items",
        "stats",
    ):
        monkeypatch.setattr(ServedIndex, name, failing)
    monkeypatch.setattr(ServedIndex, "missing", {"model": f"{private}/x is missing."})
    sent = requests(reader)
    assert not [route for route, text in sent.items() if private in text]
    for route in ("function search", "function Vector.SearchSkills", "MCP project", "/items"):
        assert "The model folder model is missing." in sent[route], route
    assert "x is missing." in sent["/readyz"]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("The model at /srv/models/bge is away.", "The model at bge is away."),
        ("/home/me/a.md:3: it is broken", "a.md:3: it is broken"),
        ("It is “/srv/a b/c”, or '/srv/x/'.", "It is “c”, or 'x/'."),
        ("/data is full, and /My Data/x too", "data is full, and x too"),
        ("/srv/Jo's (old) files, 2/x or '/srv/y'", "x or 'y'"),
        ("a (/srv/a/b, /srv/a/c and /srv/d)", "a (b, c and d)"),
        ("/Users/Jo Doe/skills/a.md: it is broken", "a.md: it is broken"),
        ("See https://example.org/a/b and c/d.", "See https://example.org/a/b and c/d."),
        ("relative/path/of.md and either/or", "relative/path/of.md and either/or"),
        (
            "http://[::1]/a/b and http://localhost:7700/a/b",
            "http://[::1]/a/b and http://localhost:7700/a/b",
        ),
        ("at file:///srv/a/b, key=/srv/a/b", "at b, key=b"),
        ("", ""),
    ],
)
def test_a_text_keeps_the_last_part_of_each_path(text: str, shown: str) -> None:
    """URLs and relative paths are unchanged."""
    assert without_paths(text) == shown


NAME = st.text(st.characters(exclude_characters="/\0\n"), min_size=1, max_size=8)
MESSAGES = ("{} cannot be read.", "Cannot read {}: it is no file.", "The file “{}”, a list.")


@given(st.lists(NAME, max_size=4), st.sampled_from(MESSAGES))
def test_no_text_keeps_an_absolute_path(names: list[str], message: str) -> None:
    """Folder names may contain any characters except slashes and line ends."""
    path = "/".join(("/srv", *names))
    assert "/srv" not in without_paths(message.format(path))


@given(st.lists(st.from_regex(r"\w([\w .#&(),-]*\w)?", fullmatch=True), min_size=1, max_size=4))
def test_no_text_keeps_the_folders_of_a_path(names: list[str]) -> None:
    """Names may contain spaces and punctuation, except punctuation that ends a path."""
    assert (
        without_paths(f"Cannot read /{'/'.join(names)}: why.") == f"Cannot read {names[-1]}: why."
    )


@given(st.lists(st.text("abé_-", min_size=1, max_size=4), min_size=2, max_size=6))
def test_an_items_path_is_relative(parts: list[str]) -> None:
    """For any id, the shown path is an ending of the absolute path."""
    path = "/" + "/".join(parts)
    for item_id in ("x", "source/" + parts[-1], "source/" + "/".join(parts[-2:]), "s/" + parts[0]):
        item = Item(id=item_id, kind=Kind.DOCUMENT, name="x", source="source", path=path)
        shown = _with_short_path(item).path
        assert not shown.startswith("/")
        assert path.endswith(shown)

"""All interfaces of a team's server: Redis, Qdrant, watch, worker and two query services."""

import json
import sys
from collections.abc import Iterator
from typing import Any
from urllib.request import Request, urlopen

import anyio
import pytest
from mcp import Client
from mcp_types import CallToolResult, TextContent, TextResourceContents
from mcp_types import Request as Asked
from pydantic import RootModel

import repertory
from repertory.errors import StoreError
from repertory.keys import Keys, Scope
from tests.support.builders import write
from tests.support.mcp_servers import SERVERS
from tests.support.ports import free_port
from tests.support.team import Team

BREAD = "skill://project/bread"
SERVER = SERVERS / "sdk.py"
WEATHER = {"mcpServers": {"weather": {"command": sys.executable, "args": [str(SERVER), "stdio"]}}}


def has_all(session: repertory.Session) -> bool:
    """Whether a query service serves all items of the folder."""
    try:
        found = {entry.id for entry in session.items()}
    except StoreError:  # the service is still starting
        return False
    return found >= {"project/bread", "documents/handbook.md", "weather__forecast"}


@pytest.fixture(scope="module")
def team(
    qdrant_url: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Team, repertory.Session, repertory.Session]]:
    """A team with a session on each of its two query services."""
    config = tmp_path_factory.mktemp("config") / "mcp.json"
    config.write_text(json.dumps(WEATHER), "utf-8")
    settings = {"REPERTORY_MCP_CONFIG": str(config), "REPERTORY_MCP_ALLOW_CALLS": "true"}
    with Team(qdrant_url, settings=settings) as running:
        port = free_port()
        other = running.service("second-api", "api", "--port", str(port))
        other.start()
        try:
            running.skill("bread", "Bake sourdough bread, from starter to loaf")
            write(running.project / "skills" / "bread" / "scripts" / "knead.py", "knead()\n")
            notes = running.project / "handbook.md"
            notes.write_text("# Handbook\n\nHow holidays are asked for.\n", "utf-8")
            running.ready()
            one = repertory.connect(f"http://127.0.0.1:{running.port}")
            two = repertory.connect(f"http://127.0.0.1:{port}")
            running.wait(lambda: has_all(one) and has_all(two))
            yield running, one, two
        finally:
            other.kill()


Running = tuple[Team, repertory.Session, repertory.Session]


def test_a_vector_written_through_one_service_is_found_through_the_other(team: Running) -> None:
    """Contracts 1 and 2 work across both query services."""
    running, one, other = team
    procedure = running.project / "area.ns.txt"
    procedure.write_text(
        "DEFINE PROCEDURE Area(width, height)\nCOMMENT:\n    PURPOSE: Calculates the area of a "
        "rectangle.\nENDCOMMENT\nRETURN 0\nEND\n",
        "utf-8",
    )
    assert one.vector_update("area.ns.txt") == "OK"
    found = json.loads(other.search_skills("Calculates the area of a rectangle"))
    assert found[0]["path"] == "area.ns.txt"


def test_a_tool_is_found_described_in_typescript_and_called(team: Running) -> None:
    """Contract 3 works through both query services."""
    for session in team[1:]:
        assert session.search("forecst").hits[0].id == "weather__forecast"
        assert "forecast(params" in session.tools_module("weather")
        result = session.call("weather__forecast", {"city": "Oslo"})
        assert result.content[0]["text"] == "Oslo: sun for 3 days"


def test_skills_are_discovered_and_files_searched(team: Running) -> None:
    """Contracts 4 and 5 work through both query services."""
    for session in team[1:]:
        skills = session.discover_skills("bake a loaf of bread")["results"]
        assert skills[0]["name"] == "bread"
        assert session.search_project("HOLIDAYS are")["totalResults"] == 1
        assert session.search_project("hollidays", fuzzy_search=True)["totalResults"] == 1


def test_agents_use_the_server_over_mcp(team: Running) -> None:
    """The official client lists skills with their files, searches, reads and calls."""
    url = f"http://127.0.0.1:{team[0].port}/mcp"

    async def ask() -> list[CallToolResult]:
        async with Client(url) as client:
            asked = Asked[dict[str, str], str](method="skills/list", params={})
            page = await client.session.send_request(asked, RootModel[dict[str, Any]])
            uris = [one["uri"] for entry in page.root["skills"] for one in entry["resources"]]
            assert {f"{BREAD}/SKILL.md", f"{BREAD}/scripts/knead.py"} <= {*uris}
            (file,) = (await client.read_resource(f"{BREAD}/scripts/knead.py")).contents
            assert isinstance(file, TextResourceContents)
            assert file.text == "knead()\n"
            return [
                await client.call_tool("search", {"query": "sourdough"}),
                await client.call_tool("get", {"id": "project/bread"}),
                await client.call_tool(
                    "call", {"tool": "weather__forecast", "arguments": {"city": "Rome", "days": 1}}
                ),
            ]

    found, read, called = anyio.run(ask)
    assert isinstance(found.content[0], TextContent)
    assert "skill project/bread: " in found.content[0].text
    assert isinstance(read.content[0], TextContent)
    assert "Bake sourdough bread" in read.content[0].text
    assert isinstance(called.content[0], TextContent)
    assert called.content[0].text == "Rome: sun for 1 days"


def test_people_see_pages_of_the_team(team: Running) -> None:
    """The search page has results, and the status page has a row for each worker."""
    (worker,) = team[0].get("/stats")["workers"]
    row = f'<th scope="row">{worker["worker"]}</th>'
    for path, text in (("/?q=sourdough", "project/bread"), ("/status", row)):
        request = Request(f"http://127.0.0.1:{team[0].port}{path}", headers={"Accept": "text/html"})
        with urlopen(request, timeout=30) as response:
            assert text in response.read().decode()


def test_query_services_follow_who_may_see_a_source(team: Running) -> None:
    """The watch service tells them, and nothing is embedded."""
    running, *sessions = team
    vault = '[[sources]]\ntype = "skills"\nname = "vault"\npath = "skills"\n'
    configuration = running.project / "repertory.toml"
    configuration.write_text(vault)
    keys = Keys(running.folder / "data" / "keys.json")
    tokens = {name: keys.create(name, Scope.READ, [name]) for name in ("team-a", "team-b")}

    def found(session: repertory.Session, group: str) -> set[str]:
        caller = repertory.connect(session._backend.gateway, api_key=tokens[group])
        try:
            return {entry.source for entry in caller.items()}
        except StoreError:  # the service is still starting
            return set()

    try:
        pairs = [(session, group) for session in sessions for group in tokens]
        running.wait(lambda: all(found(*pair) >= {"weather", "vault"} for pair in pairs))
        embedded = running.texts_embedded()
        configuration.write_text(f'{vault}visible_to = ["team-a"]\n')
        running.wait(lambda: all(found(one, "team-b") == {"weather"} for one in sessions))
        assert all("vault" in found(one, "team-a") for one in sessions)
        assert running.texts_embedded() == embedded
    finally:
        keys.reset()
        configuration.unlink()
        running.wait(lambda: all(map(has_all, sessions)))

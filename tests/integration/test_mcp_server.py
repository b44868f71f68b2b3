"""The MCP server on a real index, with the official client and both protocol versions."""

import asyncio
import json
import re
from ast import literal_eval
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import anyio
import httpx2
import pytest
from anyio import to_thread
from mcp import Client, MCPError
from mcp.client.subscriptions import ToolsListChanged
from mcp_types import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    CallToolResult,
    ResourceLink,
    TextResourceContents,
    ToolListChangedNotification,
)
from starlette.testclient import TestClient

from repertory.backend import Backend
from repertory.keys import Keys, Scope
from repertory.remote.client import Client as HttpClient
from repertory.text import cut, one_line
from repertory.values import Values
from repertory_query.backend.pool import Work
from repertory_query.backend.service import Service
from repertory_query.mcp import reading, resources
from repertory_query.mcp import server as mcp_server
from repertory_query.mcp.server import McpServer
from repertory_query.mcp.toolset_names import Toolset
from repertory_query.mcp.toolsets import tools_of
from tests.support.builders import write_shop, write_skill
from tests.support.listening import served
from tests.support.mcp_servers import started
from tests.support.mcp_sessions import Mode, asked, called, http_session, text_of
from tests.support.query_service import RunningService, indexed_server
from tests.support.waiting import TIMEOUT_S

T = TypeVar("T")
BOTH = pytest.mark.parametrize("mode", ["legacy", "auto"])
TOOLS = {"server": "files", "tools": [{"name": "read_file", "description": "Read a file."}]}
BODY = """
Before the first heading.

## Rotating

Make a new key.

### Without downtime

Keep both.

## Revoking

Revoke the old one.
"""


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    """A server with three skills, a tool and a document."""
    project = tmp_path_factory.mktemp("served") / "project"
    file = write_shop(project) / "skills" / "key-rotation" / "SKILL.md"
    file.write_text(file.read_text() + BODY)
    (project / "tools").mkdir()
    schema = {"type": "object", "properties": {"path": {"type": "string"}}}
    TOOLS["tools"][0]["inputSchema"] = schema  # type: ignore[index]  # a list of tools
    (project / "tools" / "files.json").write_text(json.dumps(TOOLS))
    with indexed_server(project, tmp_path_factory.mktemp("home")) as running:
        yield running


@pytest.fixture(scope="module")
def url(running: RunningService) -> Iterator[str]:
    """The URL of the server, which has no keys."""
    with served(running) as url:
        yield url


@BOTH
def test_the_tools_are_listed(url: str, mode: Mode) -> None:
    """``call`` is missing because calls are off, and the search describes the catalogue."""
    tools = asked(f"{url}/mcp", lambda client: client.list_tools(), mode).tools

    assert [tool.name for tool in tools] == ["search", "get"]
    assert tools[0].description.endswith(
        "The catalogue holds 3 skills (project), 1 tool (tools) and 1 document (documents)."
    )


def test_the_address_may_end_with_a_slash(url: str) -> None:
    """Configurations for many other servers have a trailing slash."""
    listed = asked(f"{url}/mcp/explain/", lambda client: client.list_tools())

    assert listed == asked(f"{url}/mcp/explain", lambda client: client.list_tools())
    assert [tool.name for tool in listed.tools] == ["explain"]


def test_clients_may_cache_a_list(url: str) -> None:
    """In the newer protocol, the answer has a lifetime and a scope."""
    found = asked(f"{url}/mcp", lambda client: client.list_tools())

    assert (found.ttl_ms, found.cache_scope) == (60_000, "private")


@BOTH
def test_a_search_returns_a_line_for_each_hit(url: str, mode: Mode) -> None:
    """The line of a tool shows its parameters, and the line of a text its section."""

    async def ask(client: Client) -> None:
        schema = (await client.list_tools()).tools[0].output_schema
        result = await client.call_tool("search", {"query": "rotate API keys", "limit": 1})
        tool = await client.call_tool("search", {"query": "read_file"})

        assert schema is None
        assert result.structured_content is None
        assert len(result.content) == 1
        assert re.fullmatch(
            r"0\.\d\d skill project/key-rotation(, section '\w+')?: Rotate API keys without "
            "downtime",
            text_of(result),
        )
        assert text_of(tool).startswith("0.98 files__read_file(path?): Read a file.")

    asked(f"{url}/mcp", ask, mode)


@BOTH
def test_detail_returns_the_evidence_and_links(url: str, mode: Mode) -> None:
    """The JSON is the same as over HTTP, and each skill is a readable resource."""

    async def ask(client: Client) -> None:
        given = {"query": "rotate API keys", "limit": 1, "detail": True}
        result = await client.call_tool("search", given)
        link = result.content[1]
        assert isinstance(link, ResourceLink)
        read = (await client.read_resource(link.uri)).contents[0]
        (hit,) = json.loads(text_of(result))["results"]

        assert hit["toolId"] == "project/key-rotation"
        assert hit["evidence"]["keywordRank"] == 1
        assert link.uri == "skill://project/key-rotation/SKILL.md"
        assert isinstance(read, TextResourceContents)
        assert read.mime_type == "text/markdown"
        assert read.text.startswith("---\nname: key-rotation\ndescription: Rotate API keys")
        assert read.text.endswith("Revoke the old one.")

    asked(f"{url}/mcp", ask, mode)


@pytest.mark.parametrize(
    ("protocol", "types"),
    [
        ("2024-11-05", ["text", "text"]),
        ("2025-03-26", ["text", "text"]),
        ("2025-06-18", ["text", "resource_link"]),
    ],
)
def test_links_are_texts_for_a_protocol_without_links(
    url: str, protocol: str, types: list[str]
) -> None:
    """An older client may refuse an answer with an unknown type of content."""
    given = {"query": "rotate API keys", "limit": 1, "detail": True}
    answer = httpx2.post(
        f"{url}/mcp",
        json={
            "jsonrpc": "2.0",
            "id": 1,
            "method": "tools/call",
            "params": {"name": "search", "arguments": given},
        },
        headers={
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": protocol,
        },
    )
    content = json.loads(answer.text[answer.text.index("{") :])["result"]["content"]
    assert [block["type"] for block in content] == types
    uri = "skill://project/key-rotation/SKILL.md"
    assert content[1].get("uri") == uri or content[1]["text"] == f"key-rotation: {uri}"


@BOTH
def test_several_queries_are_answered_at_once(url: str, mode: Mode) -> None:
    """Each query is answered once, in order, below its own heading."""
    found = called(url, mode, "search", queries=["release notes", "read_file", "release notes"])
    both = called(url, mode, "search", query="a", queries=["b", "a"], detail=True)

    headings = [line for line in text_of(found).splitlines() if line.startswith("# ")]
    assert headings == ["# release notes", "# read_file"]
    assert "skill project/release-notes" in text_of(found)
    assert [one["query"] for one in json.loads(text_of(both))["answers"]] == ["a", "b"]


@BOTH
def test_filters_apply(url: str, mode: Mode) -> None:
    """Kinds filter the hits, and an unknown tag is an error."""
    found = called(url, mode, "search", query="write", threshold=0, kinds=["document"], detail=True)
    none = called(url, mode, "search", query="write", threshold=0, tags=["unknown"])

    assert [hit["kind"] for hit in json.loads(text_of(found))["results"]] == ["document"]
    assert none.is_error
    assert "There is no tag 'unknown'; " in str(none.content)


@BOTH
def test_a_skill_is_read_whole_or_by_section(url: str, mode: Mode) -> None:
    """A section includes its subsections; the case and markup of its heading do not matter."""
    whole = text_of(called(url, mode, "get", id="project/key-rotation"))
    section = text_of(called(url, mode, "get", id="project/key-rotation", section="## rotating"))

    assert whole.startswith("Skill project/key-rotation, file ")
    assert "Before the first heading." in whole
    assert section == ("## Rotating\n\nMake a new key.\n\n### Without downtime\n\nKeep both.")


def test_a_section_is_read_by_the_name_that_an_answer_shows(tmp_path: Path) -> None:
    """Answers show headings on one line, without markup, and cut long ones."""
    long = "3. What " + "to do and what else to do " * 8
    headings = ["1.  Two spaces", "2.\tA tab", "### Marks", "[A link](#a)"]
    headings += [f"{long}now", f"{long}later"]
    project = tmp_path / "project"
    parts = [f"## {heading}\n\nText {number}." for number, heading in enumerate(headings)]
    (project / "docs").mkdir(parents=True)
    (project / "docs" / "guide.md").write_text("# Guide\n\n" + "\n\n".join(parts))
    with indexed_server(project, tmp_path / "home") as running, served(running) as url:

        def section(name: str) -> str:
            return text_of(called(url, "auto", "get", id="documents/docs/guide.md", section=name))

        shown = literal_eval(f"[{section('None').partition('it has ')[2].rstrip('.')}]")
        cut_lines = [cut(one_line(heading.lstrip("# ")), 80) for heading in headings]
        for number, name in enumerate(cut_lines):
            assert f"Text {number}." in section(name)
        for name in shown:
            assert section(name).startswith("#")
        assert len(shown) == 6  # two equal names are listed once
        assert "A link" in shown
        assert [section(cut_lines[-1]).count(f"Text {number}.") for number in (4, 5)] == [1, 1]
        assert "has no section '…'" in section("…")


@BOTH
def test_a_tool_is_read_with_its_schema(url: str, mode: Mode) -> None:
    """The answer is JSON without empty fields."""
    result = called(url, mode, "get", id="files__read_file")

    assert result.structured_content is None
    assert json.loads(text_of(result)) == {
        "id": "files__read_file",
        "name": "read_file",
        "server": "files",
        "description": "Read a file.",
        "inputSchema": {"type": "object", "properties": {"path": {"type": "string"}}},
    }


def test_a_long_text_is_cut_with_a_hint(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The hint names the sections, and the resource with the complete text."""
    monkeypatch.setattr(reading, "MAX_TEXT_LENGTH", 120)
    text = text_of(called(url, "auto", "get", id="project/key-rotation"))
    uri = "skill://project/key-rotation/SKILL.md"
    (whole,) = asked(f"{url}/mcp", lambda client: client.read_resource(uri)).contents

    assert "Revoke the old one." not in text
    assert text.endswith(
        "[Cut after 120 characters. Ask for a section: 'Rotating', 'Without downtime', "
        f"'Revoking'. The resource {uri} has all of it.]"
    )
    assert whole.text.endswith("Revoke the old one.")


@BOTH
def test_an_item_is_read_by_its_uri(url: str, mode: Mode) -> None:
    """A file beside a skill can be read only as a resource."""

    async def ask(client: Client) -> None:
        for uri, item in (
            ("skill://project/key-rotation/SKILL.md", "project/key-rotation"),
            ("tool://files__read_file", "files__read_file"),
            ("document://documents/README.md", "documents/README.md"),
        ):
            by_uri = await client.call_tool("get", {"id": uri})
            assert not by_uri.is_error
            assert by_uri.content == (await client.call_tool("get", {"id": item})).content
        file = await client.call_tool("get", {"id": "skill://project/key-rotation/api.md"})
        assert file.is_error
        assert "is a file of the skill project/key-rotation; read it as a" in text_of(file)

    asked(f"{url}/mcp", ask, mode)


@BOTH
def test_null_or_blank_arguments_count_as_missing(url: str, mode: Mode) -> None:
    """Some hosts make their models write all arguments of a schema."""

    async def ask(client: Client) -> None:
        whole = await client.call_tool("get", {"id": "project/key-rotation"})
        for section in (None, "", " "):
            given = {"id": "project/key-rotation", "section": section}
            assert (await client.call_tool("get", given)).content == whole.content
        given = dict.fromkeys(("limit", "threshold", "kinds", "queries", "detail"))
        found = await client.call_tool("search", {"query": "rotate API keys", **given})
        plain = await client.call_tool("search", {"query": "rotate API keys"})
        assert not found.is_error
        assert found.content == plain.content

    asked(f"{url}/mcp", ask, mode)


@BOTH
def test_lists_and_objects_may_be_json_in_a_string(url: str, mode: Mode) -> None:
    """Some hosts send them so."""

    async def ask(client: Client) -> None:
        plain = {"queries": ["rotate API keys", "read a file"], "kinds": ["skill"]}
        found = await client.call_tool("search", plain)
        given = {name: json.dumps(value) for name, value in plain.items()}
        assert not found.is_error
        assert (await client.call_tool("search", given)).content == found.content
        called = await client.call_tool("call", {"tool": "files__read_file", "arguments": "{}"})
        assert "Calling tools is off here" in text_of(called)
        text = await client.call_tool("search", {"query": '["rotate API keys"]'})
        assert not text.is_error

    asked(f"{url}/mcp", ask, mode)


WRONG: tuple[tuple[str, dict[str, Any], str], ...] = (
    ("search", {}, "search: query must be given."),
    ("search", {"query": 7}, "search: query must be string."),
    ("search", {"query": " "}, "empty"),
    ("search", {"query": "x" * 100_000}, "32,000"),
    ("search", {"queries": []}, "search: query must be given."),
    ("search", {"queries": ["x"] * 11}, "queries must hold 10 texts or fewer."),
    ("search", {"queries": ["x", " "]}, "empty"),
    ("search", {"query": "x", "tags": ["x"] * 101}, "tags must hold 100 texts or fewer."),
    ("search", {"query": "x", "limit": 101}, "limit must be 100 or less."),
    ("search", {"query": "x", "limit": 0}, "limit is 0; it must be"),
    ("search", {"query": "x", "threshold": 2}, "threshold is 2; it must be"),
    ("search", {"query": "x", "limit": 1.5}, "limit must be integer."),
    ("search", {"query": "x", "threshold": "low"}, "threshold must be number."),
    ("search", {"query": "x", "kinds": ["spoon"]}, "kinds[0] must be one of"),
    ("search", {"query": "x", "kinds": "skill"}, "kinds must be array."),
    ("search", {"query": "x", "tags": "[" * 10_000}, "tags must be array."),
    ("search", {"query": "x", "colour": 1}, "colour is not in the schema"),
    ("get", {"id": "files__reed_file"}, "did you mean files__read_file?"),
    ("get", {"id": "x" * 9_999}, "There is no item"),
    ("get", {"id": "zzqx"}, "There is no item 'zzqx'; search for it."),
    ("get", {"id": "skill://project/zzqx/SKILL.md"}, "'project/zzqx'; search for it."),
    ("get", {"id": None}, "get: id must be string."),
    ("get", {"id": "x", "colour": None}, "colour is not in the schema"),
    ("get", {"id": "project/key-rotation", "section": "X"}, "it has 'Rotating', 'Without"),
    ("get", {"id": "project/postmortem", "section": "X"}, "has no sections"),
    ("call", {"tool": "files__read_file", "arguments": "[]"}, "arguments must be object."),
    ("call", {"tool": "files__read_file"}, "Calling tools is off here"),
)


@BOTH
def test_a_failed_tool_returns_one_sentence(url: str, mode: Mode) -> None:
    """It is an error result of the tool, which the model can read."""

    async def ask(client: Client) -> None:
        for tool, arguments, message in WRONG:
            result = await client.call_tool(tool, arguments)

            assert result.is_error
            assert message in text_of(result)
            assert len(text_of(result)) < 700
            assert len(text_of(result).splitlines()) == 1

    asked(f"{url}/mcp", ask, mode)


ABSENT: tuple[tuple[Callable[[Client], Awaitable[Any]], str], ...] = (
    (lambda client: client.call_tool("nope"), "There is no tool 'nope'"),
    (lambda client: client.read_resource("skill://project/x/SKILL.md"), "There is no item"),
    (lambda client: client.read_resource("https://example.com"), "There is no resource"),
    (lambda client: client.read_resource("document://project/postmortem"), "is skill://"),
    (lambda client: client.list_tools(cursor="7"), "The cursor is not from this server"),
    (lambda client: client.list_resources(cursor="7"), "The cursor is not from this server"),
)


@BOTH
def test_unknown_names_are_errors_of_the_protocol(url: str, mode: Mode) -> None:
    """They have the code for invalid parameters, and one sentence."""

    async def ask(client: Client) -> None:
        for request, message in ABSENT:
            with pytest.raises(MCPError) as raised:
                await request(client)
            assert raised.value.error.code == INVALID_PARAMS
            assert message in raised.value.error.message

    asked(f"{url}/mcp", ask, mode)


@BOTH
def test_skills_are_listed_as_resources_in_pages(
    url: str, mode: Mode, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each skill is listed once, in the order of ids."""
    monkeypatch.setattr(resources, "PAGE_SIZE", 2)

    async def ask(client: Client) -> list[list[str]]:
        pages: list[list[str]] = []
        cursor = None
        while not pages or cursor:
            page = await client.list_resources(cursor=cursor)
            pages.append([resource.uri for resource in page.resources])
            cursor = page.next_cursor
        return pages

    assert asked(f"{url}/mcp", ask, mode) == [
        ["skill://project/key-rotation/SKILL.md", "skill://project/postmortem/SKILL.md"],
        ["skill://project/release-notes/SKILL.md"],
    ]


@BOTH
def test_the_lists_of_prompts_and_templates_are_empty(url: str, mode: Mode) -> None:
    """Clients ask for templates, and some of them for prompts although none are announced."""

    async def ask(client: Client) -> None:
        assert (await client.list_resource_templates()).resource_templates == []
        assert (await client.list_prompts()).prompts == []
        assert client.server_capabilities.prompts is None

    asked(f"{url}/mcp", ask, mode)


@BOTH
def test_the_other_toolsets_have_their_own_urls(url: str, mode: Mode) -> None:
    """Functions that return strings give text; functions that return objects give data and text."""

    async def ask(client: Client) -> None:
        listed = [tool.name for tool in (await client.list_tools()).tools]
        text = await client.call_tool("Vector.SearchSkills", {"query": "rotate keys"})
        data = await client.call_tool("skill.discovery.search", {"query": "rotate keys"})

        assert listed == ["Vector.SearchSkills", "Vector.VectorUpdate", "skill.discovery.search"]
        assert isinstance(json.loads(text_of(text)), list)
        assert text.structured_content is None
        assert data.structured_content == json.loads(text_of(data))
        assert data.structured_content["results"][0]["skill_id"] == "project/key-rotation"

    asked(f"{url}/mcp/skills", ask, mode)
    portable = asked(
        f"{url}/mcp/portable-skills",
        lambda client: client.call_tool("Vector_SearchSkills", {"query": "rotate keys"}),
        mode,
    )
    assert isinstance(json.loads(text_of(portable)), list)
    tools = asked(f"{url}/mcp/project", lambda client: client.list_tools(), mode).tools
    assert [tool.name for tool in tools] == ["search"]


@BOTH
def test_a_result_is_explained(url: str, mode: Mode) -> None:
    """The explanation has its own toolset; a filter can hide the item."""

    async def ask(client: Client) -> None:
        given = {"query": "rotate API keys", "item": "key-rotation"}
        shown = json.loads(text_of(await client.call_tool("explain", given)))
        other = await client.call_tool("explain", given | {"kinds": ["tool"], "limit": 1})
        unknown = await client.call_tool("explain", given | {"item": "nothing"})
        missing = await client.call_tool("explain", {"query": "rotate"})

        assert shown["shown"]
        assert shown["verdict"].startswith("Shown, at place 1")
        assert not json.loads(text_of(other))["shown"]
        assert unknown.is_error
        assert text_of(missing) == "explain: item must be given."

    asked(f"{url}/mcp/explain", ask, mode)


@BOTH
def test_concurrent_clients(url: str, mode: Mode) -> None:
    """Each of 24 concurrent requests gets its own answer."""

    async def ask(client: Client) -> list[CallToolResult]:
        asking = (
            client.call_tool("search", {"query": f"q{number}", "detail": True})
            for number in range(24)
        )
        return await asyncio.gather(*asking)

    found = asked(f"{url}/mcp", ask, mode)
    assert [json.loads(text_of(one))["query"] for one in found] == [
        f"q{number}" for number in range(24)
    ]


@BOTH
def test_a_cancelled_request_affects_no_other(url: str, mode: Mode) -> None:
    """The same client can send further requests."""

    async def ask(client: Client) -> CallToolResult:
        for _ in range(5):
            with anyio.move_on_after(0.001):
                await client.call_tool("search", {"query": "release notes"})
        return await client.call_tool("search", {"query": "release notes"})

    assert not asked(f"{url}/mcp", ask, mode).is_error


@BOTH
@pytest.mark.usefixtures("own_home")
@pytest.mark.parametrize("is_joined", [False, True])
def test_a_cancelled_call_is_cancelled_at_the_server_of_the_tool(
    tmp_path: Path, mode: Mode, is_joined: bool
) -> None:
    """This includes calls through another process; they count as cancelled by the caller."""
    config = tmp_path / "mcp.json"
    waiting = {"tool": "desk__wait", "arguments": {"seconds": 600}}

    async def threads(_: Work, call: Callable[[], T]) -> T:
        return await to_thread.run_sync(call, abandon_on_cancel=True)

    async def ask(backend: Backend, service: Service) -> None:
        tools = tools_of([Toolset.CATALOGUE], Values)
        server = McpServer(backend, tools, threads).server
        async with asyncio.timeout(TIMEOUT_S), Client(server, mode=mode) as client:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(client.call_tool, "call", waiting)
                while not (service._has_calls and vars(service._calls._sessions)["_sessions"]):
                    await anyio.sleep(0.02)
                tasks.cancel_scope.cancel()
            while service.call_outcomes != {"caller": 1}:
                await anyio.sleep(0.02)

    (tmp_path / "project").mkdir()
    with started("callee.py", "http") as url:
        config.write_text(json.dumps({"mcpServers": {"desk": {"url": url}}}))
        flags = {"mcp_config": [str(config)], "allow_calls": True}
        with RunningService(tmp_path / "project", **flags) as running:
            running.scan()
            with served(running, allow_calls=True) as address:
                service = running.service
                asyncio.run(ask(HttpClient(address) if is_joined else service, service))
            service.close()


def test_a_defect_is_reported_without_details(
    running: RunningService, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client gets only a reference to the log entry."""

    def broken(*_: object) -> None:
        raise ZeroDivisionError("secret")

    monkeypatch.setattr(running.service, "item", broken)
    result = called(url, "auto", "get", id="x")

    async def read(client: Client) -> MCPError:
        with pytest.raises(MCPError) as raised:
            await client.read_resource("skill://project/x/SKILL.md")
        return raised.value

    error = asked(f"{url}/mcp", read).error
    assert result.is_error
    assert error.code == INTERNAL_ERROR
    for message in (text_of(result), error.message):
        assert message.startswith(
            "Something went wrong here; the server's log has the details, under "
        )
        assert "secret" not in message


@BOTH
def test_keys_and_scopes_are_checked(running: RunningService, tmp_path: Path, mode: Mode) -> None:
    """Every request needs a key, and calls need the scope `call`."""
    keys = Keys(tmp_path / "keys.json")
    tokens = {scope: keys.create(scope, scope) for scope in (Scope.READ, Scope.CALL)}

    async def listed(url: str, token: str) -> tuple[list[str], CallToolResult]:
        async with http_session(url, token, mode) as client:
            tools = (await client.list_tools()).tools
            return [tool.name for tool in tools], await client.call_tool("call", {"tool": "x"})

    with served(running, keys=str(keys.path), allow_calls=True) as url:
        names, refused = asyncio.run(listed(f"{url}/mcp", tokens[Scope.READ]))
        assert names == ["search", "get"]
        assert (
            text_of(refused)
            == "call needs a key with the scope call; ask the person who runs this server."
        )

        _, tried = asyncio.run(listed(f"{url}/mcp", tokens[Scope.CALL]))
        assert "needs a key" not in text_of(tried)

        answer = httpx2.post(f"{url}/mcp", json={})
        assert answer.status_code == 401
        assert answer.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize(
    ("scope", "more"), [(Scope.READ, []), (Scope.CALL, ["Vector.VectorUpdate"])]
)
def test_a_session_offers_the_tools_that_its_key_allows(
    running: RunningService, tmp_path: Path, scope: Scope, more: list[str]
) -> None:
    """The scope `call` also allows changes of vectors, even if calls are off."""
    keys = Keys(tmp_path / "keys.json")

    async def listed(url: str) -> list[str]:
        tools = tools_of([Toolset.CATALOGUE, Toolset.SKILLS], Values)
        faced = McpServer(HttpClient(url, keys.create("agent", scope)), tools, threads)
        async with Client(faced.server) as client:
            return [tool.name for tool in (await client.list_tools()).tools]

    with served(running, keys=str(keys.path)) as url:
        names = asyncio.run(listed(url))
    assert names == ["search", "get", "Vector.SearchSkills", *more, "skill.discovery.search"]


LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}


@pytest.fixture
def guarded(running: RunningService) -> Iterator[TestClient]:
    """A client of an application that allows three requests a minute."""
    with running.client(requests_per_minute=3) as client:
        yield client


def test_guards_apply_to_mcp(guarded: TestClient) -> None:
    """Requests of foreign web pages are refused, and the rate is limited."""
    listed = guarded.post("/mcp", json=LIST)
    rebound = guarded.post("/mcp", json=LIST, headers={"Host": "evil.example"})
    foreign = guarded.post("/mcp", json=LIST, headers={"Origin": "https://evil.example"})
    own = guarded.post(
        "/mcp", json=LIST, headers={"Host": "mine.localhost", "Origin": "http://mine.localhost"}
    )
    again = [guarded.post("/mcp", json=LIST).status_code for _ in range(2)]

    assert [tool["name"] for tool in listed.json()["result"]["tools"]] == ["search", "get"]
    assert (rebound.status_code, foreign.status_code, own.status_code) == (403, 403, 200)
    assert again == [200, 429]


def test_bodies_are_limited(guarded: TestClient) -> None:
    """A large body is refused with and without a declared length."""
    large = json.dumps(LIST | {"params": {"x": "x" * 1_000_000}}).encode()
    pieces = (large[start : start + 65_536] for start in range(0, len(large), 65_536))

    headers = {"Content-Type": "application/json"}
    assert guarded.post("/mcp", content=large, headers=headers).status_code == 413
    assert guarded.post("/mcp", content=pieces, headers=headers).status_code == 413


def test_invalid_messages_are_refused(guarded: TestClient) -> None:
    """The answer has an HTTP error status; only POST is allowed."""
    assert guarded.post("/mcp", json=[1]).status_code == 400
    assert guarded.post("/mcp", content=b"{", headers={"Content-Type": "application/json"}).json()[
        "error"
    ]["code"]
    refused = guarded.get("/mcp")
    assert (refused.status_code, refused.headers["allow"]) == (405, "POST")


def test_requests_are_measured_by_their_route(guarded: TestClient) -> None:
    """The metrics of MCP requests have the route `/mcp`."""
    guarded.post("/mcp", json=LIST)
    text = guarded.get("/metrics").text

    assert (
        'repertory_request_duration_seconds_count{method="POST",route="/mcp",status="200"}' in text
    )


@pytest.mark.usefixtures("own_home")
def test_clients_are_notified_of_a_changed_catalogue(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For example, the first index changes the description of the search."""
    monkeypatch.setattr(mcp_server, "RETRY_INTERVAL_S", 0.05)
    write_skill(tmp_path / "project", "knots", "Tie a bowline")

    def faced(running: RunningService) -> McpServer:
        tools = tools_of([Toolset.CATALOGUE], Values)
        return McpServer(running.service, tools, threads, announcing=True)

    async def run(running: RunningService) -> None:
        notified = asyncio.Event()

        async def heard(message: object) -> None:
            if isinstance(message, ToolListChangedNotification):
                notified.set()

        old, new = faced(running), faced(running)
        async with (
            asyncio.timeout(TIMEOUT_S),
            Client(old.server, mode="legacy", message_handler=heard) as older,
            Client(new.server, mode="auto") as newer,
            newer.listen(tools_list_changed=True) as changes,
            anyio.create_task_group() as tasks,
        ):
            before = [await described(older), await described(newer)]
            tasks.start_soon(old.announce)
            tasks.start_soon(new.announce)
            await to_thread.run_sync(running.scan)
            await notified.wait()
            assert await anext(changes) == ToolsListChanged()
            after = [await described(older), await described(newer)]
            tasks.cancel_scope.cancel()
        assert not any("holds" in text for text in before)
        assert all("holds 1 skill" in text for text in after)

    with RunningService(tmp_path / "project") as running:
        asyncio.run(run(running))


async def threads(_: Work, call: Callable[[], T]) -> T:
    """Run calls of the backend on threads."""
    return await to_thread.run_sync(call)


async def described(client: Client) -> str:
    """The description of the first tool."""
    return (await client.list_tools()).tools[0].description or ""

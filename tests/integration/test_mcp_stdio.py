"""Well-behaved and misbehaving MCP servers over stdio, as real processes."""

import json
import logging
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest
from typing_extensions import override

from repertory.catalogue.item import Kind
from repertory.errors import SourceError
from repertory.indexing.scan import scan_all
from repertory.sources.mcp.entry import build
from repertory.sources.mcp.server import ServerConfig
from repertory.sources.mcp.source import McpServer
from repertory.sources.source import Scan, Severity
from tests.support.mcp_servers import SERVERS
from tests.support.mcp_servers.raw import LONG, UNREADABLE
from tests.support.waiting import until

SECRET = "s3cret-t0ken"


def server(behaviour: str, timeout: float = 20, **env: str) -> McpServer:
    """The trusted source of a server with one behaviour."""
    config = ServerConfig(
        name="raw",
        command=sys.executable,
        args=(str(SERVERS / "raw.py"), behaviour),
        env=env,
        timeout=timeout,
        origins=("/etc/mcp.json",),
    )
    return McpServer(config, trusted=True)


def names(scan: Scan) -> list[str]:
    """The names of the items that a scan found."""
    return [item.name for item in scan.items]


def failure(source: McpServer) -> str:
    """Scan a source that fails, and return the message."""
    with pytest.raises(SourceError) as caught:
        source.scan()
    message = str(caught.value)
    assert message.startswith("The MCP server raw ")
    assert message.isprintable()
    return message


def test_a_published_server(tmp_path: Path) -> None:
    """A server from the package index, from a configuration file to its items."""
    path = tmp_path / ".mcp.json"
    entry = {"command": sys.executable, "args": ["-m", "mcp_server_time"]}
    path.write_text(json.dumps({"mcpServers": {"time": entry}}))
    [source] = build({"type": "mcp", "config": ".mcp.json", "trusted": True}, tmp_path)
    scan = source.scan()
    assert [item.id for item in scan.items] == ["time__get_current_time", "time__convert_time"]
    item = scan.items[0]
    assert (item.kind, item.source, item.server) == (Kind.TOOL, "time", "time")
    assert item.path == str(path)
    assert item.description
    assert item.input_schema is not None
    assert "timezone" in item.input_schema["properties"]
    assert scan.problems == []


def test_a_server_on_the_sdk() -> None:
    """The tools have names, descriptions and tags from their annotations."""
    config = ServerConfig(
        name="weather", command=sys.executable, args=(str(SERVERS / "sdk.py"), "stdio")
    )
    scan = McpServer(config, trusted=True).scan()
    assert {item.id: item.description for item in scan.items} == {
        "weather__forecast": "Say what the weather will be in a city.",
        "weather__alerts": "List the storm warnings of a region.",
    }
    assert {item.id: item.tags for item in scan.items} == {
        "weather__forecast": (),
        "weather__alerts": ("read-only",),
    }


def test_a_server_without_the_handshake() -> None:
    """A server with only the newest protocol is supported."""
    assert names(server("modern").scan()) == ["good"]


def test_pages() -> None:
    """All pages are read, in their order."""
    scan = server("paginated").scan()
    assert names(scan) == ["t0", "t1", "t2", "t3", "t4", "t5"]
    assert scan.problems == []


def test_the_same_page_again() -> None:
    """A repeated cursor ends the listing with a warning, and no tool is listed twice."""
    scan = server("same_page").scan()
    assert names(scan) == ["only"]
    assert [str(problem) for problem in scan.problems] == [
        "/etc/mcp.json: The MCP server raw sends the same page of tools repeatedly."
    ]


@pytest.mark.parametrize("defect", UNREADABLE)
def test_an_unreadable_tool_does_not_hide_the_others(defect: str) -> None:
    """A warning names the unreadable tool."""
    scan = server("unreadable_tools", timeout=LONG, DEFECT=defect).scan()
    assert names(scan) == ["good", "also_good"]
    [problem] = scan.problems
    assert "sent an unreadable tool bad (number 2 of its list)" in problem.message


def test_an_unreadable_answer_ends_the_wait() -> None:
    """The error comes at once, although the time limit is longer than the test."""
    message = failure(server("unreadable_answer", timeout=LONG))
    assert "its answer cannot be read: Invalid JSON: EOF" in message


def test_endless_pages() -> None:
    """Endless pages are read up to a limit."""
    scan = server("endless").scan()
    assert names(scan) == []
    assert "has more than 1,000 pages" in scan.problems[0].message


def test_too_many_tools() -> None:
    """Tools beyond the limit are left out, with an error."""
    scan = server("many").scan()
    assert len(scan.items) == 10_000
    assert [problem.severity for problem in scan.problems] == [Severity.ERROR]


def test_bad_tools() -> None:
    """Each bad tool has a problem, and the good ones are found."""
    scan = server("bad_tools").scan()
    assert {"good", "also_good"} <= set(names(scan))
    assert len(scan.problems) >= 3
    assert {problem.path for problem in scan.problems} == {"/etc/mcp.json"}


def test_control_characters() -> None:
    """Texts of a server cannot control a terminal."""
    [item] = server("control_characters").scan().items
    assert "Paints" in item.description
    assert item.description.isprintable()


def test_no_tools() -> None:
    """A server that offers no tools is an empty source, not a failure."""
    assert server("only_prompts").scan() == Scan(items=[])


def test_a_banner_before_the_protocol() -> None:
    """A line on stdout that is not MCP is ignored."""
    assert names(server("banner").scan()) == ["good"]


def test_include_and_exclude() -> None:
    """A tool must pass the filters of its server and of the source, by name or by id."""
    config = ServerConfig(
        name="raw",
        command=sys.executable,
        args=(str(SERVERS / "raw.py"), "paginated"),
        include=("t[0-4]",),
        exclude=("t1",),
    )
    source = McpServer(config, trusted=True, include=("raw__*",), exclude=("t2", "raw__t3"))
    assert names(source.scan()) == ["t0", "t4"]


def test_only_its_own_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server receives its own variables and only harmless ones of this process."""
    monkeypatch.setenv("OTHER_SECRET", SECRET)
    monkeypatch.setenv("PASSED", "on")
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.example.org")
    monkeypatch.setenv("NODE_EXTRA_CA_CERTS", "/etc/own.pem")
    monkeypatch.setenv("LOGNAME", "() { echo; }")  # an exported shell function
    script = (
        f"import os, json; open({str(tmp_path / 'env')!r}, 'w').write(json.dumps(dict(os.environ)))"
    )
    config = ServerConfig(
        name="raw",
        command=sys.executable,
        args=("-c", script),
        env={"OWN": "${PASSED}"},
        workspace=str(tmp_path),
    )
    with pytest.raises(SourceError, match="ended with exit code 0"):
        McpServer(config, trusted=True).scan()
    seen = json.loads((tmp_path / "env").read_text())
    assert seen["OWN"] == "on"
    for name in ("PATH", "HTTPS_PROXY", "NODE_EXTRA_CA_CERTS"):
        assert seen[name] == os.environ[name]
    assert not {"OTHER_SECRET", "PASSED", "LOGNAME"} & set(seen)


def test_no_such_command() -> None:
    """The message names the missing command, and says where it was looked for."""
    source = McpServer(ServerConfig(name="raw", command="no-such-command-anywhere"), trusted=True)
    assert failure(source) == (
        "The MCP server raw could not be started: no-such-command-anywhere was not found in its "
        "search path (PATH)."
    )


def test_no_such_folder(tmp_path: Path) -> None:
    """The message names the missing working directory."""
    config = ServerConfig(name="raw", command=sys.executable, cwd=str(tmp_path / "none"))
    assert str(tmp_path / "none") in failure(McpServer(config, trusted=True))


def test_crash() -> None:
    """The message has the exit code and the last output, without secrets."""
    message = failure(server("crash", TOKEN=SECRET))
    assert "ended with exit code 3" in message
    assert "it wrote: fatal: cannot log in with ***" in message


def test_error() -> None:
    """The message quotes the error of the server, without secrets."""
    assert "no ***" in failure(server("fails", TOKEN=SECRET))


def test_silent() -> None:
    """A silent server times out."""
    assert "did not answer within 0.5 s" in failure(server("silent", timeout=0.5))


def test_stuck() -> None:
    """A server that hangs while listing times out, and its output is quoted."""
    message = failure(server("stuck", timeout=2))
    assert "did not answer within 2 s; it wrote: warming up" in message


@pytest.mark.parametrize("behaviour", ["garbage", "endless_line", "objects"])
def test_flood(behaviour: str, caplog: pytest.LogCaptureFixture) -> None:
    """A flood on stdout is cut off at a limit, long before the timeout, and is not logged."""
    caplog.set_level(logging.DEBUG)
    limits = "32 MB, 50,000 lines or 1,000,000 JSON objects"
    assert f"sent more than {limits}" in failure(server(behaviour))
    assert not any("lorem" in record.getMessage() for record in caplog.records)


@pytest.mark.parametrize("hang", [False, True])
def test_nothing_is_left_behind(tmp_path: Path, hang: bool) -> None:
    """A server's children and grandchildren end with it, after success and failure."""
    pids = tmp_path / "pids"
    env = {"PIDS": str(pids)} | ({"HANG": "1"} if hang else {})
    source = server("children", timeout=3 if hang else 20, **env)
    if hang:
        failure(source)
    else:
        assert names(source.scan()) == ["good"]
    started = [int(pid) for pid in pids.read_text().split()]
    assert len(started) == 3
    until(lambda: not any(map(is_running, started)))


def is_running(pid: int) -> bool:
    """Whether a process is alive; a zombie is not."""
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def test_an_interrupted_scan_ends_its_server(tmp_path: Path) -> None:
    """Ctrl-C waits neither for an answer nor for the time limit."""
    pids = tmp_path / "pids"
    source = server("children", timeout=LONG, PIDS=str(pids), HANG="1")

    def interrupt() -> None:
        until(lambda: pids.exists() and len(pids.read_text().split()) == 3)
        raise KeyboardInterrupt

    class Stuck(McpServer):
        """A source whose scan is interrupted while the other server is queried."""

        @override
        def scan(self) -> Scan:
            interrupt()
            raise NotImplementedError

    with pytest.raises(KeyboardInterrupt):
        scan_all([Stuck(source.config, trusted=True), source], lambda: None)
    until(lambda: not any(is_running(int(pid)) for pid in pids.read_text().split()))


def test_side_by_side(tmp_path: Path) -> None:
    """Servers are listed concurrently: each of eight answers only after all have started."""
    source = server("slow", timeout=60, FOLDER=str(tmp_path), OTHERS="8")
    with ThreadPoolExecutor(8) as pool:
        scans = list(pool.map(lambda _: source.scan(), range(8)))
    assert [names(scan) for scan in scans] == [["good"]] * 8

"""The source of an MCP server, without launching it."""

import json
import subprocess
import sys
from concurrent.futures import Future
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

import pytest

from repertory.errors import ConfigurationError, SourceError
from repertory.sources.mcp.entry import build
from repertory.sources.mcp.server import ServerConfig, Transport
from repertory.sources.mcp.source import McpServer

SECRET = "s3cret-value"


def config(path: Path, **servers: object) -> Path:
    """Write a configuration."""
    path.write_text(json.dumps({"mcpServers": servers}))
    return path


def test_build(tmp_path: Path) -> None:
    """An entry builds one source for each server of its merged files; paths may be relative."""
    config(tmp_path / "1.json", b={"command": "b"}, a={"command": "a"})
    config(tmp_path / "2.json", c={"url": "https://c/mcp"})
    sources = build({"type": "mcp", "config": ["1.json", "2.json"]}, tmp_path)
    assert [(source.type, source.name) for source in sources] == [
        ("mcp", "b"),
        ("mcp", "a"),
        ("mcp", "c"),
    ]


@pytest.mark.parametrize(
    "entry",
    [{}, {"config": 7}, {"config": "a.json", "colour": "red"}, {"config": "a.json", "timeout": 0}],
)
def test_wrong_entry(tmp_path: Path, entry: dict[str, Any]) -> None:
    """An entry with a missing, unknown or invalid option is rejected."""
    config(tmp_path / "a.json", a={"command": "a"})
    with pytest.raises(ConfigurationError, match="mcp"):
        build({"type": "mcp", **entry}, tmp_path)


def test_discovered_only(tmp_path: Path) -> None:
    """A server that was only found is not run; the message says how to trust it."""
    ran = tmp_path / "ran"
    path = config(tmp_path / "a.json", a={"command": "touch", "args": [str(ran)]})
    [source] = build({"type": "mcp", "config": str(path)}, tmp_path)
    with pytest.raises(SourceError) as caught:
        source.scan()
    assert f"{path} was found but not run; run `repertory config trust {path}`" in str(caught.value)
    assert not ran.exists()


def test_broken_server(tmp_path: Path) -> None:
    """A server with an invalid entry cannot be read, so its indexed items are kept."""
    path = config(tmp_path / "a.json", a={"command": 7})
    [source] = build({"type": "mcp", "config": str(path), "trusted": True}, tmp_path)
    with pytest.raises(SourceError, match="is invalid"):
        source.scan()


def test_repertory_itself(tmp_path: Path) -> None:
    """Repertory does not index itself, with a warning; so it needs no trust."""
    path = config(tmp_path / "a.json", me={"command": "uvx", "args": ["repertory", "mcp"]})
    [source] = build({"type": "mcp", "config": str(path), "trusted": True}, tmp_path)
    scan = source.scan()
    [found] = build({"type": "mcp", "config": str(path)}, tmp_path)
    assert found.is_trusted
    assert not any(one.asks_server for one in (source, found))
    assert scan.items == []
    assert [str(problem) for problem in scan.problems] == [
        f"{path}: The MCP server me is Repertory itself and was left out."
    ]


@pytest.mark.parametrize(
    "own", [{"command": "/opt/repertory", "args": ["mcp"]}, {"url": "https://team.example/mcp"}]
)
def test_what_connects_a_host_is_no_source(tmp_path: Path, own: dict[str, object]) -> None:
    """The entry that `repertory connect` writes is left out, and awaits no trust."""
    path = config(tmp_path / "a.json", repertory=own, other={"command": "x"})
    sources = build({"type": "mcp", "config": str(path), "trusted": True}, tmp_path)
    assert [source.name for source in sources] == ["other"]


def test_needs_input() -> None:
    """The message for a missing input names the variable to set."""
    server = ServerConfig(name="a", command="a", args=("${input:never-set}",))
    with pytest.raises(SourceError, match="needs input: set MCP_INPUT_NEVER_SET"):
        McpServer(server, trusted=True).scan()


def test_nothing_secret_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither identity nor location holds a value of the environment, a header or a URL's key."""
    monkeypatch.setenv("TOKEN", SECRET)
    for server in (
        ServerConfig(name="a", command="a", args=("--key", SECRET), env={"K": SECRET}),
        ServerConfig(
            name="a",
            transport=Transport.HTTP,
            url=f"https://me:{SECRET}@host:8080/mcp?key={SECRET}",
            headers={"H": SECRET, "T": "${TOKEN}"},
        ),
    ):
        source = McpServer(server)
        assert SECRET not in json.dumps(source.identity()) + source.location + repr(server)


def test_location() -> None:
    """The location is the command, or the URL without possible keys."""
    assert McpServer(ServerConfig(name="a", command="npx", args=("-y",))).location == "npx"
    url = "https://u:p@mcp.example.com:99/s/0a1b2c3d4e5f6a7b8c9d0e/tools?k=v#f"
    source = McpServer(ServerConfig(name="a", transport=Transport.HTTP, url=url))
    assert source.location == "https://mcp.example.com:99/s/***/tools"


@pytest.mark.parametrize(
    "change",
    [
        {"name": "b"},
        {"command": "other"},
        {"args": ("y",)},
        {"cwd": "sub"},
        {"workspace": "/elsewhere"},
        {"env": {"OTHER": "1"}},
        {"exclude": ("delete_*",)},
    ],
)
def test_identity_differs(change: dict[str, Any]) -> None:
    """Another command, folder or filter is another identity."""
    one: dict[str, Any] = {"name": "a", "command": "c", "args": ("x",), "env": {"K": "1"}}
    first, second = ServerConfig(**one), ServerConfig(**(one | change))
    assert McpServer(first).identity() != McpServer(second).identity()


def test_identity_is_the_same() -> None:
    """A rotated secret, another timeout and another file keep the identity."""
    first = ServerConfig(name="a", command="c", env={"K": "1"}, timeout=1, origins=("x",))
    second = ServerConfig(name="a", command="c", env={"K": "2"}, timeout=2, origins=("y",))
    assert McpServer(first).identity() == McpServer(second).identity()


def test_the_sdk_is_imported_late() -> None:
    """Building sources imports neither the SDK nor an event loop."""
    check = (
        "import sys, repertory.sources.mcp.entry;"
        "print({'mcp', 'anyio', 'httpx2'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_a_scan_is_cancelled_also_while_the_sdk_is_imported(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The import takes a second, in which Ctrl-C was lost: the server was asked nevertheless."""
    source = McpServer(ServerConfig(name="a", command="a"), trusted=True)

    def list_tools(_: ServerConfig, given_up: Future[None]) -> NoReturn:
        raise SourceError("It was given up." if given_up.cancelled() else "It was asked.")

    class Imported(ModuleType):
        """The module that asks servers, of which a scan is cancelled while it is imported."""

        def __getattr__(self, name: str) -> object:
            source.cancel()
            return list_tools

    name = "repertory.sources.mcp.client"
    monkeypatch.setitem(sys.modules, name, Imported(name))
    with pytest.raises(SourceError, match="given up"):
        source.scan()

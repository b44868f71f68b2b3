"""Tests of the source of an MCP server that do not launch the server."""

import json
import subprocess
import sys
from concurrent.futures import Future
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

import pytest

from repertory.errors import ConfigurationError, InputNeededError, SourceError
from repertory.indexing.scan import scan_source
from repertory.sources.mcp.entry import build
from repertory.sources.mcp.server import ServerConfig, Transport
from repertory.sources.mcp.source import McpServer
from repertory.trust import key_of

SECRET = "s3cret-value"


def config(path: Path, **servers: object) -> Path:
    """Write a configuration."""
    path.write_text(json.dumps({"mcpServers": servers}))
    return path


def test_an_entry_builds_one_source_per_server(tmp_path: Path) -> None:
    """The servers of all its files are merged; paths may be relative."""
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
def test_an_invalid_entry_is_rejected(tmp_path: Path, entry: dict[str, Any]) -> None:
    """An option is missing, unknown or invalid."""
    config(tmp_path / "a.json", a={"command": "a"})
    with pytest.raises(ConfigurationError, match="mcp"):
        build({"type": "mcp", **entry}, tmp_path)


def test_an_untrusted_server_is_not_run(tmp_path: Path) -> None:
    """The error contains the command that trusts the file."""
    ran = tmp_path / "ran"
    path = config(tmp_path / "a.json", a={"command": "touch", "args": [str(ran)]})
    [source] = build({"type": "mcp", "config": str(path)}, tmp_path)
    with pytest.raises(SourceError) as caught:
        source.scan()
    assert f"{path} was found but not run; run `repertory config trust {path}`" in str(caught.value)
    assert not ran.exists()


def test_a_server_that_changed_since_it_was_trusted_is_not_run(tmp_path: Path) -> None:
    """The error says so, but not if the trusted file is another one."""
    path = config(tmp_path / "a.json", a={"command": "a"})
    entry = {"type": "mcp", "config": str(path), "trusted": True}
    for approved, says in (({key_of(path): "0" * 64}, "has changed since"), ({}, "was found but")):
        [source] = build({**entry, "approved": approved}, tmp_path)
        with pytest.raises(SourceError, match=says) as caught:
            source.scan()
        assert f"`repertory config trust {path}`" in str(caught.value)


def test_a_server_with_an_invalid_entry_cannot_be_read(tmp_path: Path) -> None:
    """A scan is an error, so its indexed items are kept."""
    path = config(tmp_path / "a.json", a={"command": 7})
    [source] = build({"type": "mcp", "config": str(path), "trusted": True}, tmp_path)
    with pytest.raises(SourceError, match="is invalid"):
        source.scan()


def test_repertory_does_not_index_itself(tmp_path: Path) -> None:
    """A warning says so, and the entry needs no trust."""
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
def test_the_entry_that_connects_a_host_to_repertory_is_not_a_source(
    tmp_path: Path, own: dict[str, object]
) -> None:
    """The entry that `repertory connect` writes is left out."""
    path = config(tmp_path / "a.json", repertory=own, other={"command": "x"})
    sources = build({"type": "mcp", "config": str(path), "trusted": True}, tmp_path)
    assert [source.name for source in sources] == ["other"]


def test_a_server_without_its_input_waits_for_it() -> None:
    """The error names the variable to set. A server without another variable has failed."""
    server = ServerConfig(name="a", command="a", args=("${input:never-set}",))
    source = McpServer(server, trusted=True)
    with pytest.raises(InputNeededError, match="needs input: set MCP_INPUT_NEVER_SET"):
        source.scan()
    assert scan_source(source).awaits_input
    other = ServerConfig(name="a", command="a", args=("${NEVER_SET}",))
    assert not scan_source(McpServer(other, trusted=True)).awaits_input


def test_identity_and_location_contain_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    """Values of the environment, headers and keys in a URL are secrets."""
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


def test_the_location_is_the_command_or_the_url() -> None:
    """Possible keys are removed from the URL."""
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
def test_another_command_folder_or_filter_changes_the_identity(change: dict[str, Any]) -> None:
    """Names of variables are also part of the identity."""
    one: dict[str, Any] = {"name": "a", "command": "c", "args": ("x",), "env": {"K": "1"}}
    first, second = ServerConfig(**one), ServerConfig(**(one | change))
    assert McpServer(first).identity() != McpServer(second).identity()


def test_another_secret_timeout_or_file_keeps_the_identity() -> None:
    """The name, the command and the names of variables are equal."""
    first = ServerConfig(name="a", command="c", env={"K": "1"}, timeout=1, origins=("x",))
    second = ServerConfig(name="a", command="c", env={"K": "2"}, timeout=2, origins=("y",))
    assert McpServer(first).identity() == McpServer(second).identity()


def test_building_a_source_does_not_import_the_sdk() -> None:
    """Nor is an event loop imported."""
    check = (
        "import sys, repertory.sources.mcp.entry;"
        "print({'mcp', 'anyio', 'httpx2'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_a_scan_can_be_cancelled_while_the_sdk_is_imported(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The import takes a second; a cancellation in that time must prevent the request."""
    source = McpServer(ServerConfig(name="a", command="a"), trusted=True)

    def list_tools(_: ServerConfig, given_up: Future[None]) -> NoReturn:
        raise SourceError("It was given up." if given_up.cancelled() else "It was asked.")

    class Imported(ModuleType):
        """A client module whose import cancels the scan."""

        def __getattr__(self, name: str) -> object:
            source.cancel()
            return list_tools

    name = "repertory.sources.mcp.client"
    monkeypatch.setitem(sys.modules, name, Imported(name))
    with pytest.raises(SourceError, match="given up"):
        source.scan()

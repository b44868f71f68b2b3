"""Servers of an MCP registry over HTTP are found, pinned and fetched, and need trust."""

import hashlib
import io
import json
import sys
import zipfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from repertory.errors import ConfigurationError, SourceError, UsageError
from repertory.sources.adding import Address, Recognised, recognise
from repertory.sources.fetched.fetcher import State
from repertory.sources.mcp_registry import registry as api
from repertory.sources.mcp_registry.fetcher import Pin, ServerFetcher
from repertory.sources.mcp_registry.registry import Registry
from repertory.sources.registry import build, contained
from repertory.sources.source import Source, Trust
from tests.support.mcp_registry import McpRegistry, npm, server
from tests.support.web_api import listening

Listen = Callable[[Starlette], str]
TRACKER = "io.github.acme/tracker"


@pytest.fixture
def listen() -> Iterator[Listen]:
    """Serves applications, and returns their URLs."""
    with ExitStack() as servers:
        yield lambda app: servers.enter_context(listening(app))


def recognised(text: str, url: str = "") -> Recognised:
    """The source that an address stands for."""
    return recognise(Address(text, Path.cwd(), {}, url))


def added(found: Recognised, folder: Path) -> dict[str, Any]:
    """The entry of a recognised source, prepared as the workspace prepares it."""
    return {**found.entry, "store": str(folder / "store")}


def built(entry: dict[str, Any], folder: Path) -> Source:
    """The source of an entry."""
    [source] = build(entry, folder)
    return source


def servers_in(entry: dict[str, Any], folder: Path) -> dict[str, Any]:
    """The servers in the MCP configuration that awaits trust."""
    [one] = contained(entry, folder)
    found: dict[str, Any] = json.loads(Path(one["config"]).read_text())["mcpServers"]
    return found


def test_servers_are_found_by_words(listen: Listen) -> None:
    """All pages are read, the best match comes first, and a deleted server is left out."""
    named = [server(f"com.example/github-{n}") for n in range(5)]
    best = server("com.example/github-issues", description="Issues of GitHub")
    registry = McpRegistry(*named, server("com.example/gone-github"), best)
    registry.status["com.example/gone-github", "1.0.0"] = {"status": "deleted"}
    found = Registry(listen(registry.app)).find("github ISSUES", 3)
    assert [one.server.name for one in found] == [
        "com.example/github-issues",
        "com.example/github-0",
        "com.example/github-1",
    ]
    assert any("cursor=4" in request for request in registry.requests)


def test_the_number_of_pages_is_limited(listen: Listen, monkeypatch: pytest.MonkeyPatch) -> None:
    """A registry may offer pages without end."""
    registry = McpRegistry(*(server(f"a.b/n{n}") for n in range(50)))
    monkeypatch.setattr(api, "MAX_PAGES", 3)
    assert len(Registry(listen(registry.app)).find("n", 100)) == 6
    assert len(registry.requests) == 3


def test_an_answer_of_another_program(listen: Listen) -> None:
    """Other JSON objects contain no servers; other answers are an error."""
    answers = iter(
        [b'{"servers": {"a": 1}}', b'{"servers": [1, {"server": 2}]}', b"<html>", b"[1]"]
    )
    app = Starlette(routes=[Route("/{path:path}", lambda _: Response(next(answers)))])
    registry = Registry(listen(app))
    assert registry.find("a", 9) == []
    assert registry.find("a", 9) == []
    for _ in range(2):
        with pytest.raises(SourceError, match="MCP registry"):
            registry.find("a", 9)


def test_a_server_is_pinned_and_awaits_trust(listen: Listen, tmp_path: Path) -> None:
    """Its version is pinned, and its secret is stored only by name."""
    secret = {"name": "TRACKER_TOKEN", "isRequired": True, "isSecret": True, "value": "s3cret"}
    versions = [
        server(TRACKER, version, packages=[npm(version=version, environmentVariables=[secret])])
        for version in ("1.0.0", "1.2.0")
    ]
    registry = McpRegistry(*versions)
    url = listen(registry.app)
    found = recognised(f"mcp-registry:{TRACKER}", url)
    assert found.entry["version"] == "1.2.0"
    assert found.entry["env"] == {"TRACKER_TOKEN": "${TRACKER_TOKEN}"}
    assert "It runs npx -y @acme/tracker-mcp@1.2.0." in found.notes
    entry = added(recognised(f"mcp-registry:{TRACKER}@1.0.0", url), tmp_path)
    assert entry["version"] == "1.0.0"
    source = built(entry, tmp_path)
    with pytest.raises(SourceError, match="not fetched yet"):
        source.scan()
    source.refresh()
    assert source.scan().items == []
    [(name, config)] = servers_in(entry, tmp_path).items()
    assert name == "tracker"
    assert config["args"] == ["-y", "@acme/tracker-mcp@1.0.0"]
    assert config["env"] == {"TRACKER_TOKEN": "${TRACKER_TOKEN}"}
    [mcp] = build(contained(entry, tmp_path)[0], tmp_path)
    assert not mcp.is_trusted
    with pytest.raises(SourceError, match="config trust"):
        mcp.scan()
    stored = [one.read_text() for one in tmp_path.rglob("*") if one.is_file()]
    assert "s3cret" not in str(found) + "".join(stored)


def test_a_server_inherits_the_visibility_and_trust_of_its_source(
    listen: Listen, tmp_path: Path
) -> None:
    """Trust of the source itself is not inherited: the server needs a review."""
    url = listen(McpRegistry(server(TRACKER, "1.0.0", packages=[npm()])).app)
    entry = added(recognised(f"mcp-registry:{TRACKER}", url), tmp_path)
    entry |= {"visible_to": ["team-a"], "trust": "quarantine"}
    built(entry, tmp_path).refresh()
    [one] = contained(entry, tmp_path)
    found = built(one, tmp_path)
    assert (found.visible_to, found.trust) == (("team-a",), Trust.QUARANTINE)
    [one] = contained({**entry, "trust": "trusted"}, tmp_path)
    assert built(one, tmp_path).trust == Trust.REVIEW  # as for all fetched content


def test_a_registry_cannot_replace_a_version(listen: Listen, tmp_path: Path) -> None:
    """Another document for the same version is refused, and the first one stays."""
    registry = McpRegistry(server(TRACKER, packages=[npm()]))
    url = listen(registry.app)
    entry = added(recognised(f"mcp-registry:{TRACKER}@1.0.0", url), tmp_path)
    built(entry, tmp_path).refresh()
    before = servers_in(entry, tmp_path)
    registry.servers[0]["packages"][0]["identifier"] = "@evil/tracker"
    source = built(entry, tmp_path)
    with pytest.raises(SourceError, match="a different document"):
        source.refresh()
    assert servers_in(entry, tmp_path) == before
    assert "a different document" in source.scan().stale


def test_a_deprecated_version_is_reported(listen: Listen, tmp_path: Path) -> None:
    """It is reported when it is added, and when it is deprecated later."""
    registry = McpRegistry(server(TRACKER, packages=[npm()]))
    url = listen(registry.app)
    entry = added(recognised(f"mcp-registry:{TRACKER}", url), tmp_path)
    source = built(entry, tmp_path)
    source.refresh()
    assert source.scan().problems == []
    status = {"status": "deprecated", "statusMessage": "Use 2.0.0."}
    registry.status[TRACKER, "1.0.0"] = status
    assert "deprecated. Use 2.0.0." in " ".join(recognised(f"mcp-registry:{TRACKER}", url).notes)
    source.refresh()
    [problem] = source.scan().problems
    assert "deprecated: Use 2.0.0." in problem.message
    registry.status[TRACKER, "1.0.0"] = {"status": "deleted"}
    with pytest.raises(UsageError, match="deleted"):
        recognised(f"mcp-registry:{TRACKER}", url)


def test_addresses(listen: Listen) -> None:
    """A server can be addressed by name or URL, with a version and a package."""
    remote = {"type": "streamable-http", "url": "https://tracker.example/mcp"}
    one = server(TRACKER, packages=[npm()], remotes=[remote])
    url = listen(McpRegistry(one).app)
    by_url = recognised(f"{url}/v0.1/servers/io.github.acme%2Ftracker/versions/1.0.0")
    assert by_url.entry["url"] == f"{url}/v0.1"
    assert by_url.entry["package"] == "npm"
    assert "#streamable-http" in " ".join(by_url.notes)
    chosen = recognised(f"mcp-registry:{TRACKER}@1.0.0#streamable-http", url)
    assert chosen.entry["package"] == "streamable-http"
    assert "It calls https://tracker.example/mcp." in chosen.notes
    for text, message in (
        (f"mcp-registry:{TRACKER}#oci", "no oci"),
        ("mcp-registry:tracker", "--find"),
        ("mcp-registry:../../x", "--find"),
    ):
        with pytest.raises(UsageError, match=message):
            recognised(text, url)
    for text in (f"mcp-registry:{TRACKER}@9.9.9", "mcp-registry:no.such/server"):
        with pytest.raises(SourceError, match="404"):
            recognised(text, url)


@pytest.mark.parametrize(
    "changes",
    [
        {"version": "latest"},
        {"version": "--yes"},
        {"server": "../x"},
        {"url": "file:///x"},
        {"command": "sh"},
        {"env": "x"},
    ],
)
def test_invalid_entries_are_refused(tmp_path: Path, changes: dict[str, Any]) -> None:
    """People write entries by hand, too."""
    entry = {"server": TRACKER, "version": "1.0.0", "package": "npm", "store": str(tmp_path)}
    with pytest.raises(ConfigurationError):
        build({"type": "mcp-registry", "name": "a", **entry, **changes}, tmp_path)


def bundle(manifest: dict[str, Any]) -> bytes:
    """An MCP bundle with a program and this manifest."""
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        archive.writestr("manifest.json", json.dumps(manifest))
        archive.writestr("server/main.py", "print('hello')")
    return data.getvalue()


def manifest(**config: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
    """The manifest of a bundle."""
    settings = {"token": {"sensitive": True, "default": "s3cret"}, "level": {"default": "info"}}
    return {"server": {"type": "python", "mcp_config": config}, "user_config": settings}


def of_bundle(
    listen: Listen, content: bytes, sha256: str = "", asked: Callable[[], None] = lambda: None
) -> str:
    """The URL of a registry with a server whose package is a bundle."""

    def answer(_request: Request) -> Response:
        asked()
        return Response(content)

    app = Starlette(routes=[Route("/a.mcpb", answer)])
    package = {
        "registryType": "mcpb",
        "identifier": f"{listen(app)}/a.mcpb",
        "fileSha256": sha256 or hashlib.sha256(content).hexdigest(),
        "transport": {"type": "stdio"},
    }
    return listen(McpRegistry(server(TRACKER, packages=[package])).app)


def test_a_bundle_is_unpacked_and_verified(listen: Listen, tmp_path: Path) -> None:
    """Its settings become inputs, and a wrong hash is refused."""
    config = {
        "command": sys.executable,
        "args": ["${__dirname}/server/main.py", "--level=${user_config.level}"],
        "env": {"TOKEN": "${user_config.token}"},
    }
    url = of_bundle(listen, bundle(manifest(**config)))
    entry = added(recognised(f"mcp-registry:{TRACKER}", url), tmp_path)
    built(entry, tmp_path).refresh()
    found = servers_in(entry, tmp_path)["tracker"]
    program, level = found["args"]
    assert Path(program).read_text() == "print('hello')"
    assert level == "--level=info"
    assert found["env"] == {"TOKEN": "${input:token}"}
    other = of_bundle(listen, bundle(manifest(**config)), "0" * 64)
    entry = added(recognised(f"mcp-registry:{TRACKER}", other), tmp_path)
    with pytest.raises(SourceError, match="SHA-256"):
        built(entry, tmp_path).refresh()


def test_a_fetch_can_be_interrupted(listen: Listen, tmp_path: Path) -> None:
    """A command that ends waits neither for a slow registry nor for a bundle."""

    def asked() -> None:
        fetcher.cancelled.set()

    url = of_bundle(listen, bundle(manifest(command="x")), asked=asked)
    pin = Pin(name="a", url=url, server=TRACKER, version="1.0.0", package="mcpb")
    fetcher = ServerFetcher(pin)
    with pytest.raises(SourceError, match=r"a\.mcpb was interrupted"):
        fetcher.fetch(tmp_path, State(), may_ask=False)
    with pytest.raises(SourceError, match=r"versions/1\.0\.0 was interrupted"):
        fetcher.fetch(tmp_path, State(), may_ask=False)


@pytest.mark.parametrize(
    "config",
    [
        {"command": "${HOME}/x"},
        {"command": "x", "env": {"A": "${AWS_SECRET_ACCESS_KEY}"}},
        {"command": "x", "env": {"A=B": "1"}},
        {"command": "x", "args": ["${user_config.other}"]},
        {"args": []},
    ],
)
def test_a_hostile_bundle_is_refused(
    listen: Listen, tmp_path: Path, config: dict[str, Any]
) -> None:
    """Its manifest cannot read environment variables of the user."""
    url = of_bundle(listen, bundle(manifest(**config)))
    entry = added(recognised(f"mcp-registry:{TRACKER}", url), tmp_path)
    with pytest.raises(SourceError, match=r"manifest\.json"):
        built(entry, tmp_path).refresh()

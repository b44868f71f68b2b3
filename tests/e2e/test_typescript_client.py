"""``clients/typescript``: generated, built and used with Node against a real server."""

import json
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.command_line import Cli
from tests.support.openapi import as_text
from tests.support.server_process import Serve
from tests.support.typescript import CLIENT, built_client, check_client, run, run_client_tests

ROOT = CLIENT.parents[1]


@pytest.fixture(scope="module")
def server(user: Cli, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serve]:
    """A server of the examples that allows calls."""
    folder = tmp_path_factory.mktemp("client") / "examples"
    shutil.copytree(ROOT / "examples", folder)
    config = folder / ".mcp.json"
    servers = json.loads(config.read_text("utf-8"))
    servers["mcpServers"]["notes"]["command"] = sys.executable
    config.write_text(json.dumps(servers), "utf-8")
    flags = ("--mcp-config", str(config), "--allow-calls")
    with Serve(user, folder, folder.parent / "log", *flags) as running:
        running.wait_for_sources()
        yield running


@pytest.fixture(scope="module")
def client(pytestconfig: pytest.Config) -> Path:
    """The built client."""
    return built_client(pytestconfig)


def test_the_openapi_document_is_up_to_date(server: Serve) -> None:
    """``clients/openapi.json``, from which types are generated, equals the server's document."""
    written = (CLIENT.parent / "openapi.json").read_text("utf-8")
    is_same = written == as_text(server.get("/openapi.json"))
    assert is_same, "run `make client`"  # a comparison of so much text takes seconds


def test_the_package_is_complete() -> None:
    """Package and lock file have the same exact versions, and the lock file no registry."""
    package = json.loads((CLIENT / "package.json").read_text("utf-8"))
    lock = json.loads((CLIENT / "package-lock.json").read_text("utf-8"))
    wanted = package["dependencies"] | package["devDependencies"]
    assert f'\nversion = "{package["version"]}"\n' in (ROOT / "pyproject.toml").read_text("utf-8")
    assert lock["version"] == package["version"]
    for name, version in wanted.items():
        assert lock["packages"][f"node_modules/{name}"]["version"] == version
    for name, locked in lock["packages"].items():
        assert not name or locked["integrity"]
        assert "resolved" not in locked
    assert list(package["dependencies"]) == ["openapi-fetch"]


def test_the_client_works_with_a_server(client: Path, server: Serve) -> None:
    """The client's own tests pass with Node."""
    run_client_tests(client, server.url, server.token)


def test_the_types_and_the_readme_example_compile_and_run(client: Path, server: Serve) -> None:
    """The example compiles strictly, and prints a hit, a skill and a result."""
    readme = (CLIENT / "README.md").read_text("utf-8")
    (example,) = re.findall(r"```ts\n(.*?)```", readme, re.DOTALL)
    file = client / "test" / "readme.ts"
    file.write_text(example, "utf-8")
    check_client(client)
    shown = run(file, REPERTORY_URL=server.url, REPERTORY_TOKEN=server.token)
    assert re.match(r"0\.\d\d notes__add_note \w", shown)
    assert "# Rotating API keys" in shown
    assert "Buy oats" in shown

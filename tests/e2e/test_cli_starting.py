"""A starting server listens at once and does not wait for its slowest source."""

import json
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.command_line import Cli, add_skill
from tests.support.mcp_servers import SERVERS
from tests.support.server_process import Serve, note_file, note_of
from tests.support.waiting import TIMEOUT_S, until

KNOTS = "---\nname: knots\ndescription: Tie a bowline.\n---\n"
ANSWERING = ["declared.py", str(SERVERS / "weather.json")]
# Runs the command line, and imports the server only when its last argument exists.
LATE_IMPORT = """
import sys, time
from pathlib import Path
from repertory_admin.__main__ import main

class Finder:
    def find_spec(name, path=None, target=None):
        while name == "repertory_embedded.server" and not Path(sys.argv[-1]).exists():
            time.sleep(0.02)

sys.meta_path.insert(0, Finder)
main()
"""

# Sets the limit of open files to 256, starts the command, and prints its new limit.
FEW_FILES = """
import resource, sys
from types import SimpleNamespace
from repertory_admin.__main__ import main

def cli():
    print(resource.getrlimit(resource.RLIMIT_NOFILE)[0])

resource.setrlimit(resource.RLIMIT_NOFILE, (256, int(sys.argv.pop(1))))
sys.modules["repertory_admin.cli"] = SimpleNamespace(cli=cli)
main()
"""


def config_of(folder: Path, **servers: list[str]) -> Path:
    """An MCP configuration; a "held" server waits until ``folder/released`` exists."""
    file = folder / "servers.json"
    described = {
        name: {
            "command": sys.executable,
            "args": [str(SERVERS / arguments[0]), *arguments[1:]],
            "env": {"RELEASED": str(folder / "released")},
        }
        for name, arguments in servers.items()
    }
    file.write_text(json.dumps({"mcpServers": described}), "utf-8")
    return file


def answer(server: Serve, words: str) -> Any:  # noqa: ANN401 - JSON
    """The answer to a search."""
    return server.get(f"/search?q={words}&threshold=0&limit=20")


def found(server: Serve, words: str) -> list[str]:
    """The ids that a search finds."""
    return [hit["toolId"] for hit in answer(server, words)["results"]]


def sources(server: Serve) -> dict[str, Any]:
    """The sources by name."""
    return {one["name"]: one for one in server.get("/stats")["sources"]}


@pytest.fixture
def slow(own: Cli, project: Path, tmp_path: Path) -> Serve:
    """A server of a project with one MCP server that answers and one that waits."""
    config = config_of(tmp_path, weather=ANSWERING, slow=["raw.py", "held"])
    arguments = ("--mcp-config", str(config), "--mcp-timeout", "600")
    return Serve(own, project, tmp_path / "log", *arguments)


def test_a_server_accepts_connections_before_its_imports(
    own: Cli, project: Path, tmp_path: Path
) -> None:
    """The port accepts a request before the server is imported, and answers it afterwards."""
    released = tmp_path / "released"
    process = subprocess.Popen(
        [sys.executable, "-c", LATE_IMPORT, "serve", "--port", "0", "--sandbox", str(released)],
        cwd=project,
        env=own.environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        until(note_file(own, project).exists, process)
        url = note_of(own, project).url
        host, port = url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port)), TIMEOUT_S) as connection:
            connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            released.mkdir()
            assert connection.recv(100).startswith(b"HTTP/1.1 200")
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize(
    ("command", "most", "expected"),
    [("serve", 8_192, 4_096), ("mcp", 1_024, 1_024), ("serve", 256, 256), ("search", 8_192, 256)],
)
def test_a_service_raises_the_limit_of_open_files(command: str, most: int, expected: int) -> None:
    """A service raises its limit of open files, as each MCP server needs several."""
    done = subprocess.run(
        [sys.executable, "-c", FEW_FILES, str(most), command],
        capture_output=True,
        text=True,
        check=True,
    )
    assert int(done.stdout) == expected


def test_nothing_waits_for_a_server_that_hangs(slow: Serve, project: Path, tmp_path: Path) -> None:
    """While an MCP server hangs, other sources and saves are found; its tools follow later."""
    with slow as server:
        assert "project/bread-baking" in found(server, "bake+bread")
        assert any("Starting: " in one for one in answer(server, "bake+bread")["notices"])
        until(lambda: "weather__forecast" in found(server, "weather+forecast"))
        add_skill(project, "knots", KNOTS)
        until(lambda: "project/knots" in found(server, "bowline"))
        until(lambda: answer(server, "bowline")["notices"] == ["Starting: slow."])
        assert sources(server)["slow"]["isStarting"]
        assert server.get("/stats")["errors"] == 0

        (tmp_path / "released").touch()
        until(lambda: "slow__hoist_sails" in found(server, "hoist+sails"))
        until(lambda: answer(server, "hoist+sails")["notices"] == [])
        assert not sources(server)["slow"]["isStarting"]


def test_a_restarted_server_answers_from_the_last_index(slow: Serve, tmp_path: Path) -> None:
    """After a restart, tools of an MCP server that has not answered yet are found."""
    released = tmp_path / "released"
    released.touch()
    with slow as server:
        until(lambda: "slow__hoist_sails" in found(server, "hoist+sails"))
    released.unlink()

    with slow as server:
        until(lambda: any("slow" in one for one in answer(server, "sails")["notices"]))
        assert "slow__hoist_sails" in found(server, "hoist+sails")


def test_a_server_that_times_out_is_a_problem(own: Cli, project: Path, tmp_path: Path) -> None:
    """An MCP server that times out counts as an error and is named in answers and stats."""
    config = config_of(tmp_path, mute=["raw.py", "silent"])
    arguments = ("--mcp-config", str(config), "--mcp-timeout", "1")
    with Serve(own, project, tmp_path / "log", *arguments) as server:
        until(lambda: sources(server)["mute"]["error"])
        stats = server.get("/stats")
        until(lambda: any("mute" in one for one in answer(server, "bread")["notices"]))

    assert stats["errors"] == 1
    assert errors_of(stats) == ["mute"]
    assert not sources_of(stats)["mute"]["isStarting"]


def test_a_server_that_awaits_trust_is_no_problem(own: Cli, project: Path, tmp_path: Path) -> None:
    """An untrusted MCP server is shown as waiting for trust, not as an error."""
    config_of(project, weather=ANSWERING).rename(project / ".mcp.json")
    with Serve(own, project, tmp_path / "log") as server:
        until(lambda: "weather" in sources(server))
        stats = server.get("/stats")
        shown = own.run(project, "stats").stdout

    assert sources_of(stats)["weather"]["awaitsTrust"]
    assert (stats["errors"], errors_of(stats)) == (0, [])
    assert "waiting for trust" in shown


def errors_of(stats: Any) -> list[str]:  # noqa: ANN401 - JSON
    """The paths of the errors in some statistics."""
    return [one["path"] for one in stats["problems"] if one["severity"] == "error"]


def sources_of(stats: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
    """The sources of statistics by name."""
    return {one["name"]: one for one in stats["sources"]}

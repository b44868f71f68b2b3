"""The audit log of the command line and of ``repertory mcp``."""

import asyncio
import getpass
from pathlib import Path
from typing import Any

from tests.support.audits import read_lines
from tests.support.builders import write
from tests.support.command_line import Cli
from tests.support.mcp_sessions import stdio_session
from tests.support.server_process import Serve

USER = f"user:{getpass.getuser()}"


def test_administrative_commands_are_recorded(own: Cli, project: Path) -> None:
    """Each administrative command has one line with its user, also if it was refused."""
    config = write(project / ".mcp.json", '{"mcpServers": {}}')
    for arguments in (
        ("keys", "create", "ci"),
        ("keys", "create", "ci"),
        ("keys", "revoke", "ci"),
        ("keys", "reset", "--yes"),
        ("config", "trust", config),
        ("config", "untrust", config),
        ("config", "untrust", "~/servers.json"),
        ("logout", "vault"),
        ("keys", "list"),
    ):
        own.run(project, *arguments)
    lines = read_lines(own.data / "audit")
    assert [(line["action"], line.get("what"), line["outcome"]) for line in lines] == [
        ("key-create", ["ci"], "ok"),
        ("key-create", ["ci"], "refused"),
        ("key-revoke", ["ci"], "ok"),
        ("key-reset", None, "ok"),
        ("trust", [str(config)], "ok"),
        ("untrust", [str(config)], "ok"),
        ("untrust", [str(own.home / "servers.json")], "ok"),
        ("logout", ["vault"], "ok"),
    ]
    assert {(line["caller"], line["face"]) for line in lines} == {(USER, "cli")}


def test_init_records_the_given_project(own: Cli, project: Path, tmp_path: Path) -> None:
    """The line names the given project, not the working directory."""
    write(project / ".mcp.json", '{"mcpServers": {"clock": {"command": "clock"}}}')
    own.run(tmp_path, "init", project, "--trust")
    [line] = read_lines(own.data / "audit")
    assert (line["action"], line["project"]) == ("trust", str(project))


def test_a_log_that_cannot_be_written_is_reported(own: Cli, project: Path) -> None:
    """The command works and warns that it is not logged; ``doctor`` reports it, too."""
    place = write(own.home / "place", "no folder")
    own.environment["REPERTORY_AUDIT_FOLDER"] = str(place)
    done = own.run(project, "keys", "create", "ci")
    assert done.returncode == 0
    assert f"The audit log {place}/audit.jsonl cannot be written: " in done.stderr
    [check] = [
        one for one in own.json(project, "doctor")["checks"] if one["subject"] == "audit log"
    ]
    assert check["state"] == "bad"


def test_requests_of_an_agent_host_are_recorded_once(own: Cli, project: Path) -> None:
    """Requests over stdio are recorded once, also if ``repertory mcp`` asks a server."""

    async def ask() -> None:
        async with stdio_session(own, project) as client:
            await client.call_tool("search", {"query": "read a file"})
            await client.call_tool("get", {"id": "files__read_file"})

    def lines() -> list[tuple[str, str, list[str]]]:
        found: list[dict[str, Any]] = read_lines(own.data / "audit")
        return [
            (line["action"], line["caller"], line.get("what", []))
            for line in found
            if line["face"] in ("mcp", "http")
        ]

    once = [("search", USER, []), ("read", USER, ["files__read_file"])]
    asyncio.run(ask())
    assert lines() == once
    with Serve(own, project, own.home / "log"):
        asyncio.run(ask())
    assert lines() == 2 * once

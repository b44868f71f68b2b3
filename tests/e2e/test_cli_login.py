"""``repertory login`` and ``logout`` with a real, local authorization server."""

import json
import subprocess
import sys
from pathlib import Path

import httpx2

from tests.support.builders import write
from tests.support.command_line import COMMAND, Cli
from tests.support.mcp_servers import started

# Stands for a browser: it follows redirects.
BROWSER = "import sys, urllib.request; urllib.request.urlopen(sys.argv[1]).read()"
WAITING = "The MCP server vault is waiting for sign-in; run `repertory login vault`."


def test_the_journey_of_a_sign_in(own: Cli, project: Path) -> None:
    """A server waits for sign-in beside a working catalogue; a login indexes its tools."""
    browser = write(own.home / "browser.py", BROWSER)
    own.environment["BROWSER"] = f"{sys.executable} {browser} %s"
    with started("oauth.py", "registers") as url:
        config = write(project / ".mcp.json", json.dumps({"mcpServers": {"vault": {"url": url}}}))
        untrusted = own.run(project, "login", "vault")
        assert untrusted.returncode == 2
        assert "repertory config trust" in untrusted.stderr

        trusted = own.run(project, "config", "trust", config)
        assert WAITING in " ".join(trusted.stdout.split())
        stats = own.json(project, "stats")
        [vault] = [one for one in stats["sources"] if one["name"] == "vault"]
        assert (vault["awaitsSignIn"], vault["error"]) == (True, WAITING)
        assert WAITING in [one["message"] for one in stats["problems"]]
        assert stats["items"] > 5
        checks = own.json(project, "doctor")["checks"]
        [check] = [one for one in checks if one["subject"] == "source vault"]
        assert (check["state"], check["text"]) == ("unsure", WAITING)

        unknown = own.run(project, "login", "volt")
        assert unknown.returncode == 2
        assert "which has: vault" in unknown.stderr
        done = own.run(project, "login", "vault")
        assert done.returncode == 0, done.stderr
        assert done.stdout.splitlines()[-2:] == ["Signed in at vault.", "vault: 1 tool indexed."]

        again = own.run(project, "logout", "vault")
        assert again.stdout == "The sign-in at vault is forgotten.\n"
        assert own.run(project, "logout", "vault").returncode == 1
        assert "vault: 1 tool indexed." in pasted(own, project)

        config.write_text(json.dumps({"mcpServers": {"vault": {"url": "${NOT_SET}/mcp"}}}))
        forgotten = own.run(project, "logout", "vault")
        assert forgotten.stdout == "The sign-in at vault is forgotten.\n", forgotten.stderr


def test_the_watch_service_of_a_team_lists_tools_after_a_login(own: Cli, project: Path) -> None:
    """In a team setup, the watch service lists the tools, not the command."""
    browser = write(own.home / "browser.py", BROWSER)
    own.environment["BROWSER"] = f"{sys.executable} {browser} %s"
    with started("oauth.py", "registers") as url:
        config = write(project / ".mcp.json", json.dumps({"mcpServers": {"vault": {"url": url}}}))
        own.environment["REPERTORY_REDIS_URL"] = "redis://127.0.0.1:1"
        for command, argument in (("config trust", config), ("login", "vault")):
            done = own.run(project, *command.split(), argument)
            assert done.returncode == 0, done.stderr
            assert done.stdout.splitlines()[-1] == (
                "Running servers will list the tools of vault within seconds."
            )
        assert own.run(project, "logout", "vault").returncode == 0


def pasted(own: Cli, project: Path) -> str:
    """Sign in by pasting the address, as in a container, and return the output."""
    with subprocess.Popen(
        [*COMMAND, "login", "vault", "--no-browser"],
        cwd=project,
        env=own.environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout
            address = process.stdout.readline().removeprefix("Sign in at ").strip()
            location = httpx2.get(address).headers["Location"]
            return process.communicate(f"no address\n{location}\n")[0]
        finally:
            process.kill()

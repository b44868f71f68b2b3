"""``repertory mcp``."""

import logging
import os
import signal
import sys
import threading
from pathlib import Path
from typing import Annotated

import typer

from repertory.errors import UsageError
from repertory.project.defaults import Defaults
from repertory.system import logs
from repertory.system.paths import expanded
from repertory_admin import terminal
from repertory_admin.app import app, command
from repertory_admin.options import ASKING, CALLING, RANKING, STORE, WATCHING, Flags
from repertory_admin.target import here
from repertory_query.mcp.toolset_names import Toolset

_log = logging.getLogger(__name__)


@command(
    app,
    "mcp",
    settings=(*STORE, "device", "mcp_timeout", *RANKING, *ASKING, *WATCHING, *CALLING),
    examples=(
        "repertory mcp",
        "repertory mcp --toolset skills --toolset project",
        "repertory connect   # shows the agent hosts that were found, and connects one of them",
        "",
        "In the configuration of any other agent host:",
        '{"mcpServers": {"repertory": {"command": "repertory", "args": ["mcp"]}}}',
    ),
)
def mcp(
    flags: Flags,
    toolset: Annotated[
        list[Toolset] | None,
        typer.Option(
            metavar="NAME",
            help="The tools to offer: catalogue (search, get, call), skills (Vector.SearchSkills, "
            "Vector.VectorUpdate, skill.discovery.search), "
            "portable-skills (the same with names that every model API accepts: "
            "Vector_SearchSkills), project (search) or explain (explain); "
            "repeatable.  "
            "[default: catalogue]",
            show_default=False,
        ),
    ] = None,
    directory: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="The project, for hosts that start their servers elsewhere  "
            "[default: this directory]",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Run as an MCP server over stdio, for an agent host.

    It asks the configured server, or lets a running server serve this directory, too. If no server
    runs, it becomes the server: it indexes, watches and answers other commands until the agent host
    ends it. A server over HTTP has the same tools at /mcp, /mcp/skills, /mcp/portable-skills,
    /mcp/project and /mcp/explain.
    """
    if directory:
        _enter(directory)
    settings, directory = here(flags)
    if sys.stdin.isatty():
        terminal.note(
            "An agent host starts this command and speaks MCP with it; `repertory connect` sets "
            "one up. Ctrl-C ends it."
        )
    logs.begin(logging.WARNING)
    from repertory.audit import Audit  # noqa: PLC0415 - only for this
    from repertory.compose import Parts  # noqa: PLC0415 - slow to import
    from repertory_embedded.failover import Failover  # noqa: PLC0415 - slow to import, and optional
    from repertory_query.mcp import stdio  # noqa: PLC0415 - slow to import
    from repertory_query.mcp.toolsets import tools_of  # noqa: PLC0415 - slow to import
    from repertory_query.server.signals import termination_signals  # noqa: PLC0415 - only for this

    # A team's server records what it is asked; see ``Failover``.
    is_remote = bool(settings.values.server_url or settings.values.redis_url)
    audit = None if is_remote else Audit(settings, directory)
    usage = Parts(settings, directory).usage_recorder()
    tools = tools_of(toolset or [Toolset.CATALOGUE], Defaults(settings, directory))
    failover = Failover(settings, directory)
    with termination_signals() as stopping:

        def end() -> None:
            stopping.append(signal.SIGTERM)  # as a signal would

        def answer() -> None:
            try:
                stdio.run(failover, tools, audit, usage, broken=end)
            # A boundary: the host may close either stream at any moment.
            except Exception:
                _log.warning("session_broken", exc_info=True)
            finally:
                end()

        # Reading standard input cannot be interrupted, so this thread is not joined.
        threading.Thread(target=answer, name="stdio", daemon=True).start()
        failover.run(stopping)


def _enter(directory: Path) -> None:
    """Make a folder the working directory.

    Raises:
        UsageError: It cannot be entered.
    """
    try:
        os.chdir(expanded(directory))
    except OSError as error:
        raise UsageError(f"--directory is {directory}: {error.strerror}.") from error

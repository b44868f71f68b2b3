"""``repertory login`` and ``repertory logout``: the sign-ins at MCP servers with OAuth."""

import os
import sys
import threading
import webbrowser
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated
from urllib.parse import urlsplit

import typer

from repertory.data_directory import SIGN_INS
from repertory.errors import SourceError, UsageError
from repertory.project.workspace import Workspace
from repertory.sources.mcp.sign_ins import SignIns
from repertory.sources.mcp.source import McpServer
from repertory.sources.mcp.variables import fill_in
from repertory_admin import terminal
from repertory_admin.app import app, command
from repertory_admin.auditing import audited
from repertory_admin.confirmation import can_ask, confirm
from repertory_admin.exits import ExitCode
from repertory_admin.options import ASKING, INDEXING, STORE, TEAM, Flags
from repertory_admin.target import here, index_tools
from repertory_admin.text import safe

if TYPE_CHECKING:
    from repertory.sources.mcp.redirects import Redirects

MAX_PASTED = 65_536  # bytes of a line

SETTINGS = (*STORE, *INDEXING, *ASKING, *TEAM)

ServerArgument = Annotated[
    str,
    typer.Argument(
        metavar="SERVER", help="The name of an MCP server of this catalogue.", show_default=False
    ),
]


@command(
    app,
    "login",
    settings=SETTINGS,
    examples=("repertory login github", "repertory login github --no-browser"),
)
def login(
    flags: Flags,
    server: ServerArgument,
    browser: Annotated[
        bool,
        typer.Option(
            "--browser/--no-browser",
            help="Open a browser, or only show the address, for a browser on any machine.",
        ),
    ] = True,
) -> None:
    """Sign in at an MCP server that asks for it.

    A browser opens for that (OAuth), and the server's tools are indexed afterwards. The tokens
    stay in the data directory, where only you can read them, and are renewed automatically. For a
    team, run this where its watch service runs, with the same data directory.
    """
    settings, directory = here(flags)
    config = _source(Workspace(settings, directory), server).to_contact()
    from repertory.sources.mcp.signing_in import sign_in  # noqa: PLC0415 - the SDK is slow

    def show(address: str, redirects: "Redirects", receiver: str) -> None:
        if receiver:
            _ask(server, address, receiver)
        if browser:
            terminal.show_text(f"Sign in with the browser that opens, or at {address}")
            threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()
        else:
            terminal.show_text(f"Sign in at {address}")
            terminal.show_text(
                "If that browser runs on another machine, its last page cannot be loaded: paste "
                "the address of that page here."
            )
        sys.stdout.flush()
        threading.Thread(target=_paste, args=(redirects,), daemon=True).start()

    with audited(settings, directory, "login", [server]):
        sign_in(config, show)
    terminal.show_text(f"Signed in at {server}.")
    index_tools(settings, directory, [server])


def _ask(server: str, address: str, receiver: str) -> None:
    """Warn that a sign-in gives access to another host, and ask for confirmation in a terminal.

    Raises:
        UsageError: The answer is no.
    """
    what = (
        f"{server} wants you to sign in at {urlsplit(address).hostname}, which gives access to "
        f"{receiver}."
    )
    if can_ask():
        confirm(safe(f"{what} Is that right?"), yes=False, done="signed in")
    else:
        terminal.warn(what)


@command(app, "logout", settings=SETTINGS, examples=("repertory logout github",))
def logout(flags: Flags, server: ServerArgument) -> None:
    """Forget the sign-in at an MCP server.

    Its indexed items stay.
    """
    settings, directory = here(flags)
    source = _servers(Workspace(settings, directory)).get(server)
    url = ""
    if source and source.config.url:
        with suppress(SourceError):  # a variable is not set; the name is enough
            url = fill_in(source.config).url
    with audited(settings, directory, "logout", [server]):
        is_forgotten = SignIns(settings.data_dir / SIGN_INS).forget(server, url)
    if not is_forgotten:
        terminal.show_text(f"There is no sign-in at {server}.")
        raise typer.Exit(ExitCode.NOT_FOUND)
    terminal.show_text(f"The sign-in at {server} is forgotten.")


def _servers(workspace: Workspace) -> dict[str, McpServer]:
    """The MCP servers of a catalogue by their names."""
    sources = workspace.catalogue().sources
    return {source.name: source for source in sources if isinstance(source, McpServer)}


def _source(workspace: Workspace, name: str) -> McpServer:
    """The MCP server with this name.

    Raises:
        UsageError: The catalogue has no such server.
    """
    servers = _servers(workspace)
    if name in servers:
        return servers[name]
    there = ", ".join(servers) or "none"
    raise UsageError(
        f"There is no MCP server {name[:100]!r} in this catalogue, which has: {there}. Sign in "
        "where the server is configured; for a team, where its watch service runs."
    )


def _paste(redirects: "Redirects") -> None:
    """Read the address of the last page from standard input, until the process ends."""
    text = b""
    # Unbuffered, because a thread in a buffered read would keep the process from ending.
    while piece := os.read(sys.stdin.fileno(), MAX_PASTED):
        *lines, text = (text + piece)[-MAX_PASTED:].split(b"\n")
        for line in lines:
            if not redirects.accept(line.decode("utf-8", "replace")) and line.strip():
                terminal.warn("This is not the address of the last page of this sign-in.")

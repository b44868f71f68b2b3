"""`repertory add --find`: search the servers of an MCP registry."""

from typing import Annotated

import typer

from repertory.sources.mcp_registry.launch import choices
from repertory.sources.mcp_registry.registry import Registry
from repertory_admin import terminal
from repertory_admin.exits import ExitCode

MAX_SHOWN = 20  # servers

FindOption = Annotated[
    bool,
    typer.Option("--find", help="Only search the MCP registry for servers with these words."),
]


def show_servers(registry: str, words: str) -> None:
    """Show the servers that match some words; exit with code 1 if no server matches."""
    found = Registry(registry).find(words, MAX_SHOWN)
    if not found:
        terminal.show_text(f"{registry} has no server for {words!r}; try a part of its name.")
        raise typer.Exit(ExitCode.NOT_FOUND)
    terminal.show_table(
        ("Server", "Kinds", "Description"),
        [
            (
                f"{one.server.name}@{one.server.version}",
                ", ".join(choices(one.server)),
                one.server.description,
            )
            for one in found
        ],
        short=("Description",),
        styles={"Server": lambda _: "bold cyan", "Kinds": lambda _: "dim"},
    )
    terminal.note("`repertory add mcp-registry:SERVER` shows one and adds it.")

"""``repertory index`` and ``repertory rebuild``."""

from pathlib import Path
from typing import Annotated

import typer

from repertory.client import Client
from repertory.errors import UsageError
from repertory.workspace import Workspace
from repertory_admin import terminal
from repertory_admin.app import app, command
from repertory_admin.backend import Target, target_of
from repertory_admin.exits import ExitCode
from repertory_admin.mcp_trust import untrusted
from repertory_admin.options import ASKING, INDEXING, STORE, Flags, Output, OutputOption
from repertory_admin.progress import Bars
from repertory_admin.rebuilding import rebuilt
from repertory_admin.show import runs


@command(
    app,
    "index",
    settings=(*STORE, *INDEXING, *ASKING),
    examples=("repertory index", "repertory index ~/team-skills ./docs --output json"),
)
def index(
    flags: Flags,
    paths: Annotated[
        list[Path] | None, typer.Argument(help="Folders or files to index.", show_default=False)
    ] = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Make the index equal to the sources.

    Only what changed is embedded. PATHS become this directory's catalogue until the next
    `repertory index`; without any, it is the sources of repertory.toml, or else those found here
    and in the home directory. A server does all this by itself.
    """
    target = target_of(flags)
    if target.server:
        _leave_to(target.server, target, paths or [])
        if output is Output.JSON:
            terminal.show_json({"stats": target.server.stats()})
        else:
            terminal.tell(
                f"The server at {target.server.url} watches the sources and indexes what changes; "
                "`repertory stats` shows how far it is."
            )
    else:
        _index_here(target, output, paths=paths or [])


@command(
    app,
    "rebuild",
    settings=(*STORE, *INDEXING, *ASKING),
    examples=("repertory rebuild", "repertory rebuild --wait"),
)
def rebuild(
    flags: Flags,
    wait: Annotated[
        bool, typer.Option("--wait", help="Of a server: wait until the new index is active.")
    ] = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Build a new index beside the old one.

    The new one is used when it is complete. Items of sources that are empty now are removed. Texts
    that were embedded before are not embedded again.
    """
    target = target_of(flags)
    if target.server:
        _rebuild_there(target.server, output, wait=wait)
    else:
        _index_here(target, output)


def _leave_to(client: Client, target: Target, paths: list[Path]) -> None:
    """Let a server index these paths; one that runs for this directory follows them."""
    if not target.settings.values.server_url:
        Workspace(target.settings, target.directory).set_paths(paths)
    elif paths:
        raise UsageError(
            f"What the server at {client.url} indexes is configured there; name no paths."
        )


def _rebuild_there(client: Client, output: Output, *, wait: bool) -> None:
    begun = client.rebuild()
    if not wait:
        if output is Output.JSON:
            terminal.show_json(begun)
        else:
            terminal.tell(
                f"Generation {begun.generation} is being built beside the one that is searched; "
                "`repertory stats` shows how far it is, `repertory rebuild --wait` waits for it."
            )
        return
    stats = rebuilt(client, begun)
    if output is Output.JSON:
        terminal.show_json({"stats": stats})
    else:
        terminal.say(f"{terminal.count(stats.items, 'item')} are searched in {stats.collection}.")


def _index_here(target: Target, output: Output, paths: list[Path] | None = None) -> None:
    """Index these paths; None rebuilds."""
    with Bars() as bars, target.open_here(bars) as repertory:
        if paths is not None:
            repertory.workspace.set_paths(paths)
        run = repertory.rebuild(bars.step) if paths is None else repertory.index(bars.step)
        skipped = untrusted(repertory.workspace)
    if output is Output.JSON:
        terminal.show_json(run)
    else:
        runs.show(run, skipped)
    if (code := runs.exit_code(run, skipped)) is not ExitCode.DONE:
        raise typer.Exit(code)

"""``repertory index`` and ``repertory rebuild``."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from repertory.errors import UsageError
from repertory.settings import Settings, load
from repertory_admin import terminal
from repertory_admin.app import app, command
from repertory_admin.exits import ExitCode
from repertory_admin.options import ASKING, INDEXING, STORE, Flags, Output, OutputOption

if TYPE_CHECKING:
    from repertory.client import Client


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
    `repertory index`; without any, it is what repertory.toml lists, or else what is found here and
    in the home directory. A server does all this by itself.
    """
    from repertory import running  # noqa: PLC0415 - --help must be instant

    directory = Path.cwd()
    settings = load(flags, directory)
    if client := running.client(settings, directory):
        _leave_to(client, settings, directory, paths or [])
        if output is Output.JSON:
            terminal.show_json({"server": client.url})
        else:
            terminal.tell(
                f"The server at {client.url} watches the sources and indexes what changes; "
                "`repertory stats` shows how far it is."
            )
    else:
        _index_here(settings, directory, output, paths=paths or [])


@command(
    app,
    "rebuild",
    settings=(*STORE, *INDEXING, *ASKING),
    examples=("repertory rebuild", "repertory rebuild --wait"),
)
def rebuild(
    flags: Flags,
    wait: Annotated[
        bool, typer.Option("--wait", help="Of a server: wait until the new index is in force.")
    ] = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Build the index anew, beside the old one.

    The new one is taken when it is whole. A source that is suddenly empty is believed; no text is
    embedded whose vector is known.
    """
    from repertory import running  # noqa: PLC0415 - --help must be instant

    directory = Path.cwd()
    settings = load(flags, directory)
    if client := running.client(settings, directory):
        _rebuild_there(client, output, wait=wait)
    else:
        _index_here(settings, directory, output)


def _leave_to(client: "Client", settings: Settings, directory: Path, paths: list[Path]) -> None:
    """Have a server index these paths: one that runs for this directory follows what is set."""
    from repertory.workspace import Workspace  # noqa: PLC0415 - --help must be instant

    if not settings.values.server_url:
        Workspace(settings, directory).set_paths(paths)
    elif paths:
        raise UsageError(
            f"What the server at {client.url} indexes is configured there; name no paths."
        )


def _rebuild_there(client: "Client", output: Output, *, wait: bool) -> None:
    from repertory_admin.rebuilding import rebuilt  # noqa: PLC0415 - --help must be instant

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
        terminal.show_json(stats)
    else:
        terminal.say(f"{terminal.count(stats.items, 'item')} are searched in {stats.collection}.")


def _index_here(
    settings: Settings, directory: Path, output: Output, paths: list[Path] | None = None
) -> None:
    """Index these paths; or rebuild, if there is no list of them at all."""
    from repertory.one_shot import Repertory  # noqa: PLC0415 - --help must be instant
    from repertory_admin import reports  # noqa: PLC0415 - likewise
    from repertory_admin.mcp_trust import untrusted  # noqa: PLC0415 - likewise
    from repertory_admin.progress import Bars  # noqa: PLC0415 - likewise

    with Bars() as bars, Repertory(settings, directory, download=bars.download) as repertory:
        if paths is not None:
            repertory.workspace.set_paths(paths)
        report = repertory.rebuild(bars.step) if paths is None else repertory.index(bars.step)
        skipped = untrusted(repertory.workspace)
    if output is Output.JSON:
        terminal.show_json(report)
    else:
        reports.show(report, skipped)
    if (code := reports.exit_code(report, skipped)) is not ExitCode.DONE:
        raise typer.Exit(code)

"""``repertory index`` and ``repertory rebuild``."""

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Annotated

import typer

from repertory.errors import SourceError, StoreBusyError, StoreError, UsageError
from repertory.indexing.collection_names import configuration_of, generation_of
from repertory.indexing.scan import CONCURRENCY
from repertory.project.trust_requests import untrusted
from repertory.project.workspace import Workspace
from repertory.remote.client import Client
from repertory.sources.source import Source
from repertory.stats import Rebuild, Run, Stats
from repertory.text import counted
from repertory_admin import terminal
from repertory_admin.app import app, command
from repertory_admin.exits import ExitCode
from repertory_admin.options import ASKING, INDEXING, STORE, Flags, Output, OutputOption
from repertory_admin.progress import Bars
from repertory_admin.show import runs
from repertory_admin.target import Target, target_of

POLL_INTERVAL_S = 0.3
TIMEOUT_S = 60.0  # without an answer: the server may be restarting


@command(
    app,
    "index",
    settings=(*STORE, *INDEXING, *ASKING),
    examples=("repertory index", "repertory index ~/team-skills ./docs --output json"),
)
def index(
    flags: Flags,
    paths: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[PATH]...", help="Folders or files to index.", show_default=False),
    ] = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Make the index equal to the sources.

    Only new and changed texts are embedded. The sources are the PATHs, which stay in effect until
    the next `repertory index`; else those of repertory.toml; else those found here and in the home
    directory. If a server runs, it does the indexing, and this command only fetches remote content.
    """
    target = target_of(flags)
    if target.server:
        _leave_to(target.server, target, paths or [])
        unfetched = _fetch(target)
        _show_server(target.server, output)
        if unfetched:
            raise typer.Exit(ExitCode.UNREAD)
        return
    try:
        with Bars() as bars, target.open_here(bars) as repertory:
            repertory.workspace.set_paths(paths or [])
            run = repertory.index(bars.step)
    except StoreBusyError:
        if (server := target.started()) is None:
            raise
        _show_server(server, output)
    else:
        _report(run, target, output)


@command(
    app,
    "rebuild",
    settings=(*STORE, *INDEXING, *ASKING),
    examples=("repertory rebuild", "repertory rebuild --wait"),
)
def rebuild(
    flags: Flags,
    wait: Annotated[
        bool, typer.Option("--wait", help="Wait until a server uses the new index.")
    ] = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Build a new index beside the old one.

    Searches use the old index until the new one is complete. A source that is now empty loses its
    items. Texts that were embedded before are not embedded again.
    """
    target = target_of(flags)
    if target.server:
        _rebuild_there(target.server, output, wait=wait)
    else:
        with Bars() as bars, target.open_here(bars) as repertory:
            run = repertory.rebuild(bars.step)
        _report(run, target, output)


def _leave_to(client: Client, target: Target, paths: list[Path]) -> None:
    """Let the server of this directory index these paths; a configured server takes none."""
    if not target.settings.values.server_url:
        Workspace(target.settings, target.directory).set_paths(paths)
    elif paths:
        raise UsageError(
            f"The sources of the server at {client.remote.url} are configured there; give no paths."
        )


def _show_server(server: Client, output: Output) -> None:
    """Say that a server does the indexing."""
    stats = server.stats()  # also shows that it answers
    if output is Output.JSON:
        terminal.show_json({"stats": stats})
    else:
        terminal.show_text(
            f"The server at {server.remote.url} watches the sources and indexes changes; "
            "`repertory stats` shows its progress."
        )


def _fetch(target: Target) -> int:
    """Fetch remote content, which the server notices, and return the number of failures."""
    if target.settings.values.server_url:
        return 0
    catalogue = Workspace(target.settings, target.directory).catalogue()
    sources = [source for source in catalogue.sources if source.fetches]
    with ThreadPoolExecutor(CONCURRENCY) as pool:
        try:
            failures = {*pool.map(_failure, sources)} - {""}
        except BaseException:  # Ctrl-C
            pool.shutdown(wait=False, cancel_futures=True)  # no fetch may start after its cancel
            for source in sources:
                source.cancel()
            raise
    for failure in sorted(failures):
        terminal.warn(failure)
    return len(failures)


def _failure(source: Source) -> str:
    """Fetch the content of a source, and return the error, empty on success."""
    try:
        source.refresh()
    except SourceError as error:
        return str(error)
    return ""


def _rebuild_there(client: Client, output: Output, *, wait: bool) -> None:
    begun = client.rebuild()
    if not wait:
        if output is Output.JSON:
            terminal.show_json(begun)
        else:
            terminal.show_text(
                f"Generation {begun.generation} is being built beside the one that is searched; "
                "`repertory stats` shows the progress, `repertory rebuild --wait` waits for it."
            )
        return
    stats = _rebuilt(client, begun)
    if output is Output.JSON:
        terminal.show_json({"stats": stats})
    else:
        terminal.say(f"{stats.collection} is searched now: {counted(stats.items, 'item')}.")
    _exit_if_unread(stats)


def _rebuilt(client: Client, begun: Rebuild) -> Stats:
    """Wait until the new generation, or a newer one, is active; return the server's state.

    Raises:
        StoreError: The server does not answer, or its configuration has changed.
    """
    answered_at = time.monotonic()
    shown: set[str] = set()
    with Bars() as bars:
        while True:
            stats = None
            try:
                stats = client.stats()
                answered_at = time.monotonic()
            except StoreError:
                if time.monotonic() - answered_at > TIMEOUT_S:
                    raise
            if stats is not None:
                if _is_there(stats, begun):
                    return stats
                for trouble in stats.troubles:
                    if trouble not in shown:
                        shown.add(trouble)
                        terminal.warn(f"waiting: {trouble}")
                if building := stats.building:
                    bars.step("Building", building.done, building.total)
            time.sleep(POLL_INTERVAL_S)


def _is_there(stats: Stats, begun: Rebuild) -> bool:
    """Whether the new generation is active."""
    if stats.configuration != begun.configuration:
        raise StoreError(
            "The configuration has changed meanwhile, so another index is being built; "
            "`repertory stats` shows it."
        )
    found = stats.collection
    return (
        configuration_of(found) == begun.configuration and generation_of(found) >= begun.generation
    )


def _report(run: Run, target: Target, output: Output) -> None:
    """Show a run, and the configurations that wait for trust."""
    if output is Output.JSON:
        terminal.show_json(run)
    else:
        runs.show(run, untrusted(Workspace(target.settings, target.directory)))
    _exit_if_unread(run.stats)


def _exit_if_unread(stats: Stats) -> None:
    """Exit with ``UNREAD`` if something could not be read; missing trust does not count."""
    if stats.errors or stats.queue.failed or not stats.model:
        raise typer.Exit(ExitCode.UNREAD)

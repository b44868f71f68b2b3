"""The sources behind an address that a user wants to add, fetched and read."""

import shutil
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path

import msgspec

from repertory.errors import UsageError
from repertory.project.workspace import Workspace
from repertory.sources.adding import Recognised, reconsider
from repertory.sources.entry import checked_name
from repertory.sources.fetched.content import Content
from repertory.sources.fetched.source import FetchedSource
from repertory.sources.fetched.users import used
from repertory.sources.registry import build, contained
from repertory.sources.source import Source
from repertory_admin import terminal
from repertory_admin.confirmation import can_ask

WAKE_S = 0.2  # between two checks for a signal while something is fetched


class Fetched(msgspec.Struct, frozen=True):
    """The sources behind an address.

    Attributes:
        recognised: What the address is, with the entry to write.
        sources: Its sources.
        servers: The MCP servers in what was fetched; they need trust.
    """

    recognised: Recognised
    sources: list[Source]
    servers: list[Source]


def fetched(recognised: Recognised, workspace: Workspace, store: Path, name: str | None) -> Fetched:
    """Fetch the sources behind an address. What was fetched may show that it is of another type.

    Args:
        recognised: What the address seems to be.
        workspace: The directory that they will be added to.
        store: The folder of all fetched content.
        name: The name that the user gave, if any.

    Raises:
        UsageError: The name is taken or invalid.
        SourceError: They cannot be fetched; nothing is left behind.
    """
    taken = {source.name for source in workspace.catalogue().sources}
    while True:
        entry = {**recognised.entry, **({"name": name} if name else {})}
        recognised = msgspec.structs.replace(recognised, entry=entry)
        if checked_name(entry["name"]) in taken:
            raise UsageError(f"There is a source {entry['name']!r} already; give another --name.")
        prepared = {**entry, "store": str(store)}
        sources = build(prepared, workspace.base)
        terminal.note(f"Fetching {sources[0].location} …")
        try:
            for source in sources:
                _refresh(source, may_ask=can_ask())
        except BaseException:
            discard(sources, used(store))
            raise
        content = _content(sources[0])
        better = reconsider(recognised, content.path) if content else recognised
        if better is recognised:
            break
        discard(sources, used(store))
        recognised = better
    servers = [
        source
        for one in contained(prepared, workspace.base)
        for source in build({**one, "trusted": False}, workspace.base)
    ]
    return Fetched(recognised, sources, servers)


def _refresh(source: Source, *, may_ask: bool) -> None:
    """Fetch on another thread: Ctrl-C then cancels the fetch, and does not interrupt it halfway."""
    with ThreadPoolExecutor(1) as pool:
        pool.submit(int).result()  # starts the thread, while no fetch can be interrupted
        try:
            fetch = pool.submit(source.refresh, may_ask=may_ask)
            # Wake often: a signal that another thread receives is only handled then.
            while not fetch.done():
                wait([fetch], WAKE_S)
            fetch.result()
        except BaseException:  # Ctrl-C
            source.cancel()
            raise


def _content(source: Source) -> Content | None:
    return source.content if isinstance(source, FetchedSource) else None


def discard(sources: list[Source], kept: set[str]) -> None:
    """Remove what was fetched, unless another directory uses it."""
    for source in sources:
        content = _content(source)
        if content and content.folder.name not in kept:
            shutil.rmtree(content.folder, ignore_errors=True)

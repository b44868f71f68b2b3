"""The target of a command: a server, or the index of this directory, opened in this process."""

from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from repertory.errors import (
    RepertoryError,
    StoreBusyError,
    StoreError,
    UnknownItemError,
    WeightsUnavailableError,
)
from repertory.project.defaults import for_server
from repertory.project.root import located
from repertory.remote import running
from repertory.settings import Settings
from repertory.text import counted
from repertory.values import Values
from repertory_admin import terminal
from repertory_admin.options import Flags
from repertory_admin.progress import Bars
from repertory_admin.text import short_path

if TYPE_CHECKING:
    from repertory.backend import Backend
    from repertory.local.one_shot import Repertory
    from repertory.remote.client import Client
    from repertory.review.wire import Reviews
    from repertory.stats import Run

ASKED_AGAIN_S = 1.0  # timeout for a server that holds the index but did not answer at first


class Target(msgspec.Struct, frozen=True):
    """The project that a command is called in.

    Attributes:
        settings: Its settings.
        directory: Its path.
        server: The server that is configured or runs for it, if any.
    """

    settings: Settings
    directory: Path
    server: "Client | None"

    @property
    def defaults(self) -> Values:
        """The settings for the parameters that a search leaves out."""
        return for_server(self.settings) if self.server else self.settings.values

    def required_server(self) -> "Client":
        """The server; StoreError if none is configured or runs with these settings."""
        if self.server is None:
            note = running.note_at(self.settings, self.directory)
            if note and not note.serves(self.settings, self.directory):
                raise StoreError(
                    f"The server of this directory, {note.url}, was started with other settings; "
                    "give this command the same settings, such as --config, or set "
                    "REPERTORY_SERVER_URL to this address."
                )
            raise StoreError(
                "No server runs for this directory, so there is no queue; start `repertory serve`, "
                "or set REPERTORY_SERVER_URL to the address of a server."
            )
        return self.server

    @contextmanager
    def open(self, indexing: Bars | None = None, *, embeds: bool = False) -> "Iterator[Backend]":
        """The server, or the index of this directory.

        Args:
            indexing: Shows the progress of indexing new and changed files, which is done first;
                None does not index.
            embeds: Whether queries will be embedded; if so, the model loads during the indexing.
        """
        if self.server:
            yield self.server
            return
        if indexing is None:
            with self.open_here() as repertory:
                yield repertory
            return
        indexing.wait()  # before slow imports
        with ExitStack() as stack:
            try:
                repertory = self._indexed(stack, indexing, embeds=embeds)
                server = self.started() if _is_held_elsewhere(repertory) else None
            except StoreBusyError:
                if (server := self.started()) is None:
                    raise
            if not (server or embeds) and repertory.behind:  # answers to queries have a notice
                indexing.clear()
                terminal.note(repertory.behind)
            yield server or repertory

    def _indexed(self, stack: ExitStack, indexing: Bars, *, embeds: bool) -> "Repertory":
        """The index of this directory, after new and changed files have been indexed."""
        repertory = stack.enter_context(self.open_here(indexing))
        if not repertory.lacks_first_index:
            if embeds:
                repertory.parts.queries.begin()
            repertory.ensure_indexed()
            return repertory
        try:
            _index_files(repertory, indexing, embeds=embeds)
        except WeightsUnavailableError:
            repertory = stack.enter_context(self._open_for_words())
            _index_files(repertory, indexing, embeds=embeds, words_suffice=True)
        return repertory

    def started(self) -> "Client | None":
        """The server that took the index after this command had looked for one, if any."""
        return running.client(self.settings, self.directory, ASKED_AGAIN_S)

    def reviews(self) -> "Reviews":
        """The items that wait for approval."""
        if self.server:
            return self.server.reviews()
        with self.open_here() as repertory:
            return repertory.parts.reviews.listing()

    @contextmanager
    def naming_quarantined(self, *wanted: str) -> Iterator[None]:
        """If an unknown item is in quarantine, say so, unless the caller may not see reviews.

        Raises:
            UnknownItemError: An item is unknown.
        """
        try:
            yield
        except UnknownItemError:
            waiting: set[str] = set()
            with suppress(RepertoryError):
                waiting = {one.item for one in self.reviews().reviews if one.state == "quarantined"}
            for item in wanted:
                if item in waiting:
                    text = f"{item} is in quarantine: see `repertory trust review`."
                    raise UnknownItemError(text) from None
            raise

    def _open_for_words(self) -> "Repertory":
        """A keyword-only index that is not stored, because the configured model is unavailable."""
        from repertory.local.one_shot import Repertory  # noqa: PLC0415 - as in ``open_here``

        values = replace(self.settings.values, no_cache=True)
        return Repertory(replace(self.settings, values=values), self.directory)

    def index_here(self, names: Collection[str] = ()) -> "Run":
        """Index this directory as ``index`` does, whether a server runs or not."""
        with Bars() as bars, self.open_here(bars) as repertory:
            return index(repertory, bars, names)

    def open_here(self, bars: Bars | None = None) -> "Repertory":
        """The index of this directory, whether a server runs or not."""
        from repertory.local.one_shot import Repertory  # noqa: PLC0415 - imports numpy and the engine

        if bars is None:
            return Repertory(self.settings, self.directory)
        return Repertory(self.settings, self.directory, download=bars.download, progress=bars.step)


def _is_held_elsewhere(repertory: "Repertory") -> bool:
    """Whether the index cannot be opened completely: a server may just have taken it."""
    with suppress(StoreError):
        repertory.engine  # noqa: B018 - opens it
    return not {"index", "vectors"}.isdisjoint(repertory.live.missing)


def here(flags: Flags) -> tuple[Settings, Path]:
    """The settings and directory of the user's project; a note names it if it is elsewhere."""
    start = Path.cwd()
    settings, project = located(flags, start)
    if project.directory != start and not settings.values.server_url:
        name = short_path(str(project.directory))
        terminal.note(f"Using the catalogue of {name} ({project.marker}).")
    return settings, project.directory


def target_of(flags: Flags) -> Target:
    """The user's project, with its settings and its server."""
    return target(*here(flags))


def target(settings: Settings, directory: Path) -> Target:
    """A directory, with its server."""
    return Target(settings, directory, running.client(settings, directory))


def index(repertory: "Repertory", bars: Bars, names: Collection[str]) -> "Run":
    """Index a directory; only the MCP servers with these names are asked for their tools."""
    bars.wait()
    return repertory.index(bars.step, words_suffice=True, asks=lambda one: one.name in names)


def index_tools(settings: Settings, directory: Path, servers: Collection[str]) -> None:
    """Index the tools of some MCP servers, unless a running Repertory server does so itself.

    Raises:
        typer.Exit: An MCP server could not be read.
    """
    if settings.values.redis_url or running.client(settings, directory):
        names = ", ".join(servers)
        terminal.show_text(f"Running servers will list the tools of {names} within seconds.")
        return
    from repertory_admin.show import runs  # noqa: PLC0415 - imports the sources

    runs.show_asked(Target(settings, directory, None).index_here(servers), servers)


def _index_files(
    repertory: "Repertory", bars: Bars, *, embeds: bool, words_suffice: bool = False
) -> None:
    from repertory_admin.show import runs  # noqa: PLC0415 - imports the sources

    words_suffice |= repertory.settings.values.model is None
    run = repertory.index_files(bars.step, words_suffice=words_suffice)
    bars.clear()
    terminal.note(runs.headline(run))
    shown_with_answer = repertory.workspace.notices if embeds else ()
    for notice in run.notices:
        if notice not in shown_with_answer:
            terminal.note(notice)
    if run.stats.errors:
        failed = counted(run.stats.errors, "error")
        terminal.note(f"{failed} while reading the sources; `repertory doctor` says where.")

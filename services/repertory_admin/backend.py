"""The backend of a command: a server, or the index of this directory, opened in this process."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from repertory import running
from repertory.client import Client
from repertory.errors import StoreError
from repertory.project import located
from repertory.settings import Settings
from repertory_admin import terminal
from repertory_admin.options import Flags
from repertory_admin.progress import Bars
from repertory_admin.show import runs
from repertory_admin.trust import advice, untrusted

if TYPE_CHECKING:
    from repertory.backend import Backend
    from repertory.one_shot import Repertory


class Target(msgspec.Struct, frozen=True):
    """The project that a command is called in.

    Attributes:
        settings: Its settings.
        directory: Its path.
        server: The server that is configured or runs for it, if any.
    """

    settings: Settings
    directory: Path
    server: Client | None

    def required_server(self) -> Client:
        """The server; StoreError if none is configured or runs."""
        if self.server is None:
            raise StoreError(
                "No server runs for this directory, so there is no queue; start `repertory serve`, "
                "or name a server as REPERTORY_SERVER_URL."
            )
        return self.server

    @contextmanager
    def open(self, indexing: Bars | None = None) -> "Iterator[Backend]":
        """The server, or the index of this directory.

        Args:
            indexing: Shows the progress if nothing is indexed yet, which is then done first; None
                does not index.
        """
        if self.server:
            yield self.server
        else:
            with self.open_here(indexing) as repertory:
                if indexing and not repertory.is_indexed:
                    _index(repertory, indexing)
                yield repertory

    def open_here(self, bars: Bars | None = None) -> "Repertory":
        """The index of this directory, whether a server runs or not."""
        from repertory.one_shot import Repertory  # noqa: PLC0415 - imports numpy and the engine

        if bars is None:
            return Repertory(self.settings, self.directory)
        return Repertory(self.settings, self.directory, download=bars.download, progress=bars.step)


def here(flags: Flags) -> tuple[Settings, Path]:
    """The settings and the directory of the user's project; a note names another directory."""
    start = Path.cwd()
    settings, project = located(flags, start)
    if project.directory != start and not settings.values.server_url:
        name = terminal.short_path(str(project.directory))
        terminal.note(f"Using the catalogue of {name} ({project.marker}).")
    return settings, project.directory


def target_of(flags: Flags) -> Target:
    """The user's project, with the settings that hold there."""
    return target(*here(flags))


def target(settings: Settings, directory: Path) -> Target:
    """A directory, with its server."""
    return Target(settings, directory, running.client(settings, directory))


def _index(repertory: "Repertory", bars: Bars) -> None:
    run = repertory.index(bars.step, words_suffice=True)
    terminal.note(runs.headline(run))
    for notice in run.notices:
        terminal.note(notice)
    if run.stats.errors:
        terminal.note(f"{run.stats.errors:,} could not be read; `repertory doctor` lists them.")
    if text := advice(untrusted(repertory.workspace)):
        terminal.note(text)

"""The projects of a host: its own, and those that it serves for other processes."""

import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Self

from starlette.applications import Starlette

from repertory import telemetry
from repertory.compose import Parts
from repertory.remote.running import announce, note_of, the_only_server
from repertory.settings import Settings, load
from repertory.shared_objects import SharedObjects
from repertory.system import memory
from repertory.system.files import is_gone
from repertory.system.paths import expanded
from repertory.values import PATHS
from repertory.wire import WantedProject
from repertory_embedded.browser_secret import browser_secret
from repertory_embedded.projects import Project, Projects
from repertory_embedded.server import running
from repertory_query.access.callers import Owner
from repertory_query.access.rates import Rates
from repertory_query.app import create_app
from repertory_query.backend.service import Service
from repertory_query.server.run import serve

SERVICE = "repertory"  # its name in traces


class Host:
    """Opens the projects of one process, which share the checks of requests and the models.

    Args:
        settings: The settings of the process.
        url: The URL at which it answers.
        secret: The token of its user.
    """

    def __init__(self, settings: Settings, url: str, secret: str) -> None:
        self.settings = settings
        self.url = url
        self.secret = secret
        self.rates = Rates(settings.values.requests_per_minute)
        self.owner = Owner(secret, browser_secret(settings.data_dir))
        self.shared = SharedObjects()

    def run(
        self,
        directory: Path,
        claim: Path,
        listener: socket.socket,
        stopping: Sequence[int],
        ready: Callable[[Service], None],
    ) -> None:
        """Serve until the process is asked to end, or the data directory is removed.

        Args:
            directory: The directory of its own project.
            claim: The lock file that makes this process the only server of the directory.
            listener: The socket that accepts requests.
            stopping: Ends the server once it is not empty; see ``termination_signals``.
            ready: Called with the service of its own project once requests are answered.
        """
        memory.return_memory_early()
        telemetry.begin(SERVICE, wanted=self.settings.values.telemetry)
        own = HostedProject(self, self.settings, directory)
        with running(own.parts, claim) as service:
            ready(service)
            app = create_app(service, self.settings, self.rates, self.owner)
            projects = Projects(app, own, self.secret, self.find)
            serve(projects, listener, stopping, projects.end, lambda: is_gone(claim))

    def find(self, wanted: WantedProject) -> Project:
        """The project that another process requests, with that process's settings.

        Raises:
            ConfigurationError: Its settings are invalid.
        """
        directory = Path(wanted.directory)
        flags = {**wanted.flags, "data_dir": str(self.settings.data_dir.absolute())}
        return HostedProject(self, load(flags, directory, wanted.environment), directory)


_OF_PROCESS = frozenset({"data_dir", "host", "port"})  # settings of the process, not of a project


def _value(settings: Settings, name: str) -> object:
    """The value of a setting; paths are absolute, so that the working directory does not matter."""
    value = getattr(settings.values, name, None)
    return expanded(value).absolute() if value and name in PATHS else value


class HostedProject:
    """One project of a host.

    Attributes:
        parts: Its components.
        key: Its part of the URL.
    """

    def __init__(self, host: Host, settings: Settings, directory: Path) -> None:
        self.parts = Parts(settings, directory, shared=host.shared)
        self.key = self.parts.workspace.directory_key
        self._host = host

    def serves(self, other: Self) -> bool:
        """Whether this project can answer for another project of the same directory."""
        directory = self.parts.workspace.directory
        note = note_of(self.parts.settings, directory, self._host.url, self._host.secret)
        return note.serves(other.parts.settings, other.parts.workspace.directory)

    def ignored_settings(self, other: Self) -> list[str]:
        """The settings that were given to another project and differ in this one."""
        own, theirs = self.parts.settings, other.parts.settings
        names = theirs.flags.keys() - _OF_PROCESS
        return sorted(name for name in names if _value(own, name) != _value(theirs, name))

    @contextmanager
    def open(self, path: str) -> Iterator[Starlette]:
        """The application of this project, below a path of the host.

        Raises:
            StoreBusyError: Another process serves its directory.
            StoreError: The data directory cannot be written.
        """
        settings, directory = self.parts.settings, self.parts.workspace.directory
        with the_only_server(settings, directory) as claim:
            announce(settings, directory, self._host.url + path, self._host.secret)
            with running(self.parts, claim) as service:
                yield create_app(service, settings, self._host.rates, self._host.owner)

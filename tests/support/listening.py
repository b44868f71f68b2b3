"""Serve the application of a running service on a local port."""

import socket
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager

import uvicorn
from starlette.applications import Starlette

from repertory.errors import UsageError
from repertory.wire import WantedProject
from repertory_embedded.projects import Project, Projects
from repertory_query.app import create_app
from repertory_query.server.listening import listening
from repertory_query.server.run import configuration
from tests.support.query_service import RunningService, settings_of

KEY = "0123456789abcdef"


class Own:
    """The server's own project."""

    key = KEY

    def serves(self, other: Project) -> bool:
        """Whether ``other`` is this project."""
        return other is self

    def ignored_settings(self, _: Project) -> list[str]:
        """The ignored settings: none."""
        return []

    def open(self, path: str) -> AbstractContextManager[Starlette]:
        """Raise NotImplementedError, since the server's own project is already open."""
        raise NotImplementedError(path)


def _find(wanted: WantedProject) -> Project:
    raise UsageError(f"There is no {wanted.directory}.")


@contextmanager
def on_thread(config: uvicorn.Config, listener: socket.socket) -> Iterator[str]:
    """Run a server with a local socket on a thread; yields the URL."""
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()


@contextmanager
def served(running: RunningService, **flags: object) -> Iterator[str]:
    """Serve a running service from this process; yields the URL.

    ``flags`` override its settings. The service is also reachable at ``/projects/KEY``.
    """
    settings = settings_of(running.project, **{"port": 0, **flags})
    listener = listening(settings)
    app = Projects(create_app(running.service, settings), Own(), "secret", _find)
    with closing(listener), on_thread(configuration(app), listener) as url:
        yield url

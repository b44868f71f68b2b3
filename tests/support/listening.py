"""The application of a running service, listening on a port of this machine."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn

from repertory_query.app import create_app
from repertory_query.listening import listening
from repertory_query.run import configuration
from tests.support.query_service import RunningService, settings_of


@contextmanager
def served(running: RunningService, **flags: object) -> Iterator[str]:
    """Serve it from this process, with other settings if given; yields the URL."""
    settings = settings_of(running.project, port=0, **flags)
    listener = listening(settings)
    server = uvicorn.Server(configuration(create_app(running.service, settings)))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()
        listener.close()

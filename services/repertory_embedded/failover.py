"""The backend of a session that outlives servers: it uses the server of a directory or becomes it.

If the data directory has a server, that server is asked to serve the directory as well. Otherwise
this process becomes the server, and others join it. When a server ends, the next request uses
another one, or this process takes its place.
"""

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
from typing_extensions import override

from repertory.backend import CALLS_OFF, Backend, Forwarding
from repertory.errors import CallsOffError, StoreBusyError, StoreError
from repertory.index.keywords.document import Entry
from repertory.index.vectors import NO_FILTER, Filter
from repertory.remote import running
from repertory.remote.client import Client
from repertory.settings import Settings
from repertory.stats import Contents, Stats
from repertory_embedded import start
from repertory_embedded.joining import Joined

if TYPE_CHECKING:
    from repertory.calling.result import CallResult
    from repertory_query.backend.service import Service

REQUEST_TIMEOUT_S = 20.0  # while a server starts and indexes for the first time
LIST_TIMEOUT_S = 2.0  # for a list, which hosts request before anything else
RETRY_INTERVAL_S = 0.25
ALIVE_TIMEOUT_S = 2.0  # for the check whether a server still runs

_SERVED_WITHOUT = (
    "Calling tools is off: this process has --allow-calls, but the server of this directory was "
    "started without it, and its settings apply to everyone who uses it. End the other process of "
    "this directory, or start that one with --allow-calls, and try again."
)

_log = logging.getLogger(__name__)

T = TypeVar("T")
Report = TypeVar("Report", Contents, Stats)


class Failover(Forwarding):
    """Forwards requests to the server of a directory, which ``run`` finds or becomes.

    Args:
        settings: The active settings.
        directory: The directory whose catalogue is asked.
    """

    def __init__(self, settings: Settings, directory: Path) -> None:
        self._settings = settings
        self._directory = directory
        self._changed = threading.Condition()
        self._backend: Backend | None = None
        self._answered = False
        self._since = time.monotonic()  # when the backend was set or lost
        self._trouble = "The server is still starting."
        self._stopping: Sequence[int] = ()

    def run(self, stopping: Sequence[int]) -> None:
        """Use the server, or be it, until ``stopping`` is not empty. Call it on the main thread.

        Raises:
            UsageError: The settings allow neither.
        """
        self._stopping = stopping
        while not stopping:
            try:
                self._follow_or_serve()
            except StoreError as error:  # another process may be starting the server
                self._trouble = str(error)
                time.sleep(RETRY_INTERVAL_S)
            finally:
                if self._backend is not None:
                    self._use(None)

    def ready(self, _: str, __: str, service: "Service") -> None:
        """Answer requests in this process, which is the server now."""
        self._use(service)

    def joined(self, joined: Joined) -> None:
        """Use the server that serves the directory for this process, until it ends."""
        if joined.ignored_settings:
            extra = {"settings": ", ".join(joined.ignored_settings), "server": joined.url}
            _log.warning("settings_ignored", extra=extra)
        client = Client(joined.url, joined.key, is_own=True)
        client.remote.is_recorded = True
        self._use(client)
        while self._uses(client) and joined.lasts(RETRY_INTERVAL_S):
            pass

    def could_not_join(self, reason: str) -> None:
        """Log why this process cannot join another server."""
        _log.info("server_not_shared", extra={"reason": reason})

    def _follow_or_serve(self) -> None:
        """Use one server, or be one, until it ends."""
        values = self._settings.values
        if values.server_url or (values.redis_url and not values.no_cache):
            self._follow()
            return
        try:
            start.run(self._private(), self._directory, self._stopping, self)
        except StoreBusyError:  # the directory has a server that cannot be joined
            if not self._follow():
                raise

    def _follow(self) -> bool:
        """Use the server of the directory until it ends; return whether there was one."""
        client = running.client(self._settings, self._directory)
        if client:
            client.remote.is_recorded = True  # only a server of our own user respects it
            self._use(client)
            with self._changed:
                while self._uses(client):
                    self._changed.wait(RETRY_INTERVAL_S)  # signals are handled in between
        return client is not None

    def _uses(self, backend: Backend) -> bool:
        return self._backend is backend and not self._stopping

    @override
    def entries(self, where: Filter = NO_FILTER) -> Sequence[Entry]:
        """The indexed items; StoreError if there is no index after ``LIST_TIMEOUT_S``."""
        return self.forward(lambda backend: backend.entries(where), LIST_TIMEOUT_S)

    @override
    def page(
        self, where: Filter, limit: int, offset: int = 0, after: str = ""
    ) -> tuple[Sequence[Entry], int]:
        """A page of the indexed items; StoreError as above."""
        return self.forward(
            lambda backend: backend.page(where, limit, offset, after), LIST_TIMEOUT_S
        )

    @override
    def contents(self) -> Contents:
        """The numbers of the indexed items; StoreError as above."""
        return self._as_permitted(self.forward(lambda backend: backend.contents(), LIST_TIMEOUT_S))

    @override
    def stats(self) -> Stats:
        """The statistics of the server, with this process's own permission to call tools."""
        return self._as_permitted(super().stats())

    @property
    @override
    def calls_allowed(self) -> bool:
        """Whether this process and its server allow calls; without a server, this process alone."""
        backend = self._backend
        if backend is None:
            return self._settings.values.allow_calls
        return self._may_call and backend.calls_allowed

    @override
    def call(self, tool_id: str, arguments: Mapping[str, Any]) -> "CallResult":
        """Call a tool without a retry, because a call that failed may have taken effect."""
        if not self._may_call:
            raise CallsOffError(CALLS_OFF)
        self.items([tool_id])  # waits for the server
        backend = self._current(0)
        try:
            return backend.call(tool_id, arguments)
        except CallsOffError as error:
            if self._is_own and not backend.contents().calls_allowed:
                raise CallsOffError(_SERVED_WITHOUT) from error
            raise

    @property
    def _is_own(self) -> bool:
        """Whether the server is one of this user's, rather than a configured one."""
        return not self._settings.values.server_url

    @property
    def _may_call(self) -> bool:
        """Whether this process allows calls; a configured server decides by the key alone."""
        return self._settings.values.allow_calls or not self._is_own

    def _as_permitted(self, report: Report) -> Report:
        return report if self._may_call else msgspec.structs.replace(report, calls_allowed=False)

    @override
    def forward(self, request: Callable[[Backend], T], timeout: float = REQUEST_TIMEOUT_S) -> T:
        """Make a request, waiting while the server starts; if it is gone, try one other server."""
        deadline, found_again = self._since + timeout, False
        while True:
            backend = self._current(deadline - time.monotonic())
            try:
                found = request(backend)
            except StoreError as error:
                lost = isinstance(backend, Client) and not backend.remote.is_alive(ALIVE_TIMEOUT_S)
                if lost and not found_again:
                    self._lose(backend)
                    deadline, found_again = self._since + timeout, True
                elif lost or self._answered or time.monotonic() > deadline:
                    raise
                self._trouble = str(error)
                time.sleep(RETRY_INTERVAL_S)
            else:
                self._answered = True
                return found

    def _current(self, timeout: float) -> Backend:
        with self._changed:
            if not self._changed.wait_for(lambda: self._backend is not None, max(timeout, 0)):
                raise StoreError(f"{self._trouble} Ask again in a moment.")
            assert self._backend is not None
            return self._backend

    def _use(self, backend: Backend | None) -> None:
        with self._changed:
            self._backend, self._answered, self._since = backend, False, time.monotonic()
            self._changed.notify_all()

    def _lose(self, backend: Backend) -> None:
        with self._changed:
            if self._backend is backend:  # no other thread has noticed yet
                self._use(None)

    def _private(self) -> Settings:
        """The settings for a server on any free port, reachable only from this machine."""
        settings = self._settings
        values = msgspec.structs.replace(settings.values, host="127.0.0.1", port=0)
        origins = {name: one for name, one in settings.origins.items() if name != "port"}
        return msgspec.structs.replace(settings, values=values, origins=origins)

"""The backend of a session that outlives servers: whichever server there is of a directory.

That is one that runs already, else this process itself, which then is found by others. When the
server goes away, the next request looks for another, or becomes it.
"""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
from typing_extensions import override

from repertory import running
from repertory.backend import Backend
from repertory.catalogue.item import Item
from repertory.client import Client
from repertory.errors import StoreError
from repertory.index.vectors import Filter
from repertory.search.answer import Answer
from repertory.search.explanation import Explanation
from repertory.search.query import Query
from repertory.server_state import Stats
from repertory.settings import Settings

if TYPE_CHECKING:
    from repertory.calling.result import CallResult
    from repertory.index.keywords.document import Entry
    from repertory.project_search.query import ProjectAnswer, ProjectQuery
    from repertory.skill_vectors.match import SkillMatch

REQUEST_TIMEOUT_S = 20.0  # that a request waits for a starting server and its first index
LIST_TIMEOUT_S = 2.0  # that a list waits for them: hosts request it before anything else
RETRY_INTERVAL_S = 0.25
ALIVE_TIMEOUT_S = 2.0  # that a server has to answer that it still runs

T = TypeVar("T")


class Following(Backend):
    """Asks the server of a directory. A ``Backend``; ``run`` says which server that is.

    Args:
        settings: What is in force.
        directory: Whose catalogue is asked.
    """

    def __init__(self, settings: Settings, directory: Path) -> None:
        self._settings = settings
        self._directory = directory
        self._changed = threading.Condition()
        self._backend: Backend | None = None
        self._answered = False
        self._since = time.monotonic()  # when it was taken or lost
        self._trouble = "The server is still starting."

    def run(self, told: Sequence[int]) -> None:
        """Follow the server, or be it, until told to end; on the main thread.

        Raises:
            UsageError: The settings allow neither.
        """
        while not told:
            try:
                if client := running.client(self._settings, self._directory):
                    self._use(client)
                    self._wait_while_used(client, told)
                else:
                    from repertory_admin import embedded  # noqa: PLC0415 - not to ask a server

                    try:
                        embedded.run(
                            self._private(),
                            self._directory,
                            told,
                            lambda _, service: self._use(service),
                        )
                    finally:
                        self._use(None)
            except StoreError as error:  # another process may just be becoming the server
                self._trouble = str(error)
                time.sleep(RETRY_INTERVAL_S)

    @property
    @override
    def gateway(self) -> str:
        return self._ask(lambda backend: backend.gateway)

    @override
    def ensure_indexed(self) -> None:
        self._ask(lambda backend: backend.ensure_indexed())

    @override
    def refresh(self) -> Stats:
        return self._ask(lambda backend: backend.refresh())

    @override
    def stats(self) -> Stats:
        return self._ask(lambda backend: backend.stats())

    @override
    def close(self) -> None:
        """Do nothing: ``run`` closes the server that it started."""

    @override
    def search(self, query: Query) -> Answer:
        return self._ask(lambda backend: backend.search(query))

    @override
    def explain(self, query: Query, item: str) -> Explanation:
        return self._ask(lambda backend: backend.explain(query, item))

    @override
    def entries(self, where: Filter | None = None) -> "Sequence[Entry]":
        """What is indexed, by id; StoreError soon where that cannot be had yet."""
        return self._ask(lambda backend: backend.entries(where), LIST_TIMEOUT_S)

    @override
    def item(self, item_id: str) -> Item:
        return self._ask(lambda backend: backend.item(item_id))

    @override
    def items(self, ids: Sequence[str]) -> dict[str, Item]:
        return self._ask(lambda backend: backend.items(ids))

    @override
    def similar_skills(self, query: str) -> "list[SkillMatch]":
        return self._ask(lambda backend: backend.similar_skills(query))

    @override
    def update_vector(self, filepath: str) -> None:
        return self._ask(lambda backend: backend.update_vector(filepath))

    @override
    def search_project(self, query: "ProjectQuery") -> "ProjectAnswer":
        return self._ask(lambda backend: backend.search_project(query))

    @property
    @override
    def calls_allowed(self) -> bool:
        """Whether tools may be called; as this process is set where no server is there yet."""
        backend = self._backend
        return backend.calls_allowed if backend else self._settings.values.allow_calls

    @override
    def call(self, tool_id: str, arguments: Mapping[str, Any]) -> "CallResult":
        """Call a tool, once: a call that failed may have been done."""
        self.item(tool_id)  # waits for the server
        return self._current(0).call(tool_id, arguments)

    def _ask(self, request: Callable[[Backend], T], timeout: float = REQUEST_TIMEOUT_S) -> T:
        """What the backend answers, waiting for one that starts, and looking for a lost one."""
        deadline, found_again = self._since + timeout, False
        while True:
            backend = self._current(deadline - time.monotonic())
            try:
                found = request(backend)
            except StoreError as error:
                lost = isinstance(backend, Client) and not backend.is_alive(ALIVE_TIMEOUT_S)
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
            if self._backend is backend:  # nobody else has noticed yet
                self._use(None)

    def _wait_while_used(self, backend: Backend, told: Sequence[int]) -> None:
        with self._changed:
            while self._backend is backend and not told:
                self._changed.wait(RETRY_INTERVAL_S)  # signals are noted meanwhile

    def _private(self) -> Settings:
        """The settings of a server that nobody but this machine is to reach, on any free port."""
        values = msgspec.structs.replace(self._settings.values, host="127.0.0.1", port=0)
        return msgspec.structs.replace(self._settings, values=values)

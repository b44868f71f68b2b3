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

from repertory import running
from repertory.backend import Backend
from repertory.catalogue.item import Item
from repertory.client import Client
from repertory.errors import StoreError
from repertory.index.vectors import Filter
from repertory.search.answer import Answer
from repertory.search.explanation import Explanation
from repertory.search.query import Query
from repertory.settings import Settings

if TYPE_CHECKING:
    from repertory.calling.result import CallResult
    from repertory.index.keywords.document import Entry
    from repertory.project_search.query import ProjectAnswer, ProjectQuery
    from repertory.skill_vectors.match import SkillMatch

PATIENCE = 20.0  # seconds that a request waits for a server that starts, and its first index
AT_ONCE = 2.0  # seconds that a list waits for them: hosts ask for it before anything else
AGAIN = 0.25  # seconds between two attempts
ALIVE = 2.0  # seconds that a server has to say that it still runs

T = TypeVar("T")


class Following:
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
                time.sleep(AGAIN)

    def search(self, query: Query) -> Answer:
        """Find what fits a query best."""
        return self._ask(lambda backend: backend.search(query))

    def explain(self, query: Query, item: str) -> Explanation:
        """Tell why a search shows an item, or why not."""
        return self._ask(lambda backend: backend.explain(query, item))

    def entries(self, where: Filter | None = None) -> "Sequence[Entry]":
        """What is indexed, by id; StoreError soon where that cannot be had yet."""
        return self._ask(lambda backend: backend.entries(where), AT_ONCE)

    def item(self, item_id: str) -> Item:
        """One indexed item, whole."""
        return self._ask(lambda backend: backend.item(item_id))

    def items(self, ids: Sequence[str]) -> dict[str, Item]:
        """Some indexed items, whole, by id."""
        return self._ask(lambda backend: backend.items(ids))

    def similar_skills(self, query: str) -> "list[SkillMatch]":
        """Skill files by their plain cosine with a query."""
        return self._ask(lambda backend: backend.similar_skills(query))

    def update_vector(self, filepath: str) -> None:
        """Store the vector of a file of the sandbox."""
        return self._ask(lambda backend: backend.update_vector(filepath))

    def search_project(self, query: "ProjectQuery") -> "ProjectAnswer":
        """Search the files of the project."""
        return self._ask(lambda backend: backend.search_project(query))

    @property
    def calls_allowed(self) -> bool:
        """Whether tools may be called; as this process is set where no server is there yet."""
        backend = self._backend
        return backend.calls_allowed if backend else self._settings.values.allow_calls

    def call(self, tool_id: str, arguments: Mapping[str, Any]) -> "CallResult":
        """Call a tool, once: a call that failed may have been done."""
        self.item(tool_id)  # waits for the server
        return self._current(0).call(tool_id, arguments)

    def _ask(self, request: Callable[[Backend], T], patience: float = PATIENCE) -> T:
        """What the backend answers, waiting for one that starts, and looking for a lost one."""
        deadline, found_again = self._since + patience, False
        while True:
            backend = self._current(deadline - time.monotonic())
            try:
                found = request(backend)
            except StoreError as error:
                lost = isinstance(backend, Client) and not backend.is_alive(ALIVE)
                if lost and not found_again:
                    self._lose(backend)
                    deadline, found_again = self._since + patience, True
                elif lost or self._answered or time.monotonic() > deadline:
                    raise
                self._trouble = str(error)
                time.sleep(AGAIN)
            else:
                self._answered = True
                return found

    def _current(self, patience: float) -> Backend:
        with self._changed:
            if not self._changed.wait_for(lambda: self._backend is not None, max(patience, 0)):
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
                self._changed.wait(AGAIN)  # signals are noted meanwhile

    def _private(self) -> Settings:
        """The settings of a server that nobody but this machine is to reach, on any free port."""
        values = msgspec.structs.replace(self._settings.values, host="127.0.0.1", port=0)
        return msgspec.structs.replace(self._settings, values=values)

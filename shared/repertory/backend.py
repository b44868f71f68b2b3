"""The port that every interface uses: an index in this process, or a server over HTTP.

The adapters are ``one_shot.Repertory``; ``client.Client``; the command line's ``Failover``, which
looks for a server or becomes one; and the query service's ``Service``, ``VisibleService``, which
hides sources from some callers, and ``Restricted``, which hides absolute paths. Every method may
block and may be called from several threads. Every failure is a ``RepertoryError`` that says what
to do.
"""

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from typing_extensions import override

from repertory.catalogue.item import Item
from repertory.index.vectors import NO_FILTER, Filter
from repertory.search.answer import Answer
from repertory.search.explanation import Explanation
from repertory.search.links import Links
from repertory.search.query import Query
from repertory.stats import Contents, Stats

if TYPE_CHECKING:
    from repertory.calling.result import CallResult
    from repertory.index.keywords.document import Entry
    from repertory.project_search.query import ProjectAnswer, ProjectQuery
    from repertory.skill_files import SkillFiles
    from repertory.wire import SkillMatch

CALLS_OFF = (  # an error message
    "Calling tools is off here; switch it on with --allow-calls or REPERTORY_MCP_ALLOW_CALLS=true."
)

T = TypeVar("T")


class Backend(Protocol):
    """All requests to a repertory."""

    @property
    def gateway(self) -> str:
        """The URL for tool calls over HTTP; the server may have to be started first."""
        ...

    def ensure_indexed(self) -> None:
        """Index changes in this process within the time budget; a server does it by itself."""
        ...

    def refresh(self) -> Stats:
        """Bring the index up to date, unless a server does; return the statistics."""
        ...

    def stats(self) -> Stats:
        """The indexed contents, their freshness, current work, and problems.

        Parts that are unavailable are reported in the statistics.
        """
        ...

    def close(self) -> None:
        """Release all resources. Closing twice is allowed."""
        ...

    def search(self, query: Query) -> Answer:
        """Find the best items for a query; see ``SearchEngine.search``.

        Raises:
            UsageError: The query is invalid.
            NothingIndexedError: Nothing has been indexed yet.
            StoreError: The index cannot be searched now.
        """
        ...

    def explain(self, query: Query, item: str) -> Explanation:
        """Explain why a search returns an item or not; see ``SearchEngine.explain``.

        Raises:
            UnknownItemError: There is no such item.
        """
        ...

    def entries(self, where: Filter = NO_FILTER) -> "Sequence[Entry]":
        """The indexed items that pass a filter, by id, without their texts."""
        ...

    def page(
        self, where: Filter, limit: int, offset: int = 0, after: str = ""
    ) -> "tuple[Sequence[Entry], int]":
        """A page of the items that pass a filter, and their total number.

        Args:
            where: The filter.
            limit: The maximum number of items on the page.
            offset: The number of items to skip.
            after: The id after which the page begins; empty for the first page.
        """
        ...

    def contents(self) -> Contents:
        """What is indexed, in numbers; cheap enough for regular polling.

        Raises:
            StoreError: The index cannot be read now.
        """
        ...

    def item(self, item: str) -> Item:
        """One complete indexed item by its id, or by its name if no other item has it.

        Raises:
            UnknownItemError: No item matches, or several do.
            StoreError: The store is unavailable.
        """
        ...

    def items(self, ids: Sequence[str]) -> dict[str, Item]:
        """Several complete indexed items by id; unknown ids are left out.

        Raises:
            StoreError: The store is unavailable.
        """
        ...

    def links(self, item_id: str) -> Links:
        """The tools that a skill needs, or the skills that need a tool; see ``linking.links``.

        Raises:
            UnknownItemError: There is no such item.
            StoreError: The items cannot be read now.
        """
        ...

    def skill_files(self, ids: Sequence[str]) -> "dict[str, SkillFiles]":
        """The supporting files of some skills, by id; see ``skill_files.files_of``.

        Unknown ids are left out. If the folder of a skill cannot be read, the result says so.

        Raises:
            StoreError: The store is unavailable.
        """
        ...

    def skill_file(self, item_id: str, place: str) -> bytes:
        """The bytes of one supporting file; see ``skill_files.content_of``.

        Raises:
            UnknownItemError: The skill or its file does not exist.
            StoreError: The store is unavailable.
        """
        ...

    def similar_skills(self, query: str) -> "list[SkillMatch]":
        """Skill files by cosine similarity to a query; see ``SkillVectors.search``."""
        ...

    def update_vector(self, filepath: str) -> None:
        """Store the vector of a file in the sandbox; see ``SkillVectors.update``."""
        ...

    def search_project(self, query: "ProjectQuery") -> "ProjectAnswer":
        """Search the files of the project; see ``ProjectSearch.search``."""
        ...

    @property
    def calls_allowed(self) -> bool:
        """Whether tools may be called through this backend."""
        ...

    def call(self, tool_id: str, arguments: Mapping[str, Any]) -> "CallResult":
        """Call a tool of an MCP server; see ``Calls.call``."""
        ...


class Forwarding(Backend):
    """Forwards every request to another backend."""

    @abstractmethod
    def forward(self, request: Callable[[Backend], T]) -> T:
        """Make a request to the other backend."""

    @property
    @override
    def gateway(self) -> str:
        return self.forward(lambda backend: backend.gateway)

    @override
    def ensure_indexed(self) -> None:
        self.forward(lambda backend: backend.ensure_indexed())

    @override
    def refresh(self) -> Stats:
        return self.forward(lambda backend: backend.refresh())

    @override
    def stats(self) -> Stats:
        return self.forward(lambda backend: backend.stats())

    @override
    def close(self) -> None:
        """Do nothing: the other backend is closed by its owner."""

    @override
    def search(self, query: Query) -> Answer:
        return self.forward(lambda backend: backend.search(query))

    @override
    def explain(self, query: Query, item: str) -> Explanation:
        return self.forward(lambda backend: backend.explain(query, item))

    @override
    def entries(self, where: Filter = NO_FILTER) -> "Sequence[Entry]":
        return self.forward(lambda backend: backend.entries(where))

    @override
    def page(
        self, where: Filter, limit: int, offset: int = 0, after: str = ""
    ) -> "tuple[Sequence[Entry], int]":
        return self.forward(lambda backend: backend.page(where, limit, offset, after))

    @override
    def contents(self) -> Contents:
        return self.forward(lambda backend: backend.contents())

    @override
    def item(self, item: str) -> Item:
        return self.forward(lambda backend: backend.item(item))

    @override
    def items(self, ids: Sequence[str]) -> dict[str, Item]:
        return self.forward(lambda backend: backend.items(ids))

    @override
    def links(self, item_id: str) -> Links:
        return self.forward(lambda backend: backend.links(item_id))

    @override
    def skill_files(self, ids: Sequence[str]) -> "dict[str, SkillFiles]":
        return self.forward(lambda backend: backend.skill_files(ids))

    @override
    def skill_file(self, item_id: str, place: str) -> bytes:
        return self.forward(lambda backend: backend.skill_file(item_id, place))

    @override
    def similar_skills(self, query: str) -> "list[SkillMatch]":
        return self.forward(lambda backend: backend.similar_skills(query))

    @override
    def update_vector(self, filepath: str) -> None:
        self.forward(lambda backend: backend.update_vector(filepath))

    @override
    def search_project(self, query: "ProjectQuery") -> "ProjectAnswer":
        return self.forward(lambda backend: backend.search_project(query))

    @property
    @override
    def calls_allowed(self) -> bool:
        return self.forward(lambda backend: backend.calls_allowed)

    @override
    def call(self, tool_id: str, arguments: Mapping[str, Any]) -> "CallResult":
        return self.forward(lambda backend: backend.call(tool_id, arguments))

"""The port that every interface asks: an index of this process, or a server over HTTP.

Adapters: ``one_shot.Repertory``; ``client.Client``; the command line's ``Failover``, which looks
for a server or becomes one; the query service's ``Service``, its ``VisibleService``, which
hides sources from some callers, and its ``Restricted``, which hides absolute paths. Every method
may block and may be called from several threads. Every failure is a ``RepertoryError`` that says
what to do.
"""

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from typing_extensions import override

from repertory.catalogue.item import Item
from repertory.index.vectors import Filter
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
    from repertory.skill_vectors.match import SkillMatch

CALLS_OFF = (  # of errors
    "Calling tools is off here; switch it on with --allow-calls or REPERTORY_MCP_ALLOW_CALLS=true."
)

T = TypeVar("T")


class Backend(Protocol):
    """Everything that can be asked of a repertory."""

    @property
    def gateway(self) -> str:
        """The URL where tools are called over HTTP; the server may have to be started first."""
        ...

    def ensure_indexed(self) -> None:
        """Index what is new here, as far as there is time; a server does it by itself."""
        ...

    def refresh(self) -> Stats:
        """Make the index equal to the sources, which a server does by itself; the statistics."""
        ...

    def stats(self) -> Stats:
        """What is indexed, how fresh it is, what is being done, and what is wrong.

        Parts that are unavailable are reported in the statistics.
        """
        ...

    def close(self) -> None:
        """Release all resources. Closing twice is allowed."""
        ...

    def search(self, query: Query) -> Answer:
        """Find the items that match a query best; see ``SearchEngine.search``.

        Raises:
            UsageError: The query is invalid.
            NothingIndexedError: Nothing was indexed yet.
            StoreError: Nothing can be searched now.
        """
        ...

    def explain(self, query: Query, item: str) -> Explanation:
        """Explain why a search shows an item or not; see ``SearchEngine.explain``.

        Raises:
            UnknownItemError: There is no such item.
        """
        ...

    def entries(self, where: Filter | None = None) -> "Sequence[Entry]":
        """The indexed items that pass a filter, by id, without their texts."""
        ...

    def page(
        self, where: Filter, limit: int, offset: int = 0, after: str = ""
    ) -> "tuple[Sequence[Entry], int]":
        """A page of these items, and how many all pages have.

        Args:
            where: Which items are listed.
            limit: How many at most.
            offset: How many are left out before.
            after: The id that the page comes after; empty for the first one.
        """
        ...

    def contents(self) -> Contents:
        """What is indexed, in numbers; cheap enough to be asked regularly.

        Raises:
            StoreError: It cannot be read now.
        """
        ...

    def item(self, item: str) -> Item:
        """One indexed item, whole, by its id, or by its name if no other item has it.

        Raises:
            UnknownItemError: No item fits, or several do.
            StoreError: The store is unavailable.
        """
        ...

    def items(self, ids: Sequence[str]) -> dict[str, Item]:
        """Some indexed items, whole, by id; unknown ids are left out.

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

        Unknown ids are left out. A process that cannot read the folder of a skill says so.

        Raises:
            StoreError: The store is unavailable.
        """
        ...

    def skill_file(self, item_id: str, place: str) -> bytes:
        """The bytes of one supporting file; see ``skill_files.content_of``.

        Raises:
            UnknownItemError: There is no such skill, or no such file of it.
            StoreError: The store is unavailable.
        """
        ...

    def similar_skills(self, query: str) -> "list[SkillMatch]":
        """Skill files by their cosine with a query; see ``SkillVectors.search``."""
        ...

    def update_vector(self, filepath: str) -> None:
        """Store the vector of a file of the sandbox; see ``SkillVectors.update``."""
        ...

    def search_project(self, query: "ProjectQuery") -> "ProjectAnswer":
        """Search the files of the project; see ``ProjectSearch.search``."""
        ...

    @property
    def calls_allowed(self) -> bool:
        """Whether tools may be called through here."""
        ...

    def call(self, tool_id: str, arguments: Mapping[str, Any]) -> "CallResult":
        """Call a tool of an MCP server; see ``Calls.call``."""
        ...


class Forwarding(Backend):
    """Forwards every request to another backend."""

    @abstractmethod
    def forward(self, request: Callable[[Backend], T]) -> T:
        """Make a request of the other backend."""

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
    def entries(self, where: Filter | None = None) -> "Sequence[Entry]":
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

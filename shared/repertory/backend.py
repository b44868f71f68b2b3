"""The port that every face asks: the index of this process, or a server over HTTP.

Adapters: ``local.Local`` (through ``compose.Repertory`` and the query service) and
``client.Client``. Every method may block and may be called from several threads. Whatever goes
wrong is a ``RepertoryError`` that says what to do.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from repertory.catalogue.item import Item
from repertory.index.vectors import Filter
from repertory.search.answer import Answer
from repertory.search.explanation import Explanation
from repertory.search.query import Query

if TYPE_CHECKING:
    from repertory.calling.result import CallResult
    from repertory.index.keywords.document import Entry
    from repertory.project_search.query import ProjectAnswer, ProjectQuery
    from repertory.skill_vectors.match import SkillMatch


class Backend(Protocol):
    """What can be asked of a repertory."""

    def search(self, query: Query) -> Answer:
        """Find what fits a query best; see ``SearchEngine.search``."""
        ...

    def explain(self, query: Query, item: str) -> Explanation:
        """Tell why a search shows an item, or why not; see ``SearchEngine.explain``."""
        ...

    def entries(self, where: Filter | None = None) -> "Sequence[Entry]":
        """What is indexed, by id, as far as a filter lets it through."""
        ...

    def item(self, item_id: str) -> Item:
        """One indexed item, whole; UnknownItemError if there is none of that id."""
        ...

    def items(self, ids: Sequence[str]) -> dict[str, Item]:
        """Some indexed items, whole, by id; what is not there is left out."""
        ...

    def similar_skills(self, query: str) -> "list[SkillMatch]":
        """Skill files by their plain cosine with a query; see ``SkillVectors.search``."""
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

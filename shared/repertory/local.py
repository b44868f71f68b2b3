"""The backend of an index in this process; who opens and follows that index says how to get it."""

import abc
import threading
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from repertory.catalogue.item import Item
from repertory.embedding.engine import EmbeddingEngine
from repertory.errors import CallsOffError, StoreError
from repertory.index.keywords.document import Entry
from repertory.index.vectors import Filter, VectorStore
from repertory.search import lookup
from repertory.search.answer import Answer, Query
from repertory.search.engine import SearchEngine
from repertory.search.explanation import Explanation
from repertory.settings import Settings
from repertory.workspace import Workspace

if TYPE_CHECKING:  # a search needs none of them
    from repertory.calling.calls import Calls
    from repertory.calling.result import CallResult
    from repertory.project_search.query import ProjectAnswer, ProjectQuery
    from repertory.project_search.search import ProjectSearch
    from repertory.skill_vectors.match import SkillMatch
    from repertory.skill_vectors.vectors import SkillVectors


_MAKING = threading.Lock()  # a cached property may be made by two threads at once


class Local(abc.ABC):
    """Answers from an index of this process; see ``Backend``.

    Attributes:
        settings: What is in force.
        workspace: The directory, and what its catalogue is.
    """

    settings: Settings
    workspace: Workspace

    @property
    @abc.abstractmethod
    def engine(self) -> SearchEngine:
        """The search engine in force; StoreError when there is nothing to search."""

    @abc.abstractmethod
    def embedding(self) -> EmbeddingEngine:
        """The engine that embeds queries, waiting for it; ModelError when there is none."""

    @abc.abstractmethod
    def vector_store(self) -> VectorStore:
        """The vector store."""

    def search(self, query: Query) -> Answer:
        """Search the index as it is; see ``SearchEngine.search``."""
        return self.engine.search(query)

    def explain(self, query: Query, item: str) -> Explanation:
        """Tell why a search shows an item, or why not; see ``SearchEngine.explain``."""
        return self.engine.explain(query, item)

    def entries(self, where: Filter | None = None) -> list[Entry]:
        """What is indexed, by id, as far as a filter lets it through."""
        return lookup.entries(self.engine, where or Filter())

    def item(self, item_id: str) -> Item:
        """One indexed item, whole.

        Raises:
            UnknownItemError: There is none of that id.
            StoreError: The store cannot be read now.
        """
        return lookup.item(self.engine, item_id)

    def items(self, ids: Sequence[str]) -> dict[str, Item]:
        """Some indexed items, whole, by id; what is not there is left out.

        Raises:
            StoreError: The store cannot be read now.
        """
        return lookup.items(self.engine, ids)

    def similar_skills(self, query: str) -> "list[SkillMatch]":
        """Skill files by their plain cosine with a query; see ``SkillVectors.search``."""
        try:
            engine: SearchEngine | None = self.engine
        except StoreError:  # what was written one by one is found all the same
            engine = None
        with _MAKING:
            vectors = self._skill_vectors
        return vectors.search(query, engine)

    def update_vector(self, filepath: str) -> None:
        """Store the vector of a file of the sandbox; see ``SkillVectors.update``."""
        with _MAKING:
            vectors = self._skill_vectors
        vectors.update(filepath)

    def search_project(self, query: "ProjectQuery") -> "ProjectAnswer":
        """Search the files of the project; see ``ProjectSearch.search``."""
        with _MAKING:
            files = self._project_search
        return files.search(self.engine, query)

    @property
    def calls_allowed(self) -> bool:
        """Whether tools may be called through here."""
        return self.settings.values.allow_calls

    def call(self, tool_id: str, arguments: Mapping[str, Any]) -> "CallResult":
        """Call a tool of an MCP server; see ``Calls.call``."""
        if not self.calls_allowed:
            raise CallsOffError(
                "Calling tools is off here; switch it on with --allow-calls or "
                "REPERTORY_MCP_ALLOW_CALLS=true."
            )
        tool = self.item(tool_id)
        with _MAKING:
            calls = self._calls
        return calls.call(tool, arguments)

    @property
    def call_outcomes(self) -> Mapping[str, int]:
        """How many tools were called through here, by how that went; see ``Calls.outcomes``."""
        return self._calls.outcomes if "_calls" in vars(self) else {}

    def close(self) -> None:
        """Let go of everything. Closing twice is allowed."""
        if calls := vars(self).pop("_calls", None):
            calls.close()

    @cached_property
    def _skill_vectors(self) -> "SkillVectors":
        from repertory.skill_vectors.vectors import SkillVectors  # noqa: PLC0415 - rarely needed

        given = Path(self.settings.values.sandbox or "").expanduser()
        return SkillVectors(self.workspace.directory / given, self.vector_store, self.embedding)

    @cached_property
    def _project_search(self) -> "ProjectSearch":
        from repertory.project_search.search import ProjectSearch  # noqa: PLC0415 - likewise
        from repertory.sources.discover import is_project  # noqa: PLC0415 - likewise

        # Whoever wrote the catalogue said what may be seen; a team's server may be anywhere.
        directory = self.workspace.directory
        is_found = self.workspace.is_found and not self.settings.values.redis_url
        return ProjectSearch(directory, whole=is_found and is_project(directory, Path.home()))

    @cached_property
    def _calls(self) -> "Calls":
        from repertory.calling.calls import Calls  # noqa: PLC0415 - likewise

        return Calls(self.settings.values, self.workspace)

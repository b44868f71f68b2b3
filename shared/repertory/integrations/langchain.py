"""A retriever and tools for LangChain (`pip install 'repertory[langchain]'`).

The async methods run on a thread, as is LangChain's default.
"""

import asyncio
from collections.abc import Callable
from functools import wraps
from typing import Any, Literal, ParamSpec, TypeVar, Unpack, cast

try:
    from langchain_core.callbacks import CallbackManagerForRetrieverRun
except ModuleNotFoundError as error:
    needed = f"This needs {error.name}; run: pip install 'repertory[langchain]'"
    raise ModuleNotFoundError(needed, name=error.name) from error
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.tools import BaseTool, BaseToolkit, StructuredTool, ToolException
from pydantic import ConfigDict, Field
from typing_extensions import override

from repertory.api import SearchOptions, Session
from repertory.calling.result import CallResult
from repertory.integrations import agent

P = ParamSpec("P")
T = TypeVar("T")


class RepertoryRetriever(BaseRetriever):
    """Retrieves the items that fit a query, each with its whole text.

    A document's metadata has the id, the kind, the confidence, the reason and more. Failures are
    raised as ``RepertoryError``.

    Attributes:
        session: The catalogue: ``repertory.open()`` or ``repertory.connect(url)``.
        asked: The optional parameters of ``Session.search``, like ``{"limit": 3}``.
    """

    session: Session
    asked: dict[str, Any] = Field(default_factory=dict)

    @override
    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[Document]:
        return [
            Document(text, id=hit.id, metadata=agent.metadata_of(hit))
            for hit, text in agent.texts(self.session, query, cast(SearchOptions, self.asked))
        ]


class RepertoryTool(BaseTool):
    """A tool of an MCP server, called through Repertory.

    The content is the tool's text, the artifact its whole result. Errors that a model can correct
    are passed to it; others are raised as ``RepertoryError``.

    Attributes:
        session: The catalogue, where calls are allowed.
        tool_id: The id of the tool.
    """

    session: Session
    tool_id: str
    response_format: Literal["content", "content_and_artifact"] = "content_and_artifact"
    handle_tool_error: Any = True

    @override
    def _run(self, /, **arguments: Any) -> tuple[str, CallResult]:
        result = _for_a_model(self.session.call)(self.tool_id, arguments)
        if result.is_error:
            raise ToolException(agent.words_of(result))
        return agent.words_of(result), result

    @override
    async def _arun(self, /, **arguments: Any) -> tuple[str, CallResult]:
        return await asyncio.to_thread(self._run, **arguments)


class RepertoryToolkit(BaseToolkit):
    """Tools for an agent that searches by itself, and the tools that a search finds.

    Attributes:
        session: The catalogue: ``repertory.open()`` or ``repertory.connect(url)``.
        calls: Whether the agent gets ``call_tool`` as well; calls must be allowed there.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    session: Session
    calls: bool = False

    @override
    def get_tools(self) -> list[BaseTool]:
        """The tools ``search_catalogue`` and ``get_item``, and ``call_tool`` if enabled."""
        functions = agent.AgentFunctions(self.session)
        wanted: list[Callable[..., str]] = [functions.search_catalogue, functions.get_item]
        if self.calls:
            wanted.append(functions.call_tool)
        return [
            StructuredTool.from_function(
                _for_a_model(one), handle_tool_error=True, handle_validation_error=str
            )
            for one in wanted
        ]

    def find_tools(self, query: str, **asked: Unpack[SearchOptions]) -> list[RepertoryTool]:
        """The tools of MCP servers and web APIs that fit a task, ready to be bound to a model.

        Args:
            query: The task.
            asked: As for ``Session.search``.
        """
        return [
            RepertoryTool(
                name=spec.name,
                description=spec.text,
                args_schema=spec.parameters,
                session=self.session,
                tool_id=spec.id,
            )
            for spec in agent.found_tools(self.session, query, asked)
        ]


def _for_a_model(function: Callable[P, T]) -> Callable[P, T]:
    """Wrap a function so that errors that a model can correct are passed to it."""

    @wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return function(*args, **kwargs)
        except agent.FOR_THE_MODEL as error:
            raise ToolException(str(error)) from error

    return run

"""A retriever and tools for LlamaIndex (`pip install 'repertory[llamaindex]'`).

The async methods run on a thread.
"""

import asyncio
from typing import Any, Unpack

try:
    from llama_index.core.base.base_retriever import BaseRetriever
except ModuleNotFoundError as error:
    needed = f"This needs {error.name}; run: pip install 'repertory[llamaindex]'"
    raise ModuleNotFoundError(needed, name=error.name) from error
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
from llama_index.core.tools import AsyncBaseTool, FunctionTool, ToolMetadata, ToolOutput
from llama_index.core.tools.tool_spec.base import BaseToolSpec
from typing_extensions import override

from repertory.api import SearchOptions, Session
from repertory.errors import UsageError
from repertory.formats.tools import ToolSpec
from repertory.integrations import agent


class RepertoryRetriever(BaseRetriever):
    """Retrieves the items that fit a query, each with its whole text; the score is the confidence.

    A node's metadata has the id, the kind, the reason and more. Failures are raised as
    ``RepertoryError``.

    Args:
        session: The catalogue: ``repertory.open()`` or ``repertory.connect(url)``.
        asked: The optional parameters of ``Session.search``, like ``limit=3``.
    """

    def __init__(self, session: Session, **asked: Unpack[SearchOptions]) -> None:
        super().__init__()
        self._session, self._asked = session, asked

    @override
    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return [
            NodeWithScore(
                node=TextNode(text=text, id_=hit.id, metadata=agent.metadata_of(hit)),
                score=hit.confidence,
            )
            for hit, text in agent.texts(self._session, query_bundle.query_str, self._asked)
        ]

    @override
    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return await asyncio.to_thread(self._retrieve, query_bundle)


class RepertoryToolSpec(agent.AgentFunctions, BaseToolSpec):
    """Tools for an agent that searches by itself, and the tools that a search finds.

    ``to_tool_list`` gives ``search_catalogue`` and ``get_item``, and ``call_tool`` if enabled.

    Args:
        session: The catalogue: ``repertory.open()`` or ``repertory.connect(url)``.
        calls: Whether the agent gets ``call_tool`` as well; calls must be allowed there.
    """

    def __init__(self, session: Session, *, calls: bool = False) -> None:
        super().__init__(session)
        self.spec_functions = ["search_catalogue", "get_item", *(["call_tool"] if calls else [])]

    @override
    def to_tool_list(self, *args: Any, **kwargs: Any) -> list[FunctionTool]:
        """The tools of the specification. Errors that a model can correct are passed to it."""
        return [
            _Function.from_defaults(fn=one.fn, tool_metadata=one.metadata)
            for one in super().to_tool_list(*args, **kwargs)
        ]

    def find_tools(self, query: str, **asked: Unpack[SearchOptions]) -> "list[RepertoryTool]":
        """The tools of MCP servers and web APIs that fit a task, ready for an agent.

        Args:
            query: The task.
            asked: As for ``Session.search``.
        """
        found = agent.found_tools(self._session, query, asked)
        return [RepertoryTool(self._session, spec) for spec in found]


class _Function(FunctionTool):
    """A function tool that passes errors that a model can correct to the model."""

    @override
    def call(self, *args: Any, **kwargs: Any) -> ToolOutput:
        try:
            return super().call(*args, **kwargs)
        except agent.FOR_THE_MODEL as error:
            return self._failed(error, kwargs)

    @override
    async def acall(self, *args: Any, **kwargs: Any) -> ToolOutput:
        try:
            return await super().acall(*args, **kwargs)
        except agent.FOR_THE_MODEL as error:
            return self._failed(error, kwargs)

    def _failed(self, error: Exception, given: dict[str, Any]) -> ToolOutput:
        return ToolOutput(
            tool_name=self.metadata.get_name(), content=str(error), raw_input=given, is_error=True
        )


class Declaration(ToolMetadata):
    """The declaration of a tool whose arguments have a JSON Schema."""

    def __init__(self, spec: ToolSpec) -> None:
        super().__init__(name=spec.name, description=spec.text, fn_schema=None)
        self._parameters = spec.parameters

    @override
    def get_parameters_dict(self) -> dict[str, Any]:
        return self._parameters

    @property
    @override
    def fn_schema_str(self) -> str:
        return agent.as_json(self._parameters)


class RepertoryTool(AsyncBaseTool):
    """A tool of an MCP server, called through Repertory.

    The output has the tool's text and its whole result. Errors that a model can correct are passed
    to it; others are raised as ``RepertoryError``.

    Args:
        session: The catalogue, where calls are allowed.
        spec: The tool.
    """

    def __init__(self, session: Session, spec: ToolSpec) -> None:
        self._session, self._id = session, spec.id
        self._metadata = Declaration(spec)

    @property
    @override
    def metadata(self) -> ToolMetadata:
        return self._metadata

    @override
    def __call__(self, /, *values: Any, **arguments: Any) -> ToolOutput:
        """Call it with arguments by name; a single value goes to its only parameter."""
        names = self._metadata.get_parameters_dict()["properties"]
        if values and len(values) != len(names):
            raise UsageError(
                f"The tool {self._id} takes its arguments by name: {', '.join(names) or 'none'}."
            )
        given = dict(zip(names, values, strict=True)) | arguments if values else arguments
        return self.call(given)

    @override
    def call(self, input: dict[str, Any]) -> ToolOutput:
        result = None
        try:
            result = self._session.call(self._id, input)
            text, failed = agent.words_of(result), result.is_error
        except agent.FOR_THE_MODEL as error:
            text, failed = str(error), True
        return ToolOutput(
            tool_name=self._metadata.get_name(),
            content=text,
            raw_input=input,
            raw_output=result,
            is_error=failed,
        )

    @override
    async def acall(self, /, *values: Any, **arguments: Any) -> ToolOutput:
        return await asyncio.to_thread(self, *values, **arguments)

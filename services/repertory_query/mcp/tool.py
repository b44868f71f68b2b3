"""A tool of the MCP server: a function for agents, with its definition and its results."""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from mcp_types import CallToolResult, ResourceLink, TextContent, ToolAnnotations
from mcp_types import Tool as Definition

from repertory.backend import Backend
from repertory.functions.function import Function
from repertory.keys import Scope
from repertory_query.backend.pool import Work

_PARSED: Mapping[str, type] = {"array": list, "object": dict}  # by type of JSON Schema


class Tool(msgspec.Struct, frozen=True, kw_only=True):
    """One tool.

    Attributes:
        function: The function. Its result is a string, an object, or a ``CallToolResult``.
        work: The kind of work, which decides on which threads it runs.
        tells_contents: Whether its description ends with the contents of the catalogue.
        parameters_now: Returns its current parameters, if their defaults may change.
    """

    function: Function
    work: Work = Work.READ
    tells_contents: bool = False
    parameters_now: Callable[[], dict[str, Any]] | None = None

    @property
    def scope(self) -> Scope:
        """The scope that a caller needs."""
        return Scope.CALL if self.function.writes else Scope.READ

    @property
    def parameters(self) -> dict[str, Any]:
        """The JSON Schema of its arguments."""
        return self.parameters_now() if self.parameters_now else self.function.parameters

    def definition(self, contents: str) -> Definition:
        """The definition that ``tools/list`` returns.

        Args:
            contents: The contents of the catalogue, in words; empty if unknown.
        """
        function = self.function
        parts = [function.description, contents if self.tells_contents else ""]
        return Definition(
            name=function.name,
            title=function.title,
            description="\n\n".join(filter(None, parts)),
            input_schema=_without_refusals(self.parameters),
            output_schema=function.returns,
            annotations=self._hints(),
        )

    def _hints(self) -> ToolAnnotations | None:
        """The hints that differ from the specification's defaults."""
        if not self.function.writes:
            return ToolAnnotations(read_only_hint=True, open_world_hint=False)
        if self.work is Work.CALL:
            return None  # it has unknown effects outside of the catalogue
        return ToolAnnotations(destructive_hint=False, idempotent_hint=True, open_world_hint=False)

    def answer(self, backend: Backend, arguments: Mapping[str, Any]) -> CallToolResult:
        """Call the function.

        Raises:
            RepertoryError: The arguments are invalid, or the function failed.
        """
        found = self.function.call(backend, self._given(arguments))
        if isinstance(found, CallToolResult):
            return found
        if isinstance(found, str):
            return in_words(found)
        data = msgspec.to_builtins(found)
        return CallToolResult(
            content=[TextContent(text=msgspec.json.encode(data).decode())], structured_content=data
        )

    def _given(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments without optional ones that are null, and with lists and objects parsed.

        Some hosts make their models write all arguments, with null for missing ones. Some send
        lists and objects as JSON in a string.
        """
        parameters = self.parameters
        properties = parameters["properties"]
        optional = properties.keys() - parameters.get("required", ())
        return {
            name: _parsed(value, properties.get(name, {}).get("type"))
            for name, value in arguments.items()
            if value is not None or name not in optional
        }

    def failure(self, message: str) -> CallToolResult:
        """The result that reports an error, in the form of the function's contract, if any."""
        if self.function.error_is_result:
            message = msgspec.json.encode({"error": message}).decode()
        return in_words(message, is_error=True)


def _parsed(value: object, json_type: object) -> object:
    """The list or object that a string has as JSON, if this type is expected; else the value."""
    if not isinstance(value, str) or not isinstance(json_type, str) or json_type not in _PARSED:
        return value
    try:
        return msgspec.json.decode(value, type=_PARSED[json_type])
    except (ValueError, RecursionError):  # the validation reports it
        return value


def without_links(result: CallToolResult) -> CallToolResult:
    """A result with links as texts, for clients of a protocol version without links."""
    content = [
        TextContent(text=f"{block.name}: {block.uri}") if isinstance(block, ResourceLink) else block
        for block in result.content
    ]
    return result.model_copy(update={"content": content})


def _without_refusals(parameters: dict[str, Any]) -> dict[str, Any]:
    """A schema without ``additionalProperties``, which a model does not need."""
    return {key: value for key, value in parameters.items() if key != "additionalProperties"}


def in_words(text: str, *, is_error: bool = False) -> CallToolResult:
    """A result that consists of a text."""
    return CallToolResult(content=[TextContent(text=text)], is_error=is_error)

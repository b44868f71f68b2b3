"""The answers of ``/search`` in the formats of hosts, for whoever reads ``/openapi.json``."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from repertory_query.schemas import Answer


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid")


class TextBlock(_Model):
    """A text."""

    type: Literal["text"]
    text: str


class ToolReference(_Model):
    """A tool that the model may use from now on."""

    type: Literal["tool_reference"]
    tool_name: str


class AnthropicTool(_Model):
    """A tool to declare."""

    name: str = Field(pattern="^[a-zA-Z0-9_-]{1,64}$")
    description: str = Field(description="What it does; its last line is `Tool id: ` and the id.")
    input_schema: dict[str, Any]
    defer_loading: Literal[True]


class AnthropicAnswer(_Model):
    """`format=anthropic`."""

    content: list[ToolReference | TextBlock] = Field(description="What a `tool_result` holds.")
    definitions: list[AnthropicTool] = Field(description="The tools that were found.")


class OpenAIFunction(_Model):
    """A function that the model may call from now on."""

    type: Literal["function"]
    name: str = Field(pattern="^[a-zA-Z0-9_-]{1,64}$")
    description: str = Field(description="A tool's last line is `Tool id: ` and the id.")
    parameters: dict[str, Any]
    strict: Literal[False]
    defer_loading: Literal[True]


class OpenAINamespace(_Model):
    """Tools of one server."""

    type: Literal["namespace"]
    name: str = Field(pattern="^[a-zA-Z0-9_-]{1,64}$")
    description: str
    tools: list[OpenAIFunction] = Field(min_length=1, max_length=9)


class OpenAIAnswer(_Model):
    """`format=openai`: an item of the next request's input."""

    type: Literal["tool_search_output"]
    call_id: str | None
    execution: Literal["client"]
    status: Literal["completed"]
    tools: list[OpenAINamespace | OpenAIFunction]


class ResourceLink(_Model):
    """Where a skill or a document can be read over MCP."""

    type: Literal["resource_link"]
    uri: str
    name: str
    description: str
    mimeType: str  # noqa: N815 - MCP's name


class McpAnswer(_Model):
    """`format=mcp`: the result of a tool."""

    resultType: Literal["complete"]  # noqa: N815 - MCP's name
    content: list[TextBlock | ResourceLink]
    structuredContent: Answer  # noqa: N815 - MCP's name
    isError: Literal[False]  # noqa: N815 - MCP's name

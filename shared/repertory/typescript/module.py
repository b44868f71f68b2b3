"""A TypeScript module with the types of tools and methods that call them through a gateway.

It needs only ``fetch`` and uses no syntax that Node cannot strip.
"""

import textwrap
from collections.abc import Mapping, Sequence
from itertools import groupby
from urllib.parse import quote

import msgspec

from repertory.catalogue.item import Item
from repertory.errors import UsageError
from repertory.typescript.schema import declarations
from repertory.typescript.syntax import (
    IdentifierPool,
    camel,
    comment,
    identifier,
    key,
    pascal,
    quoted,
)

MAX_MODULE_LENGTH = 20_000_000  # characters of a module

_HEAD = """\
/** Tools of MCP servers, called through a Repertory server. */

/** The server's URL, and the API key for a server that requires one. */
export const gateway = { url: %s, apiKey: "" };

/** A call that was refused or failed. The message says why. */
export class ToolError extends Error {
  /** The HTTP status of the answer. */
  readonly status: number;

  constructor(message: string, status: number) {
    super(message);
    this.name = "ToolError";
    this.status = status;
  }
}

async function call<Result>(id: string, params: unknown, structured: boolean): Promise<Result> {
  const headers: Record<string, string> = { "Content-Type": "application/json" };
  if (gateway.apiKey) {
    headers["Authorization"] = `Bearer ${gateway.apiKey}`;
  }
  const response = await fetch(`${gateway.url}/tools/${id}`, {
    method: "POST",
    headers,
    body: JSON.stringify(params ?? {}),
  });
  const answer = await response.json().catch(() => null);
  if (!response.ok || answer === null) {
    const detail = answer?.detail ?? `${response.status} ${response.statusText}`;
    throw new ToolError(detail, response.status);
  }
  return structured && answer.structuredContent != null ? answer.structuredContent : answer;
}
"""


class Module(msgspec.Struct, frozen=True):
    """A module's source, and its methods by the ids of their tools: ``tools.files.read_file``."""

    text: str
    methods: dict[str, str]


def module(tools: Sequence[Item], gateway: str) -> Module:
    """Write the module of some tools, which the server at the URL ``gateway`` calls.

    A server's name becomes camel case; a tool keeps its name. Type names combine both in Pascal
    case. Duplicate names are numbered from the second on.

    Raises:
        UsageError: The module would be too large.
    """
    types, servers = IdentifierPool(), IdentifierPool()
    declared: list[str] = []
    groups: list[str] = []
    methods: dict[str, str] = {}
    size = 0
    ordered = sorted(tools, key=lambda tool: (tool.server, tool.name))
    for server, of_server in groupby(ordered, key=lambda tool: tool.server):
        group = servers.take(identifier(camel(server), "server"))
        calls: list[str] = []
        for tool in of_server:
            name = identifier(pascal(server) + pascal(tool.name), "Tool")
            params, result = types.take(f"{name}Params"), types.take(f"{name}Result")
            declared += [
                declarations(params, tool.input_schema, f"Parameters of `{tool.id}`.", types),
                declarations(result, tool.output_schema, f"Result of `{tool.id}`.", types),
            ]
            calls.append(_method(tool, params, result))
            at = key(tool.name)
            methods[tool.id] = f"tools.{group}" + (f"[{at}]" if at[0] == '"' else f".{at}")
            size += len(declared[-1]) + len(declared[-2]) + len(calls[-1])
            if size > MAX_MODULE_LENGTH:
                raise UsageError(
                    f"The module of {len(tools):,} tools would be larger than "
                    f"{MAX_MODULE_LENGTH:,} characters; name the servers or tools that are wanted."
                )
        groups.append(f"  {group}: {{\n" + "\n".join(calls) + "  },\n")
    head = _HEAD % quoted(gateway)
    body = "export const tools = {\n" + "".join(groups) + "};\n"
    return Module("\n".join([head, *declared, body]), methods)


def _method(tool: Item, params: str, result: str) -> str:
    mark = "?" if _needs_nothing(tool.input_schema) else ""
    path = quoted(quote(tool.id, safe="", errors="replace"))
    structured = "false" if tool.output_schema is None else "true"
    text = (
        f"{comment(tool.description)}{key(tool.name)}(params{mark}: {params}): Promise<{result}> {{"
        f"\n  return call({path}, params, {structured});\n}},\n"
    )
    return textwrap.indent(text, "    ")


def _needs_nothing(schema: Mapping[str, object] | None) -> bool:
    """Whether the schema certainly allows a call without arguments."""
    words = ("required", "minProperties", "$ref", "const", "enum", "anyOf", "oneOf", "allOf")
    return schema is None or not any(schema.get(word) for word in words)

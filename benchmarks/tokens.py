"""The number of tokens in the MCP server's tool definitions and in the hits of a search.

Tokens are counted with o200k_base, the vocabulary of GPT-4o, from the package rs-bpe.
"""

import json
import os
import subprocess
import sys
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import anyio
from mcp import Client, StdioServerParameters
from pydantic import BaseModel

from benchmarks.indexing import environment
from benchmarks.measure import Figure
from benchmarks.starting import EXAMPLES
from tests.support.command_line import COMMAND

MAX_DEFINITIONS = 450  # search, get and call, with the summary of the catalogue
MAX_HITS = 200  # three hits
# Measured with callbus 0.3.1 on the server of examples/servers, with `k` = 3; see NOTES.md.
CALLBUS_HITS = 481
CALLBUS_QUERY = "write down a note"


def run(folder: Path) -> list[Figure]:
    """Query the MCP server of the example catalogue over stdio; empty without the tokenizer."""
    if find_spec("rs_bpe") is None:
        print("skipped: rs-bpe is not installed, or not built for this Python", file=sys.stderr)
        return []
    variables = {
        **environment(folder, "tokens-data"),
        "REPERTORY_CONFIG": str(EXAMPLES / "repertory.toml"),
        "PATH": os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"])),
    }
    subprocess.run(
        [*COMMAND, "index"], cwd=EXAMPLES, env=variables, stdout=subprocess.DEVNULL, check=True
    )
    return anyio.run(_ask, variables)


def count(value: object) -> int:
    """The number of tokens of a value as compact JSON."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return int(_vocabulary().count(text))


@cache
def _vocabulary() -> Any:  # noqa: ANN401 - the package has no types
    from rs_bpe.bpe import openai  # noqa: PLC0415 - optional package

    return openai.o200k_base()


async def _ask(variables: dict[str, str]) -> list[Figure]:
    lines = (EXAMPLES / "eval" / "queries.jsonl").read_text("utf-8").splitlines()
    queries = [json.loads(line)["text"] for line in lines]
    command, *arguments = [*COMMAND, "mcp", "--allow-calls"]
    server = StdioServerParameters(
        command=command, args=arguments, env=variables, cwd=str(EXAMPLES)
    )
    async with Client(server) as client:
        definitions = _plain(await client.list_tools())["tools"]
        assert [tool["name"] for tool in definitions] == ["search", "get", "call"]
        assert "The catalogue holds" in definitions[0]["description"]
        hits = [await _hits(client, query, threshold=0.0) for query in queries]
        same = await _hits(client, CALLBUS_QUERY, threshold=0.0)
    limit = "the limit"
    return [
        _figure(
            "tools/list: `search`, `get` and `call`", count(definitions), MAX_DEFINITIONS, limit
        ),
        _figure(
            f"three hits over MCP, the most of {len(hits)} queries", max(hits), MAX_HITS, limit
        ),
        _figure(f"three hits for “{CALLBUS_QUERY}”", same, CALLBUS_HITS, "callbus 0.3.1", 0.5),
    ]


async def _hits(client: Client, query: str, **more: float) -> int:
    result = _plain(await client.call_tool("search", {"query": query, **more}))
    assert not result["isError"], result
    return count(result)


def _plain(result: BaseModel) -> dict[str, Any]:
    """A result as JSON, without the fields that the SDK adds."""
    plain = result.model_dump(by_alias=True, exclude_none=True, mode="json")
    return {name: value for name, value in plain.items() if name not in ("_meta", "resultType")}


def _figure(name: str, ours: int, other: int, against: str, target: float = 1.0) -> Figure:
    return Figure(name=name, ours=ours, other=other, against=against, unit="tokens", target=target)

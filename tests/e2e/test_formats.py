"""Output formats for hosts, over HTTP and on the command line, with and without a server."""

import json
from http.client import HTTPMessage
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlencode

import jsonschema
import pytest
from mcp.types import CallToolResult
from pydantic import TypeAdapter

from tests.support.command_line import Cli
from tests.support.server_process import ask, note_of

JSON, MARKDOWN = "application/json", "text/markdown; charset=utf-8"
FORMATS = {
    "json": JSON,
    "markdown": MARKDOWN,
    "types": MARKDOWN,
    "anthropic": JSON,
    "openai": JSON,
    "mcp": JSON,
}
ALL = {"q": "file", "threshold": "0", "limit": "9"}  # tools, skills and a document


class Server:
    """A client of a running server."""

    def __init__(self, url: str, token: str) -> None:
        self.url = url
        self._token = token

    def get(self, path: str = "/search", **fields: object) -> tuple[HTTPMessage, str]:
        """The headers and the body of an answer."""
        query = urlencode(fields, doseq=True)
        with ask(f"{self.url}{path}?{query}", self._token) as response:
            return response.headers, response.read().decode()

    def json(self, path: str = "/search", **fields: object) -> Any:  # noqa: ANN401 - JSON
        """The body of a JSON answer."""
        return json.loads(self.get(path, **fields)[1])


@pytest.fixture(scope="module")
def server(user: Cli, served: Path) -> Server:
    """The server of the served project."""
    return Server(note_of(user, served).url, note_of(user, served).token)


@pytest.fixture(params=["embedded", "server"])
def command(
    request: pytest.FixtureRequest, cli: Cli, indexed: Path, user: Cli, served: Path
) -> tuple[Cli, Path]:
    """The command line without a server, and with one."""
    return (cli, indexed) if request.param == "embedded" else (user, served)


@pytest.mark.parametrize("form", FORMATS)
def test_a_server_answers_in_every_format(server: Server, form: str) -> None:
    """Each format has its content type and matches its schema in the OpenAPI document."""
    headers, body = server.get(**ALL, format=form)

    assert headers["Content-Type"] == FORMATS[form]
    assert "read_file" in body
    if form != "json":
        assert headers["Repertory-Mode"] == "hybrid"
    document = server.json("/openapi.json")
    described = document["paths"]["/v1/search"]["get"]["responses"]["200"]["content"]
    schema = described[FORMATS[form].partition(";")[0]]["schema"]
    value = json.loads(body) if FORMATS[form] == JSON else body
    jsonschema.validate(value, schema | {"components": document["components"]})


def test_the_command_line_prints_the_servers_answer(
    server: Server, user: Cli, served: Path
) -> None:
    """In every format, the command line prints the same as the server returns."""
    for form, media_type in FORMATS.items():
        body = server.get(q="read_file", limit=1, format=form)[1]
        shown = user.run(served, "search", "read_file", "--limit", "1", "--output", form).stdout
        if media_type == JSON:
            assert json.loads(shown) == json.loads(body)
        else:
            assert shown.rstrip() == body.rstrip()


def test_anthropic_gets_the_content_of_a_tool_result(command: tuple[Cli, Path]) -> None:
    """The answer has a valid tool result and the definitions of the referenced tools."""
    from anthropic.types import ToolResultBlockParam  # noqa: PLC0415 - takes a second

    cli, folder = command
    done = cli.run(folder, "search", "read the contents of a file", "--output", "anthropic")

    found = json.loads(done.stdout)
    assert (done.returncode, done.stderr) == (0, "")
    result = {"type": "tool_result", "tool_use_id": "toolu_01", "content": found["content"]}
    TypeAdapter(ToolResultBlockParam).validate_python(result)
    assert found["content"][0] == {"type": "tool_reference", "tool_name": "files__read_file"}
    assert found["definitions"][0]["input_schema"]["properties"] == {"path": {"type": "string"}}


def test_openai_gets_the_output_of_a_tool_search(command: tuple[Cli, Path]) -> None:
    """Tools are grouped by server, and skills are read by a function `get_item`."""
    from openai.types.responses import (  # noqa: PLC0415 - takes a second
        ResponseToolSearchOutputItemParam,
    )

    cli, folder = command
    everything = ("file bread", "--threshold", "0", "--limit", "9", "--output", "openai")
    found = json.loads(cli.run(folder, "search", *everything).stdout)

    ResponseToolSearchOutputItemParam.model_validate(found)
    files, reader = found["tools"]
    assert (files["name"], len(files["tools"])) == ("files", 3)
    assert reader["name"] == "get_item"
    assert "project/bread-baking" in reader["parameters"]["properties"]["id"]["enum"]


def test_mcp_gets_a_result_of_one_text(command: tuple[Cli, Path]) -> None:
    """The one text of the result names items and the parameters of tools."""
    cli, folder = command
    found = json.loads(cli.run(folder, "search", "bread-baking", "--output", "mcp").stdout)
    tool = json.loads(cli.run(folder, "search", "read_file", "--output", "mcp").stdout)

    CallToolResult.model_validate(found)
    (text,) = found["content"]
    assert "skill project/bread-baking: Bake sourdough bread" in text["text"]
    assert "files__read_file(" in tool["content"][0]["text"]


def test_references_name_declared_tools_only(server: Server) -> None:
    """Only tools that the request declares are referenced; others are counted."""
    found = server.json(**ALL, kind="tool", format="anthropic", declared=["files__read_file", "x"])

    reference, more = found["content"]
    assert reference == {"type": "tool_reference", "tool_name": "files__read_file"}
    assert more["text"] == "2 more tools fit, but are not declared in this request."
    assert len(found["definitions"]) == 3


def test_the_answer_has_the_call_id(server: Server) -> None:
    """The answer has the call id of the request, or null."""
    assert server.json(q="file", format="openai", callId="call_7")["call_id"] == "call_7"
    assert server.json(q="file", format="openai")["call_id"] is None


def test_filters_apply_to_every_format(server: Server) -> None:
    """Filters apply to a search in a host's format."""
    found = server.json(**ALL, kind="tool", format="openai")
    assert [tool["type"] for tool in found["tools"]] == ["namespace"]


def test_every_format_reports_no_hits(cli: Cli, indexed: Path) -> None:
    """Without hits, each format has some output and exit code 1."""
    for form in FORMATS:
        done = cli.run(indexed, "search", "zzqx", "--threshold", "1", "--output", form)
        assert done.returncode == 1
        assert done.stdout.strip()


@pytest.mark.parametrize(
    "wrong", [{"format": "xml"}, {"format": ""}, {"callId": "x" * 201}, {"declared": ["x"] * 1001}]
)
def test_an_invalid_request_is_refused(server: Server, wrong: dict[str, Any]) -> None:
    """An invalid parameter gets status 422 and a problem that names the parameter."""
    with pytest.raises(HTTPError) as refused:
        server.get(q="x", **wrong)
    with refused.value as response:
        problem = json.load(response)
    assert response.headers["Content-Type"] == "application/problem+json"
    assert (problem["status"], next(iter(wrong)) in problem["detail"]) == (422, True)


def test_an_unknown_output_is_exit_code_2(cli: Cli, indexed: Path) -> None:
    """The message lists the formats."""
    done = cli.run(indexed, "search", "file", "--output", "xml")
    assert (done.returncode, done.stdout) == (2, "")
    assert "anthropic" in done.stderr

"""Web APIs and servers of an MCP registry, as a user adds, finds and calls them."""

import json
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request

import pytest
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route

from tests.support.builders import write
from tests.support.command_line import Cli
from tests.support.mcp_registry import McpRegistry, server
from tests.support.mcp_servers import started
from tests.support.server_process import Serve, ask
from tests.support.web_api import SECRET, listening, pets


def stored(folder: Path) -> bytes:
    """The bytes of all files in a folder."""
    return b"\n".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


def call(server: Serve, tool: str, **arguments: object) -> Any:  # noqa: ANN401 - JSON
    """Call a tool over HTTP; its result, or the error."""
    body = json.dumps(arguments).encode()
    headers = {"Content-Type": "application/json"}
    try:
        request = Request(f"{server.url}/v1/tools/{tool}", body, headers)
        with ask(request, server.token) as answer:
            return json.load(answer)
    except HTTPError as error:
        return json.load(error)


def test_an_api_is_added_found_and_called(own: Cli, project: Path, tmp_path: Path) -> None:
    """An API is called with its declared authentication; its secret is never stored or shown."""
    own.environment["PETS_BEARER"] = SECRET
    with listening(pets()) as url:
        added = own.run(project, "add", f"{url}/openapi.json", "--yes")
        assert added.returncode == 0, added.stderr
        assert f'server = "{url}"' in added.stdout
        assert 'bearer = "${PETS_BEARER}"' in (project / "repertory.toml").read_text()
        found = own.json(project, "search", "add a pet to the shop", "--limit", "1")
        [hit] = found["results"]
        assert hit["toolId"] == "pets__add_pet_pets_post"
        types = own.run(project, "types", "pets__add_pet_pets_post").stdout
        assert "add_pet_pets_post(params: PetsAddPetPetsPostParams)" in types
        compact = own.run(project, "search", "add a pet to the shop", "--output", "mcp").stdout
        assert "pets__add_pet_pets_post(name, tags?, home?)" in compact
        log = tmp_path / "log"
        with Serve(own, project, log, "--allow-calls") as running:
            made = call(running, "pets__add_pet_pets_post", name="Rex")
            assert made["structuredContent"]["name"] == "Rex"
            let_in = call(running, "pets__by_bearer_guarded_bearer_get")
            assert let_in["structuredContent"] == "let in with ***"
            wrong = call(running, "pets__add_pet_pets_post", nam="Rex")
            assert "name must be given" in wrong["detail"]
            missing = call(running, "pets__by_header_guarded_header_get")
            assert "PETS_HEADERKEY, which is not set" in missing["detail"]
            assert SECRET.encode() not in log.read_bytes()
        with Serve(own, project, log) as running:
            refused = call(running, "pets__add_pet_pets_post", name="Rex")
            assert "allow-calls" in refused["detail"]
    assert SECRET.encode() not in stored(own.data) + stored(project)
    again = own.json(project, "search", "add a pet to the shop", "--limit", "1")  # offline
    assert again["results"] == found["results"]


def test_another_server_in_a_document_awaits_approval(own: Cli, project: Path) -> None:
    """A changed server of a document is reported, and a changed request is quarantined."""
    document: dict[str, Any] = {
        "openapi": "3.1.0",
        "info": {"title": "Tracker", "version": "1"},
        "servers": [{"url": "/v1"}],
        "paths": {"/issues": {"get": {"operationId": "list_issues", "summary": "List issues"}}},
    }
    app = Starlette(routes=[Route("/openapi.json", lambda _: JSONResponse(document))])
    with listening(app) as url:
        assert own.run(project, "add", f"{url}/openapi.json", "--yes").returncode == 0
        document["servers"] = [{"url": "https://evil.example"}]
        indexed = own.run(project, "index")
        assert "https://evil.example" in " ".join(indexed.stdout.split())
        assert "evil" not in own.run(project, "items", "show", "tracker__list_issues").stdout
        document["paths"] = {"/issues": {"delete": document["paths"]["/issues"]["get"]}}
        own.run(project, "index")
    waiting = own.run(project, "trust", "review")
    assert "tracker__list_issues" in waiting.stdout
    assert "another request" in " ".join(waiting.stdout.split())
    assert own.run(project, "items", "show", "tracker__list_issues").returncode != 0


def test_a_found_configuration_fetches_and_calls_nothing(own: Cli, project: Path) -> None:
    """An API of an untrusted configuration is neither fetched nor called."""
    asked: list[str] = []

    def answer(request: Any) -> JSONResponse:  # noqa: ANN401 - of Starlette
        asked.append(request.url.path)
        return JSONResponse({"openapi": "3.1.0", "paths": {"/a": {"get": {}}}})

    with listening(Starlette(routes=[Route("/{path:path}", answer)])) as url:
        entry = f'[[sources]]\ntype = "openapi"\nname = "a"\nurl = "{url}/openapi.json"\n'
        write(project / "repertory.toml", entry)
        own.run(project, "index")
        assert "await" in own.run(project, "search", "get a").stderr
        assert asked == []
        own.run(project, "config", "trust", "repertory.toml")
        own.run(project, "index")
        assert asked == ["/openapi.json"]
    assert "a__get_a" in own.run(project, "items", "list").stdout


def test_a_server_of_a_registry_is_found_added_and_trusted(own: Cli, project: Path) -> None:
    """An added server is not started until `config trust`, which indexes its tools."""
    with started("sdk.py", "http", TOKEN=SECRET) as url:
        token = {"token": {"isRequired": True, "isSecret": True}}
        header = {"name": "Authorization", "value": "Bearer {token}", "variables": token}
        remote = {"type": "streamable-http", "url": url, "headers": [header]}
        registry = McpRegistry(
            server("com.example/weather", description="Storms.", remotes=[remote]),
            server("com.example/other"),
        )
        with listening(registry.app) as address:
            own.environment["REPERTORY_REGISTRY_URL"] = address
            listed = own.run(project, "add", "--find", "weather storms")
            assert "com.example/weather@1.0.0" in listed.stdout
            added = own.run(project, "add", "mcp-registry:com.example/weather", "--yes")
            assert added.returncode == 0, added.stderr
            assert f"It calls {url}." in added.stdout
        text = (project / "repertory.toml").read_text()
        assert 'version = "1.0.0"' in text
        assert 'Authorization = "Bearer ${WEATHER_AUTHORIZATION_TOKEN}"' in text
        own.environment["WEATHER_AUTHORIZATION_TOKEN"] = SECRET
        own.run(project, "index")
        assert "weather__forecast" not in own.run(project, "items", "list").stdout
        [file] = own.data.glob("fetched/*/servers/weather.json")
        trusted = own.run(project, "config", "trust", file)
        assert trusted.returncode in (0, 3), trusted.stderr
        assert "weather__forecast" in own.run(project, "items", "list").stdout
    assert SECRET.encode() not in stored(own.data) + stored(project)


@pytest.mark.parametrize(
    ("text", "code", "reason"),
    [
        ("{}", 2, "not recognised"),
        ("<html>", 2, "not recognised"),
        ('{"swagger": "2.0"}', 4, "it is Swagger 2; convert it to OpenAPI 3."),
    ],
)
def test_a_file_that_is_no_openapi_document_is_refused(
    own: Cli, project: Path, text: str, code: int, reason: str
) -> None:
    """A file that is no OpenAPI 3 document is refused, and nothing is written."""
    write(project / "openapi.json", text)
    done = own.run(project, "add", "openapi.json", "--yes")
    assert done.returncode == code
    assert reason in " ".join(done.stderr.split())
    assert not (project / "repertory.toml").exists()

"""OpenAPI documents become tools with schemas and requests, and hostile ones are bounded."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from repertory.catalogue.item import Item
from repertory.errors import CallsOffError, ConfigurationError, SourceError
from repertory.sources.adding import Address
from repertory.sources.mcp.variables import names_in
from repertory.sources.openapi import servers
from repertory.sources.openapi.document import Document, is_openapi
from repertory.sources.openapi.entry import recognise
from repertory.sources.openapi.operation import Operation, operation_of
from repertory.sources.openapi.operations import tools
from repertory.sources.registry import build
from repertory.sources.source import Scan, Source, Trust

SERVER = "https://api.example.com/v1"
DAY = {"name": "day", "in": "query", "schema": {"type": "string"}}


def document(paths: dict[str, Any], **fields: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
    """A document of version 3.0."""
    about = {"title": "Notes", "version": "1"}
    base = {"openapi": "3.0.3", "info": about, "servers": [{"url": SERVER}], "paths": paths}
    return {**base, **fields}


def source(folder: Path, content: object, **options: Any) -> Source:  # noqa: ANN401 - of an entry
    """The source of a document in a file."""
    file = folder / "openapi.json"
    file.write_text(content if isinstance(content, str) else json.dumps(content))
    entry = {"type": "openapi", "name": "notes", "path": str(file), "server": SERVER, **options}
    [one] = build(entry, folder)
    return one


def scan(folder: Path, content: object, **options: Any) -> Scan:  # noqa: ANN401 - as above
    """The scan of a document."""
    return source(folder, content, **options).scan()


def only(folder: Path, operation: dict[str, Any], **fields: Any) -> Item:  # noqa: ANN401 - as above
    """The item of the only operation of a document."""
    [item] = scan(folder, document({"/notes": {"post": operation}}, **fields)).items
    return item


def request(item: Item) -> Operation:
    """The request of an item."""
    found = operation_of(item.extra)
    assert found is not None
    return found


def schema_of(folder: Path, schema: dict[str, Any], **fields: Any) -> Any:  # noqa: ANN401 - as above
    """The input schema of a parameter with the given schema."""
    operation = {"parameters": [{"name": "x", "in": "query", "schema": schema}]}
    found = only(folder, operation, **fields).input_schema
    assert found is not None
    return found["properties"]["x"]


def test_an_operation_is_a_tool(tmp_path: Path) -> None:
    """Its name, description, parameters, annotations and tags come from the document."""
    operation = {
        "operationId": "notes/find",
        "summary": "Find notes",
        "description": "Finds notes of a day.",
        "tags": ["notes", "read-only", "destructive"],
        "deprecated": True,
        "parameters": [DAY, {"$ref": "#/components/parameters/limit"}],
    }
    path = {"parameters": [{"name": "id", "in": "path", "required": True, "schema": {}}]}
    found = scan(
        tmp_path,
        document(
            {"/books/{id}/notes": {**path, "get": operation, "delete": {}}},
            components={
                "parameters": {
                    "limit": {"name": "limit", "in": "query", "schema": {"type": "integer"}}
                }
            },
        ),
    )
    get, delete = found.items
    assert not found.problems
    assert get.id == "notes__notes_find"
    assert get.description == "Find notes\n\nFinds notes of a day."
    assert get.tags == ("deprecated", "notes", "read-only")
    assert get.input_schema == {
        "type": "object",
        "properties": {"id": {}, "day": {"type": "string"}, "limit": {"type": "integer"}},
        "additionalProperties": False,
        "required": ["id"],
    }
    assert request(get).url == f"{SERVER}/books/{{id}}/notes"
    assert request(get).method == "GET"
    assert delete.name == "delete_books_id_notes"
    assert delete.tags == ("destructive",)


def test_a_document_is_reviewed_like_a_server(tmp_path: Path) -> None:
    """Its changes wait for a review unless the configuration trusts it."""
    empty = document({})
    assert source(tmp_path, empty).trust is Trust.REVIEW
    assert source(tmp_path, empty, trust="trusted").trust is Trust.TRUSTED


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"type": "string", "nullable": True}, {"type": ["string", "null"]}),
        (
            {"type": "string", "nullable": True, "enum": ["a"]},
            {"type": ["string", "null"], "enum": ["a", None]},
        ),
        (
            {"nullable": True, "allOf": [{"type": "string"}]},
            {"anyOf": [{"allOf": [{"type": "string"}]}, {"type": "null"}]},
        ),
        (
            {"type": "integer", "minimum": 1, "exclusiveMinimum": True},
            {"type": "integer", "exclusiveMinimum": 1},
        ),
        (
            {"type": "integer", "maximum": 9, "exclusiveMaximum": False},
            {"type": "integer", "maximum": 9},
        ),
        (
            {"type": ["integer", "null"], "exclusiveMinimum": 1},
            {"type": ["integer", "null"], "exclusiveMinimum": 1},
        ),
        ({"type": "integer", "minimum": -(10**30)}, {"type": "integer"}),
        (
            {"type": "object", "required": ["a", "a", 1], "properties": {"a": {}}},
            {"type": "object", "required": ["a"], "properties": {"a": {}}},
        ),
        (
            {"type": "object", "required": True, "properties": {}},
            {"type": "object", "properties": {}},
        ),
        ({"type": "string", "example": "x", "xml": {}, "discriminator": {}}, {"type": "string"}),
        (
            {
                "type": "object",
                "required": ["id", "text"],
                "properties": {"id": {"type": "string", "readOnly": True}, "text": {}},
            },
            {"type": "object", "required": ["text"], "properties": {"text": {}}},
        ),
    ],
)
def test_schemas_are_converted_to_json_schema(
    tmp_path: Path, schema: dict[str, Any], expected: dict[str, Any]
) -> None:
    """Keywords of OpenAPI 3.0 are translated; those of 3.1 are valid JSON Schema already."""
    assert schema_of(tmp_path, schema) == expected


def test_referenced_schemas_are_included(tmp_path: Path) -> None:
    """Each schema is self-contained, even if it refers to itself."""
    node = {
        "type": "object",
        "properties": {"next": {"$ref": "#/components/schemas/Node"}, "at": {"type": "integer"}},
    }
    operation = {
        "parameters": [
            {"name": "x", "in": "query", "schema": {"$ref": "#/components/schemas/Node"}}
        ]
    }
    found = only(tmp_path, operation, components={"schemas": {"Node": node}}).input_schema
    assert found is not None
    assert found["properties"]["x"] == {"$ref": "#/$defs/Node"}
    inner = {"next": {"$ref": "#/$defs/Node"}, "at": {"type": "integer"}}
    assert found["$defs"] == {"Node": {"type": "object", "properties": inner}}


def test_each_referenced_schema_has_a_unique_name(tmp_path: Path) -> None:
    """A numbered name must not equal the name of another schema."""
    schemas = {"pet": {"type": "string"}, "pet_2": {"type": "integer"}}
    references = ("#/components/schemas/pet", "#/components/schemas/pet_2", "#/x-more/pet")
    operation = {
        "parameters": [
            {"name": name, "in": "query", "schema": {"$ref": reference}}
            for name, reference in zip("abc", references, strict=True)
        ]
    }
    more = {"components": {"schemas": schemas}, "x-more": {"pet": {"type": "boolean"}}}
    found = only(tmp_path, operation, **more).input_schema
    assert found is not None
    names = [found["properties"][name]["$ref"].rpartition("/")[2] for name in "abc"]
    types = [found["$defs"][name]["type"] for name in names]
    assert types == ["string", "integer", "boolean"]


def test_an_object_body_becomes_arguments(tmp_path: Path) -> None:
    """Its properties are arguments. A body that shares a name with a parameter is one argument."""
    text = {"type": "object", "required": ["text"], "properties": {"text": {"type": "string"}}}
    content = {"application/json": {"schema": text}}
    plain = only(tmp_path, {"requestBody": {"required": True, "content": content}})
    assert plain.input_schema is not None
    assert list(plain.input_schema["properties"]) == ["text"]
    assert plain.input_schema["required"] == ["text"]
    clash = [{"name": "text", "in": "query", "schema": {}}]
    whole = only(
        tmp_path, {"parameters": clash, "requestBody": {"required": True, "content": content}}
    )
    assert whole.input_schema is not None
    assert list(whole.input_schema["properties"]) == ["text", "body"]
    body = request(whole).body
    assert body is not None
    assert body.argument == "body"
    optional = only(tmp_path, {"requestBody": {"content": content}})
    assert optional.input_schema is not None
    assert "required" not in optional.input_schema


def test_a_second_parameter_with_the_same_name_is_renamed(tmp_path: Path) -> None:
    """Its argument has its place as a prefix."""
    header = {"name": "day", "in": "header", "schema": {"type": "string"}}
    found = request(only(tmp_path, {"parameters": [DAY, header]})).parameters
    assert [(one.argument, one.name, one.place) for one in found] == [
        ("day", "day", "query"),
        ("header_day", "day", "header"),
    ]


def test_the_output_schema_is_that_of_the_first_successful_response(tmp_path: Path) -> None:
    """A large schema is left out."""
    node = {"type": "object", "properties": {"id": {"type": "integer"}}}
    good = {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Node"}}}}
    responses = {"404": {}, "201": good}
    item = only(tmp_path, {"responses": responses}, components={"schemas": {"Node": node}})
    assert item.output_schema == {"$ref": "#/$defs/Node", "$defs": {"Node": node}}
    many = {"type": "object", "properties": {f"p{n}": {"type": "string"} for n in range(2_000)}}
    item = only(tmp_path, {"responses": responses}, components={"schemas": {"Node": many}})
    assert item.output_schema is None


def test_only_an_invalid_operation_is_left_out(tmp_path: Path) -> None:
    """A problem names it by its JSON pointer; the other operations are tools."""
    found = scan(
        tmp_path,
        document(
            {
                "/good": {"get": {"operationId": "get_good"}},
                "/a/{}": {"get": {}},
                "/b": {"get": {"parameters": [{"$ref": "#/components/nothing"}]}},
                "/c": {"get": {"parameters": [{"$ref": "https://evil.example/p.json"}]}},
                "/d": {"get": {"parameters": [{"name": "Host", "in": "header"}]}},
                "/e": {"get": [], "trace": {}},
                "/f": {"$ref": "#/paths/~1f"},
                "/g": {"get": {"operationId": "get_good"}},
                "/h": {"get": {"parameters": [{"name": "a\r\nb", "in": "header"}]}},
            }
        ),
    )
    assert [item.name for item in found.items] == ["get_good"]
    messages = "\n".join(problem.message for problem in found.problems)
    for place in ("~1a~1{}", "~1b", "~1c", "~1d", "~1e", "~1f", "~1g", "~1h"):
        assert f"#/paths/{place}/get" in messages
    assert "outside of the document" in messages
    assert "#/paths/~1e/trace" in messages


def test_an_operation_with_a_missing_schema_is_kept(tmp_path: Path) -> None:
    """The schema allows any value, and a warning names the operation."""
    missing = {"name": "x", "in": "query", "schema": {"$ref": "#/components/schemas/Gone"}}
    found = scan(tmp_path, document({"/a": {"get": {"parameters": [missing]}}}))
    [item], [problem] = found.items, found.problems
    assert item.input_schema is not None
    assert item.input_schema["$defs"] == {"Gone": {}}
    assert "#/paths/~1a/get" in problem.message
    assert "Gone" in problem.message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"swagger": "2.0", "paths": {}}', "Swagger 2"),
        ('{"openapi": "4.0"}', "3.0 or 3.1"),
        ("[]", "3.0 or 3.1"),
        ('{"openapi": "3.1.0",', "openapi.json:1"),
        ("openapi: 3.1.0\npaths:\n  - a\n b", "openapi.json:4"),
        ("openapi: 3.1.0\npaths: [a]", "paths"),
        ("openapi: 3.1.0\nx: *a", r"openapi.json:2.*alias"),
        ("\xff", "one value"),
    ],
)
def test_an_invalid_document_is_an_error(tmp_path: Path, text: str, message: str) -> None:
    """The error names the file and, if known, the line, or the supported versions."""
    with pytest.raises(SourceError, match=message):
        scan(tmp_path, text)


def test_yaml_is_read(tmp_path: Path) -> None:
    """A document in YAML has the same operations as in JSON."""
    content = document({"/notes": {"post": {"parameters": [DAY]}}}, openapi="3.1.0")
    assert scan(tmp_path, yaml.safe_dump(content)).items == scan(tmp_path, content).items


def test_a_document_is_recognised_by_its_content() -> None:
    """It may be JSON or YAML, and the version may be anywhere in it."""
    assert is_openapi(b'{"openapi":"3.0.0"}')
    assert is_openapi(b'{"info": {}, "openapi" : "3.1.0"}')
    assert is_openapi(b"# A comment\ninfo: {}\nopenapi: 3.1.0\n")
    assert is_openapi(b"'openapi': '3.0.3'\n")
    assert is_openapi(b"\xef\xbb\xbfopenapi: 3.1.0\n")
    assert is_openapi(b'{"swagger": "2.0"}')  # so that an error can mention it
    assert not is_openapi(b'{"swagger": "mine"}')
    assert not is_openapi(b"about openapi: 3.1\n")


def nested(levels: int) -> dict[str, Any]:
    """A schema that is nested in `levels` objects."""
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(levels):
        schema = {"type": "object", "properties": {"a": schema}}
    return schema


def test_hostile_schemas_are_bounded(tmp_path: Path) -> None:
    """Schemas that are recursive, very deep or very wide are shortened."""
    names = [f"S{number}" for number in range(300)]
    properties = {name: {"$ref": f"#/components/schemas/{name}"} for name in names}
    bomb = {name: {"type": "object", "properties": properties} for name in names}
    wide = {"type": "object", "properties": {f"p{n}": {"type": "string"} for n in range(9_000)}}
    for schema, components in (
        ({"$ref": "#/components/schemas/S0"}, {"schemas": bomb}),
        (nested(20), {}),
        (wide, {}),
    ):
        operation = {"parameters": [{"name": "x", "in": "query", "schema": schema}]}
        found = scan(tmp_path, document({"/a": {"get": operation}}, components=components))
        [item] = found.items
        assert len(json.dumps(item.input_schema)) < 150_000
    assert "too large" in found.problems[0].message


def test_the_number_of_values_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Small values need much more memory than their text."""
    monkeypatch.setattr("repertory.sources.openapi.document.MAX_VALUES", 100)
    assert scan(tmp_path, document({})).items == []
    with pytest.raises(SourceError, match="more than about 100 values"):
        scan(tmp_path, document({}, more=[[]] * 100))


def test_the_number_of_operations_is_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A problem mentions that operations are left out."""
    monkeypatch.setattr("repertory.sources.openapi.operations.MAX_OPERATIONS", 3)
    found = scan(tmp_path, document({f"/a{n}": {"get": {}} for n in range(9)}))
    assert len(found.items) == 3
    assert "the limit of 3" in found.problems[0].message


def test_servers_that_several_paths_share_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the first servers of a long list are read."""
    read: list[str] = []

    def refuse(url: str) -> bool:
        read.append(url)
        return False

    monkeypatch.setattr(servers, "is_server", refuse)
    shared = {"servers": [{"url": f"https://a{number}.example"} for number in range(1_000)]}
    root = {
        "openapi": "3.0.0",
        "x": {**shared, "get": {"responses": {}}},
        "paths": {f"/p{number}": {"$ref": "#/x"} for number in range(50)},
    }
    assert len(list(tools(Document(root), "", "https://own.example"))) == 50
    assert len(read) == servers.MAX_SERVERS


def test_only_the_confirmed_server_is_called(tmp_path: Path) -> None:
    """Operations at another server cannot be called until the configuration names it."""
    paths = {"/a": {"get": {}}, "/b": {"get": {}, "servers": [{"url": "https://evil.example"}]}}
    content = document(paths, servers=[{"url": "https://other.example/v2"}])
    one = source(tmp_path, content)
    a, b = one.scan().items
    messages = "\n".join(problem.message for problem in one.scan().problems)
    assert request(a).url == f"{SERVER}/a"
    assert "https://other.example/v2" in messages
    assert "1 of 2 operations cannot be called" in messages
    api: Any = one.to_call("a")
    api.check(request(a).url)
    with pytest.raises(CallsOffError, match="server"):
        api.check(request(b).url)
    for url in ("http://api.example.com/v1/a", "https://api.example.com:8443/a", "", "file:///a"):
        with pytest.raises(CallsOffError):
            api.check(url)


def test_a_secret_without_a_security_scheme_is_a_problem(tmp_path: Path) -> None:
    """Its name may be misspelt."""
    [problem] = scan(tmp_path, document({}), auth={"tokn": "${TOKEN}"}).problems
    assert "'tokn'" in problem.message


def test_a_file_alone_confirms_no_server(tmp_path: Path) -> None:
    """Nothing is called unless the configuration has a `server`."""
    one = source(tmp_path, document({"/a": {"get": {}}}), server="")
    [item], [problem] = one.scan().items, one.scan().problems
    assert SERVER in problem.message
    api: Any = one.to_call("get_a")
    with pytest.raises(CallsOffError, match=SERVER):
        api.check(request(item).url)


def test_variables_of_a_server_have_their_defaults(tmp_path: Path) -> None:
    """Invalid server URLs are skipped."""
    servers = [
        {"url": "https://user:pw@evil.example"},
        {
            "url": "https://{region}.example.com/{v}",
            "variables": {"region": {"default": "eu"}, "v": {"default": "v2"}},
        },
    ]
    one = source(tmp_path, document({"/a": {"get": {}}}, servers=servers), server="")
    [item] = one.scan().items
    assert request(item).url == "https://eu.example.com/v2/a"


def test_operations_are_filtered_by_name(tmp_path: Path) -> None:
    """Patterns may have the name of the source as a prefix."""
    content = document({f"/{name}": {"get": {}} for name in ("a", "b", "c")})
    one = source(tmp_path, content, include=["get_*"], exclude=["notes__get_b"])
    assert [item.name for item in one.scan().items] == ["get_a", "get_c"]
    with pytest.raises(CallsOffError, match="left out"):
        one.to_call("get_b")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"url": "https://a.example/o.json"}, "either a `url` or a `path`"),
        ({"server": "https://a.example/?x=1"}, "server"),
        ({"server": "ftp://a.example"}, "server"),
        ({"auth": {"key": "s3cret"}}, r"\$\{NAME\}"),
        ({"headers": {"Content-Length": "1"}}, "Content-Length"),
        ({"headers": {"X: a\r\nY": "1"}}, "cannot set"),
        ({"timeout": 0}, "timeout"),
        ({"other": 1}, "other"),
    ],
)
def test_invalid_entries_are_refused(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    """The error names the invalid option and contains no secret."""
    with pytest.raises(ConfigurationError, match=message) as caught:
        source(tmp_path, document({}), **options)
    assert "s3cret" not in str(caught.value)


def test_operations_have_the_supported_security_schemes(tmp_path: Path) -> None:
    """Alternatives with unsupported schemes are left out; if none remains, a problem names them."""
    schemes = {
        "basic": {"type": "http", "scheme": "Basic"},
        "token": {"type": "openIdConnect", "openIdConnectUrl": "https://a.example"},
        "key": {"type": "apiKey", "in": "cookie", "name": "sid"},
        "certificate": {"type": "mutualTLS"},
        "host": {"type": "apiKey", "in": "header", "name": "Host"},
    }
    security = [{"basic": [], "key": []}, {"token": ["read"]}, {"certificate": []}, {"host": []}]
    components = {"securitySchemes": schemes}
    item = only(tmp_path, {"security": security}, components=components)
    assert [[one.name for one in found] for found in request(item).security] == [
        ["basic", "key"],
        ["token"],
    ]
    found = scan(
        tmp_path,
        document({"/a": {"get": {"security": [{"certificate": []}]}}}, components=components),
    )
    assert "mutualTLS" in found.problems[0].message
    [item] = found.items
    assert request(item).security  # it cannot be called without credentials
    public = only(tmp_path, {"security": []}, security=[{"basic": []}], components=components)
    assert request(public).security == ()


def test_operations_without_an_id_of_their_own_are_numbered(tmp_path: Path) -> None:
    """Different paths may result in the same name; ids of the document keep their names."""
    get: dict[str, Any] = {"get": {"responses": {}}}
    user = {"get": {"parameters": [{"name": "id", "in": "path", "required": True}]}}
    named = {"get": {"operationId": "get_items"}, "put": {"operationId": "get items"}}
    paths = {"/items": get, "/items/": get, "/users/{id}": user, "/users/id": get, "/i": named}
    found = scan(tmp_path, document({**paths, "/!": get, "/~": get}))
    assert [item.name for item in found.items] == [
        *("get_items_2", "get_items_3", "get_users_id", "get_users_id_2", "get_items"),
        *("get_items_4", "get", "get_2"),
    ]
    assert found.problems == []
    assert {request(item).url.removeprefix(SERVER) for item in found.items[:2]} == {
        "/items",
        "/items/",
    }


def test_names_may_have_letters_of_any_script(tmp_path: Path) -> None:
    """Other characters are replaced or removed."""
    paths = {
        "/tasks": {
            "post": {"operationId": "创建任务"},
            "get": {"operationId": "récupérer la tâche!"},
        },
        "/поиск/{где}": {"get": {"parameters": [{"name": "где", "in": "path", "required": True}]}},
        "/a": {"get": {"operationId": "अनुवाद"}},
    }
    found = scan(tmp_path, document(paths))
    assert [item.name for item in found.items] == [
        *("récupérer_la_tâche", "创建任务", "get_поиск_где", "अनुवाद")
    ]
    assert found.problems == []


@pytest.mark.parametrize(
    ("title", "name"),
    [
        ("The Notes API", "notes"),
        ("Gestion des tâches_2", "gestion-des-tâches-2"),
        ("任务", "任务"),
    ],
)
def test_a_source_is_named_after_the_title(tmp_path: Path, title: str, name: str) -> None:
    """The name has letters of any script; the variable for a secret has only ASCII letters."""
    schemes = {"securitySchemes": {"clé": {"type": "http", "scheme": "bearer"}}}
    about = {"title": title, "version": "1"}
    content = document({}, info=about, components=schemes)
    (tmp_path / "openapi.json").write_text(json.dumps(content))
    found = recognise(Address("openapi.json", tmp_path, {}))
    assert found is not None
    assert found.entry["name"] == name
    assert found.entry["auth"]["clé"].isascii()


def test_a_document_that_becomes_a_link_out_of_its_project_is_not_read(tmp_path: Path) -> None:
    """A change of the project must not make another file of the user an API."""
    (tmp_path / "project").mkdir()
    one = source(tmp_path / "project", document({"/a": {"get": {}}}))
    one.within = str(tmp_path / "project")
    assert one.scan().items
    file = Path(one.file).rename(tmp_path / "other.json")
    Path(one.file).symlink_to(file)
    with pytest.raises(SourceError, match="leads out of"):
        one.scan()


def test_a_variable_for_a_secret_does_not_begin_with_a_digit(tmp_path: Path) -> None:
    """Otherwise it would not count as a variable, and its text would be sent as the secret."""
    schemes = {"securitySchemes": {"key": {"type": "http", "scheme": "bearer"}}}
    about = {"title": "3Scale API", "version": "1"}
    content = document({}, info=about, components=schemes)
    (tmp_path / "openapi.json").write_text(json.dumps(content))
    found = recognise(Address("openapi.json", tmp_path, {}))
    assert found is not None
    assert found.entry["auth"] == {"key": "${_3SCALE_KEY}"}
    assert names_in(found.entry["auth"].values()) == {"_3SCALE_KEY"}


def test_variables_of_a_document_that_are_already_set_are_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stranger's title and scheme name the variable, and so choose the secret that is sent."""
    monkeypatch.setenv("GITHUB_TOKEN", "secret")
    monkeypatch.delenv("GITHUB_OTHER", raising=False)
    schemes = {name: {"type": "http", "scheme": "bearer"} for name in ("token", "other")}
    about = {"title": "GitHub API", "version": "1"}
    servers = [{"url": "https://elsewhere.example"}]
    content = document({}, info=about, servers=servers, components={"securitySchemes": schemes})
    (tmp_path / "openapi.json").write_text(json.dumps(content))
    found = recognise(Address("openapi.json", tmp_path, {}))
    assert found is not None
    assert found.entry["auth"] == {"token": "${GITHUB_TOKEN}", "other": "${GITHUB_OTHER}"}
    assert found.notes[:2] == (
        "Its operations are called at https://elsewhere.example.",
        "Set already, so that calls send their values there: GITHUB_TOKEN.",
    )


def test_a_duplicate_operation_id_is_left_out(tmp_path: Path) -> None:
    """A problem names the first operation with that id."""
    named = {"get": {"operationId": "find"}}
    found = scan(tmp_path, document({"/a": named, "/b": named}))
    assert [item.name for item in found.items] == ["find"]
    assert "it has the operationId of #/paths/~1a/get: find" in found.problems[0].message


def test_an_undescribed_path_parameter_is_a_required_text(tmp_path: Path) -> None:
    """It has a unique argument name, and a warning names the operation."""
    parameters = [{"name": "id", "in": "query", "schema": {"type": "integer"}}]
    found = scan(tmp_path, document({"/a/{id}/{b}": {"get": {"parameters": parameters}}}))
    [item] = found.items
    assert item.input_schema is not None
    assert item.input_schema["properties"] == {
        "id": {"type": "integer"},
        "path_id": {"type": "string"},
        "b": {"type": "string"},
    }
    assert item.input_schema["required"] == ["path_id", "b"]
    assert [(one.argument, one.place) for one in request(item).parameters] == [
        ("id", "query"),
        ("path_id", "path"),
        ("b", "path"),
    ]
    assert "#/paths/~1a~1{id}~1{b}/get" in found.problems[0].message


def test_a_path_with_too_many_parameters_is_left_out(tmp_path: Path) -> None:
    """With only some of the parameters, its URL would be wrong."""
    path = "".join(f"/{{p{number}}}" for number in range(201))
    found = scan(tmp_path, document({path: {"get": {}}, "/fine": {"get": {}}}))
    assert [item.name for item in found.items] == ["get_fine"]
    assert "more than 200 parameters" in found.problems[0].message


def test_a_yaml_document_may_repeat_values(tmp_path: Path) -> None:
    """Aliases stand for values of the document, and ``<<`` for the entries of a mapping."""
    text = """\
openapi: 3.0.3
x-errors: &errors
  "404": {description: Missing.}
  "200": {description: Replaced.}
x-limit: &limit
  {name: limit, in: query, schema: {type: integer}}
paths:
  /users:
    get:
      operationId: users
      parameters:
        - *limit
        - <<: *limit
          name: offset
      responses:
        <<: [*errors]
        "200":
          content: {application/json: {schema: {type: array}}}
"""
    [item] = scan(tmp_path, text).items
    assert item.input_schema is not None
    assert item.input_schema["properties"] == {
        "limit": {"type": "integer"},
        "offset": {"type": "integer"},
    }
    assert item.output_schema == {"type": "array"}


def test_the_number_of_repeated_yaml_values_is_bounded(tmp_path: Path) -> None:
    """A few lines of nested aliases would need gigabytes; the error names the line."""
    lines = ["x0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"x{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    with pytest.raises(SourceError, match=r"openapi.json:7: .*repeat more than 1,000,000"):
        scan(tmp_path, "\n".join(["openapi: 3.1.0", *lines]))

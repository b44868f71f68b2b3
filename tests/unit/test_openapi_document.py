"""OpenAPI documents as tools: their schemas, their requests, and what hostile ones cost."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from repertory.catalogue.item import Item
from repertory.errors import CallsOffError, ConfigurationError, SourceError
from repertory.sources.adding import Address
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
    """What a document offers."""
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
    """A schema as that of a parameter."""
    operation = {"parameters": [{"name": "x", "in": "query", "schema": schema}]}
    found = only(folder, operation, **fields).input_schema
    assert found is not None
    return found["properties"]["x"]


def test_an_operation_is_a_tool(tmp_path: Path) -> None:
    """Name, description, parameters, annotations and tags come from the document."""
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


def test_it_is_reviewed_like_a_server(tmp_path: Path) -> None:
    """Its changes wait for a review, unless the configuration says otherwise."""
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
def test_schemas_become_json_schema(
    tmp_path: Path, schema: dict[str, Any], expected: dict[str, Any]
) -> None:
    """What only OpenAPI 3.0 has is written as JSON Schema has it; that of 3.1 stays."""
    assert schema_of(tmp_path, schema) == expected


def test_references_are_gathered(tmp_path: Path) -> None:
    """Each schema is complete by itself, also if it refers to itself."""
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


def test_each_reference_has_a_name_of_its_own(tmp_path: Path) -> None:
    """Also if the number of one is the name of another."""
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


def test_a_plain_body_becomes_arguments(tmp_path: Path) -> None:
    """Its properties are arguments; another body, or one with the same names, is one argument."""
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


def test_two_parameters_of_one_name(tmp_path: Path) -> None:
    """The second has its place in its name."""
    header = {"name": "day", "in": "header", "schema": {"type": "string"}}
    found = request(only(tmp_path, {"parameters": [DAY, header]})).parameters
    assert [(one.argument, one.name, one.place) for one in found] == [
        ("day", "day", "query"),
        ("header_day", "day", "header"),
    ]


def test_the_result_has_a_schema(tmp_path: Path) -> None:
    """That of the first response that succeeds, if it is small."""
    node = {"type": "object", "properties": {"id": {"type": "integer"}}}
    good = {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Node"}}}}
    responses = {"404": {}, "201": good}
    item = only(tmp_path, {"responses": responses}, components={"schemas": {"Node": node}})
    assert item.output_schema == {"$ref": "#/$defs/Node", "$defs": {"Node": node}}
    many = {"type": "object", "properties": {f"p{n}": {"type": "string"} for n in range(2_000)}}
    item = only(tmp_path, {"responses": responses}, components={"schemas": {"Node": many}})
    assert item.output_schema is None


def test_a_broken_operation_costs_one_operation(tmp_path: Path) -> None:
    """A problem names it by its JSON pointer; the others are there."""
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


def test_a_broken_schema_costs_one_schema(tmp_path: Path) -> None:
    """The operation stays, takes any value there, and a warning says so."""
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
def test_what_is_no_document_is_an_error(tmp_path: Path, text: str, message: str) -> None:
    """With the file, the line if known, and what to do; never an empty scan."""
    with pytest.raises(SourceError, match=message):
        scan(tmp_path, text)


def test_yaml_is_read(tmp_path: Path) -> None:
    """The same document in YAML has the same operations."""
    content = document({"/notes": {"post": {"parameters": [DAY]}}}, openapi="3.1.0")
    assert scan(tmp_path, yaml.safe_dump(content)).items == scan(tmp_path, content).items


def test_a_document_is_recognised_by_its_content() -> None:
    """In JSON and YAML, wherever the version stands."""
    assert is_openapi(b'{"openapi":"3.0.0"}')
    assert is_openapi(b'{"info": {}, "openapi" : "3.1.0"}')
    assert is_openapi(b"# A comment\ninfo: {}\nopenapi: 3.1.0\n")
    assert is_openapi(b"'openapi': '3.0.3'\n")
    assert is_openapi(b"\xef\xbb\xbfopenapi: 3.1.0\n")
    assert is_openapi(b'{"swagger": "2.0"}')  # so that it is named
    assert not is_openapi(b'{"swagger": "mine"}')
    assert not is_openapi(b"about openapi: 3.1\n")


def nested(levels: int) -> dict[str, Any]:
    """A schema in many schemas."""
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(levels):
        schema = {"type": "object", "properties": {"a": schema}}
    return schema


def test_hostile_schemas_are_bounded(tmp_path: Path) -> None:
    """A schema that refers to itself many times over, a deep one and a wide one are cut."""
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
    """Small values take much more memory than their text."""
    monkeypatch.setattr("repertory.sources.openapi.document.MAX_VALUES", 100)
    assert scan(tmp_path, document({})).items == []
    with pytest.raises(SourceError, match="more than about 100 values"):
        scan(tmp_path, document({}, more=[[]] * 100))


def test_the_number_of_operations_is_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is left out is a problem."""
    monkeypatch.setattr("repertory.sources.openapi.operations.MAX_OPERATIONS", 3)
    found = scan(tmp_path, document({f"/a{n}": {"get": {}} for n in range(9)}))
    assert len(found.items) == 3
    assert "the limit of 3" in found.problems[0].message


def test_servers_that_paths_share_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of very many, the first ones."""
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
    """A document cannot choose another server: that waits until the configuration names it."""
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


def test_a_secret_that_no_scheme_needs_is_named(tmp_path: Path) -> None:
    """It may be misspelt."""
    [problem] = scan(tmp_path, document({}), auth={"tokn": "${TOKEN}"}).problems
    assert "'tokn'" in problem.message


def test_a_file_alone_confirms_no_server(tmp_path: Path) -> None:
    """Without `server` in the configuration, nothing is called."""
    one = source(tmp_path, document({"/a": {"get": {}}}), server="")
    [item], [problem] = one.scan().items, one.scan().problems
    assert SERVER in problem.message
    api: Any = one.to_call("get_a")
    with pytest.raises(CallsOffError, match=SERVER):
        api.check(request(item).url)


def test_variables_of_a_server_have_their_defaults(tmp_path: Path) -> None:
    """And URLs that no server can have are left out."""
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


def test_filters_take_and_leave_operations(tmp_path: Path) -> None:
    """By names, with or without that of the source."""
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
    """With the option at fault, and never with a secret."""
    with pytest.raises(ConfigurationError, match=message) as caught:
        source(tmp_path, document({}), **options)
    assert "s3cret" not in str(caught.value)


def test_security_schemes(tmp_path: Path) -> None:
    """All that a call supports; alternatives with others are left out and named."""
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
    """Paths may differ in what no name shows; a name that the document gives is no other's."""
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


def test_names_have_the_letters_of_any_script(tmp_path: Path) -> None:
    """Those of other signs are no parts of a name."""
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
def test_a_source_is_named_by_the_title(tmp_path: Path, title: str, name: str) -> None:
    """In the letters of any script; a variable for a secret has those of ASCII alone."""
    schemes = {"securitySchemes": {"clé": {"type": "http", "scheme": "bearer"}}}
    about = {"title": title, "version": "1"}
    content = document({}, info=about, components=schemes)
    (tmp_path / "openapi.json").write_text(json.dumps(content))
    found = recognise(Address("openapi.json", tmp_path, {}))
    assert found is not None
    assert found.entry["name"] == name
    assert found.entry["auth"]["clé"].isascii()


def test_a_document_that_names_a_secret_of_the_user_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stranger chooses the title and the scheme, and so the name of the variable."""
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


def test_an_operation_id_is_given_once(tmp_path: Path) -> None:
    """The second operation is left out, and named."""
    named = {"get": {"operationId": "find"}}
    found = scan(tmp_path, document({"/a": named, "/b": named}))
    assert [item.name for item in found.items] == ["find"]
    assert "it has the operationId of #/paths/~1a/get: find" in found.problems[0].message


def test_a_parameter_of_a_path_need_not_be_described(tmp_path: Path) -> None:
    """It takes any text, under a name of its own, and a warning names the operation."""
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
    """A part of them would lead to another path."""
    path = "".join(f"/{{p{number}}}" for number in range(201))
    found = scan(tmp_path, document({path: {"get": {}}, "/fine": {"get": {}}}))
    assert [item.name for item in found.items] == ["get_fine"]
    assert "more than 200 parameters" in found.problems[0].message


def test_a_yaml_document_may_repeat_values(tmp_path: Path) -> None:
    """Aliases stand for values of the same document, and ``<<`` for the entries of a mapping."""
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


def test_a_document_repeats_a_bounded_number_of_values(tmp_path: Path) -> None:
    """A few lines of aliases for gigabytes are refused, with their line."""
    lines = ["x0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"x{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    with pytest.raises(SourceError, match=r"openapi.json:7: .*repeat more than 1,000,000"):
        scan(tmp_path, "\n".join(["openapi: 3.1.0", *lines]))

"""The OpenAPI document of the operations."""

from collections.abc import Iterable, Mapping
from importlib.metadata import version
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from repertory.wire import V1, Refusal
from repertory_query.access.callers import OPEN
from repertory_query.api.operations import UNVERSIONED, Nothing, Operation, answer
from repertory_query.api.requests import JSON
from repertory_query.api.schemas import REF, Schema, components_of, with_names
from repertory_query.problems import PROBLEM
from repertory_query.records.actions import AuditedRoute


def document(routes: Iterable[AuditedRoute]) -> Schema:
    """The OpenAPI document of the operations among some routes, with their versioned paths."""
    operations = [route for route in routes if isinstance(route, Operation)]
    returned = [kind for one in operations for kind in (one.returns, one.unready) if kind]
    components = components_of([one.takes for one in operations], [*returned, Refusal])
    paths: dict[str, Schema] = {}
    for one in operations:
        path = one.path.replace(":path}", "}")
        shown = path if path in UNVERSIONED else V1 + path
        paths.setdefault(shown, {})[one.method.lower()] = _described(one, path, components)
    taken = {one.takes.__name__ for one in operations if one.method == "GET" or one.body}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Repertory",
            "summary": "A team's searchable repertory of everything its AI agents can use.",
            "description": "Unknown query parameters and unknown fields of a body are refused, "
            "except by probes.",
            "version": version("repertory"),
        },
        "paths": paths,
        "components": {
            "schemas": {name: one for name, one in components.items() if name not in taken},
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
    }


def routes(document: Schema) -> list[BaseRoute]:
    """The route of the document, which names the path prefix of the application, if any."""

    async def openapi(request: Request) -> Response:
        root = request.scope.get("root_path", "")
        return answer({**document, "servers": [{"url": root}]} if root else document)

    return [Route("/openapi.json", openapi)]


def _described(one: Operation[Any], path: str, components: dict[str, Schema]) -> Schema:
    content = {
        media_type: {"schema": with_names(schema, components)}
        for media_type, schema in one.content.items()
    }
    if one.returns:
        others = content.get(JSON, {}).get("schema", {}).get("anyOf", [])
        schema = _schema(one.returns)
        content[JSON] = {"schema": {"anyOf": [schema, *others]} if others else schema}
    problem = {"description": "A problem.", "content": {PROBLEM: {"schema": _schema(Refusal)}}}
    responses: Schema = {
        str(one.status): {"description": "Success.", "content": content},
        "default": problem,
    }
    if one.unready:
        unready = {JSON: {"schema": _schema(one.unready)}}
        responses["503"] = {"description": "Not ready.", "content": unready}
    described: Schema = {
        "operationId": one.id,
        "tags": [one.tag],
        "summary": one.summary,
        "description": one.text,
        "parameters": [
            {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
            for name in one.param_convertors
        ],
        "responses": responses,
    }
    if one.method == "GET":
        fields = components[one.takes.__name__]
        described["parameters"] += [
            _parameter(name, schema, required=name in fields.get("required", ()))
            for name, schema in fields["properties"].items()
        ]
    elif one.takes is not Nothing:
        body = {JSON: {"schema": with_names(one.body or _schema(one.takes), components)}}
        described["requestBody"] = {"content": body, "required": one.takes is not dict}
    if path not in OPEN:
        described["security"] = [{}, {"key": []}]  # a server without keys needs none
    return described


def _schema(kind: Any) -> Schema:  # noqa: ANN401 - any type that msgspec knows
    (schema,), _ = msgspec.json.schema_components([kind], ref_template=REF)
    return schema


def _parameter(name: str, schema: Mapping[str, Any], *, required: bool) -> Schema:
    schema = dict(schema)
    if "anyOf" in schema:  # an optional parameter may be null in JSON
        schema |= schema.pop("anyOf")[0]
    parameter: Schema = {"name": name, "in": "query", "required": required, "schema": schema}
    if description := schema.pop("description", ""):
        parameter["description"] = description
    if examples := schema.pop("examples", None):
        parameter["examples"] = {str(number): {"value": one} for number, one in enumerate(examples)}
    return parameter

"""The HTTP reference as a page, made from the OpenAPI document."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote_plus

Schema = Mapping[str, Any]
INTRODUCTION = """# HTTP reference

`GET /openapi.json` is this page for programs. Each address below `/v1` works without it, too. An
error is `application/problem+json`: its `error` and `detail` say what is wrong. In the examples,
`$TOKEN` is a key, or what `repertory keys token` prints.
"""


def write(document: Path, page: Path) -> None:
    """Write the page of an OpenAPI document, unless it is the same already."""
    described = json.loads(document.read_text("utf-8"))
    text = "\n".join([INTRODUCTION, *_sections(described)])
    if not page.exists() or page.read_text("utf-8") != text:
        page.write_text(text, "utf-8")


def _sections(document: Schema) -> Iterator[str]:
    for path, operations in document["paths"].items():
        for method, one in operations.items():
            yield f"## {method.upper()} {path}\n"
            yield f"{one['description']}\n"
            if parameters := one["parameters"]:
                yield "| parameter | type | |\n| --- | --- | --- |"
                yield from map(_row, parameters)
                yield ""
            body = one.get("requestBody", {}).get("content", {})
            for media_type, content in body.items():
                yield f"The body is `{media_type}`: {_kind(content['schema'])}.\n"
            yield f"```sh\n{_example(method, path, one, document)}\n```\n"
    yield "## Types\n"
    for name, schema in document["components"]["schemas"].items():
        yield from _type(name, schema)


def _row(parameter: Schema) -> str:
    text = parameter.get("description", "")
    needed = "**required.** " if parameter["required"] else ""
    return f"| `{parameter['name']}` | {_kind(parameter['schema'])} | {needed}{_cell(text)} |"


def _type(name: str, schema: Schema) -> Iterator[str]:
    yield f"### {name}\n"
    if text := schema.get("description"):
        yield f"{text.splitlines()[0]}\n"
    if values := schema.get("enum"):
        yield f"One of {', '.join(f'`{value}`' for value in values)}.\n"
    if properties := schema.get("properties"):
        required = schema.get("required", ())
        yield "| field | type | |\n| --- | --- | --- |"
        for field, kind in properties.items():
            needed = "always there. " if field in required else ""
            yield f"| `{field}` | {_kind(kind)} | {needed}{_cell(kind.get('description', ''))} |"
        yield ""


def _kind(schema: Schema) -> str:
    """A type in words."""
    if reference := schema.get("$ref"):
        return f"[{reference.rpartition('/')[2]}](#{reference.rpartition('/')[2].lower()})"
    for key in ("anyOf", "oneOf", "allOf"):
        if key in schema:
            return " or ".join(map(_kind, schema[key]))
    if schema.get("type") == "array":
        return f"list of {_kind(schema.get('items', {}))}"
    if values := schema.get("enum"):
        return ", ".join(f"`{value}`" for value in values)
    kind = schema.get("type", "any")
    return " or ".join(kind) if isinstance(kind, list) else str(kind)


def _example(method: str, path: str, one: Schema, document: Schema) -> str:
    """A request with the first example of each parameter that is needed."""
    query = []
    for parameter in one["parameters"]:
        value = _first(parameter)
        if parameter["in"] == "path":
            path = path.replace("{" + parameter["name"] + "}", value or "notes__list_notes")
        elif parameter["required"]:
            query.append(f"{parameter['name']}={quote_plus(value)}")
    address = f"http://127.0.0.1:7700{path}{'?' if query else ''}{'&'.join(query)}"
    command = f"curl --oauth2-bearer $TOKEN '{address}'"
    if method != "post":
        return command
    content = one.get("requestBody", {}).get("content", {}).get("application/json", {})
    return f"{command} --json '{json.dumps(_sample(content.get('schema', {}), document))}'"


def _first(parameter: Schema) -> str:
    examples = parameter.get("examples", {})
    return str(next(iter(examples.values()))["value"]) if examples else ""


def _sample(schema: Schema, document: Schema) -> dict[str, Any]:
    """A body with the example of each field that is needed."""
    if reference := schema.get("$ref"):
        schema = document["components"]["schemas"][reference.rpartition("/")[2]]
    properties = schema.get("properties", {})
    examples = {name: properties[name].get("examples") for name in schema.get("required", ())}
    return {name: values[0] if values else None for name, values in examples.items()}


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")

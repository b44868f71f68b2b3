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
# For parameters and fields whose schema has no example; functions have none, which cost tokens.
EXAMPLES: Mapping[str, Any] = {
    "item": "skills/rotating-api-keys",
    "place": "references/checklist.md",
    "item_id": "skills/rotating-api-keys",
    "tool_id": "notes__list_notes",
    "query": "rotate API keys",
    "searchQuery": "how long do we keep invoices",
    "filepath": "skills/rotating-api-keys/SKILL.md",
}
OPEN = ("/healthz", "/readyz")  # they answer everyone


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
            yield from _answers(one["responses"], document)
    yield "## Types\n"
    for name, schema in document["components"]["schemas"].items():
        yield from _type(name, schema)


def _answers(responses: Schema, document: Schema) -> Iterator[str]:
    """What an operation returns, with an example if its type has one."""
    for status, response in responses.items():
        if status == "default":
            continue
        for media_type, content in response.get("content", {}).items():
            yield f"It answers {status} with `{media_type}`: {_kind(content['schema'])}.\n"
            if examples := _properties(content["schema"], document, "examples"):
                part = {name: values[0] for name, values in examples.items()}
                yield f"```json\n{json.dumps(part, indent=2, ensure_ascii=False)}\n```\n"


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
        name = parameter["name"]
        if parameter["in"] == "path":
            path = path.replace(f"{{{name}}}", _first(parameter))
        elif parameter["required"]:
            query.append(f"{name}={quote_plus(_first(parameter))}")
    address = f"http://127.0.0.1:7700{path}{'?' if query else ''}{'&'.join(query)}"
    key = "" if path in OPEN else " --oauth2-bearer $TOKEN"
    command = f"curl{key} '{address}'"
    if method != "post":
        return command
    content = one.get("requestBody", {}).get("content", {}).get("application/json", {})
    return f"{command} --json '{json.dumps(_sample(content.get('schema', {}), document))}'"


def _first(parameter: Schema) -> str:
    examples = parameter.get("examples", {})
    name = parameter["name"]
    return str(next(iter(examples.values()))["value"] if examples else EXAMPLES.get(name, ""))


def _sample(schema: Schema, document: Schema) -> dict[str, Any]:
    """A body with the example of each field that is needed."""
    needed = _resolved(schema, document).get("required", ())
    given = _properties(schema, document, "examples")
    return {name: given[name][0] if name in given else EXAMPLES.get(name) for name in needed}


def _properties(schema: Schema, document: Schema, key: str) -> dict[str, Any]:
    """What the fields of a type say under a key, by their names."""
    fields = _resolved(schema, document).get("properties", {})
    return {name: field[key] for name, field in fields.items() if key in field}


def _resolved(schema: Schema, document: Schema) -> Schema:
    """The type that is referred to; of several, the first."""
    schema = schema.get("anyOf", [schema])[0]
    name = schema.get("$ref", "").rpartition("/")[2]
    found: Schema = document["components"]["schemas"][name] if name else schema
    return found


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")

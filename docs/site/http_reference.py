"""The HTTP reference as a page, made from the OpenAPI document."""

import json
from collections.abc import Iterator
from pathlib import Path

from repertory_query.api.examples import Schema, properties_of, request_of

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
            example = request_of(method, path, one, document, "http://127.0.0.1:7700", "$TOKEN")
            yield f"```sh\n{example}\n```\n"
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
            if examples := properties_of(content["schema"], document, "examples"):
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


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")

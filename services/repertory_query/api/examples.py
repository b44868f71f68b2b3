"""Example requests for the operations of the OpenAPI document."""

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote_plus

Schema = Mapping[str, Any]
# For parameters and fields without an example in the schema. Functions have none, to save tokens.
EXAMPLES: Mapping[str, Any] = {
    "item": "skills/rotating-api-keys",
    "place": "references/checklist.md",
    "item_id": "skills/rotating-api-keys",
    "tool_id": "notes__list_notes",
    "query": "rotate API keys",
    "searchQuery": "how long do we keep invoices",
    "filepath": "skills/rotating-api-keys/SKILL.md",
}


def request_of(method: str, path: str, one: Schema, document: Schema, url: str, bearer: str) -> str:
    """An example request to an operation, with the first example of each required parameter.

    Args:
        method: The method, in lower case.
        path: The path.
        one: The operation.
        document: The whole document.
        url: The URL of the server.
        bearer: The shell variable with the key; empty if no key is needed.
    """
    query = []
    for parameter in one["parameters"]:
        name = parameter["name"]
        if parameter["in"] == "path":
            path = path.replace(f"{{{name}}}", _first(parameter))
        elif parameter["required"]:
            query.append(f"{name}={quote_plus(_first(parameter))}")
    address = f"{url}{path}{'?' if query else ''}{'&'.join(query)}"
    key = f" --oauth2-bearer {bearer}" if bearer and one.get("security") else ""
    command = f"curl{key} {_quoted(address)}"
    if method != "post":
        return command
    content = one.get("requestBody", {}).get("content", {}).get("application/json", {})
    return f"{command} --json {_quoted(json.dumps(_sample(content.get('schema', {}), document)))}"


def _quoted(text: str) -> str:
    """A text in single quotes for a shell, even if it needs none."""
    escaped = text.replace("'", "'\\''")
    return f"'{escaped}'"


def _first(parameter: Schema) -> str:
    examples = parameter.get("examples", {})
    name = parameter["name"]
    return str(next(iter(examples.values()))["value"] if examples else EXAMPLES.get(name, ""))


def _sample(schema: Schema, document: Schema) -> dict[str, Any]:
    """A body with an example of each required field."""
    needed = _resolved(schema, document).get("required", ())
    given = properties_of(schema, document, "examples")
    return {name: given[name][0] if name in given else EXAMPLES.get(name) for name in needed}


def properties_of(schema: Schema, document: Schema, key: str) -> dict[str, Any]:
    """The values of a key, such as ``examples``, in the fields of a type, by field name."""
    fields = _resolved(schema, document).get("properties", {})
    return {name: field[key] for name, field in fields.items() if key in field}


def _resolved(schema: Schema, document: Schema) -> Schema:
    """The type that a schema refers to; the first if there are several."""
    schema = schema.get("anyOf", [schema])[0]
    name = schema.get("$ref", "").rpartition("/")[2]
    found: Schema = document["components"]["schemas"][name] if name else schema
    return found

"""The bodies of an operation: the request's as arguments, the response's as a schema."""

import re
from collections.abc import Mapping
from typing import Any

from repertory.sources.openapi.document import BrokenError, Document
from repertory.sources.openapi.operation import Body, Part
from repertory.sources.openapi.parameters import FORM_STYLES, Arguments
from repertory.sources.openapi.schemas import Schemas
from repertory.text import media_type_of

MAX_OUTPUT_LENGTH = 8_000  # characters of the schema of a response; larger ones are left out

FORM = "application/x-www-form-urlencoded"
MULTIPART = "multipart/form-data"
MEDIA_TYPE = re.compile(r"[A-Za-z0-9!#$&^_.+-]{1,100}/[A-Za-z0-9!#$&^_.+*-]{1,100}")
FILE = "The file's text, or a `data:` URL with its content in Base64."

_JSON = re.compile(r"application/(?:[A-Za-z0-9!#$&^_.+-]{1,100}\+)?json|\*/\*|application/\*")
_SIMPLE = ("type", "properties", "required", "title", "description", "default", "nullable")


def is_json(media_type: str) -> bool:
    """Whether a media type, without parameters, is JSON."""
    return _JSON.fullmatch(media_type.strip().lower()) is not None


def body_of(document: Document, raw: Mapping[str, Any], arguments: Arguments) -> Body | None:
    """Add the body of an operation's request to its arguments.

    Each property of a plain object becomes an argument, if their names are not in use. Any other
    body is a single argument.

    Raises:
        BrokenError: The body is invalid.
    """
    if "requestBody" not in raw:
        return None
    body = document.resolved(raw["requestBody"], "`requestBody`")
    content = body.get("content")
    if not isinstance(content, Mapping) or not content:
        return None
    given, media = min(content.items(), key=lambda one: _preference(str(one[0])))
    media_type = media_type_of(given)
    if is_json(media_type):
        media_type = "application/json" if "*" in media_type else media_type
    if not MEDIA_TYPE.fullmatch(media_type):
        raise BrokenError(f"its body has the invalid media type {media_type!r}")
    media = document.resolved(media, f"body of type {media_type}")
    schema = media.get("schema", {})
    is_required = body.get("required") is True
    is_form = media_type in (FORM, MULTIPART)
    if not is_json(media_type) and not is_form:
        about = {"type": "string", "description": _about(body) if _is_text(media_type) else FILE}
        name = arguments.add("body", about, "request", required=is_required)
        return Body(type=media_type, argument=name)
    parts = _parts(document, schema, media)
    plain = _plain_object(document, schema)
    fields = _fields(plain, arguments, is_required=is_required or is_form)
    if fields is None:
        converted = arguments.builder.convert(schema)
        name = arguments.add("body", converted, "request", required=is_required)
        return Body(type=media_type, argument=name, parts=parts)
    for field in fields:
        if field in parts and parts[field].is_file:
            fields[field] = {"type": "string", "description": FILE}
    required = plain.get("required") or []
    names = [
        arguments.add(name, inner, "body", required=is_required and name in required)
        for name, inner in fields.items()
    ]
    return Body(type=media_type, fields=tuple(names), parts=parts, is_required=is_required)


def output_of(
    document: Document, raw: Mapping[str, Any], schemas: Schemas
) -> dict[str, Any] | None:
    """The schema of an operation's successful response; None if it is unknown or large."""
    responses = raw.get("responses")
    if not isinstance(responses, Mapping):
        return None
    good = sorted(str(status) for status in responses if str(status).startswith("2"))
    for status in good:
        try:
            content = document.resolved(responses[status], "response").get("content")
        except BrokenError:
            continue
        for given, media in content.items() if isinstance(content, Mapping) else ():
            if is_json(media_type_of(str(given))) and isinstance(media, Mapping):
                builder = schemas.builder(MAX_OUTPUT_LENGTH)
                found = builder.convert(media.get("schema", {}))
                definitions = builder.definitions()
                if not isinstance(found, dict) or not found or builder.is_cut or builder.broken:
                    return None
                return {**found, "$defs": definitions} if definitions else found
    return None


def _preference(media_type: str) -> int:
    name = media_type_of(media_type)
    if name == "application/json":
        return 0
    if is_json(name):
        return 1
    order = [FORM, MULTIPART, "text/plain"]
    return 2 + (order.index(name) if name in order else len(order))


def _is_text(media_type: str) -> bool:
    return media_type.startswith("text/") or media_type.endswith("xml")


def _about(body: Mapping[str, Any]) -> str:
    about = body.get("description")
    return about.strip()[:1_000] if isinstance(about, str) else "The body of the request."


def _plain_object(document: Document, schema: object) -> Mapping[str, Any]:
    """The schema of an object that only has properties; empty for any other schema."""
    try:
        found = document.resolved(schema, "schema")
    except BrokenError:
        return {}
    is_plain = found.get("type", "object") == "object" and found.get("properties")
    others = [key for key in found if key not in _SIMPLE and not _says_nothing(key, found[key])]
    return found if is_plain and not others else {}


def _says_nothing(key: str, value: object) -> bool:
    is_remark = key.startswith("x-") or key in ("example", "examples", "externalDocs", "xml")
    return is_remark or (key == "additionalProperties" and value is False)


def _fields(
    plain: Mapping[str, Any], arguments: Arguments, *, is_required: bool
) -> dict[str, Any] | None:
    """The properties of a body, converted; None if they cannot be separate arguments."""
    properties, required = plain.get("properties"), plain.get("required") or []
    if not isinstance(properties, Mapping) or not isinstance(required, list):
        return None
    if (required and not is_required) or properties.keys() & arguments.properties.keys():
        return None
    converted = arguments.builder.convert({"type": "object", "properties": properties})
    fields: dict[str, Any] = converted.get("properties", {})
    return fields


def _parts(document: Document, schema: object, media: Mapping[str, Any]) -> dict[str, Part]:
    """The encoding of a form's fields, for those without the default encoding."""
    try:
        properties = document.resolved(schema, "schema").get("properties")
    except BrokenError:
        return {}
    encodings = media.get("encoding")
    found = {}
    for name, raw in properties.items() if isinstance(properties, Mapping) else ():
        encoding = encodings.get(name) if isinstance(encodings, Mapping) else None
        encoding = encoding if isinstance(encoding, Mapping) else {}
        style, given = encoding.get("style"), str(encoding.get("contentType", ""))
        given = given.partition(",")[0].strip()
        part = Part(
            style=style if style in FORM_STYLES else None,
            explode=encoding.get("explode", style in (None, "form", "deepObject")) is not False,
            type=given if MEDIA_TYPE.fullmatch(given) and "*" not in given else "",
            is_file=_is_file(raw),
        )
        if part != Part():
            found[str(name)] = part
    return found


def _is_file(schema: object) -> bool:
    if not isinstance(schema, Mapping):
        return False
    if schema.get("type") == "array":
        return _is_file(schema.get("items"))
    return schema.get("format") == "binary" or "contentMediaType" in schema

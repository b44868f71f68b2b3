"""The form with a tool's arguments: its fields from the tool's schema, and their values.

Arguments are not validated here, because every call validates them.
"""

from collections.abc import Mapping
from enum import StrEnum
from itertools import islice
from typing import Any

import msgspec

from repertory.catalogue.item import Item
from repertory.catalogue.schemas import References, as_list
from repertory.errors import UsageError
from repertory_query.pages.schema import Row, parameters

MAX_FIELDS = 40  # further arguments must be written as JSON
MAX_OPTIONS = 50  # of one field
PREFIX = "argument:"  # before the names of the fields in the posted form
JSON = "json"  # the field for all arguments as one JSON object
_OR_NULL = " | null"


class Input(StrEnum):
    """The kind of input for a field."""

    TEXT = "text"
    NUMBER = "number"
    CHOICE = "choice"
    JSON = "json"


class Field(Row, frozen=True, kw_only=True):
    """One argument.

    Attributes:
        input: The kind of input.
        options: The values to choose from, as JSON.
    """

    input: Input
    options: tuple[str, ...] = ()


def fields(tool: Item) -> list[Field]:
    """The fields of a tool's form; empty if its schema describes no arguments."""
    schema = tool.input_schema or {}
    found = islice(parameters(References(schema), schema), MAX_FIELDS)
    return [_field(row, part) for row, part in found]


def arguments_of(tool: Item, sent: Mapping[str, str]) -> dict[str, Any]:
    """The arguments in a posted form, without empty fields.

    Raises:
        UsageError: A field for JSON contains something else.
    """
    if whole := sent.get(JSON, "").strip():
        given = _json(whole, "The arguments")
        if not isinstance(given, dict):
            raise UsageError("The arguments must be one JSON object, such as {}.")
        return given
    return {
        field.name: _value(field, text)
        for field in fields(tool)
        if (text := sent.get(PREFIX + field.name, "")).strip()
    }


def example_of(tool: Item) -> dict[str, Any]:
    """Example arguments: the required fields with the simplest values."""
    return {field.name: _simplest(field) for field in fields(tool) if field.required}


def _simplest(field: Field) -> object:
    if field.options:
        return msgspec.json.decode(field.options[0])
    is_list = field.type.startswith("array")
    return {Input.TEXT: "TEXT", Input.NUMBER: 1}.get(field.input, [] if is_list else {})


def _field(row: Row, part: Mapping[str, Any]) -> Field:
    options = _options(part)
    kind = Input.CHOICE if options else _input(row.type)
    return Field(**msgspec.structs.asdict(row), input=kind, options=options)


def _options(part: Mapping[str, Any]) -> tuple[str, ...]:
    values = [True, False] if part.get("type") == "boolean" else as_list(part.get("enum"))
    if len(values) > MAX_OPTIONS:
        return ()
    return tuple(msgspec.json.encode(value).decode() for value in values)


def _input(kind: str) -> Input:
    kind = kind.removesuffix(_OR_NULL)
    if kind in ("integer", "number", "integer | number", "number | integer"):
        return Input.NUMBER
    return Input.TEXT if kind == "string" else Input.JSON


def _value(field: Field, text: str) -> object:
    if field.input is Input.TEXT:
        return text.replace("\r\n", "\n")  # browsers send CRLF
    return _json(text.strip(), field.name)


def _json(text: str, name: str) -> Any:  # noqa: ANN401 - any JSON
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError) as error:
        raise UsageError(
            f'{name[:80]} must be JSON: {str(error)[:200]}. Write 5, true, "text", [1, 2] or '
            '{"key": "value"}; nothing was sent.'
        ) from error

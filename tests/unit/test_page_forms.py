"""Pages have a form for a tool's arguments, and list the catalogue."""

from typing import Any

import msgspec
import pytest

from repertory.catalogue.item import Item, Kind
from repertory.errors import UsageError
from repertory.index.keywords.document import Entry, entry
from repertory_query.pages.argument_form import Input, arguments_of, example_of, fields
from repertory_query.pages.catalogue import PAGE_SIZE, listing, ordered

SCHEMA = {
    "type": "object",
    "required": ["text", "mode", "depth", "files", "options"],
    "properties": {
        "text": {"type": "string", "description": "What to say.", "minLength": 1},
        "note": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        "mode": {"enum": ["fast", 2]},
        "depth": {"type": "integer"},
        "share": {"type": ["number", "null"]},
        "dry": {"type": "boolean"},
        "files": {"type": "array", "items": {"type": "string"}},
        "options": {"$ref": "#/$defs/options"},
        "anything": True,
    },
    "$defs": {"options": {"type": "object", "properties": {"a": {"type": "string"}}}},
}


def tool(schema: dict[str, Any] | None = None) -> Item:
    """A tool with an input schema."""
    given = SCHEMA if schema is None else schema
    return Item(id="s__t", kind=Kind.TOOL, name="t", source="s", server="s", input_schema=given)


def test_each_argument_has_a_field_for_its_type() -> None:
    """A schema without a simple type has a field for JSON."""
    found = {field.name: field for field in fields(tool())}
    assert {name: field.input for name, field in found.items()} == {
        "text": Input.TEXT,
        "note": Input.TEXT,
        "mode": Input.CHOICE,
        "depth": Input.NUMBER,
        "share": Input.NUMBER,
        "dry": Input.CHOICE,
        "files": Input.JSON,
        "options": Input.JSON,
        "anything": Input.JSON,
    }
    assert found["mode"].options == ('"fast"', "2")
    assert found["dry"].options == ("true", "false")
    assert (found["text"].required, found["text"].rules) == (True, "length ≥ 1")
    assert fields(tool({})) == fields(tool({"properties": 3})) == []


def test_a_form_becomes_arguments() -> None:
    """Empty fields are left out; values of text fields stay text; all others are JSON."""
    sent = {
        "argument:text": "5\r\n6",
        "argument:note": "",
        "argument:mode": '"fast"',
        "argument:depth": " 3 ",
        "argument:dry": "false",
        "argument:files": '["a"]',
        "argument:unknown": "x",
        "depth": "9",
    }
    assert arguments_of(tool(), sent) == {
        "text": "5\n6",
        "mode": "fast",
        "depth": 3,
        "dry": False,
        "files": ["a"],
    }
    assert arguments_of(tool(), {**sent, "json": '{"any": 1}'}) == {"any": 1}
    assert arguments_of(tool({}), {}) == {}


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("json", "[1]", "one JSON object"),
        ("json", "{", "The arguments must be JSON"),
        ("argument:depth", "many", "depth must be JSON"),
        ("argument:files", "a, b", "files must be JSON"),
        ("json", "[" * 100_000, "must be JSON"),
        ("argument:depth", "NaN", "depth must be JSON"),
    ],
)
def test_invalid_json_is_refused(name: str, text: str, words: str) -> None:
    """The error names the field."""
    with pytest.raises(UsageError, match=words):
        arguments_of(tool(), {name: text})


def test_an_example_has_all_required_arguments() -> None:
    """Their values are simple."""
    assert example_of(tool()) == {
        "text": "TEXT",
        "mode": "fast",
        "depth": 1,
        "files": [],
        "options": {},
    }


def entries(count: int, source: str, server: str = "") -> list[Entry]:
    """The entries of some items of a source."""
    kind = Kind.TOOL if server else Kind.SKILL
    return [
        entry(Item(id=f"{source}/{n:04}", kind=kind, name=f"n{n:04}", source=source, server=server))
        for n in reversed(range(count))
    ]


def test_the_catalogue_is_grouped_by_server() -> None:
    """Servers come first, then sources; a group may continue on the next page."""
    items = ordered(entries(60, "skills") + entries(30, "s2", "b") + entries(2, "s1", "a"))
    first, second = (listing(items, page, lambda one: one) for page in (1, 2))
    assert first.index == [(("server", "a"), 2), (("server", "b"), 30), (("source", "skills"), 60)]
    shown = [(one.field, one.name, one.total, len(one.entries)) for one in first.groups]
    assert shown == [
        ("server", "a", 2, 2),
        ("server", "b", 30, 30),
        ("source", "skills", 60, PAGE_SIZE - 32),
    ]
    assert [(one.name, one.is_continued) for one in second.groups] == [("skills", True)]
    assert [one.id for one in first.entries + second.entries] == [one.id for one in items.entries]
    assert (first.total, first.page, first.pages) == (92, 1, 2)
    assert listing(items, 99, lambda one: one) == second
    empty = listing(ordered(()), 1, lambda one: one)
    assert (empty.groups, empty.total, empty.page, empty.pages) == ([], 0, 1, 1)


def test_entries_are_shown_as_the_caller_sees_them() -> None:
    """The caller's view is applied to the entries of the page."""
    items = ordered(entries(3, "skills"))
    shown = listing(items, 1, lambda one: msgspec.structs.replace(one, path="cut"))
    assert {one.path for one in shown.entries} == {"cut"}

"""Validation of a call's arguments against untrusted schemas."""

import json
import math
import socket
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from repertory.calling import validation
from repertory.calling.arguments import as_json, validate_arguments
from repertory.calling.faults import faults
from repertory.catalogue.item import Item
from repertory.errors import ArgumentsError
from tests.support.builders import tool

FORECAST = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "minLength": 2, "pattern": "^[A-Z]"},
        "days": {"type": "integer", "minimum": 1, "maximum": 14},
        "unit": {"enum": ["C", "F"]},
        "note": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        "filter": {"properties": {"tags": {"items": {"type": ["string", "integer"]}}}},
    },
    "required": ["city"],
    "additionalProperties": False,
}


def forecast(schema: dict[str, Any] | None) -> Item:
    """A tool with an input schema."""
    return tool("weather__forecast", input_schema=schema)


@pytest.mark.parametrize(
    ("arguments", "wrong"),
    [
        ({"city": "Berlin", "days": 3, "unit": "C", "note": None}, []),
        ({}, ["city must be given"]),
        ({"city": 5}, ["city must be string"]),
        ({"city": "berlin"}, ['city must match the pattern "^[A-Z]"']),
        ({"city": "B"}, ["city must have 2 characters or more"]),
        ({"city": "Berlin", "days": "3"}, ["days must be integer"]),
        ({"city": "Berlin", "days": True}, ["days must be integer"]),
        ({"city": "Berlin", "days": 0}, ["days must be 1 or more"]),
        ({"city": "Berlin", "unit": "K"}, ['unit must be one of ["C", "F"]']),
        ({"city": "Berlin", "note": 1}, ["note must be string or null"]),
        ({"city": "Berlin", "town": 1}, ["town is not in the schema"]),
        (
            {"city": "Berlin", "filter": {"tags": ["a", 1, None]}},
            ["filter.tags[2] must be string or integer"],
        ),
        ({"days": 99}, ["days must be 14 or less", "city must be given"]),
    ],
)
def test_each_fault_names_the_argument_and_the_rule(
    arguments: dict[str, Any], wrong: list[str]
) -> None:
    """A fault quotes the schema, never the value."""
    assert faults(arguments, FORECAST) == wrong


def test_invalid_arguments_are_rejected() -> None:
    """The error is one sentence that names the tool; valid arguments are returned unchanged."""
    assert validate_arguments({"city": "Bonn", "note": None}, forecast(FORECAST)) == {
        "city": "Bonn",
        "note": None,
    }
    with pytest.raises(ArgumentsError) as caught:
        validate_arguments({"days": "s3cret"}, forecast(FORECAST))
    assert str(caught.value) == (
        "The arguments do not fit the tool weather__forecast, so nothing was sent to its server: "
        "days must be integer; city must be given."
    )


def test_a_tool_without_a_schema_accepts_anything() -> None:
    """Nothing is checked."""
    assert validate_arguments({"a": [1]}, forecast(None)) == {"a": [1]}


@pytest.mark.parametrize(
    ("schema", "wrong"),
    [
        ({"$ref": "#/$defs/a", "$defs": {"a": {"required": ["x"]}}}, "x must be given"),
        ({"properties": {"a": False}}, "a is not allowed by the schema"),
        ({"properties": {"a": {"const": 2}}}, "a must be 2"),
        ({"properties": {"a": {"not": {}}}}, "a does not fit the schema's `not`"),
        (
            {"properties": {"a": {"oneOf": [{"type": "integer"}, {"type": "number"}]}}},
            "a must have exactly one of the forms that the schema gives",
        ),
        (
            {"anyOf": [{"required": ["b"]}, {"required": ["c"]}]},
            "the whole must have one of the forms that the schema gives",
        ),
        (
            {"anyOf": [{"properties": {"a": {"minimum": 9}}}, {"required": ["c"]}]},
            "a must be 9 or more",
        ),
        ({"patternProperties": {"^a": {"type": "string"}}}, "a must be string"),
        (
            {"patternProperties": {"^b": {}}, "additionalProperties": False},
            "a is not in the schema",
        ),
        ({"additionalProperties": {"type": "string"}}, "a must be string"),
        (
            {
                "$schema": "http://json-schema.org/draft-04/schema#",
                "properties": {"a": {"minimum": 1, "exclusiveMinimum": True}},
            },
            "a must be 1 or more",
        ),
    ],
)
def test_schema_keywords_of_all_kinds_are_checked(schema: dict[str, Any], wrong: str) -> None:
    """They include local references, alternatives, patterns of names, and older drafts."""
    assert faults({"a": 1}, schema) == [wrong]


def test_the_number_of_faults_is_bounded() -> None:
    """At most five faults are listed, in order."""
    schema = {"properties": {f"p{number}": {"type": "string"} for number in range(9)}}
    assert faults({f"p{number}": 0 for number in range(9)}, schema) == [
        f"p{number} must be string" for number in range(5)
    ]


def test_a_fault_is_short() -> None:
    """Names and values of a schema may have any length and number."""
    assert faults({}, {"required": list("abcdefgh")}) == ["a, b, c, d, e must be given"]
    long = "x" * 300
    closed = {"properties": {"a": {"enum": [long]}}, "additionalProperties": False}
    for arguments in ({"a": 1}, {long: 1}):
        [fault] = faults(arguments, closed)
        assert len(fault) < 130
        assert "x…" in fault


def test_a_fault_inside_an_alternative_names_its_place() -> None:
    """It is not a fault of the type of the whole value."""
    filter_ = {"anyOf": [{"type": "string"}, {"properties": {"a": {"type": "integer"}}}]}
    assert faults({"v": {"a": "x"}}, {"properties": {"v": filter_}}) == ["v.a must be integer"]


def test_remote_references_are_not_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rest of the schema still applies."""

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError

    monkeypatch.setattr(socket.socket, "connect", refuse)
    away = {"$ref": "http://127.0.0.1:9/schema.json"}
    assert faults({"a": 1}, away) == []
    assert faults({"a": 1, "b": 1}, {"properties": {"a": {"type": "string"}, "b": away}}) == [
        "a must be string"
    ]


DOUBLING: dict[str, Any] = {
    f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}, {"$ref": f"#/$defs/d{n + 1}"}]}
    for n in range(50)
} | {"d50": {}}
SLOW = {"pattern": "^(a+)+$"}


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#"},
        {"$ref": "#/nowhere"},
        {"type": "nothing that there is"},
        {"properties": 5},
        {"required": 5},
        {"minimum": "x", "properties": {"a": {"minimum": "x"}}},
        {"$schema": 5},
        {"$schema": "http://127.0.0.1/own"},
        {"$ref": "#/$defs/d0", "$defs": DOUBLING},
        {"properties": {"a": {"pattern": "(?<=a"}}},
        {"properties": {"a": {"pattern": "(?:a{1000}){1000}"}}},
        {"properties": {"a": {"pattern": 5}}},
        {"patternProperties": {"(?<=b)": {}}, "additionalProperties": False},
        {"$dynamicRef": "#meta", "$dynamicAnchor": "meta"},
    ],
)
def test_a_schema_that_cannot_be_applied_is_left_to_the_server(
    schema: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Broken, cyclic or slow schemas give no fault, so the server must check the arguments."""
    monkeypatch.setattr(validation, "CHECK_TIMEOUT_S", 0.1)
    assert faults({"a": "b"}, schema) == []


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"a": SLOW}},
        {"properties": {"a": {"$schema": "http://json-schema.org/draft-07/schema#", **SLOW}}},
        {"patternProperties": {"^(a+)+$": {}}, "additionalProperties": False},
        {
            "$dynamicAnchor": "meta",
            "$id": "https://json-schema.org/draft/2020-12/own",
            "properties": {"a": SLOW},
            "additionalProperties": {"$ref": "https://json-schema.org/draft/2020-12/schema"},
        },
    ],
)
def test_patterns_take_linear_time(schema: dict[str, Any]) -> None:
    """Python's own regular expressions would take exponential time in each case."""
    long = "a" * 50_000 + "!"
    assert faults({"a": long, long: {"a": long}}, schema)


@pytest.mark.parametrize("keyword", ["patternProperties", "additionalProperties"])
def test_the_compilation_of_many_patterns_is_bounded(keyword: str) -> None:
    """Each takes a tenth of a second to compile, so without a timeout they would take minutes."""
    patterns: dict[str, Any] = {rf"(?:[\w{number}]{{50}}){{20}}": {} for number in range(3_000)}
    closed = {"additionalProperties": False} if keyword == "additionalProperties" else {}
    assert faults({"a": 1}, {"patternProperties": patterns, **closed}) == []


def test_unique_items_take_linear_time() -> None:
    """Items are not compared pair by pair."""
    assert faults({"a": [[[]]] * 100_000}, {"properties": {"a": {"uniqueItems": True}}}) == [
        "a must not have duplicates"
    ]
    assert faults([1, 1.5, "1", [1], {"a": 1, "b": 2}], {"uniqueItems": True}) == []


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"a": object()}, "cannot be written as JSON"),
        ({"a": math.nan}, "cannot be written as JSON"),
        ({"a": "\ud800"}, "cannot be written as JSON"),
        ({"a": b"x"}, "cannot be written as JSON"),
        ({"a": 10**5_000}, "cannot be written as JSON"),
        ({"a": "x" * 1_000_000}, "more than 1,000,000 bytes"),
        ({"a": "é" * 600_000}, "more than 1,000,000 bytes"),
        ({"a": json.loads("[" * 70 + "]" * 70)}, "more than 64 levels deep"),
        ({"a": json.loads("[" * 900 + "]" * 900)}, "more than 64 levels deep"),
    ],
    ids=["object", "nan", "surrogate", "bytes", "number", "large", "wide", "deep", "deeper"],
)
def test_values_that_are_not_json_are_rejected(arguments: dict[str, Any], words: str) -> None:
    """They are rejected before validation, as are large and deeply nested values."""
    with pytest.raises(ArgumentsError, match=words):
        as_json(arguments)


@pytest.mark.parametrize(
    "arguments",
    [{"a": "x" * (1_000_000 - len('{"a": ""}'))}, {"a": json.loads("[" * 63 + "]" * 63)}],
    ids=["large", "deep"],
)
def test_arguments_at_a_limit_are_accepted(arguments: dict[str, Any]) -> None:
    """They have exactly the largest size or depth."""
    assert as_json(arguments) == arguments


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["", "a", "b"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("ab"), inner),
    max_leaves=6,
)
SCHEMAS = st.recursive(
    st.fixed_dictionaries(
        {},
        optional={
            "type": st.sampled_from(["string", "integer", "object", "array", "null", "boolean"]),
            "enum": st.lists(JSON, min_size=1, max_size=3),
            "minimum": st.integers(-2, 2),
            "uniqueItems": st.booleans(),
            "required": st.lists(st.sampled_from("ab"), unique=True),
            "pattern": st.sampled_from(["a", "^b$"]),
        },
    ),
    lambda inner: st.fixed_dictionaries(
        {},
        optional={
            "properties": st.dictionaries(st.sampled_from("ab"), inner),
            "patternProperties": st.dictionaries(st.sampled_from(["a", "^b$"]), inner),
            "additionalProperties": inner | st.booleans(),
            "items": inner,
            "anyOf": st.lists(inner, min_size=1, max_size=2),
            "oneOf": st.lists(inner, min_size=1, max_size=2),
            "not": inner,
        },
    ),
    max_leaves=5,
)


@given(value=JSON, schema=SCHEMAS)
def test_the_bounds_change_no_verdict(value: object, schema: dict[str, Any]) -> None:
    """A value has faults if and only if the library itself rejects it."""
    fits = jsonschema.Draft202012Validator(schema).is_valid(value)
    assert (faults(value, schema) == []) == fits

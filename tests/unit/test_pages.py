"""The pages have safe URLs, readable text, and tables of parameters."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from repertory.catalogue.item import Kind
from repertory_admin.text import safe
from repertory_query.pages.page import legible, view_address
from repertory_query.pages.schema import MAX_ROWS, rows
from repertory_query.pages.search_form import Form
from repertory_query.pages.sign_in import own_path

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["properties", "items", "anyOf", "type", "enum", "$ref", "a", "required"]
            )
            | st.text(max_size=3),
            inner,
            max_size=4,
        )
    ),
    max_leaves=20,
)


@pytest.mark.parametrize("code", [0x61C, 0x200E, 0x200F, *range(0x202A, 0x202F), 0x2066, 0x2069])
def test_characters_that_change_the_text_direction_are_shown_or_removed(code: int) -> None:
    """A page shows them as a visible character; a terminal does not get them."""
    assert legible(f"a{chr(code)}b\n") == "a\N{REPLACEMENT CHARACTER}b\n"
    assert safe(f"a{chr(code)}b") == "ab"


def test_the_url_of_a_form_is_short() -> None:
    """Defaults are left out; without its filters, only the query remains."""
    form = Form(q=" two words ", kinds=(Kind.TOOL,), tags=("a&b", "c"), threshold=0.0)
    assert form.address() == "/?q=two+words&threshold=0.0&kind=tool&tag=a%26b&tag=c"
    assert msgspec.structs.replace(form, threshold=None).unfiltered() == "/?q=two+words"
    assert Form().address() == "/"


@pytest.mark.parametrize(
    ("item_id", "section", "address"),
    [
        ("team/key-rotation", "", "/view/team/key-rotation"),
        ("files__read_file", "", "/view/files__read_file"),
        ("a/../b", "", "/view/a%2F..%2Fb"),
        ("//evil.example", "", "/view/%2F%2Fevil.example"),
        ('"><x?#', "", "/view/%22%3E%3Cx%3F%23"),
        ("a", "## Und & so", "/view/a?section=%23%23+Und+%26+so#matched"),
    ],
)
def test_the_url_of_an_item_is_safe_in_browsers(item_id: str, section: str, address: str) -> None:
    """No part of an id has a special meaning in the URL."""
    assert view_address(item_id, section) == address


@pytest.mark.parametrize(
    ("target", "where"),
    [
        ("/status?a=b&c", "/status?a=b&c"),
        ("//evil.example", "/"),
        ("/\\evil.example", "/"),
        ("https://evil.example", "/"),
        ("javascript:alert(1)", "/"),
        ("/a\r\nSet-Cookie: b=c", "/"),
        ("", "/"),
    ],
)
def test_a_login_never_redirects_to_another_site(target: str, where: str) -> None:
    """It redirects only to a path of this server."""
    assert own_path(target) == where


def test_parameters_are_shown_with_their_types() -> None:
    """Nested ones are shown by path, references are resolved, and rules are abbreviated."""
    schema = {
        "type": "object",
        "required": ["mode"],
        "properties": {
            "mode": {"enum": ["fast", "slow"], "description": "How."},
            "files": {"type": "array", "items": {"$ref": "#/$defs/file"}},
            "depth": {"type": ["integer", "null"], "minimum": 1, "default": 3},
            "either": {
                "anyOf": [
                    {"type": "string", "description": "Some."},
                    {"type": "array", "items": {"type": "number"}},
                ]
            },
            "anything": True,
        },
        "$defs": {"file": {"type": "object", "properties": {"path": {"type": "string"}}}},
    }
    found = {row.name: row for row in rows(schema)}
    assert {name: row.type for name, row in found.items()} == {
        "mode": '"fast" | "slow"',
        "files": "array of object",
        "files[].path": "string",
        "depth": "integer | null",
        "either": "string | array of number",
        "anything": "any",
    }
    assert found["mode"].required
    assert [found[name].description for name in ("mode", "either")] == ["How.", "Some."]
    assert found["depth"].rules == "≥ 1, default 3"


def test_the_rows_of_a_recursive_schema_are_bounded() -> None:
    """The schema refers to itself many times at every level."""
    fields = {f"p{number}": {"$ref": "#"} for number in range(50)}
    options = {"anyOf": [{"$ref": "#/properties/either"}] * 100}
    schema: dict[str, Any] = {"properties": fields | {"either": options}}
    assert len(rows(schema)) == MAX_ROWS


@given(st.dictionaries(st.sampled_from(["properties", "$defs", "required"]), JSON))
def test_any_schema_can_be_shown(schema: dict[str, Any]) -> None:
    """Any part of the schema may have an invalid value."""
    for row in rows(schema):
        assert isinstance(row.type + row.description + row.rules, str)

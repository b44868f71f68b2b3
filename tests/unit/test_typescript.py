"""TypeScript generated from JSON Schemas, and its safety against hostile texts."""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from repertory.errors import UsageError
from repertory.index.keywords.document import entry
from repertory.typescript import module as modules
from repertory.typescript.example import example
from repertory.typescript.module import module
from repertory.typescript.schema import declarations
from repertory.typescript.selection import names_in, select_tools
from repertory.typescript.syntax import (
    IdentifierPool,
    camel,
    comment,
    identifier,
    key,
    pascal,
    quoted,
)
from tests.support.builders import tool

ANY = "{ [key: string]: unknown }"

anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


def test_a_tool_name_with_a_comma_is_not_split() -> None:
    """Other commas separate names, and duplicates are removed."""
    entries = [entry(tool(f"shop__{name}")) for name in ("add, then pay", "pay")]
    given = ["shop__add, then pay", "shop__pay, no", "shop__pay"]
    wanted = names_in(entries, given)
    assert wanted == ["shop__add, then pay", "shop__pay", "no"]
    assert select_tools(entries, wanted[:1]) == ["shop__add, then pay"]


def declared(schema: object) -> str:
    """The declaration of a schema, on one line."""
    return " ".join(declarations("X", schema, "", IdentifierPool()).split())


def type_of(schema: object) -> str:
    """The type of a property's schema, on one line."""
    text = declared({"properties": {"x": schema}, "required": ["x"]})
    found = re.match(r"export interface X \{ x: (.*?); \}( export|$)", text)
    assert found, text
    return found[1]


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        ({"type": "string"}, "string"),
        ({"type": "integer"}, "number"),
        ({"type": "null"}, "null"),
        ({"type": "file"}, "unknown"),
        ({"type": ["string", "null"]}, "string | null"),
        ({"type": "string", "nullable": True}, "string | null"),
        ({}, "unknown"),
        (True, "unknown"),
        (False, "never"),
        ({"enum": ["a", 1, -0.5, True, None, "a"]}, '"a" | 1 | -0.5 | true | null'),
        ({"enum": [[1, "a"], {"a b": {}}]}, '[1, "a"] | { "a b": { [key: string]: never } }'),
        ({"type": "string", "enum": [str(i) for i in range(1_001)]}, "string"),
        ({"const": "*/`${x}`\n\u2028"}, r'"*/`${x}`\n\u2028"'),
        ({"const": 2**53}, "number"),
        ({"const": "x" * 1_001}, "string"),
        (
            {"anyOf": [{"type": "string"}, {"type": "integer"}, {"type": "number"}]},
            "string | number",
        ),
        ({"oneOf": [{"type": "string"}, {}]}, "unknown"),
        ({"anyOf": [{"type": "string"}, False]}, "string"),
        ({"type": "string", "anyOf": [{"minLength": 1}, {"pattern": "x"}]}, "string"),
        ({"allOf": [{"type": "string"}, {"type": "string"}]}, "string"),
        (
            {"allOf": [{"required": ["a"]}, {"required": ["b"]}]},
            "({ a: unknown; } & { b: unknown; })",
        ),
        ({"not": {"type": "string"}}, "unknown"),
        ({"type": "array"}, "unknown[]"),
        ({"items": {"type": ["string", "null"]}}, "(string | null)[]"),
        ({"prefixItems": [{"type": "string"}, {"type": "null"}]}, "[string?, null?, ...unknown[]]"),
        ({"prefixItems": [{"type": "null"}], "items": False, "minItems": 1}, "[null]"),
        ({"items": [{"type": "null"}], "minItems": 1, "maxItems": 1}, "[null]"),
        (
            {"items": [{"type": "null"}], "minItems": 1, "additionalItems": {"type": "string"}},
            "[null, ...string[]]",
        ),
        ({"type": "object"}, ANY),
        ({"type": "object", "additionalProperties": False}, "{ [key: string]: never }"),
        ({"additionalProperties": {"type": "string"}}, "{ [key: string]: string }"),
        (
            {
                "patternProperties": {"^a": {"type": "string"}},
                "additionalProperties": {"type": "null"},
            },
            "{ [key: string]: string | null }",
        ),
        ({"$ref": "#/$defs/none"}, "unknown"),
        ({"$ref": "https://example.org/schema.json"}, "unknown"),
        ({"$ref": "#anchor"}, "unknown"),
        ({"$ref": "#/properties"}, "XProperties"),
    ],
)
def test_a_schema_becomes_a_type(schema: object, text: str) -> None:
    """The type is as precise as TypeScript allows, otherwise ``unknown``."""
    assert type_of(schema) == text


def test_an_object_becomes_an_interface() -> None:
    """Properties keep their order and descriptions; their names are quoted if necessary."""
    schema = {
        "type": "object",
        "properties": {
            "path": {"type": "string", "description": "Where it is."},
            "max-size": {"type": "number"},
            "new": {"type": "object", "properties": {"a": {"type": "null"}}},
        },
        "required": ["path", "undescribed"],
        "additionalProperties": {"type": "number"},
    }
    assert declarations("X", schema, "About it.", IdentifierPool()) == (
        "/** About it. */\n"
        "export interface X {\n"
        "  /** Where it is. */\n"
        "  path: string;\n"
        '  "max-size"?: number;\n'
        "  new?: {\n"
        "    a?: null;\n"
        "  };\n"
        "  undescribed: unknown;\n"
        "  [key: string]: unknown;\n"
        "}\n"
    )


def test_a_property_has_the_description_of_its_only_described_alternative() -> None:
    """Pydantic describes an optional parameter so; of several descriptions, none is taken."""
    some, none = {"type": "string", "description": "Some."}, {"type": "null"}
    other = {"type": "number", "description": "Other."}
    schema = {"properties": {"a": {"anyOf": [some, none]}, "b": {"oneOf": [some, other]}}}
    assert declared(schema) == (
        "export interface X { /** Some. */ a?: string | null; b?: string | number; }"
    )


@pytest.mark.parametrize("schema", [None, {}, True, {"title": "Anything"}])
def test_a_missing_or_empty_schema_is_any_object(schema: object) -> None:
    """Arguments and results are always objects."""
    assert declared(schema) == f"export interface X {ANY}"


def test_other_types_become_aliases() -> None:
    """Arrays and unions become type aliases instead of interfaces."""
    of_objects = {"items": {"properties": {"a": {"type": "null"}}}}
    assert declared(of_objects) == "export type X = { a?: null; }[];"
    assert declared({"anyOf": [{"type": "string"}, {"type": "object"}]}) == (
        f"export type X = string | {ANY};"
    )


def test_references_become_named_types() -> None:
    """Each target becomes one type. Types may be recursive, but a mere cycle is ``unknown``."""
    schema = {
        "properties": {"tree": {"$ref": "#/$defs/tree"}, "same": {"$ref": "#/%24defs/tree"}},
        "$defs": {
            "tree": {"type": "array", "items": {"$ref": "#/$defs/tree"}},
        },
    }
    assert declared(schema) == (
        "export interface X { tree?: XTree; same?: XTree; } export type XTree = XTree[];"
    )
    assert declared({"properties": {"x": {"$ref": "#"}}}) == "export interface X { x?: X; }"
    circle = {"$ref": "#/$defs/a", "$defs": {"a": {"anyOf": [{"$ref": "#/$defs/b"}]}}}
    circle["$defs"] |= {"b": {"anyOf": [{"type": "string"}, {"$ref": "#/$defs/a"}]}}  # type: ignore[operator]  # a dict
    assert declared(circle) == (
        "export type X = XA; export type XA = XB; export type XB = unknown;"
    )


@given(anything)
def test_any_schema_is_accepted(schema: object) -> None:
    """Arbitrary JSON gives a declaration without an error."""
    assert declared(schema).startswith("export ")


@given(anything)
def test_a_value_is_one_printable_line_that_evaluates_to_itself(value: object) -> None:
    """No value can end the line or the surrounding text."""
    text = quoted(value)
    assert text.isprintable()
    assert json.dumps(json.loads(text)) == json.dumps(value)


@given(st.text(alphabet=st.sampled_from("*/@ \n\r\t\u2028\u200b\x00a")))
def test_no_text_can_close_its_comment(text: str) -> None:
    """Also, no ``@`` is on the comment's last line."""
    written = comment(f"a{text}")
    assert written.startswith("/**")
    assert written.index("*/") == len(written) - len("*/\n")
    assert "@" not in written.splitlines()[-1]
    assert re.sub(r"\s", "", written).isprintable()


@given(st.text())
def test_any_name_becomes_identifiers(name: str) -> None:
    """Identifiers have only letters, marks, digits and underscores, and no digit at the start."""
    for word in (identifier(camel(name), "server"), identifier(pascal(name), "Tool")):
        assert re.fullmatch(r"[^\W\d][\w\u0300-\U0010ffff]*", word), word


@pytest.mark.parametrize(
    ("name", "value", "kind"),
    [
        ("read_file", "readFile", "ReadFile"),
        ("My server", "myServer", "MyServer"),
        ("GitHub", "gitHub", "GitHub"),
        ("AWS", "aws", "AWS"),
        ("1password", "_1password", "_1password"),
        ("读取", "读取", "读取"),
        ("-.$", "none", "none"),
    ],
)
def test_names_are_written_in_camel_and_pascal_case(name: str, value: str, kind: str) -> None:
    """Letters of all scripts are kept; a name without letters becomes the fallback."""
    assert identifier(camel(name), "none") == value
    assert identifier(pascal(name), "none") == kind


def test_plain_keys_stay_and_others_are_quoted() -> None:
    """Reserved words do not need quotes as keys."""
    assert [key(one) for one in ("path", "new", "$x", "a-b", "1", "", "é")] == [
        "path",
        "new",
        "$x",
        '"a-b"',
        '"1"',
        '""',
        '"é"',
    ]


def test_a_module_calls_each_tool_by_its_server_and_name() -> None:
    """Duplicate names get numbers, and a parameter object without required fields is optional."""
    made = module(
        [
            tool("my-server__read-file", input_schema={"required": ["path"]}),
            tool("my-server__read_file", description="Read.\n@deprecated", output_schema={}),
            tool("my_server__x"),
        ],
        'http://h/"',
    )
    assert made.methods == {
        "my-server__read-file": 'tools.myServer["read-file"]',
        "my-server__read_file": "tools.myServer.read_file",
        "my_server__x": "tools.myServer2.x",
    }
    for line in (
        r'export const gateway = { url: "http://h/\"", apiKey: "" };',
        '    "read-file"(params: MyServerReadFileParams): Promise<MyServerReadFileResult> {',
        '      return call("my-server__read-file", params, false);',
        "    read_file(params?: MyServerReadFileParams2): Promise<MyServerReadFileResult2> {",
        '      return call("my-server__read_file", params, true);',
        "     * @deprecated",
        "  myServer2: {",
        f"export interface MyServerXParams {ANY}",
    ):
        assert f"\n{line}\n" in made.text


def test_a_module_without_tools_is_valid() -> None:
    """It exports an empty object of tools."""
    assert module([], "").text.endswith("export const tools = {\n};\n")


def test_the_size_of_a_module_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    """A module that would be too large is refused with advice."""
    monkeypatch.setattr(modules, "MAX_MODULE_LENGTH", 1_000)
    with pytest.raises(UsageError, match="name the servers or tools"):
        module([tool(f"s__t{i}") for i in range(10)], "")


def test_an_example_has_the_required_arguments() -> None:
    """Values come from the schema or are placeholders of the right type."""
    schema = {
        "properties": {
            "path": {"type": "string"},
            "how": {"enum": ["quick", "slow"]},
            "deep": {"$ref": "#/$defs/deep"},
            "any": {"anyOf": [{"type": "array"}, {"type": "null"}]},
            "spare": {"type": "string"},
        },
        "required": ["path", "how", "deep", "any"],
        "$defs": {"deep": {"properties": {"a b": {"const": 1}}, "required": ["a b"]}},
    }
    given_all, given_none = tool("s__f", input_schema=schema), tool("s__g-h")
    made = module([given_all, given_none], "")
    arguments = '{ path: "…", how: "quick", deep: { "a b": 1 }, any: [] }'
    assert f"await tools.s.f({arguments});\n" in example(given_all, made)
    assert 'await tools.s["g-h"]();\n' in example(given_none, made)

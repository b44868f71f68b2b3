"""Parsing front matter and YAML, JSON and TOML of friendly and hostile authors."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from repertory.sources.reading.fields import extra, is_true, tags, text_field
from repertory.sources.reading.frontmatter import LIMIT, FrontMatter, parse
from repertory.sources.reading.structured import MAX_DEPTH, Defect, load, plain


def messages(text: str) -> list[str]:
    """Return the problems of a text as text."""
    return [str(problem) for problem in parse(text, "f").problems]


def test_fields_and_body_are_separated() -> None:
    """Fields keep their types, unknown keys stay, and the rest is the body."""
    parsed = parse("---\nname: a\nversion: 1.5\nn: 3\nok: true\nlist: [x, y]\n---\n# Body\n", "f")
    assert parsed.fields == {"name": "a", "version": 1.5, "n": 3, "ok": True, "list": ["x", "y"]}
    assert parsed.body == "# Body\n"
    assert parsed.problems == []


def test_a_text_without_front_matter_is_only_body() -> None:
    """Missing front matter is not reported as a problem."""
    parsed = parse("# Title\n---\nname: a\n---\n", "f")
    assert (parsed.fields, parsed.problems) == ({}, [])
    assert parsed.body.startswith("# Title")


@pytest.mark.parametrize(
    "text",
    [
        "---\n\nWords between two rules.\n\n---\nMore: words.\n",
        "---\n\n# A heading\n\nNote: this.\n---\n",
        "---\n# A heading\n---\nMore.\n",
        "---\n\nA rule and words.\n",
    ],
)
def test_prose_between_two_rules_is_body(text: str) -> None:
    """A text may begin with a horizontal rule, which is not front matter."""
    parsed = parse(text, "f")
    assert (parsed.fields, parsed.body, parsed.problems) == ({}, text, [])


@pytest.mark.parametrize("text", ["---\n\nname: a\n---\nb", '---\n \n\n"name": a\n---\nb'])
def test_front_matter_may_begin_with_a_blank_line(text: str) -> None:
    """It is recognised if a key follows the blank lines."""
    parsed = parse(text, "f")
    assert (parsed.fields, parsed.body) == ({"name": "a"}, "b")


def test_front_matter_may_be_toml() -> None:
    """Hugo uses it. Text between ``+++`` lines that is not TOML is body text."""
    parsed = parse("+++\ntitle = 'A'\ntags = ['x']\n+++\n# B\n", "f")
    assert (parsed.fields, parsed.body) == ({"title": "A", "tags": ["x"]}, "# B\n")
    for text in ("+++\nA title\n+++\nText\n", "+++\ntitle = 'A'\n"):
        assert parse(text, "f") == FrontMatter(fields={}, body=text)


def test_special_values_of_yaml_1_1_are_text() -> None:
    """``no``, dates, times and octal-like numbers stay as written."""
    parsed = parse("---\na: no\nb: 2020-01-02\nc: 12:30\nd: 007\ne: ~\nf: 'true'\n---\n", "f")
    assert parsed.fields == {
        "a": "no", "b": "2020-01-02", "c": "12:30", "d": "007", "e": None, "f": "true"
    }  # fmt: skip


def test_names_and_descriptions_are_text_as_written() -> None:
    """Values that look like numbers stay text there, but are numbers in other fields."""
    parsed = parse("---\nname: 1.10\ndescription: true\nmetadata:\n  name: 1.10\n---\n", "f")
    assert parsed.fields == {"name": "1.10", "description": "true", "metadata": {"name": 1.1}}
    assert parse("---\nname: null\n---\n", "f").fields == {"name": None}


@pytest.mark.parametrize(
    ("value", "is_cut"),
    [("Finds #[repr(C)] types", True), ("Finds it # often", False), ("'Finds #1'", False)],
)
def test_a_description_that_is_cut_at_a_hash_is_reported(value: str, is_cut: bool) -> None:
    """YAML reads the rest as a comment; a warning is given unless it clearly is a comment."""
    parsed = parse(f"---\nname: a\ndescription: {value}\n---\n", "f")
    assert parsed.fields is not None
    assert parsed.fields["description"].startswith("Finds")
    assert [problem.line for problem in parsed.problems] == [3] * is_cut


def test_an_unquoted_colon_is_read_with_a_warning() -> None:
    """The value is read as text, and the warning names its line."""
    text = "---\nname: a\ndescription: Use when: you need it\n  most: now\nlicense: MIT\n---\nbody"
    parsed = parse(text, "f")
    assert parsed.fields == {
        "name": "a",
        "description": "Use when: you need it most: now",
        "license": "MIT",
    }
    assert [(problem.line, problem.severity) for problem in parsed.problems] == [(3, "warning")]
    assert "`description`" in parsed.problems[0].message


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("[date] [duration]", "[date] [duration]"),
        ("*.md", "*.md"),
        ("@scope/name", "@scope/name"),
        ("it's 5: o'clock", "it's 5: o'clock"),
        ('"Quoted" and: more', '"Quoted" and: more'),
    ],
)
def test_unquoted_values_that_begin_with_yaml_indicators_are_text(
    value: str, expected: str
) -> None:
    """Authors often write brackets, stars, at signs and quotes without quoting the value."""
    parsed = parse(f"---\na: b\nmetadata:\n  hint: {value}\n---\n", "f")
    assert parsed.fields == {"a": "b", "metadata": {"hint": expected}}
    assert parsed.problems[0].line == 4


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("---\nname: a\n", "f:1: The front matter is not closed; put a line of --- after it."),
        ("\n---\na: 1\n- b\n---\n", "f:4: The front matter is broken: the YAML cannot be read"),
        ("---\n- a\n---\n", "f:2: The front matter is a list"),
        (
            "---\na:\n\tb: c\n---\n",
            "f:3: The front matter is broken: the YAML cannot be read: a tab",
        ),
        ("---\njust words\n---\n", "f:2: The front matter is broken: it is one value"),
        ("---\na: &x [b]\nc:\n- *x\n---\n", "f:4: The front matter is broken: the YAML"),
        (f"---\na: {'x' * LIMIT}\n---\n", "f:1: The front matter has more than 65,536"),
    ],
)
def test_broken_front_matter_names_the_line_in_the_file(text: str, expected: str) -> None:
    """It is an error without fields, and the whole text becomes the body."""
    assert messages(text)[0].startswith(expected)
    assert parse(text, "f").fields is None
    assert parse(text, "f").body == text


def test_a_bomb_of_aliases_is_not_expanded() -> None:
    """Nine lines of YAML whose aliases expand to a billion words are read as text."""
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 9)]
    parsed = parse("---\n" + "\n".join(lines) + "\n---\n", "f")
    assert len(msgspec.json.encode(parsed.fields)) < 1000
    assert len(parsed.problems) == 8
    assert isinstance(load("\n".join(lines), "yaml"), Defect)


@pytest.mark.parametrize("text", ["[" * 60_000, "{a: " * 16_000, "- " * 30_000, "? " * 30_000])
def test_deep_nesting_is_refused(text: str) -> None:
    """Brackets that would overflow the parser's stack are a defect like any other."""
    assert isinstance(load(text, "yaml"), Defect)


@pytest.mark.parametrize("syntax", ["json", "toml"])
def test_deep_nesting_is_refused_in_every_syntax(syntax: str) -> None:
    """Deep nesting is a defect, whether the decoder accepts it or not."""
    for depth in (MAX_DEPTH + 1, 100_000):
        text = "[" * depth + "]" * depth
        assert isinstance(load(text if syntax == "json" else f"a = {text}", syntax), Defect)


@pytest.mark.parametrize(
    ("syntax", "text", "line"),
    [("json", '{"a": 1,\n}', 2), ("json", '{"a":\n', 2), ("toml", "a = 1\nb = = 2", 2)],
)
def test_a_defect_names_its_line(syntax: str, text: str, line: int) -> None:
    """JSON and TOML errors report their line."""
    defect = load(text, syntax)
    assert isinstance(defect, Defect)
    assert defect.line == line


def test_values_always_encode_as_json() -> None:
    """Dates, infinite numbers, control characters and lone surrogates are converted."""
    loaded = load("a = 1979-05-27\nb = nan\nc = [inf]", "toml")
    assert loaded == {"a": "1979-05-27", "b": "nan", "c": ["inf"]}
    assert plain({1: ("a\x1b", "\ud800b", 1 << 70)}) == {"1": ["a", "b", str(1 << 70)]}


_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**15), 10**15)
    | st.text(st.characters(categories=["L", "N", "P", "S", "Zs"])),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abc_"), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text("abc-_", min_size=1), _values, max_size=5), st.text("xyz\n #-"))
def test_simple_mappings_are_read_back_unchanged(fields: dict[str, Any], body: str) -> None:
    """JSON values with one key per line are valid YAML."""
    written = "".join(
        f"{json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}\n"
        for key, value in fields.items()
    )
    parsed = parse(f"---\n{written}---\n{body}", "f")
    assert parsed.fields == fields
    assert parsed.body == body
    assert parsed.problems == []


@given(st.text())
def test_no_front_matter_makes_the_parser_raise(text: str) -> None:
    """Any text yields either fields or an error, and the fields can be encoded as JSON."""
    for whole in (text, f"---\n{text}\n---\nbody", f"---\na: {text}\nb: c\n---\n"):
        parsed = parse(whole, "f")
        assert (parsed.fields is None) == any(
            problem.severity == "error" for problem in parsed.problems
        )
        msgspec.json.encode(parsed.fields)


@given(st.text(), st.sampled_from(["yaml", "json", "toml"]))
def test_no_structured_text_makes_the_parser_raise(text: str, syntax: str) -> None:
    """Every text loads or has a defect."""
    assert isinstance(load(text, syntax), dict | list | Defect)


def test_tags_are_collected_from_all_places() -> None:
    """Tags come from lists and comma-separated texts, at the top level and in ``metadata``."""
    fields = {
        "tags": "web, api ,web,",
        "keywords": ["zip", 3, {"no": "tag"}],
        "metadata": {"tags": ["api", "auth"]},
    }
    assert tags(fields) == ("api", "auth", "web", "zip")
    assert tags({"tags": None, "metadata": "text"}) == ()
    assert extra(fields) == {"metadata": {"tags": ["api", "auth"]}}


def test_fields_of_any_shape_are_read() -> None:
    """Text becomes one line, numbers become text, and other values become empty text."""
    fields = {"a": "two\n lines", "b": 5, "c": ["x"], "d": None, "e": True}
    assert [text_field(fields, key) for key in "abcdef"] == ["two lines", "5", "", "", "", ""]
    assert [is_true(value) for value in (True, "Yes", "true", False, None, "no")] == [
        True, True, True, False, False, False
    ]  # fmt: skip

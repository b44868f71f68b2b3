"""Valid and invalid tools in lists from servers and files."""

import errno
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from typing_extensions import override

from repertory.catalogue.item import Item, Kind
from repertory.errors import SourceError
from repertory.indexing.scan import ScanResult, scan_source
from repertory.sources.configured import build_catalogue
from repertory.sources.folder_contents import FolderContents
from repertory.sources.reading.json_schema import MAX_DEFECTS, mended
from repertory.sources.reading_cache import Reading
from repertory.sources.source import Problem, Scan
from repertory.sources.tool_files import ToolFiles
from repertory.sources.tools import MAX_DESCRIPTION_LENGTH, MAX_TOOLS, tool_items
from repertory.text import UNFIT
from tests.support.builders import tool, write
from tests.support.scans import latest_scans

OBJECT = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}


def items(*tools: object) -> tuple[list[Item], list[Problem]]:
    """Convert the tools of a server named ``files``."""
    return tool_items("files", "config", tools, "origin")


def test_a_tool_becomes_an_item() -> None:
    """Known fields become attributes, unknown ones ``extra``, and some annotations become tags."""
    raw = {
        "name": "read_file",
        "title": "Read",
        "description": " Reads a file. ",
        "inputSchema": OBJECT,
        "outputSchema": {"type": "object"},
        "annotations": {"readOnlyHint": True},
        "_meta": {"x": 1},
    }
    [item], problems = items(raw)
    assert problems == []
    assert (item.id, item.kind, item.server) == ("files__read_file", Kind.TOOL, "files")
    assert (item.source, item.path) == ("config", "origin")
    assert item.description == "Reads a file."
    assert item.tags == ("read-only",)
    assert (item.input_schema, item.output_schema) == (OBJECT, {"type": "object"})
    assert item.extra == {
        "title": "Read", "annotations": {"readOnlyHint": True}, "_meta": {"x": 1}
    }  # fmt: skip


@pytest.mark.parametrize(
    "raw",
    [
        {"name": "a", "description": "A.", "input_schema": OBJECT},
        {"type": "function", "name": "a", "description": "A.", "parameters": OBJECT},
        {"type": "function", "function": {"name": "a", "description": "A.", "parameters": OBJECT}},
    ],
)
def test_tools_in_the_forms_of_other_apis_are_read(raw: dict[str, Any]) -> None:
    """Anthropic's and OpenAI's forms are read; MCP's ``inputSchema`` takes precedence."""
    [item], problems = items(raw)
    assert (item.name, item.description, item.input_schema) == ("a", "A.", OBJECT)
    assert (item.extra, problems) == ({}, [])
    [item], _ = items({"name": "a", "inputSchema": {}, "parameters": OBJECT})
    assert (item.input_schema, item.extra) == ({}, {"parameters": OBJECT})


@pytest.mark.parametrize("annotations", [None, 3, "readOnlyHint", [{}], {"readOnlyHint": "no"}])
def test_invalid_annotations_are_ignored(annotations: object) -> None:
    """They give no tags and no problem."""
    [item], problems = items({"name": "a", "annotations": annotations})
    assert (item.tags, problems) == ((), [])


@pytest.mark.parametrize("raw", [None, 3, [], {}, {"name": ""}, {"name": 1}, {"name": "x" * 129}])
def test_only_a_tool_without_a_usable_name_is_left_out(raw: object) -> None:
    """The next tool is loaded, and the problem names the bad one."""
    [item], [problem] = items(raw, {"name": "good"})
    assert item.name == "good"
    assert problem.severity == "error"
    assert problem.message.startswith("Tool 1 of the server files")


def deep(levels: int) -> dict[str, Any]:
    """Build a valid schema of a given depth."""
    schema: dict[str, Any] = {}
    for _ in range(levels):
        schema = {"items": schema}
    return schema


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        (None, "it is not an object"),
        ("text", "it is not an object"),
        ({"type": "objekt"}, "$.type"),
        ({"$schema": 7}, "$.$schema"),
        (deep(40), None),
        (deep(60) | {"$id": "slow:way"}, None),
        (deep(500), "nested too deeply"),
        ({"description": "x" * (1 << 20)}, "over the limit"),
    ],
)
@pytest.mark.parametrize("key", ["inputSchema", "outputSchema"])
def test_a_bad_schema_is_dropped_but_the_tool_is_kept(
    key: str, schema: object, reason: str | None
) -> None:
    """A warning names the schema and the reason."""
    [item], problems = items({"name": "a", key: schema})
    assert (item.input_schema or item.output_schema) == (None if reason else schema)
    assert [problem.severity for problem in problems] == (["warning"] if reason else [])
    assert all(str(reason) in problem.message and key in problem.message for problem in problems)


@pytest.mark.parametrize(
    ("bad", "kept", "place"),
    [
        ({"required": None}, {}, "$.required"),
        ({"required": ["q", "q"]}, {}, "$.required"),
        ({"properties": {"q": {"type": "text"}, "r": None}}, {"properties": {"q": {}}}, "r"),
        (
            {"properties": {"q": {"required": True, "title": "Q"}}},
            {"properties": {"q": {"title": "Q"}}},
            "$.properties.q.required",
        ),
        (
            {"anyOf": [{"required": "q"}, {"required": ["q"]}]},
            {"anyOf": [{}, {"required": ["q"]}]},
            "$.anyOf[0].required",
        ),
    ],
)
def test_only_a_bad_keyword_of_a_schema_is_dropped(
    bad: dict[str, Any], kept: dict[str, Any], place: str
) -> None:
    """Other parameters and keywords are kept, and the warning contains the JSON path."""
    [item], [problem] = items({"name": "a", "inputSchema": {"type": "object", **bad}})
    assert item.input_schema == {"type": "object", **kept}
    assert place in problem.message


def test_a_schema_with_too_many_bad_keywords_is_dropped() -> None:
    """The number of repairs, and so their time, is bounded."""
    names = (f"p{number}" for number in range(MAX_DEFECTS + 1))
    schema = {"properties": {name: {"required": True} for name in names}}
    [item], [problem] = items({"name": "a", "inputSchema": schema})
    assert item.input_schema is None
    assert "so it was left out" in problem.message


def test_control_characters_are_stripped_from_tools_with_a_warning() -> None:
    """They are removed from names, descriptions and all other fields."""
    raw = {
        "name": "re\x1b[0mad\n",
        "description": "a\x07b\ud800\nc",
        "inputSchema": {"description": "x\x1by"},
        "t\x00": ["\x9b1m"],
    }
    [item], problems = items(raw)
    assert (item.name, item.description) == ("re[0mad", "ab\nc")
    assert item.input_schema == {"description": "xy"}
    assert item.extra == {"t": ["1m"], "nameAsGiven": r'"re\u001b[0mad\n"'}
    assert [problem.message for problem in problems] == [
        f"The tool re[0mad has {UNFIT} in its {place}; they were left out."
        for place in ("name or description", "schemas or further fields")
    ]
    assert {problem.item for problem in problems} == {item.id}
    item.metadata_hash()


def test_windows_line_ends_are_accepted() -> None:
    """.NET programs write them. A lone carriage return is reported, because it can hide text."""
    raw = {
        "name": "read",
        "description": "Read a file.\r\nOr a part.\r\n",
        "inputSchema": {"properties": {"path": {"description": "Where\r\nit is"}}},
        "title": "Read\r\na file",
    }
    [item], problems = items(raw)
    assert problems == []
    assert item.description == "Read a file.\nOr a part."
    assert item.input_schema == {"properties": {"path": {"description": "Where\nit is"}}}
    assert item.extra == {"title": "Read\na file"}
    _, [problem] = items({**raw, "description": "Delete it.\rRead it."})
    assert UNFIT in problem.message


def test_huge_descriptions_are_cut_and_huge_extras_left_out() -> None:
    """Each exceeded limit gives a problem."""
    [item], problems = items({"name": "a", "description": "d" * 30_000, "icons": "i" * 100_000})
    assert len(item.description) == MAX_DESCRIPTION_LENGTH
    assert item.extra == {}
    assert len(problems) == 2


def test_of_two_tools_with_one_name_the_first_is_kept() -> None:
    """A warning reports the second one."""
    [item], [problem] = items({"name": "a", "description": "1"}, {"name": "a", "description": "2"})
    assert item.description == "1"
    assert (problem.severity, problem.item) == ("warning", "files__a")


def test_the_number_of_tools_is_limited() -> None:
    """Ten thousand tools are loaded, and the problem has the total number."""
    found, [problem] = items(*({"name": f"t{number}"} for number in range(MAX_TOOLS + 5)))
    assert len(found) == MAX_TOOLS
    assert "10,005 tools" in problem.message


_keywords = st.sampled_from(
    [
        *("$schema", "$ref", "$id", "type", "properties", "required", "items", "enum", "anyOf"),
        *("minimum", "minLength", "uniqueItems", "title", "default", "additionalProperties"),
        *("examples", "prefixItems", "pattern", "contains", "not", "if", "x-own"),
    ]
)
_schemas: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-2, 3)
    | st.sampled_from(["object", "string", "a", "http://json-schema.org/draft-07/schema#", 1.5]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_keywords, inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(_keywords, _schemas, max_size=4))
@example({"type": ["string", "string"]})
@example({"required": ["a", "a"]})
@example({"properties": {"type": {"minLength": True}}})
def test_the_fast_schema_check_agrees_with_the_meta_schema(schema: dict[str, Any]) -> None:
    """A schema is repaired exactly if jsonschema's full check of its draft rejects it."""
    draft: Any = jsonschema.Draft202012Validator
    if isinstance(schema.get("$schema", ""), str):
        draft = jsonschema.validators.validator_for(schema, default=draft)
    try:
        draft.check_schema(schema, format_checker=None)
        valid = True
    except jsonschema.SchemaError:
        valid = False
    assert (not mended(schema)[1]) == valid


def write_json(path: Path, value: object) -> Path:
    """Make a JSON file."""
    return write(path, value if isinstance(value, str) else json.dumps(value))


@pytest.mark.parametrize(
    ("value", "tool_id"),
    [
        ({"tools": [{"name": "t"}]}, "stem__t"),
        ([{"name": "t", "inputSchema": {}}], "stem__t"),
        ({"server": "s", "tools": [{"name": "t"}]}, "s__t"),
        ({"name": "n", "tools": [{"name": "t"}]}, "n__t"),
        ({"serverInfo": {"name": "i"}, "tools": [{"name": "t"}]}, "i__t"),
        ({"jsonrpc": "2.0", "id": 1, "result": {"tools": [{"name": "t"}]}}, "stem__t"),
        ([{"name": "t", "input_schema": {}}], "stem__t"),
        ([{"type": "function", "function": {"name": "t", "parameters": {}}}], "stem__t"),
        ({"tools": [{"type": "function", "function": {"name": "t"}}]}, "stem__t"),
    ],
)
def test_a_list_of_tools_is_recognised_in_every_form(
    tmp_path: Path, value: object, tool_id: str
) -> None:
    """The server's name comes from the file's content if possible, otherwise from its file name."""
    path = write_json(tmp_path / "stem.json", value)
    for root in (path, tmp_path):
        assert [item.id for item in ToolFiles(name="x", path=root).scan().items] == [tool_id]


def test_annotations_in_a_tool_file_are_read(tmp_path: Path) -> None:
    """They are read like the annotations in a server's answer."""
    annotations = {"readOnlyHint": False, "destructiveHint": True}
    path = write_json(tmp_path / "a.json", {"tools": [{"name": "t", "annotations": annotations}]})
    [item] = ToolFiles(name="x", path=path).scan().items
    assert (item.tags, item.extra) == (("destructive",), {"annotations": annotations})


@pytest.mark.parametrize(
    "value",
    [
        {"name": "pkg", "version": "1"},
        [{"name": "Ann", "age": 3}],
        [{"name": "Hammer", "description": "For nails.", "parameters": "none"}],
        {"tools": ["ruff"]},
        [],
        "// comments\n{}",
        "1",
    ],
)
def test_other_json_is_ignored_in_a_folder_but_rejected_as_a_named_file(
    tmp_path: Path, value: object
) -> None:
    """A file that a source names must contain a list of tools."""
    path = write_json(tmp_path / "a.json", value)
    found = ToolFiles(name="x", path=tmp_path).scan()
    assert (found.items, found.problems, found.unread_under) == ([], [], ())
    with pytest.raises(SourceError, match=r"a\.json"):
        ToolFiles(name="x", path=path).scan()


def test_a_broken_tool_file_removes_nothing_from_the_index(tmp_path: Path) -> None:
    """Its tools are unknown, so all items of the source are kept until it is fixed."""
    write_json(tmp_path / "good.json", {"tools": [{"name": "t"}]})
    write_json(tmp_path / "half.json", '{"server": "other",\n "tools": [{"name"')
    found = ToolFiles(name="x", path=tmp_path).scan()
    assert [item.id for item in found.items] == ["good__t"]
    assert [(problem.severity, problem.line) for problem in found.problems] == [("error", 2)]
    assert found.keeps("other__tool")


@pytest.mark.parametrize("text", ['[{"name": "b", "inputSchema": {', '{"server": "s"'])
def test_tools_of_a_file_are_kept_when_the_file_breaks(tmp_path: Path, text: str) -> None:
    """Whatever the broken file contains, its tools stay in later scans and in a later process."""
    write_json(tmp_path / "good.json", {"tools": [{"name": "t"}]})
    file = write_json(tmp_path / "list.json", [{"name": "b", "inputSchema": {}}])
    source = ToolFiles(name="x", path=tmp_path)
    assert len(source.scan().items) == 2
    later = ToolFiles(name="x", path=tmp_path)
    later.resume(source.memory(), lambda: False)
    file.write_text(text)
    for one in (source, source, later, later):
        scan = one.scan()
        assert scan.keeps("list__b")
        assert [problem.path for problem in scan.problems] == [str(file)]
    file.write_text('{"other": "JSON"}')
    assert not source.scan().keeps("list__b")


def test_a_broken_file_keeps_only_its_own_tools(tmp_path: Path) -> None:
    """Tools that another file no longer lists are deleted, also by a later process."""
    write_json(tmp_path / "good.json", {"tools": [{"name": "t"}, {"name": "u"}]})
    file = write_json(tmp_path / "list.json", {"tools": [{"name": "b"}]})
    source = ToolFiles(name="x", path=tmp_path)
    assert len(source.scan().items) == 3
    file.write_text("")
    write_json(tmp_path / "good.json", {"tools": [{"name": "t"}]})
    later = ToolFiles(name="x", path=tmp_path)
    later.resume(source.memory(), lambda: False)
    for one in (source, source, later, later):
        scan = one.scan()
        assert [item.id for item in scan.items] == ["good__t"]
        assert scan.keeps("list__b")
        assert not scan.keeps("good__u")
        assert [problem.path for problem in scan.problems] == [str(file)]


@pytest.mark.parametrize("content", [b"", b"\x00\x01"])
def test_an_empty_file_that_never_listed_tools_prevents_no_deletion(
    tmp_path: Path, content: bytes
) -> None:
    """In a folder, the file is only a problem; as a named file, it is an error."""
    (tmp_path / "empty.json").write_bytes(content)
    found = ToolFiles(name="x", path=tmp_path).scan()
    assert (len(found.problems), found.unread_under) == (1, ())
    with pytest.raises(SourceError, match=r"empty\.json"):
        ToolFiles(name="x", path=tmp_path / "empty.json").scan()


def test_a_broken_list_of_tools_is_reported_at_the_first_scan(tmp_path: Path) -> None:
    """Broken JSON that does not look like tools is not reported."""
    write_json(tmp_path / "list.json", '[{"name": "b", "inputSchema": {}},')
    write_json(tmp_path / "other.json", '{"name": ["description"')
    found = ToolFiles(name="x", path=tmp_path).scan()
    assert [Path(problem.path).name for problem in found.problems] == ["list.json"]


@pytest.mark.parametrize("bad", ['"\\ud800"', "NaN", "-Infinity", "9" * 5_000])
def test_a_value_that_is_not_valid_json_does_not_affect_other_tools(
    tmp_path: Path, bad: str
) -> None:
    """Some programs write such values as JSON; both tools are read."""
    text = '{"tools": [{"name": "a", "inputSchema": {"default": %s}}, {"name": "b"}]}' % bad  # noqa: UP031 - braces
    write_json(tmp_path / "s.json", text)
    assert [item.id for item in ToolFiles(name="x", path=tmp_path).scan().items] == ["s__a", "s__b"]


def test_two_files_of_one_server_are_merged(tmp_path: Path) -> None:
    """A tool in two files is kept once, and the problem names both files."""
    write_json(tmp_path / "a.json", {"server": "s", "tools": [{"name": "t"}, {"name": "u"}]})
    write_json(tmp_path / "b.json", {"server": "s", "tools": [{"name": "t"}, {"name": "v"}]})
    found = ToolFiles(name="x", path=tmp_path).scan()
    assert [item.id for item in found.items] == ["s__t", "s__u", "s__v"]
    [problem] = found.problems
    assert problem.path.endswith("b.json")
    assert "a.json" in problem.message


@pytest.mark.parametrize(
    "entry",
    [
        {"type": "mcp", "config": ".mcp.json", "trusted": True},
        {"type": "openapi", "name": "github", "path": "openapi.json"},
    ],
)
def test_a_tool_file_does_not_replace_a_tool_of_a_server(
    tmp_path: Path, entry: dict[str, object]
) -> None:
    """This holds although the file's source comes first and the file may name any server."""
    write_json(tmp_path / ".mcp.json", {"mcpServers": {"github": {"command": "gh"}}})
    issue = {"name": "create_issue", "inputSchema": {"type": "object"}}
    file = {"server": "github", "tools": [{**issue, "description": "Of a stranger."}]}
    write_json(tmp_path / "tools" / "github.json", file)
    entries: list[dict[str, object]] = [
        {"type": "tools", "path": "tools", "name": "files"},
        entry,
    ]
    catalogue = build_catalogue(entries, tmp_path, found=True)
    files, server = catalogue.sources
    own, _ = tool_items("github", "github", [{**issue, "description": "Of the server."}], "")
    scan = ScanResult(source=server, scan=Scan(items=own), error="", at=1.0)
    scans = latest_scans(catalogue, [scan_source(files), scan])
    assert scans.items["github__create_issue"].description == "Of the server."
    assert [one.sources for one in scans.problems] == [("files", "github")]


def test_items_are_kept_if_a_path_is_inaccessible(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error says so: the folder may be unreadable, or the file system unmounted."""

    def fails(*_: object, **__: object) -> os.stat_result:
        raise OSError(errno.ENOTCONN, "Transport endpoint is not connected")

    source = ToolFiles(name="tools", path=tmp_path / "share" / "tools")
    monkeypatch.setattr(os, "stat", fails)
    with pytest.raises(SourceError, match="items stay as they are"):
        source.scan()


class CountedItems(list[Item]):
    """Items that count how often all of them are read."""

    reads = 0

    @override
    def __iter__(self) -> Iterator[Item]:
        self.reads += 1
        return super().__iter__()


def test_changing_a_large_file_does_not_take_quadratic_time() -> None:
    """Two files may each list 10,000 tools with the same names."""
    source = ToolFiles(name="tools", path="tools")
    listed = {
        f"{server}.json": CountedItems(tool(f"{server}__{number}") for number in range(100))
        for server in ("one", "two")
    }
    contents = FolderContents(source.same_id)
    contents.replace({place: Reading(items=items) for place, items in listed.items()})
    contents.change({"one.json": Reading(items=[tool("one__0")])})
    assert len(list(contents.entries())) == 101
    assert all(items.reads < 10 for items in listed.values())

"""The tables, snippets and commands of the documents agree with the code."""

import json
import re
import tomllib
from pathlib import Path

import pytest
import typer
import yaml
from prometheus_client.metrics_core import Metric
from prometheus_client.parser import text_string_to_metric_families
from typer.core import TyperCommand, TyperGroup

from repertory.api import Session
from repertory.catalogue.policies import MAX_RULES
from repertory.catalogue.policy import MAX_PHRASE_LENGTH, MAX_PHRASES
from repertory.embedding.models import DEFAULT
from repertory.errors import ConfigurationError
from repertory.file_settings import MAX_SOURCES
from repertory.search import confidence
from repertory.search.inference import FIRST_CONFIDENCE, GOOD_ENOUGH
from repertory.search.query import MAX_QUERY_LENGTH
from repertory.sources.fetched import writing
from repertory.sources.openapi.operations import MAX_OPERATIONS
from repertory.sources.reading.files import FILE_LIMIT
from repertory.sources.reading.walk import MAX_DEPTH
from repertory.sources.registry import TYPES, build
from repertory.sources.tool_files import ToolFiles
from repertory.sources.tools import MAX_TOOLS
from repertory.values import MAX_LIMIT, SETTINGS, Setting
from repertory_admin.app import COMMANDS, app
from repertory_admin.exits import MEANINGS
from repertory_query.access.limits import MAX_ADDRESS_LENGTH, MAX_BODY_SIZE
from repertory_query.mcp.toolset_names import PATHS
from tests.support.exported_metrics import exported_text

ROOT = Path(__file__).parents[2]
PAGES = {
    path.relative_to(ROOT).as_posix(): path.read_text("utf-8")
    for pattern in ("*.md", "docs/*.md", "docs/hosts/*.md", "*/README.md", "clients/*/README.md")
    for path in sorted(ROOT.glob(pattern))
    if path.name != "CHANGELOG.md"  # it names commands that were removed
}
HELP = {"-h", "--help"}


def blocks(page: str, languages: str) -> list[str]:
    """The code blocks of a page in some languages."""
    found = re.findall(rf"^```(?:{languages})\n(.*?)^```", PAGES[page], re.DOTALL | re.MULTILINE)
    return [str(one) for one in found]


def rows(page: str, heading: str) -> list[str]:
    """The rows of the table with a heading."""
    _, _, rest = PAGES[page].partition(f"{heading}\n")
    return rest.partition("\n\n")[0].splitlines()[1:]


def test_every_setting_has_its_row() -> None:
    """The page of settings has the key, default and description of each, in their order."""

    def default(setting: Setting) -> str:
        value = DEFAULT.id if setting.field == "model" else setting.default
        if value in {None, ""}:
            return ""
        return f"`{value:g}`" if isinstance(value, float) else f"`{json.dumps(value)}`"

    expected = [
        f"| `{one.key}` | {default(one)} | {'no' if one.personal else 'yes'} | {one.doc} |"
        for one in SETTINGS.values()
    ]
    found = rows("docs/settings.md", "| key | default | project | meaning |")
    assert found == [re.sub(" +", " ", row.replace('"', "")) for row in expected]


def test_every_metric_has_its_row() -> None:
    """The page of operations has the type, labels and meaning of each, in their order."""

    def row(one: Metric) -> str:
        name = one.name + ("_total" if one.type == "counter" else "")
        labels = sorted({label for sample in one.samples for label in sample.labels} - {"le"})
        named = ", ".join(f"`{label}`" for label in labels)
        return f"| `{name}` | {one.type} | {named} | {one.documentation} |"

    families = text_string_to_metric_families(exported_text())
    ours = [one for one in families if one.name.startswith("repertory_")]
    expected = [row(one).replace("|  |", "| |") for one in ours if one.name[-8:] != "_created"]
    assert rows("docs/operations.md", "| metric | type | labels | meaning |") == expected


def test_every_exit_code_has_its_row() -> None:
    """The page of the command line has each exit code with the words of `--help`."""
    found = rows("docs/command-line.md", "| exit code | means |")
    assert found == [f"| {code} | {meaning} |" for code, meaning in MEANINGS.items()]


def test_every_type_of_source_has_its_rows() -> None:
    """The page of sources has each type, with the options that its entries accept."""
    kinds = "\n".join(rows("docs/sources.md", "| type | reads | discovered automatically |"))
    assert set(re.findall(r"^\| ([^|]*) \|", kinds, re.MULTILINE)) >= {"`skills`", "`documents`"}
    options: dict[str, set[str]] = {}
    for row in rows("docs/sources.md", "| type | options |"):
        _, types, named, _ = row.split("|")
        found = set(re.findall("`([a-z0-9_]+)`", named))
        options |= dict.fromkeys(re.findall("`([a-z-]+)`", types), found)
    assert options.keys() == set(TYPES)
    for kind in TYPES:
        assert f"`{kind}`" in kinds
        with pytest.raises(ConfigurationError) as refused:
            build({"type": kind, "name": "x", "unknown": 1}, ROOT)
        _, says, known = str(refused.value).partition("; it has ")
        if says:  # the internal option `store` is not for users
            assert options[kind] == {*known.rstrip(".").split(", ")} - {"store"}, kind


def test_the_limits_of_sources_are_those_of_the_code() -> None:
    """The page of sources has the numbers of the code."""
    sizes = (FILE_LIMIT, ToolFiles.file_limit, writing.MAX_FILE_SIZE, writing.MAX_TOTAL_SIZE)
    one, tools, file, total = (f"{size >> 20} MiB" for size in sizes)
    assert MAX_TOOLS == MAX_OPERATIONS
    found = rows("docs/sources.md", "| what | limit |")
    assert [row.split(" | ")[1].strip(" |") for row in found] == [
        one,
        tools,
        f"{MAX_DEPTH} levels",
        f"{MAX_TOOLS:,} tools",
        f"{writing.MAX_FILES:,} files of up to {file} each, {total} together",
        f"{MAX_SOURCES} sources, {MAX_RULES:,} policies",
        f"{MAX_PHRASES} each, of up to {MAX_PHRASE_LENGTH} characters",
    ]


def test_the_chosen_confidences_are_those_of_the_code() -> None:
    """The page about confidences has the numbers of the code."""
    text = " ".join(PAGES["docs/confidence.md"].split())
    fields = zip(
        ("the item's name", "the description", "headings and parameters", "the body"),
        (confidence.IN_NAME, confidence.IN_DESCRIPTION, confidence.IN_REST, confidence.IN_BODY),
        strict=True,
    )
    for field, (minimum, _) in fields:
        assert f"{minimum} for {field}" in text
    assert f"several words it is {confidence.MEANINGFUL} to {confidence.ALL_IN_NAME}." in text
    assert f"has at least {confidence.MISSPELT:.2f} and" in text
    assert f"gets at most {confidence.OPPOSITE}:" in text
    assert f"If no hit reaches {GOOD_ENOUGH} then" in text
    assert f"a confidence of at most {FIRST_CONFIDENCE}." in text


def test_every_rule_of_suspicion_has_its_row() -> None:
    """The page of suspicions has each rule of the code, and no other."""
    folder = ROOT / "shared" / "repertory" / "review"
    code = "".join(path.read_text("utf-8") for path in folder.glob("suspicious_*.py"))
    code += (folder / "suspicions.py").read_text("utf-8")
    cells = re.findall(r"^\| (`[^|]+) \|", PAGES["docs/suspicions.md"], re.MULTILINE)
    named = {name for cell in cells for name in re.findall("`([a-z-]+)`", cell)}
    assert named == {*re.findall(r'(?:rule|name)="([a-z-]+)"', code)}


def test_every_toolset_has_its_row() -> None:
    """The page about MCP has each further toolset, with its address."""
    found = rows("docs/mcp.md", "| toolset | tools | over HTTP |")
    cells = [tuple(part.strip(" `") for part in row.split("|")[1:-1:2]) for row in found]
    further = {(str(toolset), path) for path, toolset in PATHS.items() if path != "/mcp"}
    assert set(cells) == further


def test_every_method_of_a_session_is_named() -> None:
    """The page about Python names each method; `close` is a sentence."""
    named = set(re.findall(r"`(\w+)`", PAGES["docs/python.md"]))
    methods = {name for name in vars(Session) if not name.startswith("_")}
    assert methods - named == {"close"}
    assert "catalogue.search(" in PAGES["docs/python.md"]


def test_the_limits_of_a_server_are_named() -> None:
    """The page about HTTP has the numbers of the code."""
    text = PAGES["docs/http.md"].partition("## Errors and limits")[2].partition("\n## ")[0]
    numbers = (MAX_BODY_SIZE, MAX_ADDRESS_LENGTH, MAX_QUERY_LENGTH, MAX_LIMIT)
    for number in (*numbers, SETTINGS["requests_per_minute"].default):
        assert f" {number:,} " in text


@pytest.mark.parametrize("page", PAGES)
def test_every_snippet_can_be_parsed(page: str) -> None:
    """JSON, TOML, YAML and Python in code blocks have no syntax error."""
    for text in blocks(page, "json"):
        json.loads(text)
    for text in blocks(page, "toml"):
        tomllib.loads(text)
    for text in blocks(page, "yaml"):
        yaml.safe_load(text)
    for text in blocks(page, "python"):
        compile(text, page, "exec")


def command_lines(page: str) -> list[str]:
    """The commands of Repertory on a page, in code blocks and in sentences."""
    lines = [line for block in blocks(page, "sh|console") for line in block.splitlines()]
    prose = re.sub(r"^```.*?^```", "", PAGES[page], flags=re.DOTALL | re.MULTILINE)
    lines += [" ".join(one.split()) for one in re.findall(r"`([^`]+)`", prose)]
    found = [re.search(r"(?:^|[\s(/])repertory ([a-z].*)", line) for line in lines]
    return [re.split(r"\s#|[|>&;)]", one[1])[0] for one in found if one]


def command_of(words: list[str]) -> TyperCommand | None:
    """The command that a line names; None if it names none or a group."""
    if not words or words[0] not in COMMANDS:
        return None
    root = typer.main.get_group(app)
    command = root.resolve_command(typer.Context(root), words[:1])[1]
    if isinstance(command, TyperGroup):
        if not words[1:] or words[1].startswith("-"):
            return None
        assert words[1] in command.commands, words
        command = command.commands[words[1]]
    assert isinstance(command, TyperCommand)
    return command


@pytest.mark.parametrize("page", PAGES)
def test_every_option_of_a_command_exists(page: str) -> None:
    """A command on a page has only options that the command accepts."""
    for line in command_lines(page):
        if command := command_of(line.split()):
            known = {one for each in command.params for one in (*each.opts, *each.secondary_opts)}
            named = re.findall(r"(?<=\s)--?[a-z][a-z0-9-]*", line)
            assert {*named} <= known | HELP, line


def test_the_commands_of_the_pages_are_found() -> None:
    """The two tests above read commands in blocks, in sentences and after other programs."""
    assert "keys create ops --scope admin" in "\n".join(command_lines("deploy/README.md"))
    assert "explain QUERY ITEM" in command_lines("docs/command-line.md")
    assert sum(command_of(line.split()) is not None for line in command_lines("README.md")) > 10

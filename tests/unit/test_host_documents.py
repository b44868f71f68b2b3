"""Editing one entry in the text of a configuration file changes nothing else."""

import functools
import json
import tomllib
from collections.abc import Callable
from typing import Any

import pytest
import yaml
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from repertory.agent_hosts.document import (
    Syntax,
    entry_in,
    secrets_in,
    with_entry,
    without_entry,
)
from repertory.agent_hosts.edits import EditError
from repertory.sources.reading.jsonc import plain_json
from tests.support.generated_documents import FILES, KEYS

ENTRY = {"command": "/opt/Zoë's/repertory", "args": ["mcp", "--directory", 'a"b\\c'], "on": True}
OTHER = {"command": "x", "headers": {"Authorization": "Bearer ${KEY}"}}
PARSERS: dict[Syntax, Callable[[str], Any]] = {
    Syntax.JSON: lambda text: json.loads(plain_json(text) if text.strip() else "{}"),
    Syntax.TOML: tomllib.loads,
    Syntax.YAML: lambda text: yaml.safe_load(text) or {},
}


def values_with(syntax: Syntax, text: str, entry: object) -> object:
    """The values of a text after setting the entry."""
    values = PARSERS[syntax](text)
    holder, name = KEYS[syntax]
    values[holder] = {**(values.get(holder) or {}), name: entry}
    return values


@pytest.mark.parametrize("syntax", Syntax)
@settings(max_examples=60)
@given(data=st.data())
def test_an_entry_changes_nothing_else(syntax: Syntax, data: st.DataObject) -> None:
    """Other values stay, and a new entry only adds characters to the text."""
    text = data.draw(FILES[syntax])
    before = text.encode()
    after = with_entry(before, syntax, KEYS[syntax], ENTRY)
    assert PARSERS[syntax](after.decode()) == values_with(syntax, text, ENTRY)
    if entry_in(before, syntax, KEYS[syntax]) is None:
        added = iter(after.decode())
        assert all(character in added for character in "".join(text.split()))


@pytest.mark.parametrize("syntax", Syntax)
@settings(max_examples=60)
@given(data=st.data())
def test_removing_an_added_entry_gives_the_same_text(syntax: Syntax, data: st.DataObject) -> None:
    """So later edits stay, too. Only white space in an empty holder may differ."""
    text = data.draw(FILES[syntax])
    before = text.encode()
    holder, _ = KEYS[syntax]
    held = PARSERS[syntax](text).get(holder)
    assume(entry_in(before, syntax, KEYS[syntax]) is None)
    after = with_entry(before, syntax, KEYS[syntax], ENTRY)
    back = without_entry(after, syntax, KEYS[syntax], keep=held is not None)
    assert PARSERS[syntax](back.decode()) == PARSERS[syntax](text)
    if PARSERS[syntax](text) and held != {}:
        assert back.decode() == text


@pytest.mark.parametrize("syntax", Syntax)
@settings(max_examples=30)
@given(data=st.data())
def test_an_entry_can_be_replaced_again_and_again(syntax: Syntax, data: st.DataObject) -> None:
    """The entry that is read equals the entry that was written."""
    before = data.draw(FILES[syntax]).encode()
    once = with_entry(before, syntax, KEYS[syntax], OTHER)
    assert entry_in(once, syntax, KEYS[syntax]) == OTHER
    other = with_entry(once, syntax, KEYS[syntax], ENTRY)
    assert entry_in(other, syntax, KEYS[syntax]) == ENTRY


@pytest.mark.parametrize(
    ("syntax", "text", "message", "line"),
    [
        (Syntax.JSON, '{"a": 1,\n "b" 2}', "the JSON cannot be read: Expecting ':' delimiter", 2),
        (Syntax.JSON, "\n[1]", "it is not a JSON object", 2),
        (Syntax.JSON, '{\n"mcpServers": []}', "mcpServers is not an object", 2),
        (Syntax.JSON, "[" * 100_000, "the JSON is nested too deeply", None),
        (Syntax.JSON, f'{{"a": {"1" * 5_000}}}', "a number in the JSON has too many digits", None),
        (Syntax.TOML, "a = 1\nb =\n", "the TOML cannot be read: Invalid value", 2),
        (Syntax.TOML, "mcp_servers = { a = {} }", "without changing more of it", None),
        (Syntax.TOML, "[mcp_servers]\nrepertory.url = 'x'", "is not written as a table", None),
        (Syntax.YAML, "a: 1\n  b: 2\n", "the YAML cannot be read", 2),
        (Syntax.YAML, "- a\n", "it is not a YAML mapping", 1),
        (Syntax.YAML, "a: &x 1\nb: *x\n", "an alias (*name) is not allowed", 2),
        (Syntax.YAML, "extensions: none\n", "extensions is not a YAML mapping", 1),
        (Syntax.YAML, "a: 1\n---\nb: 2\n", "it holds a second document", 2),
    ],
)
def test_a_text_that_cannot_be_edited_is_refused(
    syntax: Syntax, text: str, message: str, line: int | None
) -> None:
    """The error has the line."""
    with pytest.raises(EditError) as raised:
        with_entry(text.encode(), syntax, KEYS[syntax], ENTRY)
    assert message in str(raised.value)
    assert raised.value.line == line


def test_other_encodings_are_refused() -> None:
    """An edit would damage a text that is not UTF-8."""
    with pytest.raises(EditError, match="it is not UTF-8 text"):
        with_entry('{"a": "é"}'.encode("latin-1"), Syntax.JSON, KEYS[Syntax.JSON], ENTRY)


@pytest.mark.parametrize(
    ("syntax", "text"),
    [
        (Syntax.TOML, '[mcp_servers.a.env]\nKEY = """\nline one\nline two\n"""\n'),
        (
            Syntax.YAML,
            "extensions:\n  a:\n    envs:\n      KEY: |\n        line one\n        line two\n",
        ),
        (Syntax.JSON, '{"a": {"headers": {"KEY": "line one\\nline two"}}}'),
    ],
)
def test_each_line_of_a_secret_is_hidden(syntax: Syntax, text: str) -> None:
    """A displayed difference has the lines around our entry, which may contain secrets."""
    found = secrets_in(text.encode(), syntax)
    shown = [line for line in text.splitlines() if "line" in line]
    assert shown
    for line in shown:
        assert "line" not in functools.reduce(
            lambda left, secret: left.replace(secret, "****"), sorted(found, key=len)[::-1], line
        )


@pytest.mark.parametrize(
    ("syntax", "text"),
    [
        (Syntax.JSON, '{"a": {"oauth": {"clientId": "me", "clientSecret": "s3cret"}}}'),
        (Syntax.JSON, '{"a": {"auth": {"CLIENT_ID": "me", "CLIENT_SECRET": "s3cret"}}}'),
        (Syntax.JSON, '{"provider": {"options": {"apiKey": "s3cret", "url": "https://x"}}}'),
        (Syntax.TOML, 'bearer_token = "s3cret"\nbearer_token_env_var = "TOKEN_OF_A"\n'),
        (Syntax.JSON, '{"args": ["-y", "notes", "--api-key", "s3cret", "--verbose"]}'),
        (Syntax.JSON, '{"args": ["-y", "notes", "--api-key=s3cret", "--api-key=${KEY}"]}'),
        (Syntax.JSON, '{"args": ["mcp-remote", "https://x", "--header", "s3cret"]}'),
        (Syntax.TOML, 'args = ["-H", "s3cret", "token"]\n'),
        (Syntax.JSON, '{"url": "https://x/mcp?team=red&apiKey=s3cret"}'),
    ],
)
def test_a_value_whose_key_names_a_secret_is_hidden(syntax: Syntax, text: str) -> None:
    """Hosts keep the secrets of OAuth clients and of models beside their servers.

    Servers also get secrets as arguments and in URLs.
    """
    assert secrets_in(text.encode(), syntax) == {"s3cret"}


def test_a_comment_after_a_removed_entry_stays() -> None:
    """A comment above the next table or key belongs to that one."""
    text = "[mcp_servers.repertory]\ncommand = 'x'\n\n# about b\n[mcp_servers.b]\ncommand = 'y'\n"
    after = without_entry(text.encode(), Syntax.TOML, KEYS[Syntax.TOML], keep=True).decode()
    assert after == "\n# about b\n[mcp_servers.b]\ncommand = 'y'\n"
    text = "extensions:\n  repertory:\n    cmd: x\n\n  # about b\n  b: {}\n"
    after = without_entry(text.encode(), Syntax.YAML, KEYS[Syntax.YAML], keep=True).decode()
    assert after == "extensions:\n\n  # about b\n  b: {}\n"


def test_tables_within_an_entry_belong_to_it() -> None:
    """They are replaced and removed with the entry."""
    text = "[mcp_servers.repertory]\nurl = 'x'\n[a]\n[mcp_servers.repertory.env]\nB = 'c'\n[d]\n"
    after = with_entry(text.encode(), Syntax.TOML, KEYS[Syntax.TOML], OTHER)
    assert tomllib.loads(after.decode()) == {
        "mcp_servers": {"repertory": OTHER},
        "a": {},
        "d": {},
    }
    assert without_entry(text.encode(), Syntax.TOML, KEYS[Syntax.TOML], keep=False) == b"[a]\n[d]\n"


@pytest.mark.parametrize(
    "text",
    [
        "[mcp_servers.repertory]\nx = [\n" + "[1],\n" * 30_000 + "]\n",
        "".join(f"[mcp_servers.repertory.a{number}]\nx = 1\n" for number in range(10_000)),
    ],
)
def test_tables_are_found_in_linear_time(text: str) -> None:
    """An untrusted project may have such a file. In quadratic time, it would take an hour."""
    after = with_entry(text.encode(), Syntax.TOML, KEYS[Syntax.TOML], OTHER)
    assert tomllib.loads(after.decode()) == {"mcp_servers": {"repertory": OTHER}}


@pytest.mark.parametrize(
    "value",
    [
        '"""\n[mcp_servers.repertory]\n\\""" \n[mcp_servers.repertory]""""',
        "'''\n[mcp_servers.repertory]\n''''",
        "[ # ]\n[1], # [\n['[', \"]\"],\n]",
        '{ a = "}", b = [\n["[x]"]\n] }',
        r'"\\"',
    ],
)
def test_brackets_in_values_begin_no_table(value: str) -> None:
    """They may be in multi-line strings, comments, lists and inline tables."""
    text = f"a = {value}\n[mcp_servers.repertory] # x\nb = {value}\n[c]\n"
    values = tomllib.loads(text)
    after = with_entry(text.encode(), Syntax.TOML, KEYS[Syntax.TOML], OTHER).decode()
    assert tomllib.loads(after) == {**values, "mcp_servers": {"repertory": OTHER}}
    assert after.startswith(f"a = {value}\n[mcp_servers.repertory]\n")
    assert after.endswith("\n[c]\n")


def test_a_comment_beside_a_removed_entry_stays() -> None:
    """The object that held the entry stays, because the comment is the user's."""
    text = '{\n  "mcpServers": {\n    // mine\n    "repertory": {}\n  }\n}\n'
    after = without_entry(text.encode(), Syntax.JSON, KEYS[Syntax.JSON], keep=False).decode()
    assert after == '{\n  "mcpServers": {\n    // mine\n  }\n}\n'


@pytest.mark.parametrize(
    ("syntax", "text", "expected"),
    [
        (
            Syntax.JSON,
            '{\n  "mcpServers": {\n    "a": {} // about a\n    // the end\n  }\n}\n',
            '{\n  "mcpServers": {\n    "a": {}, // about a\n    "repertory": {\n'
            '      "url": "x"\n    }\n    // the end\n  }\n}\n',
        ),
        (
            Syntax.JSON,
            '{\n  "mcpServers": {\n    "a": {}, /* about a */\n  },\n}\n',
            '{\n  "mcpServers": {\n    "a": {}, /* about a */\n    "repertory": {\n'
            '      "url": "x"\n    },\n  },\n}\n',
        ),
        (
            Syntax.TOML,
            "[mcp_servers.a]\nurl = 'a' # about a\n",
            "[mcp_servers.a]\nurl = 'a' # about a\n\n[mcp_servers.repertory]\nurl = \"x\"\n",
        ),
        (
            Syntax.YAML,
            "extensions:\n  a:\n    b: |\n      text\n# about c\nc: 1\n",
            "extensions:\n  a:\n    b: |\n      text\n  repertory:\n    url: x\n# about c\nc: 1\n",
        ),
        (
            Syntax.YAML,
            "extensions:\n  a: {} # about a\nc: 1\n",
            "extensions:\n  a: {} # about a\n  repertory:\n    url: x\nc: 1\n",
        ),
    ],
)
def test_a_new_entry_is_the_last_and_comments_keep_their_places(
    syntax: Syntax, text: str, expected: str
) -> None:
    """A comment at the end of a line belongs to the line, one above a key to this key."""
    after = with_entry(text.encode(), syntax, KEYS[syntax], {"url": "x"})
    assert after.decode() == expected
    assert without_entry(after, syntax, KEYS[syntax], keep=True).decode() == text

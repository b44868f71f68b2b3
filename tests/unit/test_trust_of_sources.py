"""Any type of source can need trust, also one that Repertory does not know."""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from typing_extensions import override

from repertory.catalogue.item import Item
from repertory.errors import UsageError
from repertory.project.directory_catalogue import DirectoryCatalogue
from repertory.project.trust_requests import advice, defined_by, described, known_as, untrusted
from repertory.project.workspace import Workspace
from repertory.settings import load
from repertory.sources import registry
from repertory.sources.source import Scan, Source
from tests.support.builders import write

TYPE = "feeds"


class Feed(Source):
    """A feed that a file defines."""

    type = TYPE
    name = "news"
    location = "https://feeds.example/news"
    needs_trust = True

    def __init__(self, *, trusted: bool) -> None:
        self.is_trusted = trusted

    @override
    def identity(self) -> Mapping[str, Any]:
        return {"type": self.type, "name": self.name}

    @override
    def scan(self) -> Scan:
        return Scan(items=list[Item]())


class Feeds(ModuleType):
    """The module of the type; ``registry`` describes its functions."""

    def build(self, entry: Mapping[str, Any], _base: Path) -> list[Source]:
        """Build the source of an entry."""
        return [Feed(trusted=entry["trusted"])]

    def files_to_trust(self, entry: Mapping[str, Any], base: Path) -> list[Path]:
        """Return the file of an entry."""
        return [base / entry["file"]]


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    """A project with a source of a type that Repertory does not have."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setitem(registry._BUILDERS, TYPE, TYPE)
    monkeypatch.setitem(sys.modules, TYPE, Feeds(TYPE))
    (tmp_path / "repertory.toml").write_text(f'[[sources]]\ntype = "{TYPE}"\nfile = "my.feeds"\n')
    (tmp_path / "my.feeds").write_text("news")
    return Workspace(load({"data_dir": str(tmp_path / "data")}, tmp_path, {}), tmp_path)


def test_a_path_that_the_system_rejects_is_reported_like_a_missing_one(
    workspace: Workspace,
) -> None:
    """A name that is too long gives the error for a path that does not exist."""
    path = workspace.directory / ("x" * 300)  # too long for the name of a file
    catalogue = DirectoryCatalogue(workspace.settings, workspace.directory, (path,), "key")
    assert catalogue.searched() == ()
    with pytest.raises(UsageError, match="is neither a folder"):
        catalogue.entries()


def test_the_file_of_a_source_is_offered_until_it_is_trusted(workspace: Workspace) -> None:
    """The advice names the sources and the command that trusts their file."""
    file = workspace.directory / "my.feeds"
    found = untrusted(workspace)
    assert (found.files, found.sources) == ([file], {"news"})
    assert f"news.\nTo let them be run and indexed: repertory config trust {file}" in advice(found)
    workspace.trust.trust(file)
    assert advice(untrusted(workspace)) == ""


def test_a_source_that_a_trusted_file_defines_needs_no_other_trust(workspace: Workspace) -> None:
    """Trusting another file with a source of the same name would change nothing."""
    folder = workspace.directory
    entry = (folder / "repertory.toml").read_text()
    write(folder / "repertory.toml", entry + entry.replace("my.feeds", "other.feeds"))
    write(folder / "other.feeds", "news")
    both = Workspace(load({"data_dir": str(folder / "data")}, folder, {}), folder)
    assert untrusted(both).files == [folder / "my.feeds", folder / "other.feeds"]
    both.trust.trust(folder / "other.feeds")
    assert advice(untrusted(both)) == ""


def test_a_link_to_a_file_is_known_as_the_file(workspace: Workspace) -> None:
    """The target of a configured link is known as the link's path; other files stay unchanged."""
    file = workspace.directory / "my.feeds"
    link, other = workspace.directory / "link.feeds", workspace.directory / "other.feeds"
    link.symlink_to("my.feeds")
    assert known_as(link, workspace) == known_as(file, workspace) == [file]
    file.rename(other)
    file.symlink_to("other.feeds")
    assert known_as(other, workspace) == [file]
    assert known_as(workspace.directory / "none", workspace) == [workspace.directory / "none"]


def test_trusting_a_file_shows_the_sources_that_it_defines(workspace: Workspace) -> None:
    """A source is shown with its location; a file that defines no source is refused."""
    sources = defined_by(workspace.directory / "my.feeds", workspace)
    assert described(sources) == "news (calls https://feeds.example/news)"
    for other in ("missing", "notes.json"):
        (workspace.directory / "notes.json").write_text("{}")
        with pytest.raises(UsageError, match="name an MCP configuration"):
            defined_by(workspace.directory / other, workspace)


def test_trusting_a_server_shows_the_variables_that_it_is_given(workspace: Workspace) -> None:
    """Variables in every field are shown: a program or remote server would get their values."""
    servers = {
        "remote": {"url": "https://elsewhere.example/mcp", "headers": {"X": "a ${env:TOKEN:-b}"}},
        "local": {"command": "${userHome}/x", "args": ["${KEY}"], "env": {"A": "${TOKEN}"}},
        "asking": {"command": "x", "args": ["${input:api-key}"]},
        "plain": {"command": "x", "env": {"A": "b"}},
    }
    (workspace.directory / ".mcp.json").write_text(json.dumps({"mcpServers": servers}))
    assert described(defined_by(workspace.directory / ".mcp.json", workspace)) == (
        "remote (calls https://elsewhere.example/mcp with TOKEN), "
        "local (runs ${userHome}/x with KEY, TOKEN), asking (runs x with MCP_INPUT_API_KEY), "
        "plain (runs x)"
    )

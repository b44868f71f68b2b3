"""A discovered MCP server never runs without trust, whatever the files of a project say."""

import json
import sys
from pathlib import Path

import pytest

from repertory.errors import ConfigurationError
from repertory.local.one_shot import Repertory
from repertory.settings import load
from repertory.sources.registry import digest_to_trust
from tests.support.query_service import MODEL

pytestmark = pytest.mark.usefixtures("own_home")


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A cloned project whose MCP server creates a file when it is started."""
    project = tmp_path / "clone"
    project.mkdir()
    server = {"command": "sh", "args": ["-c", f"touch {tmp_path / 'RAN'}"]}
    (project / ".mcp.json").write_text(json.dumps({"mcpServers": {"evil": server}}))
    return project


def ran(clone: Path, **flags: object) -> bool:
    """Whether indexing the clone starts its server."""
    given = {"data_dir": str(clone.parent / "data"), "model": MODEL, "mcp_timeout": 5.0} | flags
    with Repertory(load(given, clone, {}), clone) as repertory:
        report = repertory.index(lambda *_: None)
    (evil,) = [source for source in report.stats.sources if source.name == "evil"]
    assert evil.error
    return (clone.parent / "RAN").exists()


def test_a_discovered_configuration_is_not_run(clone: Path) -> None:
    """It does not run either if the project's own configuration names it."""
    assert not ran(clone)
    (clone / "repertory.toml").write_text('[[sources]]\ntype = "mcp"\nconfig = ".mcp.json"\n')
    assert not ran(clone)


def test_a_project_cannot_trust_itself(clone: Path) -> None:
    """``trusted = true``, its own data directory and its own Qdrant are all refused."""
    config = clone / "repertory.toml"
    config.write_text('[[sources]]\ntype = "mcp"\nconfig = ".mcp.json"\ntrusted = true\n')
    with pytest.raises(ConfigurationError, match="trust"):
        ran(clone)
    config.write_text('data_dir = ".d"\n')
    with pytest.raises(ConfigurationError, match="data_dir"):
        ran(clone)
    config.write_text('[qdrant]\nurl = "http://elsewhere"\n')
    with pytest.raises(ConfigurationError, match=r"qdrant\.url"):
        ran(clone)


def test_naming_a_file_trusts_only_its_servers(clone: Path, tmp_path: Path) -> None:
    """Servers that the user's configuration does not name are not trusted."""
    mine = tmp_path / "mine.toml"
    mine.write_text("[search]\nlimit = 5\n")
    assert not ran(clone, config=str(mine))
    mine.write_text(f'[[sources]]\ntype = "mcp"\nconfig = "{clone / ".mcp.json"}"\n')
    assert ran(clone, config=str(mine))


def test_a_trusted_configuration_runs_until_it_changes(clone: Path) -> None:
    """Trust in a whole file covers exactly its bytes."""
    flags = {"data_dir": str(clone.parent / "data"), "model": MODEL}
    with Repertory(load(flags, clone, {}), clone) as repertory:
        repertory.workspace.trust.trust(clone / ".mcp.json")
    assert ran(clone)
    (clone.parent / "RAN").unlink()
    (clone / ".mcp.json").write_text((clone / ".mcp.json").read_text() + "\n")
    assert not ran(clone)


def test_other_entries_of_a_server_file_may_change(clone: Path) -> None:
    """Claude Code writes to the file while it runs; a changed server needs new trust."""
    file = clone / ".mcp.json"
    flags = {"data_dir": str(clone.parent / "data"), "model": MODEL}
    with Repertory(load(flags, clone, {}), clone) as repertory:
        digest = digest_to_trust(file, file.read_bytes())
        repertory.workspace.trust.trust(file, digest, of=digest_to_trust)
    document = json.loads(file.read_text())
    file.write_text(json.dumps({"numStartups": 2, **document}))
    assert ran(clone)
    (clone.parent / "RAN").unlink()
    next(iter(document["mcpServers"].values()))["env"] = {"A": "b"}
    file.write_text(json.dumps(document))
    assert not ran(clone)


def test_an_unreadable_configuration_keeps_its_items(clone: Path) -> None:
    """The items of its servers are kept until it is readable again."""
    config = clone / ".mcp.json"
    server = {"command": sys.executable, "args": ["-m", "mcp_server_time"]}
    whole = json.dumps({"mcpServers": {"time": server}})
    config.write_text(whole)
    flags = {"data_dir": str(clone.parent / "data"), "model": MODEL}
    with Repertory(load(flags, clone, {}), clone) as repertory:
        repertory.workspace.trust.trust(config)
        before = repertory.index(lambda *_: None).stats
        assert before.items == 2
        config.write_text(whole[:20])
        during = repertory.index(lambda *_: None).stats
        assert (during.items, during.collection) == (2, before.collection)
        assert [one.name for one in during.sources if one.is_failing or one.stale] == ["time"]
        assert any(str(config) in problem.message for problem in during.problems)
        config.write_text(whole)
        after = repertory.index(lambda *_: None)
    assert (after.stats.items, after.embedded) == (2, 0)
    assert not [one.name for one in after.stats.sources if one.is_failing or one.stale]

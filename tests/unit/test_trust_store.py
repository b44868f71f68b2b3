"""Trust in configurations."""

import json
import os
import sys
from itertools import chain
from pathlib import Path

import pytest
import typer

from repertory.data_directory import TRUSTED
from repertory.errors import StoreError, UsageError
from repertory.settings import PROJECT_FILE
from repertory.sources.registry import digest_to_trust
from repertory.trust import TrustStore, digest_of
from repertory_admin.commands.config import trust
from repertory_admin.commands.init import init
from tests.support.at_once import answers_at_once
from tests.support.builders import write

TOO_LONG = "x" * 300  # as the name of a file
# Trusts files one after the other.
TRUST = """
import sys
from pathlib import Path
from repertory.trust import TrustStore
store, *files = map(Path, sys.argv[1:])
print("ready", flush=True)
sys.stdin.readline()
for file in files:
    TrustStore(store).trust(file)
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """A configuration file."""
    path = tmp_path / "project" / ".mcp.json"
    write(path, "{}")
    return path


def test_a_file_can_be_trusted_and_its_trust_revoked(tmp_path: Path, config: Path) -> None:
    """Trust and its revocation apply in every process."""
    path = tmp_path / "data" / "trust.json"
    assert not TrustStore(path).is_trusted(config)
    TrustStore(path).trust(config)
    assert TrustStore(path).is_trusted(config)
    TrustStore(path).revoke(config)
    assert not TrustStore(path).is_trusted(config)
    assert {file.name for file in path.parent.iterdir()} <= {"trust.json", "trust.json.lock"}


def test_files_that_are_trusted_concurrently_are_all_trusted(tmp_path: Path) -> None:
    """All projects and commands of a user share one store."""
    path = tmp_path / "data" / "trust.json"
    files = [[tmp_path / f"{name}{number}.json" for number in range(20)] for name in "abc"]
    for file in chain(*files):
        file.write_text("{}")
    answers_at_once([[sys.executable, "-c", TRUST, str(path), *map(str, own)] for own in files])
    assert all(map(TrustStore(path).is_trusted, chain(*files)))


def test_a_changed_file_is_not_trusted(tmp_path: Path, config: Path) -> None:
    """A changed byte or a deleted file ends the trust."""
    store = TrustStore(tmp_path / "trust.json")
    store.trust(config)
    config.write_text("{ }")
    assert not store.is_trusted(config)
    config.write_text("{}")
    assert store.is_trusted(config)
    config.unlink()
    assert not store.is_trusted(config)


def test_a_file_is_trusted_under_any_path(
    tmp_path: Path, config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A relative path and a path through a linked folder are the same file; a copy is not."""
    store = TrustStore(tmp_path / "trust.json")
    monkeypatch.chdir(config.parent)
    store.trust(Path(".mcp.json"))
    (tmp_path / "link").symlink_to(config.parent)
    copy = tmp_path / "copy.json"
    copy.write_bytes(config.read_bytes())
    assert store.is_trusted(config)
    assert store.is_trusted(tmp_path / "link" / ".mcp.json")
    assert not store.is_trusted(copy)


def test_a_link_in_a_clone_to_a_trusted_file_is_not_trusted(tmp_path: Path, config: Path) -> None:
    """Relative commands and folders in the file would be resolved inside the clone."""
    store = TrustStore(tmp_path / "trust.json")
    store.trust(config)
    (tmp_path / "clone").mkdir()
    (tmp_path / "clone" / ".mcp.json").symlink_to(config)
    assert not store.is_trusted(tmp_path / "clone" / ".mcp.json")


@pytest.mark.parametrize("content", [b"", b"\xff", b"[]", b'{"a": 1}'])
def test_a_corrupt_store_trusts_nothing(tmp_path: Path, config: Path, content: bytes) -> None:
    """It is overwritten when a file is trusted again."""
    path = tmp_path / "trust.json"
    path.write_bytes(content)
    store = TrustStore(path)
    assert not store.is_trusted(config)
    store.trust(config)
    assert store.is_trusted(config)


def test_a_missing_file_cannot_be_trusted(tmp_path: Path) -> None:
    """Revoking its trust has no effect."""
    store = TrustStore(tmp_path / "trust.json")
    with pytest.raises(UsageError, match=r"none\.json cannot be trusted"):
        store.trust(tmp_path / "none.json")
    store.revoke(tmp_path / "none.json")
    assert not (tmp_path / "trust.json").exists()


def test_an_unwritable_store_is_an_error(tmp_path: Path, config: Path) -> None:
    """The message names the store's file."""
    (tmp_path / "data").write_text("a file")
    with pytest.raises(StoreError, match=r"trust\.json cannot be written"):
        TrustStore(tmp_path / "data" / "trust.json").trust(config)


def test_trust_is_checked_for_the_content_that_was_read(tmp_path: Path, config: Path) -> None:
    """A caller that has read a file checks these bytes, whatever the file contains now."""
    store = TrustStore(tmp_path / "trust.json")
    content = config.read_bytes()
    store.trust(config)
    config.write_text("{ }")
    assert store.covers(config, content)
    assert not store.covers(config, config.read_bytes())


def test_a_part_of_a_file_can_be_trusted(tmp_path: Path, config: Path) -> None:
    """Changes of other parts keep the trust, but the whole file is not trusted."""

    def of(_: Path, content: bytes) -> str:
        return f"part:{digest_of(content.partition(b'#')[0])}"

    store = TrustStore(tmp_path / "trust.json")
    config.write_text("a#1")
    store.trust(config)
    assert store.is_trusted(config, of)  # an earlier version of Repertory trusted whole files
    config.write_text("a#2")
    assert not store.is_trusted(config, of)
    store.trust(config, of(config, b"a#0"), of=of)
    config.write_text("a#3")
    assert store.is_trusted(config, of)
    assert not store.is_trusted(config)
    config.write_text("b#3")
    assert not store.is_trusted(config, of)
    with pytest.raises(UsageError, match="changed while it was read"):
        store.trust(config, of(config, b"a"), of=of)


def test_only_the_version_that_was_shown_is_trusted(tmp_path: Path, config: Path) -> None:
    """A file that changes after it was shown is refused."""
    store, shown = TrustStore(tmp_path / "trust.json"), digest_of(config.read_bytes())
    config.write_text("{ }")
    with pytest.raises(UsageError, match="changed while it was read"):
        store.trust(config, shown)
    assert not store.is_trusted(config)


def test_an_environment_file_is_not_trusted_as_a_configuration(
    tmp_path: Path, config: Path
) -> None:
    """Naming another configuration as ``envFile`` does not allow that configuration to run."""
    store, other = TrustStore(tmp_path / "trust.json"), tmp_path / "repertory.toml"
    other.write_text("")
    store.trust(config, environments=[other, tmp_path / "missing.env", tmp_path / TOO_LONG])
    assert store.is_trusted(config)
    assert not store.is_trusted(other)


def test_a_pipe_is_not_trusted(tmp_path: Path) -> None:
    """It is not read, because reading could block forever."""
    os.mkfifo(tmp_path / "pipe")
    assert not TrustStore(tmp_path / "trust.json").is_trusted(tmp_path / "pipe")


@pytest.mark.usefixtures("own_home")
def test_init_trusts_only_the_configuration_that_it_has_shown(
    tmp_path: Path, config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that changes while the question is open is not trusted."""
    config.write_text('{"mcpServers": {"notes": {"command": "notes"}}}')

    def agreed(_: str) -> bool:
        config.write_text('{"mcpServers": {"notes": {"command": "evil"}}}')
        return True

    for stream in (sys.stdin, sys.stdout):
        monkeypatch.setattr(stream, "isatty", lambda: True)
    monkeypatch.setattr(typer, "confirm", agreed)
    monkeypatch.setenv("REPERTORY_DATA_DIR", str(tmp_path / "data"))
    with pytest.raises(UsageError, match="changed while it was read"):
        init({}, config.parent)
    assert not TrustStore(tmp_path / "data" / TRUSTED).is_trusted(config, digest_to_trust)


@pytest.mark.usefixtures("own_home")
@pytest.mark.parametrize("name", [".mcp.json", PROJECT_FILE])
def test_the_user_must_confirm_before_a_variable_is_given_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """The question names the address and the variable; unless confirmed, nothing is trusted."""
    address, asked = "https://elsewhere.example", list[str]()
    server = {"url": f"{address}/mcp", "headers": {"Authorization": "Bearer ${GITHUB_TOKEN}"}}
    (tmp_path / ".mcp.json").write_text(json.dumps({"mcpServers": {"github": server}}))
    (tmp_path / PROJECT_FILE).write_text(
        '[[sources]]\ntype = "openapi"\nname = "github"\nurl = "https://github.example/openapi.json"\n'
        f'server = "{address}"\nauth = {{token = "${{GITHUB_TOKEN}}"}}\n'
    )

    def refused(question: str, **_: object) -> bool:
        asked.append(question)
        return False

    for stream in (sys.stdin, sys.stderr):
        monkeypatch.setattr(stream, "isatty", lambda: True)
    monkeypatch.setattr(typer, "confirm", refused)
    monkeypatch.setenv("REPERTORY_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match="Nothing was trusted"):
        trust({}, [Path(name)])
    assert not TrustStore(tmp_path / "data" / TRUSTED).digests()
    [question] = asked
    assert address in question
    assert "with GITHUB_TOKEN" in question

"""Trust in configurations."""

import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import typer

from repertory.errors import StoreError, UsageError
from repertory.settings import PROJECT_FILE, TRUST_FILE
from repertory.sources.registry import digest_to_trust
from repertory.trust import TrustStore, digest_of
from repertory_admin.commands.config import trust
from repertory_admin.commands.init import init
from tests.support.builders import write

TOO_LONG = "x" * 300  # as the name of a file


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """A configuration file."""
    path = tmp_path / "project" / ".mcp.json"
    write(path, "{}")
    return path


def test_trust_and_revoke(tmp_path: Path, config: Path) -> None:
    """Trust and its revocation apply in every process."""
    path = tmp_path / "data" / "trust.json"
    assert not TrustStore(path).is_trusted(config)
    TrustStore(path).trust(config)
    assert TrustStore(path).is_trusted(config)
    TrustStore(path).revoke(config)
    assert not TrustStore(path).is_trusted(config)
    assert {file.name for file in path.parent.iterdir()} <= {"trust.json", "trust.json.lock"}


def test_files_that_are_trusted_at_once_are_all_trusted(tmp_path: Path) -> None:
    """The store of a user is shared by all projects and commands."""
    path = tmp_path / "data" / "trust.json"
    files = [tmp_path / f"{number}.json" for number in range(20)]
    for file in files:
        file.write_text("{}")
    with ThreadPoolExecutor(len(files)) as threads:
        list(threads.map(lambda file: TrustStore(path).trust(file), files))
    assert all(map(TrustStore(path).is_trusted, files))


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


def test_one_file_by_any_path(
    tmp_path: Path, config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A relative path and a link to its folder name the same file; a copy is another file."""
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
    """The commands and folders of the file would be those of the clone."""
    store = TrustStore(tmp_path / "trust.json")
    store.trust(config)
    (tmp_path / "clone").mkdir()
    (tmp_path / "clone" / ".mcp.json").symlink_to(config)
    assert not store.is_trusted(tmp_path / "clone" / ".mcp.json")


@pytest.mark.parametrize("content", [b"", b"\xff", b"[]", b'{"a": 1}'])
def test_corrupt_store(tmp_path: Path, config: Path, content: bytes) -> None:
    """An unreadable store trusts nothing and can be overwritten."""
    path = tmp_path / "trust.json"
    path.write_bytes(content)
    store = TrustStore(path)
    assert not store.is_trusted(config)
    store.trust(config)
    assert store.is_trusted(config)


def test_missing_file(tmp_path: Path) -> None:
    """A missing file cannot be trusted; revoking its trust has no effect."""
    store = TrustStore(tmp_path / "trust.json")
    with pytest.raises(UsageError, match=r"none\.json cannot be trusted"):
        store.trust(tmp_path / "none.json")
    store.revoke(tmp_path / "none.json")
    assert not (tmp_path / "trust.json").exists()


def test_unwritable(tmp_path: Path, config: Path) -> None:
    """An unwritable data directory is an error that names the file."""
    (tmp_path / "data").write_text("a file")
    with pytest.raises(StoreError, match=r"trust\.json cannot be written"):
        TrustStore(tmp_path / "data" / "trust.json").trust(config)


def test_the_content_is_compared_that_is_used(tmp_path: Path, config: Path) -> None:
    """Who has read a file asks about these bytes, whatever is there now."""
    store = TrustStore(tmp_path / "trust.json")
    content = config.read_bytes()
    store.trust(config)
    config.write_text("{ }")
    assert store.covers(config, content)
    assert not store.covers(config, config.read_bytes())


def test_a_part_of_a_file_is_trusted(tmp_path: Path, config: Path) -> None:
    """Other changes of the file leave the trust; who asks for the whole file is denied it."""

    def of(_: Path, content: bytes) -> str:
        return f"part:{digest_of(content.partition(b'#')[0])}"

    store = TrustStore(tmp_path / "trust.json")
    config.write_text("a#1")
    store.trust(config)
    assert store.is_trusted(config, of)  # as an earlier version trusted it
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


def test_only_what_was_shown_is_trusted(tmp_path: Path, config: Path) -> None:
    """A file that changes between the message and the permission is refused."""
    store, shown = TrustStore(tmp_path / "trust.json"), digest_of(config.read_bytes())
    config.write_text("{ }")
    with pytest.raises(UsageError, match="changed while it was read"):
        store.trust(config, shown)
    assert not store.is_trusted(config)


def test_an_environment_file_is_trusted_as_nothing_else(tmp_path: Path, config: Path) -> None:
    """A configuration that names another as its ``envFile`` does not have that one run."""
    store, other = TrustStore(tmp_path / "trust.json"), tmp_path / "repertory.toml"
    other.write_text("")
    store.trust(config, environments=[other, tmp_path / "missing.env", tmp_path / TOO_LONG])
    assert store.is_trusted(config)
    assert not store.is_trusted(other)


def test_a_pipe_is_not_trusted(tmp_path: Path) -> None:
    """Reading it could take for ever."""
    os.mkfifo(tmp_path / "pipe")
    assert not TrustStore(tmp_path / "trust.json").is_trusted(tmp_path / "pipe")


@pytest.mark.usefixtures("own_home")
def test_init_trusts_only_what_it_has_shown(
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
    assert not TrustStore(tmp_path / "data" / TRUST_FILE).is_trusted(config, digest_to_trust)


@pytest.mark.usefixtures("own_home")
@pytest.mark.parametrize("name", [".mcp.json", PROJECT_FILE])
def test_a_terminal_is_asked_before_a_variable_is_given_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """The question names the address and the variable; without the answer yes, nothing changes."""
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
    assert not TrustStore(tmp_path / "data" / TRUST_FILE).digests()
    [question] = asked
    assert address in question
    assert "with GITHUB_TOKEN" in question

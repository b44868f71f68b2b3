"""Trust in MCP configurations."""

from pathlib import Path

import pytest

from repertory.errors import StoreError, UsageError
from repertory.trust import TrustStore


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """A configuration file."""
    path = tmp_path / "project" / ".mcp.json"
    path.parent.mkdir()
    path.write_text("{}")
    return path


def test_trust_and_revoke(tmp_path: Path, config: Path) -> None:
    """Trust and its revocation apply in every process."""
    path = tmp_path / "data" / "trust.json"
    assert not TrustStore(path).is_trusted(config)
    TrustStore(path).trust(config)
    assert TrustStore(path).is_trusted(config)
    TrustStore(path).revoke(config)
    assert not TrustStore(path).is_trusted(config)
    assert [file.name for file in path.parent.iterdir()] == ["trust.json"]


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
    """A relative path and a link name the same file; a copy is another file."""
    store = TrustStore(tmp_path / "trust.json")
    monkeypatch.chdir(config.parent)
    store.trust(Path(".mcp.json"))
    link = tmp_path / "link.json"
    link.symlink_to(config)
    copy = tmp_path / "copy.json"
    copy.write_bytes(config.read_bytes())
    assert store.is_trusted(config)
    assert store.is_trusted(link)
    assert not store.is_trusted(copy)


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

"""Files are replaced whole, or not at all."""

import os
import stat
from pathlib import Path

import pytest

from repertory.files import PRIVATE, write_atomically


def test_a_file_is_replaced_and_nothing_is_left_beside_it(tmp_path: Path) -> None:
    """Its directory is made, and the unfinished file is gone."""
    path = tmp_path / "new" / "note.json"
    write_atomically(path, b"first")
    write_atomically(path, b"second", is_durable=True)
    assert path.read_bytes() == b"second"
    assert list(path.parent.iterdir()) == [path]


def test_a_write_that_fails_leaves_the_old_file_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error is the system's; no unfinished file stays."""
    path = tmp_path / "note.json"
    write_atomically(path, b"old")

    def fail(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="No space left"):
        write_atomically(path, b"new", is_durable=True)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such permissions")
def test_a_private_file_is_the_owners_even_over_a_public_one(tmp_path: Path) -> None:
    """The permissions are those asked for, whatever the old file had."""
    path = tmp_path / "keys.json"
    path.write_bytes(b"public")
    path.chmod(0o644)
    write_atomically(path, b"private", mode=PRIVATE)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.skipif(os.name == "nt", reason="links need a right there")
def test_a_link_is_replaced_and_not_followed(tmp_path: Path) -> None:
    """What a link points at keeps its content."""
    target, path = tmp_path / "target", tmp_path / "note.json"
    target.write_bytes(b"elsewhere")
    path.symlink_to(target)
    write_atomically(path, b"here")
    assert (target.read_bytes(), path.read_bytes()) == (b"elsewhere", b"here")
    assert not path.is_symlink()

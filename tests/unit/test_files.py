"""A file is replaced completely or not at all."""

import os
import stat
from pathlib import Path

import pytest

from repertory.errors import StoreError
from repertory.keys import Keys, Scope
from repertory.project import configuration_file
from repertory.system.files import (
    UNFINISHED,
    changing,
    half_of,
    make_directory,
    replacing,
    size_on_disk,
    unwritable,
    write_atomically,
)
from repertory.trust import TrustStore


def test_a_file_is_replaced_and_nothing_is_left_beside_it(tmp_path: Path) -> None:
    """Its directory is created, and no unfinished file stays."""
    path = tmp_path / "new" / "note.json"
    write_atomically(path, b"first")
    write_atomically(path, b"second", is_durable=True)
    assert path.read_bytes() == b"second"
    assert list(path.parent.iterdir()) == [path]


def test_a_write_that_fails_leaves_the_old_file_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The system's error is raised, and no unfinished file stays."""
    path = tmp_path / "note.json"
    write_atomically(path, b"old")

    def fail(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="No space left"):
        write_atomically(path, b"new", is_durable=True)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_configuration_trust_and_keys_are_flushed_before_they_replace_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a power failure, the old or the new file is there, never an empty one."""
    file = tmp_path / "repertory.toml"
    flushed: list[int] = []
    monkeypatch.setattr(os, "fsync", flushed.append)
    configuration_file.write(file, "# mine\n")
    TrustStore(tmp_path / "trusted.json").trust(file)
    Keys(tmp_path / "keys.json").create("ops", Scope.READ)
    assert len(flushed) == 3


def test_a_folder_removed_during_the_measurement_of_its_size_is_ignored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Git and the vector store may remove folders at any time."""
    write_atomically(tmp_path / "gone" / "file", b"x" * 10_000)
    write_atomically(tmp_path / "kept", b"x" * 10_000)
    scandir = os.scandir

    def removing(path: str | Path) -> object:
        if Path(path).name == "gone":
            raise FileNotFoundError(2, "No such file or directory")
        return scandir(path)

    monkeypatch.setattr(os, "scandir", removing)
    assert size_on_disk(tmp_path) >= 10_000


def test_an_error_of_the_data_directory_says_what_helps(tmp_path: Path) -> None:
    """It has the system's reason, or else the error's own text."""
    for error in (OSError(28, "No space left on device"), TimeoutError("No space left on device")):
        assert str(unwritable(tmp_path, error)) == (
            f"{tmp_path} cannot be written: No space left on device; choose another --data-dir."
        )


def test_a_full_disk_and_missing_permissions_have_different_advice(tmp_path: Path) -> None:
    """More permissions do not help if the disk is full."""
    reasons = {28: "Full; make room", 13: "Closed; make it and its folder writable"}
    for number, text in reasons.items():
        error = OSError(number, text.partition(";")[0])
        with pytest.raises(StoreError, match=f"{text}."), changing(tmp_path / "keys.json"):
            raise error


def test_an_unfinished_file_is_recognised_by_its_name(tmp_path: Path) -> None:
    """The unfinished files of an interrupted process can be found later."""
    path = tmp_path / "note.json"
    assert UNFINISHED.fullmatch(half_of(path).name)
    assert half_of(path) != half_of(path)
    with replacing(path) as file:
        assert UNFINISHED.fullmatch(Path(file.name).name)
        assert not path.exists()
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such permissions")
def test_a_private_file_is_private_even_if_it_replaces_a_public_one(tmp_path: Path) -> None:
    """New folders are private, too."""
    path = tmp_path / "keys.json"
    path.write_bytes(b"public")
    path.chmod(0o644)
    write_atomically(path, b"private")
    assert mode(path) == 0o600
    write_atomically(tmp_path / "a" / "b" / "note", b"private")
    assert [mode(tmp_path / "a"), mode(tmp_path / "a" / "b")] == [0o700, 0o700]


def mode(path: Path) -> int:
    """The permissions of a file."""
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such permissions")
def test_a_data_directory_is_narrowed_to_its_owner(tmp_path: Path) -> None:
    """All its content becomes private, but the targets of links keep their permissions."""
    data, outside = tmp_path / "data", tmp_path / "outside"
    for folder in (data / "models", outside):
        folder.mkdir(parents=True)
        (folder / "file").touch()
    (data / "link").symlink_to(outside)
    (data / "script").touch(mode=0o755)
    for path in (data, outside, outside / "file"):
        path.chmod(0o755)
    make_directory(data)
    assert [mode(data), mode(data / "models"), mode(data / "script")] == [0o700, 0o700, 0o700]
    assert mode(data / "models" / "file") == 0o600
    assert [mode(outside), mode(outside / "file")] == [0o755, 0o755]


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such permissions")
@pytest.mark.parametrize("case", ["shared", "home", "above the working directory"])
def test_a_directory_with_other_uses_stays_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: str
) -> None:
    """It may contain files that others need."""
    folder = tmp_path / "folder"
    (folder / "below").mkdir(parents=True)
    folder.chmod(0o1777 if case == "shared" else 0o755)
    if case == "home":
        monkeypatch.setenv("HOME", str(folder))
    if case == "above the working directory":
        monkeypatch.chdir(folder / "below")
    make_directory(folder)
    assert mode(folder) & 0o077


@pytest.mark.skipif(os.name == "nt", reason="links need a privilege on Windows")
def test_a_link_is_replaced_and_not_followed(tmp_path: Path) -> None:
    """The link's target keeps its content."""
    target, path = tmp_path / "target", tmp_path / "note.json"
    target.write_bytes(b"elsewhere")
    path.symlink_to(target)
    write_atomically(path, b"here")
    assert (target.read_bytes(), path.read_bytes()) == (b"elsewhere", b"here")
    assert not path.is_symlink()

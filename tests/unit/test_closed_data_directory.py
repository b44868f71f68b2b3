"""An inaccessible data directory, such as another user's, causes a clear error, no crash."""

from collections.abc import Callable
from pathlib import Path

import pytest

from repertory.backup.archive import Archive
from repertory.backup.create import create
from repertory.backup.restore import check
from repertory.compose import Parts
from repertory.errors import ConfigurationError, StoreError
from repertory.keys import keys_of
from repertory.project.root import located
from repertory.remote.running import notes
from repertory.review.store import ReviewStore
from repertory.settings import Settings, load
from repertory.system.files import write_atomically
from repertory.usage.store import UsageStore
from repertory_admin.checks.data import data_directory
from repertory_admin.checks.finding import State


@pytest.fixture
def closed(tmp_path: Path) -> Path:
    """A path that is too long, so every operation fails, even for root."""
    return tmp_path / ("x" * 300)


def settings_of(data: Path, directory: Path) -> Settings:
    """The settings of a project with this data directory."""
    return load({"data_dir": str(data)}, directory, {})


@pytest.mark.parametrize(
    "read",
    [
        lambda data: ReviewStore(data / "a.sqlite").waiting(),
        lambda data: UsageStore(data / "a.sqlite", 90, 1_000).read(),
    ],
    ids=["reviews", "usage"],
)
def test_an_inaccessible_database_is_named(closed: Path, read: Callable[[Path], object]) -> None:
    """The error suggests another data directory."""
    with pytest.raises(StoreError, match=r"a\.sqlite cannot be written: .*another --data-dir"):
        read(closed)


def test_doctor_reports_little_free_space(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It says how much space a model may need, and what helps."""
    monkeypatch.setattr("repertory_admin.checks.data.MIN_FREE_BYTES", 1e18)
    *_, found = data_directory(tmp_path)
    assert found.state is State.BAD
    assert found.text.endswith(
        "GB, less than the 1000000000.0 GB that a model may need: make room, or choose another "
        "--data-dir"
    )


def test_no_caller_is_accepted_while_keys_are_inaccessible(closed: Path, tmp_path: Path) -> None:
    """Keys may exist, so a key is required, and none is valid."""
    keys = keys_of(settings_of(closed, tmp_path), tmp_path)
    with pytest.raises(ConfigurationError, match="cannot be read"):
        keys.list()
    assert (keys.required, keys.active()) == (True, ())


def test_no_server_is_found_in_a_closed_data_directory(closed: Path, tmp_path: Path) -> None:
    """The project is then the working directory."""
    assert notes(settings_of(closed, tmp_path)) == []
    _, project = located({"data_dir": str(closed)}, tmp_path)
    assert project.directory == tmp_path


def test_nothing_is_restored_to_a_closed_data_directory(closed: Path, tmp_path: Path) -> None:
    """It is unknown whether a server uses the directory."""
    made, file = Parts(settings_of(tmp_path / "data", tmp_path), tmp_path), tmp_path / "a.zip"
    write_atomically(tmp_path / "data" / "trusted.json", b"{}")
    create(made, file, lambda *_: None, with_sign_ins=False, force=False)
    parts = Parts(settings_of(closed, tmp_path), tmp_path)
    with Archive(file) as archive, pytest.raises(StoreError, match="another --data-dir"):
        check(parts, archive, lambda *_: None, force=True)

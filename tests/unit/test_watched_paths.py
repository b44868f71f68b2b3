"""The files of the configuration are followed, however coarse the times of their disk are."""

import time
from pathlib import Path

import pytest

from repertory.files import Signature
from repertory.settings import load
from repertory.workspace import Workspace
from repertory_watch import configuration
from repertory_watch.configuration import WatchedPaths


def test_a_file_may_change_twice_in_a_second(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second change has the signature of the first: it is found when the second is over."""
    file = tmp_path / "repertory.toml"
    file.write_text("[search]\nlimit = 1\n")
    settings = load({"data_dir": str(tmp_path / "data")}, tmp_path, {})
    now = int(time.time()) * 10**9
    signatures: dict[str, Signature] = {str(file): (now, now, file.stat().st_size, 1)}
    monkeypatch.setattr(configuration, "signature", signatures.get)
    paths = WatchedPaths()
    paths.follow(Workspace(settings, tmp_path))
    assert paths.changed() == []
    monkeypatch.setattr(configuration, "GRANULARITY", -1)  # some seconds later
    assert paths.changed() == [str(file)]
    assert paths.changed() == []

"""Changes of configuration files are noticed, even with coarse file times."""

import time
from pathlib import Path

import pytest

from repertory.project.workspace import Workspace
from repertory.settings import load
from repertory.system.files import Signature
from repertory_watch import configuration
from repertory_watch.configuration import WatchedPaths


def test_a_second_change_within_a_second_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both changes give the same signature, so a recent file is checked again later."""
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

"""The default settings that a server uses for what a search leaves out."""

from pathlib import Path

import pytest

from repertory.project import defaults
from repertory.project.defaults import Defaults, for_server
from repertory.settings import load
from repertory.values import MAX_LIMIT


@pytest.mark.parametrize(
    ("flags", "environment", "limit"),
    [
        ({}, {}, 3),
        ({}, {"REPERTORY_SEARCH_LIMIT": "200"}, MAX_LIMIT),
        ({"limit": 200}, {"REPERTORY_SEARCH_LIMIT": "300"}, 200),
    ],
)
def test_only_a_limit_from_a_flag_may_exceed_the_maximum(
    flags: dict[str, int], environment: dict[str, str], limit: int, tmp_path: Path
) -> None:
    """A configured limit is reduced to the maximum of a server."""
    assert for_server(load(flags, tmp_path, environment)).limit == limit


def test_a_server_follows_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Flags win over the file, an invalid file changes nothing, and the limit has a maximum."""
    monkeypatch.setattr(defaults, "CHECK_INTERVAL_S", 0.0)
    file = tmp_path / "repertory.toml"
    current = Defaults(load({"alpha": 0.5}, tmp_path, {}), tmp_path)
    assert (current().limit, current().alpha) == (3, 0.5)

    file.write_text("[search]\nlimit = 500\nalpha = 0.25\nthreshold = 0.25\n", "utf-8")
    now = current()
    assert (now.limit, now.alpha, now.threshold) == (MAX_LIMIT, 0.5, 0.25)
    file.write_text("[search]\nlimit = -1\n", "utf-8")
    assert current() == now
    file.unlink()
    assert (current().limit, current().threshold) == (3, 0.35)


def test_the_files_are_checked_once_a_second(tmp_path: Path) -> None:
    """Not every search waits for the disk."""
    current = Defaults(load({}, tmp_path, {}), tmp_path)
    (tmp_path / "repertory.toml").write_text("[search]\nlimit = 7\n", "utf-8")
    assert current().limit == 3

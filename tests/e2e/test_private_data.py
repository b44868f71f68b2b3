"""The data directory is private: other users can read no file in it."""

import os
import signal
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.command_line import Cli, add_skill
from tests.support.server_process import Serve
from tests.support.waiting import until

pytestmark = pytest.mark.skipif(os.name == "nt", reason="Windows has no such permissions")


@pytest.fixture(autouse=True)
def _usual_umask() -> Iterator[None]:
    """Set a umask with which new files are readable by everyone by default."""
    before = os.umask(0o022)
    yield
    os.umask(before)


def readable_by_others(folder: Path) -> list[str]:
    """The paths in a folder, and the folder itself, that others may access, without links."""
    paths = [folder, *folder.rglob("*")]
    modes = {path: path.lstat().st_mode for path in paths}
    return [
        f"{path.relative_to(folder)} {stat.filemode(mode)}"
        for path, mode in modes.items()
        if mode & 0o077 and not stat.S_ISLNK(mode)
    ]


def test_everything_in_the_data_directory_is_private(own: Cli, project: Path) -> None:
    """All files that commands, a server and their libraries write are private."""
    data = Path(own.environment["REPERTORY_DATA_DIR"])
    data.mkdir()  # readable by others, as older versions left it
    own.run(project, "index")
    own.run(project, "search", "bake bread")
    assert own.run(project, "keys", "create", "ci").returncode == 0
    assert own.run(project, "keys", "reset", "--yes").returncode == 0
    assert own.run(project, "connect", "cursor", "--project", "--yes").returncode == 0
    assert readable_by_others(data) == []

    with Serve(own, project, project.parent / "log") as server:
        add_skill(project, "late", "---\nname: late\ndescription: Come too late.\n---\n")
        until(lambda: server.get("/search?q=late")["results"], server.process)
        assert readable_by_others(data) == []
        assert server.end(signal.SIGTERM) == 0
    assert readable_by_others(data) == []


def test_a_new_data_directory_is_private(own: Cli, project: Path, tmp_path: Path) -> None:
    """A data directory is created private, also by a command that writes one small file."""
    data = tmp_path / "share" / "repertory"
    own.run(project, "keys", "create", "ci", "--data-dir", data)
    assert (data.stat().st_mode & 0o777, readable_by_others(data)) == (0o700, [])

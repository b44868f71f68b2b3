"""``repertory clean`` as a user runs it."""

import shutil
from pathlib import Path

from tests.support.command_line import Cli, make_project
from tests.support.server_process import note_file


def test_unused_data_are_shown_and_removed(own: Cli, project: Path, tmp_path: Path) -> None:
    """Only after consent, the index of a deleted project is removed; other projects are kept."""
    gone = make_project(tmp_path / "gone")
    data = Path(own.environment["REPERTORY_DATA_DIR"])
    for folder in (project, gone):
        assert own.run(folder, "index").returncode == 0
    shutil.rmtree(gone)

    shown = own.run(project, "clean", "--dry-run")
    refused = own.run(project, "clean")
    assert shown.returncode == 0
    assert "indexes that no directory uses" in shown.stdout
    assert " kB" in shown.stdout
    assert (refused.returncode, "--yes" in refused.stderr) == (2, True)
    assert len([*(data / "collections").glob("*_g1")]) == 2

    listed = own.json(project, "clean", "--dry-run")
    assert {one["kind"] for one in listed["unused"]} == {"index", "notes"}
    assert (listed["dryRun"], listed["busy"], listed["removedBytes"]) == (True, [], 0)
    assert own.in_terminal(project, "clean", keys="n\n")[0] == 2
    assert len([*(data / "collections").glob("*_g1")]) == 2

    code, answered = own.in_terminal(project, "clean", keys="y\n")
    assert (code, "Removed " in answered) == (0, True)
    assert len([*(data / "collections").glob("*_g1")]) == 1
    assert own.json(project, "clean", "--yes")["unused"] == []
    assert "nothing to remove" in own.run(project, "clean").stdout
    found = own.run(project, "search", "bake bread")
    assert "project/bread-baking" in found.stdout
    assert found.stderr == ""


def test_only_this_machine_is_cleaned(own: Cli, tmp_path: Path) -> None:
    """Collections on a Qdrant server are kept, and the server is not asked."""
    done = own.run(tmp_path, "clean", REPERTORY_QDRANT_URL="http://127.0.0.1:9")
    assert done.returncode == 0
    assert "what is on the Qdrant server stays" in done.stderr


def test_a_running_server_is_not_disturbed(user: Cli, served: Path) -> None:
    """A running server keeps its index and its note file."""
    before = user.json(served, "stats")["collection"]
    assert user.json(served, "clean", "--yes")["unused"] == []
    assert user.json(served, "stats")["collection"] == before
    assert "project/bread-baking" in user.run(served, "search", "bake bread").stdout
    assert note_file(user, served).exists()

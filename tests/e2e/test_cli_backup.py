"""``repertory backup`` and ``repertory restore`` as a user runs them."""

import json
import re
import shutil
import stat
import zipfile
from pathlib import Path
from urllib.error import HTTPError

import pytest

from tests.support.builders import write
from tests.support.command_line import Cli
from tests.support.server_process import Serve, ask

QUERY = "bake a loaf of bread"


def test_a_destroyed_data_directory_is_restored(own: Cli, project: Path, tmp_path: Path) -> None:
    """After a restore, searches, keys and reviews are as before, and nothing is embedded again."""
    file = tmp_path / "backup.zip"
    before = own.json(project, "search", QUERY)["results"]
    assert own.run(project, "keys", "create", "anna").returncode == 0
    write(own.data / "sign-ins" / "abc.json", "{}")
    reviews = [path.name for path in (own.data / "reviews").glob("*.sqlite")]
    made = own.json(project, "backup", file)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert made["bytes"] == file.stat().st_size
    kinds = {one["kind"] for one in made["contents"]}
    assert {"points of indexes", "cached vectors", "keys", "approvals"} <= kinds
    assert "sign-ins" not in kinds

    shutil.rmtree(own.data)
    unanswered = own.run(project, "restore", file)
    assert (unanswered.returncode, "--yes" in unanswered.stderr) == (2, True)
    code, shown = own.in_terminal(project, "restore", file, keys="y\n")
    assert (code, "points of indexes" in shown, "Restored " in shown) == (0, True, True), shown
    assert re.search(r"keys +1 file ", shown), shown  # the file may have any number of keys
    assert {stat.S_IMODE(path.stat().st_mode) & 0o077 for path in own.data.rglob("*")} == {0}
    assert own.json(project, "search", QUERY)["results"] == before
    run = own.json(project, "index")
    assert (run["embedded"], run["added"], run["changed"], run["removed"]) == (0, 0, 0, 0)
    assert "anna" in own.run(project, "keys", "list").stdout
    assert [path.name for path in (own.data / "reviews").glob("*.sqlite")] == reviews


def test_skills_saved_after_a_backup_are_found_after_a_restore(
    own: Cli, project: Path, tmp_path: Path
) -> None:
    """After a restore over existing data, a skill that was saved after the backup is found."""
    file = tmp_path / "backup.zip"
    own.json(project, "search", QUERY)
    own.json(project, "backup", file)
    write(
        project / "skills" / "rigging" / "SKILL.md",
        "---\nname: rigging\ndescription: Rig the sails of a dinghy.\n---\n",
    )
    first = own.json(project, "search", "rig the sails of a dinghy")["results"][0]
    assert own.run(project, "restore", file, "--force", "--yes").returncode == 0
    assert own.json(project, "search", "rig the sails of a dinghy")["results"][0] == first


def test_a_running_server_is_backed_up_and_not_restored_over(
    own: Cli, project: Path, tmp_path: Path
) -> None:
    """A server exports its points only to its user's backup; a restore is refused meanwhile."""
    file = tmp_path / "backup.zip"
    with Serve(own, project, tmp_path / "log") as server:
        stats, before = server.get("/stats"), server.get("/search?q=bake+a+loaf")["results"]
        # A dead proxy: the server's token must not be sent to a proxy.
        proxy = {"http_proxy": "http://127.0.0.1:9", "no_proxy": "", "NO_PROXY": ""}
        assert own.run(project, "backup", file, **proxy).returncode == 0
        refused = own.run(project, "restore", file, "--force", "--yes")
        assert (refused.returncode, "stop it first" in refused.stderr) == (4, True)
        key = own.run(project, "keys", "create", "ops", "--scope", "admin").stdout.strip()
        for token, name, status in ((key, stats["collection"], 403), (server.token, "other", 404)):
            with pytest.raises(HTTPError, match=str(status)):
                ask(f"{server.url}/export/{name}", token)
    with zipfile.ZipFile(file) as archive:
        (stored,) = json.loads(archive.read("manifest.json"))["collections"].values()
    assert stored["count"] == stats["points"]
    shutil.rmtree(own.data)
    assert own.run(project, "restore", file, "--yes").returncode == 0
    assert own.json(project, "search", "bake a loaf")["results"] == before

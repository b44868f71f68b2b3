"""``repertory queue`` and ``repertory keys``, and a server that asks for a key."""

import json
from pathlib import Path

import pytest

from tests.support.command_line import Cli, make_project
from tests.support.server_process import note_of


@pytest.fixture
def alone(tmp_path: Path) -> tuple[Cli, Path]:
    """Somebody without a server, and an empty folder."""
    (tmp_path / "home").mkdir()
    return Cli(tmp_path / "home", tmp_path / "data"), tmp_path


def test_without_a_server_there_is_no_queue(alone: tuple[Cli, Path]) -> None:
    """One line says how to get one; the exit code is 4."""
    cli, folder = alone
    for command in ("list", "retry"):
        done = cli.run(folder, "queue", command)

        assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (4, "", 1)
        assert "`repertory serve`" in done.stderr


def test_a_server_that_is_configured_is_never_done_without(alone: tuple[Cli, Path]) -> None:
    """An unreachable server is exit code 4 for each command; an invalid URL is exit code 2."""
    cli, folder = alone
    make_project(folder / "project")
    for command in (["search", "x"], ["stats"], ["items", "list"], ["rebuild"], ["queue", "list"]):
        done = cli.run(folder / "project", *command, "--server-url", "http://127.0.0.1:1")

        assert (done.returncode, done.stdout) == (4, "")
        assert done.stderr.startswith("repertory: The server at http://127.0.0.1:1 cannot be ")
        assert len(done.stderr.splitlines()) == 1
    assert cli.run(folder, "search", "x", "--server-url", "nonsense").returncode == 2


def test_a_server_is_asked_from_anywhere(user: Cli, served: Path, tmp_path: Path) -> None:
    """Its URL is enough; its sources are configured there."""
    url = json.loads(note_of(user, served).read_text("utf-8"))["url"]
    asked = {"REPERTORY_SERVER_URL": url, "REPERTORY_DATA_DIR": str(tmp_path / "data")}
    done = user.run(tmp_path, "search", "bake bread", **asked)
    refused = user.run(tmp_path, "index", ".", **asked)

    assert url in user.run(served, "index").stdout
    assert "project/bread-baking" in done.stdout
    assert refused.returncode == 2
    assert "name no paths" in refused.stderr


def test_the_queue_is_shown(user: Cli, served: Path) -> None:
    """What waits and failed is counted; retrying nothing is done, naming nothing is not."""
    listed = user.run(served, "queue", "list")
    retried = user.run(served, "queue", "retry")
    unknown = user.run(served, "queue", "retry", "abc")

    assert user.json(served, "queue", "list")["failed"] == []
    assert listed.stdout.splitlines()[0].split() == ["saves", "waiting", "0"]
    assert (retried.returncode, retried.stdout) == (0, "0 jobs put back on the queue.\n")
    assert unknown.returncode == 1


def test_keys_are_made_listed_and_revoked(alone: tuple[Cli, Path]) -> None:
    """A key is shown once, and never again; a name is taken once."""
    cli, folder = alone
    assert cli.run(folder, "keys", "list").stdout == "There are no keys.\n"
    made = cli.run(folder, "keys", "create", "ci")
    listed = cli.run(folder, "keys", "list")

    assert made.stdout.startswith("rpt_")
    assert len(made.stdout.splitlines()) == 1
    assert [line.split()[:2] for line in listed.stdout.splitlines()[1:]] == [["ci", "read"]]
    assert made.stdout.strip() not in (folder / "data" / "keys.json").read_text("utf-8")
    for wrong in (["create", "ci"], ["create", "x", "--scope", "all"], ["revoke", "nobody"]):
        assert cli.run(folder, "keys", *wrong).returncode == 2
    assert cli.run(folder, "keys", "revoke", "ci").returncode == 0
    assert cli.json(folder, "keys", "list") == []


def test_a_server_asks_for_a_key_once_there_is_one(user: Cli, served: Path) -> None:
    """Without one, with one that is revoked, and with too little: exit code 2 names the setting."""
    read = user.json(served, "keys", "create", "reader")["key"]
    admin = user.json(served, "keys", "create", "boss", "--scope", "admin")["key"]

    def run(key: str, *command: str) -> int:
        done = user.run(served, *command, REPERTORY_SERVER_API_KEY=key)
        if done.returncode == 2:
            assert len(done.stderr.splitlines()) == 1
            assert "REPERTORY_SERVER_API_KEY" in done.stderr
        return done.returncode

    assert run("", "search", "bake bread") == 2
    assert run("wrong", "search", "bake bread") == 2
    assert run(read, "search", "bake bread") == 0
    assert run(read, "rebuild") == 2
    assert run(admin, "rebuild", "--wait") == 0
    assert user.run(served, "keys", "revoke", "reader").returncode == 0
    assert run(read, "search", "bake bread") == 2

"""``repertory queue`` and ``repertory keys``, and a server that requires a key."""

import json
from pathlib import Path

import pytest

from tests.support.command_line import Cli, make_project
from tests.support.server_process import Serve, note_of


def test_without_a_server_there_is_no_queue(own: Cli, tmp_path: Path) -> None:
    """Without a server, the error is one line that says how to start one, with exit code 4."""
    for command in ("list", "retry"):
        done = own.run(tmp_path, "queue", command)

        assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (4, "", 1)
        assert "`repertory serve`" in done.stderr


def test_a_server_with_other_settings_is_named(own: Cli, tmp_path: Path) -> None:
    """The error names a running server with other settings instead of asking for a new one."""
    project = make_project(tmp_path / "project")
    (project / "own.toml").write_text('[[sources]]\ntype = "skills"\npath = "skills"\n', "utf-8")
    with Serve(own, project, tmp_path / "log", "--config", "own.toml") as server:
        done = own.run(project, "queue", "list")
        same = own.run(project, "queue", "list", "--config", "own.toml")
    assert (done.returncode, same.returncode) == (4, 0)
    assert f"{server.url}, was started with other settings" in done.stderr


def test_a_configured_server_is_required(own: Cli, tmp_path: Path) -> None:
    """An unreachable server is exit code 4 for each command; an invalid URL is exit code 2."""
    make_project(tmp_path / "project")
    for command in ("search x", "stats", "items list", "index", "rebuild", "queue list"):
        done = own.run(tmp_path / "project", *command.split(), "--server-url", "http://127.0.0.1:1")

        assert (done.returncode, done.stdout) == (4, "")
        assert done.stderr.startswith("repertory: The server at http://127.0.0.1:1 cannot be ")
        assert len(done.stderr.splitlines()) == 1
    assert own.run(tmp_path, "search", "x", "--server-url", "nonsense").returncode == 2


def test_a_server_is_used_from_any_folder(user: Cli, served: Path, tmp_path: Path) -> None:
    """A server's user needs only its URL, others also a key; `index` takes no paths there."""
    url = note_of(user, served).url
    asked = {"REPERTORY_SERVER_URL": url}
    done = user.run(tmp_path, "search", "bake bread", **asked)
    refused = user.run(tmp_path, "index", ".", **asked)
    elsewhere = asked | {"REPERTORY_DATA_DIR": str(tmp_path / "data")}
    unknown = user.run(tmp_path, "search", "bake bread", **elsewhere)

    assert url in user.run(served, "index").stdout
    assert "project/bread-baking" in done.stdout
    assert (unknown.returncode, "only the user who started it" in unknown.stderr) == (2, True)
    assert refused.returncode == 2
    assert "give no paths" in refused.stderr


def test_the_queue_is_shown(user: Cli, served: Path) -> None:
    """Waiting and failed jobs are counted. A retry says if a named job has not failed."""
    listed = user.run(served, "queue", "list")
    retried = user.run(served, "queue", "retry")
    unknown = user.run(served, "queue", "retry", "abc")

    assert user.json(served, "queue", "list")["failed"] == []
    assert listed.stdout.splitlines()[0].split() == ["saves", "waiting", "0"]
    assert (retried.returncode, retried.stdout) == (0, "0 failed jobs will be tried again.\n")
    assert unknown.returncode == 1
    assert "1 of these jobs has not failed; `repertory queue list` shows" in unknown.stderr


def test_keys_are_created_listed_and_revoked(own: Cli, tmp_path: Path) -> None:
    """A key is shown only once; names are unique."""
    assert own.run(tmp_path, "keys", "list").stdout.startswith("There are no keys of ")
    made = own.run(tmp_path, "keys", "create", "ci")
    listed = own.run(tmp_path, "keys", "list")

    assert made.stdout.startswith("rpt_")
    assert len(made.stdout.splitlines()) == 1
    assert [line.split()[:2] for line in listed.stdout.splitlines()[1:]] == [["ci", "read"]]
    (file,) = (tmp_path / "data" / "keys").glob("*.json")
    assert made.stdout.strip() not in file.read_text("utf-8")
    for wrong in (["create", "ci"], ["create", "x", "--scope", "all"], ["revoke", "unknown"]):
        assert own.run(tmp_path, "keys", *wrong).returncode == 2
    revoked = own.run(tmp_path, "keys", "revoke", "ci")
    assert (revoked.returncode, revoked.stderr) == (0, "")
    assert str(tmp_path) in revoked.stdout
    assert own.json(tmp_path, "keys", "list") == []


def test_a_key_of_release_01_is_revoked_for_one_directory(own: Cli, tmp_path: Path) -> None:
    """The command says that servers of other directories still accept it."""
    stored = '[{"name": "anna", "scope": "read", "digest": "0", "made": 1}]'
    (tmp_path / "data").mkdir(exist_ok=True)
    (tmp_path / "data" / "keys.json").write_text(stored, "utf-8")
    revoked = own.run(tmp_path, "keys", "revoke", "anna")
    assert revoked.returncode == 0
    assert "Servers of other directories still accept it" in revoked.stderr
    assert own.json(tmp_path, "keys", "list") == []


def test_the_first_key_of_a_team_warns_beside_json(own: Cli, tmp_path: Path) -> None:
    """With JSON output, the warning is on stderr."""
    team = {"REPERTORY_REDIS_URL": "redis://localhost"}
    done = own.run(tmp_path, "keys", "create", "ci", "--output", "json", **team)
    assert json.loads(done.stdout)["name"] == "ci"
    assert done.stderr.startswith("From now on every caller of the team's server needs a key")


def test_the_first_key_of_a_team_says_what_it_changes(own: Cli, tmp_path: Path) -> None:
    """The first key warns that all callers need keys from then on; the second does not."""
    team = {"REPERTORY_REDIS_URL": "redis://localhost"}
    first, second = (own.run(tmp_path, "keys", "create", name, **team) for name in ("ci", "anna"))
    assert "Only a hash of it is stored" in first.stderr
    assert "every caller of the team's server needs a key" in first.stderr
    assert "`repertory keys reset`" in first.stderr
    assert "From now on" not in second.stderr
    own.run(tmp_path, "keys", "revoke", "ci", **team)
    last = own.run(tmp_path, "keys", "revoke", "anna", **team)
    assert "refuses all callers" in last.stderr


def test_keys_are_reset_after_the_question(own: Cli, tmp_path: Path) -> None:
    """A reset of keys asks on a terminal and needs --yes elsewhere."""
    assert own.run(tmp_path, "keys", "reset").returncode == 0
    own.run(tmp_path, "keys", "create", "ci")
    refused = own.run(tmp_path, "keys", "reset")
    assert (refused.returncode, "--yes" in refused.stderr) == (2, True)
    assert own.in_terminal(tmp_path, "keys", "reset", keys="y\n")[0] == 0
    assert "it answers only you" in own.run(tmp_path, "keys", "list").stdout


def test_the_token_of_a_running_server_is_printed(
    own: Cli, user: Cli, served: Path, tmp_path: Path
) -> None:
    """A pipe gets only the token; a terminal and JSON output also get the sign-in URL."""
    token = note_of(user, served).token
    found = user.json(served, "keys", "token")
    none = own.run(tmp_path, "keys", "token")

    assert user.run(served, "keys", "token").stdout == f"{token}\n"
    assert found["signIn"] == f"{found['server']}/login?token={token}"
    assert (none.returncode, "`repertory serve`" in none.stderr) == (4, True)
    assert f"/login?token={token}" in user.in_terminal(served, "keys", "token", columns=200)[1]


def test_a_key_is_valid_for_one_project(
    user: Cli, served: Path, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """A key is valid for one project; the user of the data directory needs no key."""
    other = make_project(tmp_path_factory.mktemp("other") / "project")
    with Serve(user, other, other.parent / "log"):
        key = user.json(served, "keys", "create", "only")["key"]
        assert user.json(other, "keys", "list") == []
        for folder, code in ((served, 0), (other, 2)):
            asked = elsewhere(user, folder, tmp_path, key)
            assert user.run(tmp_path, "search", "bake bread", **asked).returncode == code
            assert user.run(folder, "search", "bake bread").returncode == 0
        assert user.run(served, "keys", "revoke", "only").returncode == 0


def test_others_need_a_key_of_the_right_scope(user: Cli, served: Path, tmp_path: Path) -> None:
    """A missing, wrong, revoked or insufficient key is exit code 2 and names the setting."""
    read = user.json(served, "keys", "create", "reader")["key"]
    admin = user.json(served, "keys", "create", "boss", "--scope", "admin")["key"]

    def run(key: str, *command: str) -> int:
        done = user.run(tmp_path, *command, **elsewhere(user, served, tmp_path, key))
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


def elsewhere(user: Cli, folder: Path, data: Path, key: str) -> dict[str, str]:
    """The environment of another user with a key to a folder's server."""
    url = note_of(user, folder).url
    return {
        "REPERTORY_SERVER_URL": url,
        "REPERTORY_SERVER_API_KEY": key,
        "REPERTORY_DATA_DIR": str(data / "data"),
    }

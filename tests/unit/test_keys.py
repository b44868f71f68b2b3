"""A server's keys are created, listed, replaced and revoked, also while it runs."""

import os
import stat
import sys
from pathlib import Path

import msgspec
import pytest

from repertory.errors import ConfigurationError, StoreError, UsageError
from repertory.keys import Key, Keys, Scope, keys_of
from repertory.settings import load
from repertory.system.files import changing
from tests.support.at_once import answers_at_once
from tests.support.builders import write

# Creates 20 keys, revokes every second one, and prints the tokens of the others.
CREATE = """
import sys
from pathlib import Path
from repertory.keys import Keys, Scope
path, name = sys.argv[1:]
print("ready", flush=True)
sys.stdin.readline()
for number in range(10):
    print(Keys(Path(path)).create(f"{name}{number}", Scope.READ))
    Keys(Path(path)).create(f"{name}{number}-revoked", Scope.READ)
    Keys(Path(path)).revoke(f"{name}{number}-revoked")
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The path of the key file, which does not exist yet."""
    return tmp_path / "data" / "keys.json"


def scopes(keys: Keys, token: str) -> frozenset[Scope]:
    """The scopes of a token; empty if it is unknown."""
    key = keys.find(token)
    return key.scopes if key else frozenset()


def test_a_token_has_the_scopes_of_its_key(path: Path) -> None:
    """Admin includes read; an invalid token has no scope."""
    keys = Keys(path)
    reader, admin = keys.create("reader", Scope.READ), keys.create("boss", Scope.ADMIN)
    assert scopes(keys, reader) == {Scope.READ}
    assert scopes(keys, keys.create("agent", Scope.CALL)) == {Scope.READ, Scope.CALL}
    assert scopes(keys, admin) == set(Scope)
    for wrong in ("", reader[:-1], reader + "x", "é\ud800\0", "x" * 1_000_000):
        assert scopes(keys, wrong) == frozenset()


def test_no_token_is_stored(path: Path) -> None:
    """The file contains digests, and only its owner can read it."""
    token = Keys(path).create("ci", Scope.READ)
    text = path.read_text()
    assert token not in text
    assert token.removeprefix("rpt_") not in text
    assert len(token) >= 43
    if os.name == "posix":
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_key_is_replaced_while_a_server_runs(path: Path) -> None:
    """Both keys are valid at first, then only the new one, without a restart."""
    server, command = Keys(path), Keys(path)
    old = command.create("team-2025", Scope.READ)
    assert scopes(server, old)
    new = command.create("team-2026", Scope.READ)
    assert scopes(server, old)
    assert scopes(server, new)
    command.revoke("team-2025")
    assert not scopes(server, old)
    assert scopes(server, new)
    assert [key.name for key in command.list()] == ["team-2026"]


def test_keys_are_required_once_the_file_exists(path: Path) -> None:
    """Revoking all keys locks the server instead of opening it."""
    keys = Keys(path)
    assert not keys.required
    token = keys.create("only", Scope.ADMIN)
    assert keys.required
    keys.revoke("only")
    assert keys.required
    assert not scopes(keys, token)


@pytest.mark.parametrize("content", [None, b"", b"{", b"[{}]", b"\xff", b'[{"name": "x"}]'])
def test_a_running_server_keeps_its_keys_if_the_file_breaks(
    path: Path, content: bytes | None
) -> None:
    """The active keys stay valid while the file is missing or unreadable."""
    keys = Keys(path)
    token = keys.create("ci", Scope.READ)
    assert scopes(keys, token)
    if content is None:
        path.unlink()
    else:
        path.write_bytes(content)
    assert keys.required
    assert scopes(keys, token)


def test_a_file_that_is_broken_at_the_start_admits_no_caller(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The problem is logged once, and replacing the file repairs it without a restart."""
    write(path, "nonsense")
    keys = Keys(path)
    assert keys.required
    assert not scopes(keys, "anything")
    assert [record.message for record in caplog.records] == ["keys_unreadable"]
    with pytest.raises(ConfigurationError, match="restore the file"):
        keys.list()
    with pytest.raises(ConfigurationError):
        keys.create("new", Scope.READ)
    assert path.read_text() == "nonsense"
    path.unlink()
    assert scopes(keys, Keys(path).create("new", Scope.READ))


@pytest.mark.parametrize("name", ["", "a b", "x" * 65, "../x", "a\n", "a\0"])
def test_an_invalid_name_is_rejected(path: Path, name: str) -> None:
    """No file is written."""
    with pytest.raises(UsageError, match="cannot be named"):
        Keys(path).create(name, Scope.READ)
    assert not path.exists()


def test_names_are_unique(path: Path) -> None:
    """A second key with the same name is refused, and so is revoking a missing key."""
    keys = Keys(path)
    keys.create("ci", Scope.READ)
    with pytest.raises(UsageError, match="already"):
        keys.create("ci", Scope.ADMIN)
    with pytest.raises(UsageError, match="no key 'other'"):
        keys.revoke("other")


def test_concurrent_changes_keep_all_keys(path: Path) -> None:
    """Processes that change the file at the same time do not overwrite each other."""
    commands = [[sys.executable, "-c", CREATE, str(path), name] for name in ("a", "b", "c")]
    tokens = " ".join(answers_at_once(commands)).split()
    assert len({*tokens}) == 30
    keys = Keys(path)
    assert all(scopes(keys, token) for token in tokens)
    assert len(keys.list()) == 30


def test_no_change_overtakes_another(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reset during the creation of a key would be undone when that key is stored."""
    keys = Keys(path)
    keys.create("ci", Scope.READ)
    before = path.read_bytes()
    monkeypatch.setattr("repertory.system.files.LOCK_TIMEOUT_S", 0.01)
    changes = (lambda: keys.create("new", Scope.READ), lambda: keys.revoke("ci"), keys.reset)
    for change in changes:
        with changing(path), pytest.raises(StoreError, match="Another process is changing"):
            change()
    assert path.read_bytes() == before


def test_the_number_of_keys_is_bounded(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another key can be created once one is revoked."""
    monkeypatch.setattr("repertory.keys.MAX_KEYS", 2)
    keys = Keys(path)
    keys.create("a", Scope.READ)
    keys.create("b", Scope.READ)
    with pytest.raises(UsageError, match="revoke some"):
        keys.create("c", Scope.READ)
    keys.revoke("a")
    keys.create("c", Scope.READ)


def test_each_index_directory_has_its_own_keys(tmp_path: Path) -> None:
    """With Redis or a configured key file, all directories share one file."""
    data = {"data_dir": str(tmp_path / "data")}
    one, two = tmp_path / "one", tmp_path / "two"
    settings = load(data, tmp_path, {})
    keys_of(settings, one).create("ci", Scope.READ)
    assert keys_of(settings, one).required
    assert not keys_of(settings, two).required
    for shared in ({"redis_url": "redis://localhost"}, {"keys": str(tmp_path / "mine.json")}):
        settings = load({**data, **shared}, tmp_path, {})
        keys_of(settings, one).create("ci", Scope.READ)
        assert keys_of(settings, two).required
    assert (tmp_path / "data" / "keys.json").is_file()
    assert (tmp_path / "mine.json").is_file()


def test_keys_that_older_versions_stored_for_all_directories_stay_valid(path: Path) -> None:
    """They are valid for each directory until its keys are reset."""
    token = Keys(path).create("old", Scope.READ)
    one, two = (Keys(path.parent / "keys" / name, path) for name in ("1.json", "2.json"))
    assert [bool(scopes(keys, token)) for keys in (one, two)] == [True, True]
    added = one.create("new", Scope.READ)
    assert [bool(scopes(one, known)) for known in (token, added)] == [True, True]
    assert not scopes(two, added)
    one.reset()
    assert [keys.required for keys in (one, two)] == [False, True]


def test_a_revoked_key_of_an_older_version_stays_valid_for_other_directories(path: Path) -> None:
    """The method says so; a newer key of the same name is another key."""
    token = Keys(path).create("old", Scope.READ)
    one, two = (Keys(path.parent / "keys" / name, path) for name in ("1.json", "2.json"))
    assert one.revoke("old")
    assert [bool(scopes(keys, token)) for keys in (one, two)] == [False, True]
    one.create("old", Scope.READ)
    assert not one.revoke("old")
    Keys(path).create("other", Scope.READ)
    assert not Keys(path).revoke("other")


def test_a_reset_opens_a_running_server(path: Path) -> None:
    """A reset also opens a server whose keys are all revoked; a new key closes it again."""
    server, command = Keys(path), Keys(path)
    old = command.create("old", Scope.ADMIN)
    command.revoke("old")
    assert server.required
    command.reset()
    assert not server.required
    assert not scopes(server, old)
    assert command.list() == []
    assert scopes(server, command.create("new", Scope.READ))
    assert server.required


def test_a_broken_file_can_be_reset(path: Path) -> None:
    """A reset replaces the broken file, so its owner need not delete it."""
    write(path, "nonsense")
    server = Keys(path)
    assert server.required
    Keys(path).reset()
    assert not server.required


def test_the_file_is_json_with_one_object_per_key(path: Path) -> None:
    """Each object has the name, the scope and the creation time of a key."""
    Keys(path).create("ci", Scope.READ)
    (key,) = msgspec.json.decode(path.read_bytes(), type=list[Key])
    assert (key.name, key.scope) == ("ci", Scope.READ)
    assert key.made > 1_700_000_000

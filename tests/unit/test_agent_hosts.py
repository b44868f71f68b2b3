"""Connecting agent hosts: configuration files per system, states, plans, and undoing."""

import json
import os
import stat
import subprocess
import sys
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from repertory.agent_hosts import plan, writing
from repertory.agent_hosts.document import entry_in, with_entry, written
from repertory.agent_hosts.host import Host, Machine, Scope, System
from repertory.agent_hosts.our_entry import OurServer, endpoint, entry_for, program, read_key
from repertory.agent_hosts.plan import State, Target, connecting, state_of, target_for, undoing
from repertory.agent_hosts.records import Records, backup_of
from repertory.agent_hosts.table import HOSTS, host_named
from repertory.errors import ConfigurationError, StoreError, UsageError
from repertory.sources.mcp.config import read_files
from repertory_admin.show.hosts import outcome, row
from tests.support.generated_documents import FILES
from tests.support.host_files import BOM, files

LOCAL = OurServer(["/opt/repertory", "mcp"])
TEAM = OurServer(["/opt/repertory", "mcp"], "https://team.example/mcp", "secret-key")

# The configuration file of each host on Linux, macOS and Windows, and in a project.
PATHS = {
    "claude-code": ("~/.claude.json", "~/.claude.json", "~/.claude.json", ".mcp.json"),
    "claude-desktop": (
        "~/.config/Claude/claude_desktop_config.json",
        "~/Library/Application Support/Claude/claude_desktop_config.json",
        "~/AppData/Roaming/Claude/claude_desktop_config.json",
        None,
    ),
    "cursor": (
        "~/.cursor/mcp.json",
        "~/.cursor/mcp.json",
        "~/.cursor/mcp.json",
        ".cursor/mcp.json",
    ),
    "vscode": (
        "~/.config/Code/User/mcp.json",
        "~/Library/Application Support/Code/User/mcp.json",
        "~/AppData/Roaming/Code/User/mcp.json",
        ".vscode/mcp.json",
    ),
    "windsurf": (*("~/.codeium/windsurf/mcp_config.json",) * 3, None),
    "codex": (*("~/.codex/config.toml",) * 3, ".codex/config.toml"),
    "gemini": (*("~/.gemini/settings.json",) * 3, ".gemini/settings.json"),
    "zed": (
        "~/.config/zed/settings.json",
        "~/.config/zed/settings.json",
        "~/AppData/Roaming/Zed/settings.json",
        ".zed/settings.json",
    ),
    "opencode": (*("~/.config/opencode/opencode.json",) * 3, "opencode.json"),
    "goose": (
        "~/.config/goose/config.yaml",
        "~/.config/goose/config.yaml",
        "~/AppData/Roaming/Block/goose/config/config.yaml",
        None,
    ),
}
SCOPED = [(host, scope) for host in HOSTS for scope in host.places]


def named(value: object) -> str:
    """The id of a parameter."""
    return value.id if isinstance(value, Host) else str(value)


def machine(root: Path, system: System = System.LINUX, **environment: str) -> Machine:
    """A machine with a home and a project."""
    return Machine(system, root / "home", root / "project", environment)


def target(root: Path, host: Host, scope: Scope = Scope.USER) -> Target:
    """The configuration of a host on Linux."""
    found = target_for(host, scope, machine(root))
    assert found
    return found


def put(at: Target, data: bytes | None) -> None:
    """Write the file of a host; None leaves it missing."""
    if data is not None:
        at.file.parent.mkdir(parents=True, exist_ok=True)
        at.file.write_bytes(data)


def connect(at: Target, records: Records, server: OurServer = LOCAL) -> None:
    """Connect a host."""
    wanted = entry_for(at.host, at.scope, machine(at.file.parent), server)
    change = connecting(at, wanted, records)
    if change.changes:
        writing.connect(change, records)


def undo(at: Target, records: Records) -> None:
    """Disconnect a host."""
    change = undoing(at, records)
    if change.changes:
        writing.undo(change, records)


def everything(root: Path) -> dict[str, bytes | None]:
    """The content of each file below a folder; None for other entries."""
    return {
        str(path.relative_to(root)): path.read_bytes() if path.is_file() else None
        for path in root.rglob("*")
    }


@pytest.mark.parametrize("name", PATHS)
@pytest.mark.parametrize("system", System)
def test_each_host_has_its_file(tmp_path: Path, name: str, system: System) -> None:
    """The configuration files are at the documented paths of all three systems."""
    here = machine(tmp_path, system)
    *own, shared = PATHS[name]
    user = target_for(host_named(name), Scope.USER, here)
    project = target_for(host_named(name), Scope.PROJECT, here)
    assert user
    assert str(user.file).replace(str(here.home), "~") == own[list(System).index(system)]
    assert (project and str(project.file.relative_to(here.project))) == shared


def test_every_host_is_in_the_tests() -> None:
    """A new host needs its paths, and files like those of its users."""
    assert [host.id for host in HOSTS] == list(PATHS)


@pytest.mark.parametrize(
    ("name", "system", "variable", "file"),
    [
        ("claude-code", System.LINUX, "CLAUDE_CONFIG_DIR", ".claude.json"),
        ("codex", System.MACOS, "CODEX_HOME", "config.toml"),
        ("zed", System.LINUX, "XDG_CONFIG_HOME", "zed/settings.json"),
        ("opencode", System.WINDOWS, "XDG_CONFIG_HOME", "opencode/opencode.json"),
        ("goose", System.LINUX, "XDG_CONFIG_HOME", "goose/config.yaml"),
        ("goose", System.MACOS, "XDG_CONFIG_HOME", "goose/config.yaml"),
        ("claude-desktop", System.WINDOWS, "APPDATA", "Claude/claude_desktop_config.json"),
        ("vscode", System.WINDOWS, "APPDATA", "Code/User/mcp.json"),
    ],
)
def test_variables_move_a_file(
    tmp_path: Path, name: str, system: System, variable: str, file: str
) -> None:
    """The environment variables that the hosts follow move the file here, too."""
    here = machine(tmp_path, system, **{variable: str(tmp_path / "moved")})
    found = target_for(host_named(name), Scope.USER, here)
    assert found
    assert found.file == tmp_path / "moved" / file


def test_relative_folders_of_variables_are_ignored(tmp_path: Path) -> None:
    """The XDG specification requires this."""
    found = target_for(host_named("zed"), Scope.USER, machine(tmp_path, XDG_CONFIG_HOME="config"))
    assert found
    assert found.file == tmp_path / "home/.config/zed/settings.json"


def test_an_existing_file_is_preferred(tmp_path: Path) -> None:
    """Opencode reads both names; no second file is created."""
    file = tmp_path / "home/.config/opencode/opencode.jsonc"
    file.parent.mkdir(parents=True)
    file.write_text("{}")
    assert target(tmp_path, host_named("opencode")).file == file


@pytest.mark.parametrize("host", HOSTS, ids=named)
def test_a_host_is_found_by_its_folder(tmp_path: Path, host: Host) -> None:
    """No host is found in an empty home; a host's folder is enough to find it."""
    here = machine(tmp_path, PATH=str(tmp_path / "bin"))
    assert not host.is_installed(here)
    here.folder(host.traces[0]).mkdir(parents=True)
    assert host.is_installed(here)
    assert [one for one in HOSTS if one.is_installed(here)] == [host]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows finds programs by their suffix")
def test_a_host_is_found_by_its_program(tmp_path: Path) -> None:
    """Before its first start, a host has no folder."""
    program_file = tmp_path / "bin" / "codex"
    program_file.parent.mkdir()
    program_file.write_text("#!/bin/sh\n")
    program_file.chmod(0o755)
    assert host_named("codex").is_installed(machine(tmp_path, PATH=str(program_file.parent)))


CASES = [
    pytest.param(host, scope, kind, id=f"{host.id}-{scope}-{kind}")
    for host, scope in SCOPED
    for kind in files(host.id, host.servers)
]


@pytest.mark.parametrize(("host", "scope", "kind"), CASES)
def test_undoing_restores_every_byte(tmp_path: Path, host: Host, scope: Scope, kind: str) -> None:
    """The file or its absence, and its folder, are as before, without additional files."""
    at, records = target(tmp_path, host, scope), Records(tmp_path / "data")
    put(at, files(host.id, host.servers)[kind])
    before = everything(tmp_path)
    connect(at, records)
    after = at.file.read_bytes()
    assert entry_in(after, host.syntax, host.keys)
    assert after.startswith(BOM) == (
        before.get(str(at.file.relative_to(tmp_path))) or b""
    ).startswith(BOM)
    if b"\r\n" in after:
        assert after.count(b"\n") == after.count(b"\r\n")
    assert backup_of(at.file).exists() == (kind != "no file")
    connect(at, records)
    assert at.file.read_bytes() == after
    connect(at, records, TEAM)
    undo(at, records)
    left = {
        path: data for path, data in everything(tmp_path).items() if not path.startswith("data")
    }
    assert left == before
    undo(at, records)


@pytest.mark.parametrize(("host", "scope", "kind"), CASES)
def test_undoing_keeps_later_edits(tmp_path: Path, host: Host, scope: Scope, kind: str) -> None:
    """Only our entry is removed; a comment that the user added meanwhile stays."""
    at, records = target(tmp_path, host, scope), Records(tmp_path / "data")
    before = files(host.id, host.servers)[kind]
    put(at, before)
    connect(at, records)
    mark = b"\n// later\n" if host.syntax == "json" else b"\n# later\n"
    at.file.write_bytes(at.file.read_bytes() + mark)
    undo(at, records)
    after = at.file.read_bytes()
    assert after.endswith(mark)
    assert b"repertory" not in after.replace(b"[mcp_servers.repertory]", b"") or before is None
    rest = after.removesuffix(mark)
    assert entry_in(rest, host.syntax, host.keys) is None
    if kind in {"in use", "Windows line ends", "byte order mark", "both", "more lines at the end"}:
        assert rest == before


def test_opencode_2_keeps_its_servers(tmp_path: Path) -> None:
    """It also reads an entry in the format of opencode 1, beside those in its own."""
    at, records = target(tmp_path, host_named("opencode")), Records(tmp_path / "data")
    before = b"""{
  "mcp": {
    "timeout": { "startup": 5000 },
    "servers": {
      "everything": { "type": "local", "command": ["npx", "everything"] }
    }
  }
}
"""
    put(at, before)
    connect(at, records)
    assert {one.name for one in read_files([at.file]).servers} == {"everything", "repertory"}
    undo(at, records)
    assert at.file.read_bytes() == before


@settings(max_examples=30)
@given(data=st.data())
def test_undoing_restores_every_byte_of_any_file(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """Any content is restored, with or without an earlier entry of our name."""
    root = tmp_path_factory.mktemp("any")
    host = data.draw(st.sampled_from(HOSTS))
    at, records = target(root, host), Records(root / "data")
    text = data.draw(FILES[host.syntax])
    put(at, text.encode())
    for server in data.draw(st.lists(st.sampled_from([LOCAL, TEAM]), min_size=1, max_size=3)):
        connect(at, records, server)
    undo(at, records)
    assert at.file.read_bytes() == text.encode()


def test_undoing_restores_an_earlier_entry_of_our_name(tmp_path: Path) -> None:
    """The entry is restored even if the file was edited meanwhile."""
    at, records = target(tmp_path, host_named("cursor")), Records(tmp_path / "data")
    put(at, b'{"mcpServers": {"repertory": {"command": "mine"}}}')
    connect(at, records)
    edited = at.file.read_bytes().replace(b'{"mcpServers"', b'{"a": 1, "mcpServers"')
    at.file.write_bytes(edited)
    undo(at, records)
    assert at.file.read_bytes() == (
        b'{"a": 1, "mcpServers": {"repertory": {\n  "command": "mine"\n}}}'
    )


def test_edits_between_two_connections_stay(tmp_path: Path) -> None:
    """Connecting again with other options works as if the first connection had been undone."""
    at, records = target(tmp_path, host_named("gemini")), Records(tmp_path / "data")
    put(at, b'{\n  "a": 1\n}\n')
    connect(at, records)
    at.file.write_bytes(at.file.read_bytes().replace(b'"a": 1', b'"a": 2'))
    connect(at, records, TEAM)
    undo(at, records)
    assert at.file.read_bytes() == b'{\n  "a": 2\n}\n'


def test_undoing_without_a_record_removes_only_the_entry(tmp_path: Path) -> None:
    """The record is missing on another machine that shares the configuration."""
    at = target(tmp_path, host_named("claude-desktop"))
    put(at, b"{}")
    connect(at, Records(tmp_path / "data"))
    undo(at, Records(tmp_path / "other"))
    assert at.file.read_bytes() == b'{\n  "mcpServers": {}\n}'


def test_settings_of_the_user_in_the_entry_stay(tmp_path: Path) -> None:
    """Settings such as a timeout do not affect whether the host counts as connected."""
    at, records = target(tmp_path, host_named("codex")), Records(tmp_path / "data")
    put(at, b"[mcp_servers.repertory]\ncommand = 'old'\nstartup_timeout_sec = 60\n")
    wanted = entry_for(at.host, at.scope, machine(tmp_path), LOCAL)
    assert state_of(at, wanted) == (State.DIFFERS, "old")
    connect(at, records)
    entry = entry_in(at.file.read_bytes(), at.host.syntax, at.host.keys)
    assert entry == {"command": "/opt/repertory", "startup_timeout_sec": 60, "args": ["mcp"]}
    assert state_of(at, wanted) == (State.CONNECTED, "/opt/repertory mcp")


@pytest.mark.parametrize("server", [LOCAL, TEAM], ids=["program", "url"])
@pytest.mark.parametrize("host", [one for one in HOSTS if Scope.PROJECT in one.places], ids=named)
def test_foreign_settings_in_a_project_s_entry_are_removed(
    tmp_path: Path, host: Host, server: OurServer
) -> None:
    """Variables, folders and permissions are shown as a difference and removed; a timeout stays."""
    at, records = target(tmp_path, host, Scope.PROJECT), Records(tmp_path / "data")
    wanted = entry_for(host, at.scope, machine(tmp_path), server)
    tables = ("env", "environment", "headers", "http_headers", "env_http_headers")
    theirs: dict[str, Any] = {key: {"PYTHONPATH": "./evil"} for key in tables}
    theirs |= {"envFile": "./evil.env", "cwd": "./evil", "env_vars": ["TOKEN"], "trust": True}
    mine = {**wanted, "timeout": 60}
    put(at, with_entry(b"", host.syntax, host.keys, {**theirs, **mine}))
    assert state_of(at, wanted)[0] is State.DIFFERS
    writing.connect(connecting(at, wanted, records), records)
    assert entry_in(at.file.read_bytes(), host.syntax, host.keys) == mine
    assert state_of(at, wanted)[0] is State.CONNECTED


@pytest.mark.parametrize("host", [one for one in HOSTS if one.remote], ids=named)
def test_a_key_goes_to_no_other_server(tmp_path: Path, host: Host) -> None:
    """The key stays if the URL is the same, and is removed if the URL changes."""
    at, records = target(tmp_path, host), Records(tmp_path / "data")
    connect(at, records, TEAM)
    as_it_was = at.file.read_bytes()
    connect(at, records, OurServer(TEAM.words, TEAM.url))
    assert at.file.read_bytes() == as_it_was
    connect(at, records, OurServer(TEAM.words, "https://other.example/mcp"))
    wanted = entry_for(
        host, at.scope, machine(tmp_path), OurServer([], "https://other.example/mcp")
    )
    assert entry_in(at.file.read_bytes(), host.syntax, host.keys) == wanted


def test_a_header_variable_with_the_key_goes_to_no_other_server(tmp_path: Path) -> None:
    """Codex can fill headers from variables. Only the one with the key is removed."""
    at, records = target(tmp_path, host_named("codex")), Records(tmp_path / "data")
    put(
        at,
        f"[mcp_servers.repertory]\nurl = '{TEAM.url}'\n"
        "env_http_headers = {Authorization = 'KEY', X-Team = 'TEAM'}\n".encode(),
    )
    connect(at, records, OurServer(TEAM.words, "https://other.example/mcp"))
    entry = entry_in(at.file.read_bytes(), at.host.syntax, at.host.keys)
    assert entry == {"url": "https://other.example/mcp", "env_http_headers": {"X-Team": "TEAM"}}


def test_other_headers_of_the_user_stay(tmp_path: Path) -> None:
    """Only the ``Authorization`` header is replaced, whatever its case."""
    at, records = target(tmp_path, host_named("cursor")), Records(tmp_path / "data")
    headers = {"X-Team": "a", "authorization": "Bearer old"}
    put(
        at,
        json.dumps({"mcpServers": {"repertory": {"url": TEAM.url, "headers": headers}}}).encode(),
    )
    connect(at, records, TEAM)
    entry = entry_in(at.file.read_bytes(), at.host.syntax, at.host.keys)
    assert entry
    assert entry["headers"] == {
        "X-Team": "a",
        "Authorization": "Bearer ${env:REPERTORY_SERVER_API_KEY}",
    }


@pytest.mark.parametrize("host", HOSTS, ids=named)
def test_the_state_of_a_host(tmp_path: Path, host: Host) -> None:
    """The state is read from the file; a host connected to another server counts as connected."""
    at, records = target(tmp_path, host), Records(tmp_path / "data")
    wanted = entry_for(host, at.scope, machine(tmp_path), LOCAL)
    assert state_of(at, wanted) == (State.MISSING, "")
    put(at, b"\n\n{[")
    state, detail = state_of(at, wanted)
    assert (state, f"{at.file}:" in detail) == (State.UNREADABLE, True)
    at.file.unlink()
    connect(at, records, TEAM)
    state, detail = state_of(at, wanted)
    assert "https://team.example" in detail
    assert state == (State.CONNECTED if host.remote else State.DIFFERS)


@pytest.mark.parametrize("host", HOSTS, ids=named)
def test_a_key_is_written_only_where_a_host_reads_no_variable(tmp_path: Path, host: Host) -> None:
    """Claude Desktop supports no servers by URL, and Zed no variables."""
    entry = str(entry_for(host, Scope.USER, machine(tmp_path), TEAM))
    assert ("secret-key" in entry) == (host.id in {"claude-desktop", "zed"})
    assert ("REPERTORY_SERVER_API_KEY" in entry) == (host.id != "zed")
    assert "secret-key" not in repr(TEAM)
    without = str(entry_for(host, Scope.USER, machine(tmp_path), OurServer(TEAM.words, TEAM.url)))
    assert "uthorization" not in without
    assert "API_KEY" not in without


@pytest.mark.skipif(os.name == "nt", reason="Windows has other permissions")
@pytest.mark.parametrize("mode", [0o600, 0o640, 0o644])
def test_permissions_stay(tmp_path: Path, mode: int) -> None:
    """The file keeps its mode, and its backup gets the same mode."""
    at, records = target(tmp_path, host_named("zed")), Records(tmp_path / "data")
    put(at, b"{}")
    at.file.chmod(mode)
    connect(at, records)
    assert {stat.S_IMODE(one.stat().st_mode) for one in (at.file, backup_of(at.file))} == {mode}
    undo(at, records)
    assert stat.S_IMODE(at.file.stat().st_mode) == mode


@pytest.mark.skipif(os.name == "nt", reason="Windows has other permissions")
def test_a_new_file_of_the_user_is_private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It may contain keys; a project's file is shared. The process-wide umask is not changed."""
    records, old = Records(tmp_path / "data"), os.umask(0o022)
    try:
        monkeypatch.setattr(os, "umask", lambda _mask: pytest.fail("the umask was changed"))
        for scope, mode in ((Scope.USER, 0o600), (Scope.PROJECT, 0o644)):
            at = target(tmp_path, host_named("vscode"), scope)
            connect(at, records)
            assert stat.S_IMODE(at.file.stat().st_mode) == mode
    finally:
        monkeypatch.undo()
        os.umask(old)


@pytest.mark.skipif(os.name == "nt", reason="links need a privilege on Windows")
@pytest.mark.parametrize("exists", [True, False])
def test_a_link_is_written_through(tmp_path: Path, exists: bool) -> None:
    """Users link their dotfiles. The link stays, and the backup is beside the link."""
    at, records = target(tmp_path, host_named("zed")), Records(tmp_path / "data")
    real = tmp_path / "dotfiles" / "zed.json"
    real.parent.mkdir()
    if exists:
        real.write_bytes(b"{}\n")
    at.file.parent.mkdir(parents=True)
    at.file.symlink_to(real)
    before = everything(tmp_path)
    connect(at, records)
    assert at.file.is_symlink()
    assert b"repertory" in real.read_bytes()
    assert backup_of(at.file).exists() is exists
    undo(at, records)
    left = {
        path: data for path, data in everything(tmp_path).items() if not path.startswith("data")
    }
    assert left == before
    assert at.file.is_symlink()


@pytest.mark.parametrize("is_folder", [False, True])
def test_a_link_of_a_project_is_not_followed_out_of_it(tmp_path: Path, is_folder: bool) -> None:
    """A cloned project can neither change the user's files nor obtain a copy of them."""
    at, records = target(tmp_path, host_named("gemini"), Scope.PROJECT), Records(tmp_path / "d")
    project = machine(tmp_path).project
    mine = tmp_path / "mine" / at.file.name
    mine.parent.mkdir()
    mine.write_bytes(b'{"token": "SECRET"}')
    project.mkdir(exist_ok=True)
    if is_folder:
        at.file.parent.symlink_to(mine.parent)
    else:
        at.file.parent.mkdir()
        at.file.symlink_to(mine)
    before = everything(tmp_path)
    for act in (connect, undo):
        with pytest.raises(ConfigurationError, match=r"leads out of .*neither read nor written"):
            act(at, records)
    assert state_of(at, {})[0] is State.UNREADABLE
    assert everything(tmp_path) == before


def test_a_link_inside_of_a_project_is_followed(tmp_path: Path) -> None:
    """A project's link is refused only if it leads out of the project."""
    at, records = target(tmp_path, host_named("gemini"), Scope.PROJECT), Records(tmp_path / "d")
    inside = machine(tmp_path).project / "inside"
    inside.mkdir(parents=True)
    at.file.parent.symlink_to("inside")
    connect(at, records)
    assert b"repertory" in (inside / at.file.name).read_bytes()


def test_a_link_created_after_the_plan_is_noticed(tmp_path: Path) -> None:
    """Nothing is written to its target."""
    at, records = target(tmp_path, host_named("cursor"), Scope.PROJECT), Records(tmp_path / "data")
    put(at, b"{}")
    (tmp_path / "mine").write_bytes(b"{}")
    change = connecting(at, {"command": "x"}, records)
    at.file.unlink()
    at.file.symlink_to(tmp_path / "mine")
    with pytest.raises(ConfigurationError, match="leads out of"):
        writing.connect(change, records)
    assert (tmp_path / "mine").read_bytes() == b"{}"


def test_a_change_after_the_plan_is_noticed(tmp_path: Path) -> None:
    """A changed file is not overwritten, and a removed file is reported."""
    at, records = target(tmp_path, host_named("cursor")), Records(tmp_path / "data")
    put(at, b"{}")
    change = connecting(at, {"command": "x"}, records)
    at.file.write_bytes(b'{"new": 1}')
    with pytest.raises(UsageError, match=r"mcp\.json has changed in the meantime"):
        writing.connect(change, records)
    assert at.file.read_bytes() == b'{"new": 1}'
    assert not backup_of(at.file).exists()
    at.file.unlink()
    with pytest.raises(UsageError, match="has changed in the meantime"):
        writing.connect(change, records)


def test_only_one_of_several_concurrent_commands_writes(tmp_path: Path) -> None:
    """The others report that the file has changed, and no partial file is left."""
    at, records = target(tmp_path, host_named("cursor")), Records(tmp_path / "data")
    put(at, b"{}")
    changes = [connecting(at, {"command": f"program {n}"}, records) for n in range(8)]
    errors = []

    def write(change: plan.Plan) -> None:
        try:
            writing.connect(change, records)
        except UsageError as error:
            errors.append(error)

    threads = [Thread(target=write, args=(change,)) for change in changes]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(errors) == 7
    assert at.file.read_bytes() in {change.after for change in changes}
    assert sorted(path.name for path in at.file.parent.iterdir()) == [
        "mcp.json",
        "mcp.json.repertory-backup",
    ]


def test_a_file_that_cannot_be_read_is_left_alone(tmp_path: Path) -> None:
    """The error names the file and the line."""
    at, records = target(tmp_path, host_named("claude-code")), Records(tmp_path / "data")
    put(at, b'{\n  "mcpServers": {\n    "a" {}\n  }\n}\n')
    before = at.file.read_bytes()
    for run in (connect, undo):
        with pytest.raises(ConfigurationError, match=r"\.claude\.json:3: the JSON cannot be read"):
            run(at, records)
    assert at.file.read_bytes() == before


@pytest.mark.parametrize("name", ["claude-desktop", "windsurf"])
def test_a_project_whose_path_is_no_unicode_is_refused(tmp_path: Path, name: str) -> None:
    """The entry must contain the path, which the file cannot represent."""
    at = target(tmp_path, host_named(name))
    project = tmp_path / os.fsdecode(b"caf\xe9")
    odd = Machine(System.LINUX, tmp_path / "home", project, {})
    wanted = entry_for(at.host, at.scope, odd, LOCAL)
    with pytest.raises(UsageError, match="not valid Unicode"):
        connecting(at, wanted, Records(tmp_path / "data"))
    with pytest.raises(UsageError, match="not valid Unicode"):
        written(at.host.syntax, at.host.keys, wanted)


def test_a_folder_that_may_not_be_read_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is shown as unreadable. The error is simulated, because root can read everything."""
    at = target(tmp_path, host_named("vscode"), Scope.PROJECT)

    def refuse(*_: object, **_options: object) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "open", refuse)
    monkeypatch.setattr(os, "stat", refuse)
    shown = row(at, *state_of(at, {}))
    monkeypatch.undo()
    assert (shown["state"], shown["exists"]) == (State.UNREADABLE, False)


def test_a_folder_in_place_of_the_file_is_refused(tmp_path: Path) -> None:
    """The error says that the path is not a regular file."""
    at = target(tmp_path, host_named("goose"))
    at.file.mkdir(parents=True)
    with pytest.raises(ConfigurationError, match="it is not a regular file"):
        connect(at, Records(tmp_path / "data"))


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_written_is_reported(tmp_path: Path) -> None:
    """The file stays unchanged."""
    at, records = target(tmp_path, host_named("gemini")), Records(tmp_path / "data")
    put(at, b"{}")
    at.file.parent.chmod(0o500)
    with pytest.raises(StoreError, match="cannot be written"):
        connect(at, records)
    assert at.file.read_bytes() == b"{}"


def test_nothing_is_written_if_the_data_directory_is_not_writable(tmp_path: Path) -> None:
    """Without a record, the change could not be undone."""
    at = target(tmp_path, host_named("gemini"))
    put(at, b"{}")
    (tmp_path / "data").write_text("a file")
    with pytest.raises(StoreError, match=r"data.* cannot be written"):
        connect(at, Records(tmp_path / "data"))
    assert at.file.read_bytes() == b"{}"


def test_a_changed_backup_is_not_restored(tmp_path: Path) -> None:
    """If the backup was changed, undoing only removes the entry."""
    at, records = target(tmp_path, host_named("cursor")), Records(tmp_path / "data")
    put(at, b'{\n  "a": 1\n}\n')
    connect(at, records)
    backup_of(at.file).write_bytes(b"{}")
    undo(at, records)
    assert at.file.read_bytes() == b'{\n  "a": 1\n}\n'


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://team.example", "https://team.example/mcp"),
        ("https://team.example/", "https://team.example/mcp"),
        ("http://127.0.0.1:7700/mcp", "http://127.0.0.1:7700/mcp"),
        ("http://127.0.0.1:7700/mcp/skills", "http://127.0.0.1:7700/mcp/skills"),
        ("https://team.example/tools", "https://team.example/tools/mcp"),
        ("https://team.example/mcp-tools", "https://team.example/mcp-tools/mcp"),
    ],
)
def test_the_endpoint_follows_from_the_server_s_url(url: str, expected: str) -> None:
    """``/mcp`` is added to the path unless it is already there."""
    assert endpoint(url) == expected


@pytest.mark.parametrize(
    "url",
    [
        "team.example",
        "ftp://team.example",
        "https://",
        "https://a:b@c",
        "https://:b@c",
        "https://a?",
    ],
)
def test_an_invalid_server_url_is_refused(url: str) -> None:
    """URLs with another scheme, without a host, or with a password or query are refused."""
    with pytest.raises(UsageError, match="it must be a URL like"):
        endpoint(url)


@pytest.mark.parametrize(
    ("data", "said"), [(b"", "a key"), (b"a\nb", "a key"), (b"\xff", "not text")]
)
def test_a_key_file_without_a_key_is_refused(tmp_path: Path, data: bytes, said: str) -> None:
    """The message says whether the file is missing, binary, or not exactly one line."""
    file = tmp_path / "key"
    file.write_bytes(data)
    with pytest.raises(UsageError, match=said):
        read_key(file)
    with pytest.raises(UsageError, match="No such file"):
        read_key(tmp_path / "none")


@pytest.mark.parametrize(
    ("program", "server_url", "is_in_cache"),
    [
        ("/home/anna/.cache/uv/archive-v0/x1/bin/repertory", "", True),
        ("/Users/anna/Library/Caches/pipx/x1/bin/repertory", "", True),
        ("/Users/anna/.local/bin/repertory", "", False),
        ("/home/anna/.cache/uv/archive-v0/x1/bin/repertory", "https://team.example/mcp", False),
    ],
)
def test_a_temporary_program_causes_a_warning(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    program: str,
    server_url: str,
    is_in_cache: bool,
) -> None:
    """If uvx or pipx runs it from a cache, a permanent installation is suggested."""
    at, server = target(tmp_path, host_named("cursor")), OurServer([program, "mcp"], server_url)
    wanted = entry_for(at.host, at.scope, machine(tmp_path), server)
    outcome(connecting(at, wanted, Records(tmp_path)), None, server, undo=False)
    assert ("uv tool install" in capsys.readouterr().err) == is_in_cache


def test_the_program_is_named_by_its_path() -> None:
    """A host started from a desktop does not have the shell's search path."""
    assert Path(program()[0]).is_absolute()
    assert Path(program()[0]).exists()


def test_a_program_without_a_script_imports_nothing_from_the_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A host starts it in the project, which may have a file `repertory.py`."""
    interpreter = tmp_path / "bin" / "python"
    interpreter.parent.mkdir()
    interpreter.symlink_to(sys.executable)
    monkeypatch.setattr(sys, "executable", str(interpreter))
    project = tmp_path / "project"
    project.mkdir()
    (project / "repertory.py").write_text("print('shadowed')")
    command = [sys.executable, *program()[1:], "--version"]
    ran = subprocess.run(command, cwd=project, capture_output=True, text=True, check=False)
    assert "shadowed" not in ran.stdout

"""``repertory connect`` as a user runs it."""

import json
import os
import tomllib
from pathlib import Path
from typing import Any

import pytest

from repertory.agent_hosts.table import HOSTS
from repertory.sources.registry import digest_to_trust
from repertory.trust import TrustStore
from tests.support.builders import write
from tests.support.command_line import Cli

KEY = "rk_0123456789abcdef"
MINE = '{\n  // mine\n  "mcpServers": {\n    "files": { "command": "files" }\n  }\n}\n'


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """An empty project with a `.git` folder."""
    folder = tmp_path / "project"
    (folder / ".git").mkdir(parents=True)
    return folder


@pytest.fixture
def cursor(own: Cli) -> Path:
    """The configuration of Cursor, with a server of the user."""
    file = own.home / ".cursor" / "mcp.json"
    write(file, MINE)
    return file


def entry(file: Path) -> Any:  # noqa: ANN401 - JSON
    """Our entry in a configuration without comments."""
    return json.loads(file.read_text().replace("// mine", ""))["mcpServers"]["repertory"]


def test_without_a_host_the_installed_ones_are_listed(
    own: Cli, project: Path, cursor: Path
) -> None:
    """Installed hosts are listed with their state; if none is, the known ones with exit code 1."""
    codex = own.home / ".codex" / "config.toml"
    write(codex, "a = \n")
    path = {"PATH": str(project)}
    done = own.run(project, "connect", **path)
    rows = [line.split() for line in done.stdout.splitlines()]
    assert rows[0] == ["Host", "Scope", "State", "Configuration", "Connected", "to"]
    assert rows[1] == ["cursor", "user", "not", "connected", "~/.cursor/mcp.json"]
    assert rows[2][:4] == ["codex", "user", "unreadable", "~/.codex/config.toml"]
    assert "~/.codex/config.toml:1: the TOML cannot be read" in done.stdout
    assert len(rows) == 3
    assert done.returncode == 0
    own.run(project, "connect", "cursor", "--yes", **path)
    rows = own.json(project, "connect")
    assert (rows[0]["host"], rows[0]["state"]) == ("cursor", "connected")
    assert rows[0]["detail"].endswith(f"repertory mcp --data-dir {own.data}")
    cursor.unlink()
    cursor.with_name("mcp.json.repertory-backup").unlink()
    cursor.parent.rmdir()
    codex.unlink()
    codex.parent.rmdir()
    done = own.run(project, "connect", **path)
    assert done.returncode == 1
    assert all(host.title in done.stdout for host in HOSTS)
    done = own.run(project, "connect", "--output", "json", **path)
    assert (done.returncode, done.stdout) == (1, "[]\n")


def test_in_the_home_directory_a_configuration_is_shown_once(own: Cli, cursor: Path) -> None:
    """The user's configuration is not listed again as a project's configuration."""
    own.run(own.home, "connect", "cursor", "--yes")
    rows = own.json(own.home, "connect")
    found = [(row["scope"], row["state"]) for row in rows if row["host"] == "cursor"]
    assert found == [("user", "connected")]
    assert cursor.exists()


def test_without_a_terminal_nothing_is_written(own: Cli, project: Path, cursor: Path) -> None:
    """Without a terminal, the diff and the needed flag are shown, and nothing is written."""
    done = own.run(project, "connect", "cursor")
    assert done.returncode == 2
    assert '+    "repertory": {' in done.stdout
    assert "Nothing was written: there is no terminal to ask in; give --yes." in done.stderr
    assert cursor.read_text() == MINE


def test_a_terminal_asks_before_writing(own: Cli, project: Path, cursor: Path) -> None:
    """On a terminal, the file is written only after a yes."""
    code, text = own.in_terminal(project, "connect", "cursor", keys="n\n")
    assert (code, cursor.read_text()) == (2, MINE)
    assert "Write this to ~/.cursor/mcp.json?" in text
    code, text = own.in_terminal(project, "connect", "cursor", keys="y\n")
    assert code == 0
    assert "Cursor is connected: ~/.cursor/mcp.json." in text
    program = Path(entry(cursor)["command"])
    assert program.is_absolute()
    assert program.exists()


def test_connecting_and_undoing(own: Cli, project: Path, cursor: Path) -> None:
    """Connecting and undoing report their changes; repeated, they change nothing."""
    done = own.run(project, "connect", "cursor", "--yes")
    assert done.returncode == 0
    assert "The backup is ~/.cursor/mcp.json.repertory-backup." in done.stderr
    assert "To undo it: repertory connect cursor --undo" in done.stderr
    after = cursor.read_text()
    done = own.run(project, "connect", "cursor", "--yes")
    assert done.stdout == "Cursor is connected already: ~/.cursor/mcp.json.\n"
    assert cursor.read_text() == after
    assert own.json(project, "connect", "cursor", "--yes")["changed"] is False
    done = own.run(project, "connect", "cursor", "--undo", "--yes")
    assert "~/.cursor/mcp.json is as it was before" in done.stdout
    assert cursor.read_text() == MINE
    assert [path.name for path in cursor.parent.iterdir()] == ["mcp.json"]
    done = own.run(project, "connect", "cursor", "--undo")
    assert (done.returncode, done.stdout) == (0, "Cursor is not connected: ~/.cursor/mcp.json.\n")


def test_the_notes_are_in_the_json(own: Cli, project: Path) -> None:
    """JSON output has the notes of a change, and no notes if nothing changed."""
    arguments = ("connect", "vscode", "--project", "--yes")
    first, second = own.json(project, *arguments), own.json(project, *arguments)
    assert any("differs on others" in note for note in first["notes"])
    assert "To undo it: repertory connect vscode --project --undo" in first["notes"][-1]
    assert second["notes"] == []


def test_the_host_starts_with_the_same_data_directory(own: Cli, project: Path) -> None:
    """The entry names the data directory if the host would not find it without this shell."""

    def words(*flags: str | Path, **environment: str) -> list[str]:
        done = own.run(project, "connect", "codex", "--print", *flags, **environment)
        found: list[str] = tomllib.loads(done.stdout)["mcp_servers"]["repertory"]["args"]
        return found

    named = ["mcp", "--data-dir", str(own.data)]
    assert words() == named
    assert words("--data-dir", own.data, REPERTORY_DATA_DIR="") == named
    assert words(REPERTORY_DATA_DIR="some") == ["mcp", "--data-dir", str(project / "some")]
    assert words(REPERTORY_DATA_DIR="") == ["mcp"]
    file = own.home / ".config" / "repertory" / "config.toml"
    write(file, f"data_dir = {json.dumps(str(own.data))}\n")
    assert words(REPERTORY_DATA_DIR="") == ["mcp"]
    assert words() == named


def test_undo_removes_a_created_file(own: Cli, project: Path) -> None:
    """Undo removes a created project configuration, whose entry uses the host's variable."""
    done = own.run(project / ".git", "connect", "vscode", "--project", "--yes")
    assert "differs on others" in done.stderr
    made = json.loads((project / ".vscode" / "mcp.json").read_text())
    words = ["mcp", "--data-dir", str(own.data), "--directory", "${workspaceFolder}"]
    assert made["servers"]["repertory"]["args"] == words
    done = own.run(project, "connect", "vscode", "--project", "--undo", "--yes")
    assert "is removed, since there was none before" in done.stdout
    assert [path.name for path in project.iterdir()] == [".git"]


def test_printing_writes_nothing(own: Cli, project: Path) -> None:
    """`--print` prints the entry in the host's syntax and writes nothing."""
    done = own.run(project, "connect", "codex", "--print")
    assert tomllib.loads(done.stdout)["mcp_servers"]["repertory"]["args"][0] == "mcp"
    assert list(own.home.iterdir()) == []


@pytest.mark.parametrize("way", ["option", "environment", "file"])
def test_a_key_stays_out_of_the_file(own: Cli, project: Path, cursor: Path, way: str) -> None:
    """A key is not written; the host's entry refers to the environment variable."""
    (project / "key").write_text(f"{KEY}\n")
    options = {"option": ["--key", KEY], "file": ["--key-file", "key"]}.get(way, [])
    environment = {"REPERTORY_SERVER_API_KEY": KEY} if way == "environment" else {}
    arguments = ("connect", "cursor", "--url", "https://team.example", *options, "--yes")
    done = own.run(project, *arguments, **environment)
    assert entry(cursor) == {
        "url": "https://team.example/mcp",
        "headers": {"Authorization": "Bearer ${env:REPERTORY_SERVER_API_KEY}"},
    }
    assert "The key was not written: set REPERTORY_SERVER_API_KEY where Cursor" in done.stderr
    assert KEY not in done.stdout + done.stderr


def test_a_key_that_must_be_written(own: Cli, project: Path) -> None:
    """A key is written only if needed, with a note, private permissions and a hidden diff."""
    own.run(project, "connect", "cursor", "--url", "https://team.example", "--yes")
    arguments = ("--url", "https://team.example", "--key", KEY, "--yes")
    done = own.run(project, "connect", "claude-desktop", *arguments)
    file = own.home / ".config" / "Claude" / "claude_desktop_config.json"
    written = entry(file)
    assert written["args"][-2:] == ["--server-url", "https://team.example"]
    assert written["env"] == {"REPERTORY_SERVER_API_KEY": KEY}
    assert file.stat().st_mode & 0o077 == 0
    assert "The file has the key in plain text" in done.stderr
    assert '"REPERTORY_SERVER_API_KEY": "****"' in done.stdout
    assert KEY not in done.stdout + done.stderr
    done = own.run(project, "connect", "claude-desktop", "--undo")
    assert "****" in done.stdout
    assert KEY not in done.stdout + done.stderr
    own_file = own.home / ".config" / "repertory" / "config.toml"
    write(own_file, f'[server]\nurl = "https://team.example"\napi_key = "{KEY}"\n')
    done = own.run(project, "connect", "claude-desktop", *arguments[:2], "--yes")
    assert "the program finds it in your own configuration" in done.stderr
    assert "env" not in entry(file)
    done = own.run(project, "connect", "zed", "--url", "https://other.example", "--print")
    assert KEY not in done.stdout


def test_secrets_of_others_are_not_shown(own: Cli, project: Path, cursor: Path) -> None:
    """The diff hides secrets of other servers in its context lines."""
    cursor.write_text(
        '{\n "mcpServers": {\n  "a": {"env": {"A": "s3cret\\u00e9", "B": "${C}"}}\n }\n}'
    )
    done = own.run(project, "connect", "cursor")
    assert '-  "a": {"env": {"A": "****", "B": "${C}"}}' in done.stdout


def test_a_trusted_configuration_stays_trusted(own: Cli, project: Path) -> None:
    """Connecting keeps the trust of a configuration; undoing after another edit does not."""
    file = project / ".mcp.json"
    file.write_text(MINE)
    own.run(project, "config", "trust", file)
    trust = TrustStore(own.data / "trusted.json")
    assert trust.is_trusted(file, digest_to_trust)
    own.run(project, "connect", "claude-code", "--project", "--yes")
    assert "repertory" in file.read_text()
    assert trust.is_trusted(file, digest_to_trust)
    file.write_text(file.read_text() + " ")
    own.run(project, "connect", "claude-code", "--project", "--undo", "--yes")
    assert not trust.is_trusted(file)


def test_a_host_without_projects_gets_the_directory(
    own: Cli, project: Path, tmp_path: Path
) -> None:
    """The entry of a host without projects names the directory, which must exist for `mcp`."""
    own.run(project, "connect", "claude-desktop", "--yes")
    written = entry(own.home / ".config" / "Claude" / "claude_desktop_config.json")
    assert written["args"][-2:] == ["--directory", str(project)]
    done = own.run(tmp_path, "mcp", "--directory", tmp_path / "missing")
    assert done.returncode == 2
    assert "No such file or directory" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("emacs",), "There is no host 'emacs'; there are claude-code, claude-desktop, cursor"),
        (("goose", "--project"), "Goose has no project configuration; leave out --project."),
        (("--undo",), "Name the host, such as `repertory connect claude-code`."),
        (("zed", "--key", "x"), "--key and --key-file need --url, which is missing."),
        *(
            (("zed", "--url", url), f"--url is {url!r}; it must be a URL like https://")
            for url in ("team", "https://[::1/", "https://h/?a=b", "https://h:abc/", "https://h ")
        ),
        (
            ("zed", "--url", "http://a", "--key", "x", "--key-file", "y"),
            "Give either --key or --key-file.",
        ),
    ],
)
def test_wrong_arguments_are_refused(
    own: Cli, project: Path, arguments: tuple[str, ...], message: str
) -> None:
    """A wrong argument is exit code 2 with a message that says what to do."""
    done = own.run(project, "connect", *arguments)
    assert done.returncode == 2
    assert message in done.stderr


def test_a_file_that_cannot_be_read_is_named_with_its_line(
    own: Cli, project: Path, cursor: Path
) -> None:
    """The error names file and line, and the file is not changed."""
    cursor.write_text('{\n  "mcpServers": {\n')
    done = own.run(project, "connect", "cursor", "--yes")
    assert done.returncode == 2
    assert f"{cursor}:3: the JSON cannot be read" in done.stderr
    assert os.listdir(cursor.parent) == ["mcp.json"]  # noqa: PTH208 - the names alone

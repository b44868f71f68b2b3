"""Run the command line as a user does: in a separate process, with its own home directory."""

import json
import os
import pty
import select
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from tests.support import forked
from tests.support.builders import write

TIMEOUT_S = 100  # only a hanging command reaches it
COMMAND = (sys.executable, "-m", "repertory_admin")

TOOLS = {
    "server": "files",
    "tools": [
        {
            "name": "read_file",
            "description": "Read the contents of a file from disk.",
            "inputSchema": {"type": "object", "properties": {"path": {"type": "string"}}},
            "annotations": {"readOnlyHint": True},
        },
        {
            "name": "search_code",
            "description": "Search for text in all files of a folder.",
            "inputSchema": {"type": "object"},
        },
        {
            "name": "run_command",
            "description": "Run a command in a shell and return what it prints.",
            "inputSchema": {"type": "object"},
            "annotations": {"readOnlyHint": False, "destructiveHint": True},
        },
    ],
}
SKILLS = {
    "bread-baking": "Bake sourdough bread, from feeding the starter to scoring the loaf.",
    "release-notes": "Write release notes out of merged pull requests and a changelog.",
    "steering": "Wide [bold]markup[/bold] \x1b[31mred\x1b[0m 漢字 of a hostile author.",
}


def user_environment(home: Path, data: Path) -> dict[str, str]:
    """The environment variables of a user with these directories and no other settings."""
    names = ("PATH", "LANG", "PYTHONPATH")
    return {name: os.environ[name] for name in names if name in os.environ} | {
        "HOME": str(home),
        "XDG_CONFIG_HOME": str(home / ".config"),
        "REPERTORY_DATA_DIR": str(data),
        "HF_HUB_OFFLINE": "1",
    }


class Cli:
    """Runs commands with a given home and data directory."""

    def __init__(self, home: Path, data: Path) -> None:
        self.home, self.data = home, data
        self.environment = user_environment(home, data)
        self.environment["PYTHONWARNINGS"] = "error::ResourceWarning"

    def run(
        self,
        folder: Path,
        *arguments: str | Path,
        **environment: str,
    ) -> subprocess.CompletedProcess[str]:
        """Run a command without a terminal and without input."""
        settings = self.environment | environment
        if settings.get("PYTHONPATH") == os.environ.get("PYTHONPATH"):
            return forked.run(list(map(str, arguments)), folder, settings, TIMEOUT_S)
        return subprocess.run(  # a fork could not import from another PYTHONPATH
            [*COMMAND, *map(str, arguments)],
            cwd=folder,
            env=settings,
            capture_output=True,
            encoding="utf-8",
            stdin=subprocess.DEVNULL,
            timeout=TIMEOUT_S,
            check=False,
        )

    def json(self, folder: Path, *arguments: str | Path) -> Any:  # noqa: ANN401 - JSON
        """Run a command and parse its JSON output."""
        done = self.run(folder, *arguments, "--output", "json")
        assert done.stdout, done.stderr
        return json.loads(done.stdout)

    def in_terminal(
        self, folder: Path, *arguments: str | Path, keys: str = "", columns: int = 100
    ) -> tuple[int, str]:
        """Run a command in a terminal and type keys; returns its exit code and its output."""
        ours, theirs = pty.openpty()
        process = subprocess.Popen(
            [*COMMAND, *map(str, arguments)],
            cwd=folder,
            env=self.environment | {"TERM": "xterm-256color", "COLUMNS": str(columns)},
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
        )
        os.close(theirs)
        os.write(ours, keys.encode())
        written, end = b"", time.monotonic() + TIMEOUT_S
        try:
            while time.monotonic() < end and select.select([ours], [], [], TIMEOUT_S)[0]:
                try:
                    piece = os.read(ours, 65536)
                except OSError:  # raised by Linux when the other end is closed
                    break
                if not piece:
                    break
                written += piece
            return process.wait(TIMEOUT_S), written.decode("utf-8", "replace")
        finally:
            process.kill()
            process.wait()
            os.close(ours)


PROJECT_ITEMS = 7


def make_project(folder: Path) -> Path:
    """Fill a folder with three tools, three skills and a document."""
    (folder / "tools").mkdir(parents=True)
    (folder / "tools" / "files.json").write_text(json.dumps(TOOLS), "utf-8")
    for name, description in SKILLS.items():
        add_skill(folder, name, f"---\nname: {name}\ndescription: {json.dumps(description)}\n---\n")
    (folder / "handbook.md").write_text("# Handbook\n\nHow holidays are asked for.\n", "utf-8")
    return folder


def add_skill(folder: Path, name: str, text: str) -> Path:
    """Write one skill of a project and return its file."""
    return write(folder / "skills" / name / "SKILL.md", text)

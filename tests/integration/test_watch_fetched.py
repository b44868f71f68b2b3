"""The watch service fetches remote content."""

import socket
from pathlib import Path

import pytest

from repertory.project.workspace import Workspace
from repertory.settings import load
from repertory.sources.fetched import folders
from tests.support.builders import write
from tests.support.elsewhere import SKILL, Repository
from tests.support.watching import Watching

pytestmark = pytest.mark.usefixtures("own_home")


def configured(project: Path, url: object) -> Path:
    """A project with a skill and a repository, both in a trusted configuration."""
    write(project / "skills" / "first" / "SKILL.md", SKILL.format("first"))
    write(
        project / "repertory.toml",
        '[[sources]]\ntype = "skills"\nname = "team"\npath = "skills"\n'
        f'[[sources]]\ntype = "git"\nname = "acme"\nurl = "{url}"\nrefresh = 60\n',
    )
    settings = load({"data_dir": str(project.parent / "kept")}, project)
    Workspace(settings, project).trust.trust(project / "repertory.toml")
    return project


def test_a_repository_is_fetched_at_intervals(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No signal of a change is needed; new MCP servers in it await trust."""
    monkeypatch.setattr(folders, "interval_of", lambda _entry: 0.5)
    repository = Repository(tmp_path / "elsewhere")
    repository.add_skills("pdf")
    with Watching(configured(tmp_path / "project", repository.path)) as watching:
        watching.wait_for("team/first", "acme/skills/pdf")
        repository.add_skills("docx")
        watching.wait_for("team/first", "acme/skills/pdf", "acme/skills/docx")
        repository.commit({".mcp.json": '{"mcpServers": {"lab": {"command": "lab"}}}'})
        watching.wait(
            lambda: any(
                one["name"] == "lab" and one["awaitsTrust"] for one in watching.status["sources"]
            )
        )


def test_a_hanging_fetch_delays_nothing(tmp_path: Path) -> None:
    """The first scan, saves and the end of the service do not wait for it."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"git://127.0.0.1:{server.getsockname()[1]}/never"
        project = configured(tmp_path / "project", url)
        with Watching(project) as watching:
            connection, _ = server.accept()
            watching.wait_for("team/first")
            write(project / "skills" / "second" / "SKILL.md", SKILL.format("second"))
            watching.wait_for("team/first", "team/second")
        with connection:
            while connection.recv(1_000):
                pass  # wait for the end of git

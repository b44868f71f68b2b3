"""Commands in a subdirectory use the project around it, as git does, and name it."""

import json
import signal
from pathlib import Path

import pytest

import repertory
from tests.support.builders import write
from tests.support.command_line import TOOLS, Cli, make_project
from tests.support.query_service import MODEL
from tests.support.server_process import Serve


@pytest.fixture
def repository(project: Path) -> Path:
    """A repository with skills, tools and documents at its top, and code below."""
    (project / ".git").mkdir()
    write(project / "src" / "bake" / "oven.py", "def preheat(): pass\n")
    write(project / "src" / "README.md", "# Sources\n\nWhere the code is.\n")
    return project


@pytest.fixture
def below(repository: Path) -> Path:
    """A directory deep inside the repository."""
    return repository / "src" / "bake"


def test_a_search_from_a_subdirectory_searches_the_repository(cli: Cli, below: Path) -> None:
    """A search below the top uses the repository's index and names the repository on stderr."""
    repository = below.parents[1]
    done = cli.run(below, "search", "bake bread", "--output", "json")
    again = cli.run(repository, "search", "bake bread", "--output", "json")

    assert done.stderr.splitlines()[0] == f"Using the catalogue of {repository} (.git)."
    assert "8 items of 3 sources indexed" in done.stderr
    assert json.loads(done.stdout)["results"][0]["toolId"] == "project/bread-baking"
    assert "Using" not in again.stderr
    assert "indexed in" not in again.stderr
    assert json.loads(again.stdout)["results"] == json.loads(done.stdout)["results"]


def test_every_command_uses_the_same_project(cli: Cli, below: Path) -> None:
    """All commands in a subdirectory use the project, also to write or read settings."""
    repository = below.parents[1]
    (repository / "repertory.toml").write_text("[search]\nlimit = 7\n", "utf-8")
    line = f"Using the catalogue of {repository} (repertory.toml).\n"
    for command in ("index", "items list", "stats", "rebuild", "config check", "keys list"):
        done = cli.run(below, *command.split())
        assert done.returncode == 0, done.stderr
        assert done.stderr.startswith(line), command
    assert cli.json(below, "stats")["items"] == 8
    assert cli.json(below, "config", "show")["file"] == str(repository / "repertory.toml")
    assert cli.json(below, "doctor")["directory"] == str(repository)


def test_named_paths_start_at_the_working_directory(cli: Cli, below: Path) -> None:
    """Named files and folders are relative to the working directory, not to the project."""
    write(below / "mine" / "tools.json", json.dumps(TOOLS))
    assert cli.run(below, "index", "mine").returncode == 0
    assert {item["kind"] for item in cli.json(below.parents[1], "items", "list")} == {"tool"}

    write(below / "my.toml", '[[sources]]\ntype = "tools"\npath = "mine"\n')
    shown = cli.json(below, "config", "show", "--config", "my.toml", "--mcp-config", "mcp.json")
    assert shown["file"] == str(below / "my.toml")
    assert shown["mcpConfigs"] == [str(below / "mcp.json")]

    write(below / ".mcp.json", '{"mcpServers": {"one": {"command": "true"}}}')
    assert cli.run(below, "config", "trust", ".mcp.json").returncode == 0


def test_an_indexed_directory_is_found_without_a_repository(cli: Cli, project: Path) -> None:
    """An indexed directory is a project for its subdirectories, except for repositories inside."""
    below = project / "skills" / "release-notes"
    assert cli.run(project, "index").returncode == 0
    done = cli.run(below, "search", "bake bread")
    assert done.stderr.splitlines()[0] == f"Using the catalogue of {project} (indexed before)."
    assert "project/bread-baking" in done.stdout

    (below / ".git").mkdir()
    done = cli.run(below, "search", "bake bread")
    assert "Using the catalogue" not in done.stderr
    assert "project/bread-baking" not in done.stdout


def test_a_folder_that_was_searched_alone_joins_the_project_made_later(
    cli: Cli, project: Path
) -> None:
    """A folder's own index does not hide a repository or configuration created above it."""
    below = write(project / "src" / "README.md", "# Sources\n").parent
    assert "project/bread-baking" not in cli.run(below, "search", "bake bread").stdout

    (project / ".git").mkdir()
    done = cli.run(below, "search", "bake bread")
    assert done.stderr.splitlines()[0] == f"Using the catalogue of {project} (.git)."
    assert "project/bread-baking" in done.stdout

    assert cli.run(project, "init").returncode == 0
    done = cli.run(below, "search", "bake bread")
    assert done.stderr.splitlines()[0] == f"Using the catalogue of {project} (repertory.toml)."


def test_the_server_of_the_project_is_found_from_a_subdirectory(
    own: Cli, project: Path, tmp_path: Path
) -> None:
    """Commands below a served directory use its server, and afterwards its index."""
    below = project / "skills" / "steering"
    with Serve(own, project, tmp_path / "log") as server:
        done = own.run(below, "stats")
        assert server.url in done.stdout
        assert f"Using the catalogue of {project} (indexed before)." in done.stderr
        assert server.end(signal.SIGTERM) == 0
    done = own.run(below, "search", "bake bread")
    assert f"Using the catalogue of {project} (indexed before)." in done.stderr
    assert "project/bread-baking" in done.stdout


def test_a_home_that_is_a_repository_is_not_found(own: Cli, tmp_path: Path) -> None:
    """A project in a home directory with `.git` is separate, even without a marker."""
    home = tmp_path / "home"
    (home / ".git").mkdir()
    project = make_project(home / "project")
    done = own.run(project, "index")
    assert "Using" not in done.stderr
    assert "7 items of 3 sources" in done.stdout


def test_init_does_not_hide_the_file_of_the_project(cli: Cli, below: Path) -> None:
    """`init` below a repertory.toml needs a named folder; a repository alone does not matter."""
    repository = below.parents[1]
    file = repository / "repertory.toml"
    file.write_text("[search]\nlimit = 7\n", "utf-8")
    done = cli.run(below, "init")
    assert done.returncode == 2
    assert f"{file} applies here already" in done.stderr
    assert "`repertory init .`" in done.stderr
    assert cli.run(below, "init", ".").returncode == 0
    file.unlink()
    assert cli.run(below.parent, "init").returncode == 0
    assert (below.parent / "repertory.toml").exists()


@pytest.mark.usefixtures("own_home")
def test_python_finds_the_project_like_the_command_line(
    below: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``repertory.open()`` finds the project around; a named directory is used unchanged."""
    monkeypatch.chdir(below)
    data = str(tmp_path / "data")
    with repertory.open(data_dir=data, model=MODEL) as session:
        assert session.search("bake bread").hits[0].id == "project/bread-baking"
        assert session.search_project("holidays")["totalResults"] == 1
    with repertory.open(below, data_dir=data, model=MODEL) as session:
        assert session.items() == []

"""The project is the nearest directory with a marker, as in git."""

from collections.abc import Callable
from pathlib import Path

import pytest

from repertory.errors import ConfigurationError
from repertory.project.root import Marker, Project, located, project_of
from repertory.project.workspace import Indexed, Workspace
from repertory.settings import load


@pytest.fixture(autouse=True)
def home(own_home: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A home directory without a configuration, and a separate data directory."""
    own_home.mkdir()
    monkeypatch.setenv("REPERTORY_DATA_DIR", str(tmp_path / "data"))
    return own_home


def below(folder: Path, place: str = "a/b") -> Path:
    """A new folder inside another one."""
    found = folder / place
    found.mkdir(parents=True, exist_ok=True)
    return found


def test_a_configuration_file_is_found_from_a_subfolder(tmp_path: Path) -> None:
    """It applies to the whole project, and its paths are relative to its folder."""
    start = below(tmp_path)
    (tmp_path / "repertory.toml").write_text('[[sources]]\ntype = "skills"\npath = "s"\n')
    settings, project = located({}, start)
    assert project == Project(tmp_path, Marker.FILE)
    assert settings.base == tmp_path
    assert settings.sources == ({"type": "skills", "path": "s"},)
    assert not settings.trusted


def test_a_repository_is_found_from_a_subfolder(tmp_path: Path) -> None:
    """Its ``.git`` is a folder, or a file in a worktree or submodule."""
    for name in ("clone", "worktree"):
        start = below(tmp_path / name)
        if name == "clone":
            (tmp_path / name / ".git").mkdir()
        else:
            (tmp_path / name / ".git").write_text("gitdir: elsewhere\n")
        assert located({}, start)[1] == Project(tmp_path / name, Marker.REPOSITORY)


def test_an_indexed_directory_is_found_from_a_subfolder(tmp_path: Path) -> None:
    """The record may be of a command, of a server or of configured folders, with any settings."""
    records: list[Callable[[Workspace], None]] = [
        lambda one: one.remember(Indexed(request="r", configuration="c")),
        Workspace.forget,
        lambda one: one.set_paths([tmp_path]),
    ]
    for at, record in enumerate(records):
        root = tmp_path / str(at)
        start = below(root)
        assert located({}, start)[1] == Project(start, None)
        record(Workspace(load({"model": "other"}, root), root))
        assert located({}, start)[1] == Project(root, Marker.INDEX)
        assert project_of(start, load({}, start)).directory == root


def test_the_nearest_marker_determines_the_project(tmp_path: Path) -> None:
    """A repository inside a project is its own project with its own settings."""
    (tmp_path / "repertory.toml").write_text("[search]\nlimit = 9\n")
    start = below(tmp_path, "vendored/src")
    assert located({}, start)[0].values.limit == 9
    (tmp_path / "vendored" / ".git").mkdir()
    settings, project = located({}, start)
    assert project == Project(tmp_path / "vendored", Marker.REPOSITORY)
    assert (settings.values.limit, settings.file) == (3, None)


def test_an_index_does_not_hide_a_marker_above_it(tmp_path: Path) -> None:
    """An earlier search in a subfolder must not separate it from the project forever."""
    start = below(tmp_path)
    outer, inner = Workspace(load({}, tmp_path), tmp_path), Workspace(load({}, start), start)
    inner.forget()
    outer.forget()
    assert located({}, start)[1] == Project(start, Marker.INDEX)
    (tmp_path / ".git").mkdir()
    assert located({}, start)[1] == Project(tmp_path, Marker.REPOSITORY)
    (tmp_path / "a" / "repertory.toml").write_text("[search]\nlimit = 9\n")
    assert located({}, start)[1] == Project(tmp_path / "a", Marker.FILE)


@pytest.mark.parametrize("is_linked", [False, True])
def test_the_home_directory_is_not_the_project_of_its_subfolders(
    home: Path, monkeypatch: pytest.MonkeyPatch, is_linked: bool
) -> None:
    """Nor is a folder above it. Started in the home directory itself, it is the project."""
    if is_linked:  # the path of the working directory contains no links, but HOME does
        home.with_name("link").symlink_to(home)
        monkeypatch.setenv("HOME", str(home.with_name("link")))
    (home / ".git").mkdir()
    (home / "repertory.toml").write_text("[search]\nlimit = 9\n")
    (home.parent / ".git").mkdir()
    start = below(home)
    assert located({}, start)[1] == Project(start, None)
    assert located({}, start)[0].values.limit == 3
    assert located({}, home)[1] == Project(home, Marker.FILE)


@pytest.mark.parametrize("marker", [".git", "repertory.toml"])
def test_a_folder_for_all_accounts_is_not_the_project_of_its_subfolders(
    tmp_path: Path, marker: str
) -> None:
    """Another account may have put a marker into it, as into ``/tmp``."""
    shared = tmp_path / "shared"
    start = below(shared)
    (shared / marker).touch()
    shared.chmod(0o1777)
    settings = load({}, start)
    assert project_of(start, settings) == Project(start, None)
    assert project_of(shared, settings).directory == shared
    shared.chmod(0o755)
    assert project_of(start, settings).directory == shared


def test_named_paths_are_relative_to_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """This applies to flags and variables, even if the settings are loaded again elsewhere."""
    (tmp_path / ".git").mkdir()
    start = below(tmp_path)
    (start / "my.toml").write_text("[search]\nlimit = 7\n")
    flags = {"config": Path("my.toml"), "mcp_config": ["mcp.json"], "sandbox": "box"}
    settings, project = located(flags, start)
    again = load(settings.flags, project.directory)
    for one in (settings, again):
        assert one.values.limit == 7
        assert one.named == start / "my.toml"
        assert one.mcp_configs == (start / "mcp.json",)
        assert one.values.sandbox == str(start / "box")
    monkeypatch.setenv("REPERTORY_CONFIG", "my.toml")
    monkeypatch.setenv("REPERTORY_MCP_CONFIG", "one.json")
    settings, _ = located({}, start)
    assert (settings.values.limit, settings.mcp_configs) == (7, (start / "one.json",))


def test_the_error_for_a_missing_file_contains_the_path_that_was_meant(tmp_path: Path) -> None:
    """The path is relative to the working directory, not to the project."""
    (tmp_path / ".git").mkdir()
    start = below(tmp_path)
    with pytest.raises(ConfigurationError, match=r"a/b/missing\.toml"):
        located({"config": "missing.toml"}, start)

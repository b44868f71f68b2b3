"""Which directory is the project: the nearest one with a marker, as git does."""

from collections.abc import Callable
from pathlib import Path

import pytest

from repertory.errors import ConfigurationError
from repertory.project import Marker, Project, located, project_of
from repertory.settings import load
from repertory.workspace import Indexed, Workspace


@pytest.fixture(autouse=True)
def home(own_home: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A home directory without a configuration of its own, and a data directory."""
    own_home.mkdir()
    monkeypatch.setenv("REPERTORY_DATA_DIR", str(tmp_path / "data"))
    return own_home


def below(folder: Path, place: str = "a/b") -> Path:
    """A folder inside another."""
    found = folder / place
    found.mkdir(parents=True, exist_ok=True)
    return found


def test_the_file_is_found_from_a_folder_below(tmp_path: Path) -> None:
    """A project's file applies to the whole project; its paths are relative to its folder."""
    start = below(tmp_path)
    (tmp_path / "repertory.toml").write_text('[[sources]]\ntype = "skills"\npath = "s"\n')
    settings, project = located({}, start)
    assert project == Project(tmp_path, Marker.FILE)
    assert settings.base == tmp_path
    assert settings.sources == ({"type": "skills", "path": "s"},)
    assert not settings.trusted


def test_a_repository_is_found_from_a_folder_below(tmp_path: Path) -> None:
    """Its ``.git`` is a folder, or a file in a worktree or submodule."""
    for name in ("clone", "worktree"):
        start = below(tmp_path / name)
        if name == "clone":
            (tmp_path / name / ".git").mkdir()
        else:
            (tmp_path / name / ".git").write_text("gitdir: elsewhere\n")
        assert located({}, start)[1] == Project(tmp_path / name, Marker.REPOSITORY)


def test_a_directory_that_was_indexed_is_found_from_a_folder_below(tmp_path: Path) -> None:
    """Whatever the settings were: by a command, by a server, or with folders of its own."""
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


def test_the_nearest_marker_wins(tmp_path: Path) -> None:
    """A repository inside a project is a project of its own, with its own settings."""
    (tmp_path / "repertory.toml").write_text("[search]\nlimit = 9\n")
    start = below(tmp_path, "vendored/src")
    assert located({}, start)[0].values.limit == 9
    (tmp_path / "vendored" / ".git").mkdir()
    settings, project = located({}, start)
    assert project == Project(tmp_path / "vendored", Marker.REPOSITORY)
    assert (settings.values.limit, settings.file) == (3, None)


def test_an_index_hides_no_marker_above(tmp_path: Path) -> None:
    """A search made in a folder below, before there was one, does not detach it for ever."""
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
def test_home_is_never_found_from_a_folder_below(
    home: Path, monkeypatch: pytest.MonkeyPatch, is_linked: bool
) -> None:
    """Nor is anything above it; in the home directory itself it is meant."""
    if is_linked:  # the working directory has no links
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
def test_no_folder_for_all_is_found_from_a_folder_below(tmp_path: Path, marker: str) -> None:
    """Another account may have put the marker into it, as into ``/tmp``; named, it is one."""
    shared = tmp_path / "shared"
    start = below(shared)
    (shared / marker).touch()
    shared.chmod(0o1777)
    settings = load({}, start)
    assert project_of(start, settings) == Project(start, None)
    assert project_of(shared, settings).directory == shared
    shared.chmod(0o755)
    assert project_of(start, settings).directory == shared


def test_named_paths_stay_relative_to_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of flags and of the environment, also when the settings are read again."""
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


def test_a_missing_named_file_is_an_error_of_its_own_path(tmp_path: Path) -> None:
    """The message has the path that the user meant."""
    (tmp_path / ".git").mkdir()
    start = below(tmp_path)
    with pytest.raises(ConfigurationError, match=r"a/b/missing\.toml"):
        located({"config": "missing.toml"}, start)

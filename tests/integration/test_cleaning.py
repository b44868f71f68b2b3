"""Which parts of a data directory the cleaning removes, and which it keeps."""

import os
import shutil
import time
from pathlib import Path

import pytest
from filelock import FileLock

from repertory.backup.work_folder import LOCK, PREFIX
from repertory.cleaning import GRACE_S, Kind, Unused, find, remove
from repertory.embedding.digests import state_name
from repertory.embedding.model_files import WEIGHTS, Format
from repertory.index.edge import EdgeStore
from repertory.indexing.collection_names import sandbox_key, sandbox_of
from repertory.local.one_shot import Repertory
from repertory.remote.running import announce, lock_of, the_only_server
from repertory.search.query import Query
from repertory.settings import Settings
from repertory.stats import Stats
from repertory.system.files import write_atomically
from tests.support.builders import write
from tests.support.query_service import settings_of

pytestmark = pytest.mark.usefixtures("own_home")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """The data directory that all projects share."""
    return tmp_path / "data"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with one skill."""
    return make(tmp_path / "project")


def make(folder: Path) -> Path:
    """Create a project with one skill."""
    text = f"---\nname: baking\ndescription: Bake sourdough bread in {folder.name}.\n---\n"
    write(folder / "skills" / "baking" / "SKILL.md", text)
    return folder


def index(project: Path, settings: Settings | None = None) -> Stats:
    """Index a project."""
    with Repertory(settings or settings_of(project), project) as repertory:
        return repertory.index().stats


def assert_searches(project: Path, settings: Settings | None = None) -> None:
    """Check that a project can be searched by words and meaning without another indexing."""
    with Repertory(settings or settings_of(project), project) as repertory:
        assert repertory.is_indexed
        answer = repertory.search(Query(text="make a loaf"))
        assert (answer.mode, len(answer.hits)) == ("hybrid", 1)


def later() -> float:
    """A time at which nothing counts as recent."""
    return time.time() + GRACE_S + 1


def unused(data: Path, now: float | None = None) -> dict[str, Unused]:
    """The removable parts, by the name of their first path."""
    return {one.paths[0].name: one for one in find(data, now or later())}


def clean(data: Path) -> set[Kind]:
    """Remove all removable parts, check that none is left, and return their kinds."""
    removed = {one.kind for one in remove(data, find(data, later()))}
    assert find(data, later()) == []
    return removed


def test_the_index_of_an_existing_directory_stays(data: Path, project: Path) -> None:
    """Cleaning changes no file. A missing data directory has nothing to remove."""
    assert find(data, later()) == []
    index(project)
    before = sorted(data.rglob("*"))
    assert clean(data) == set()
    assert sorted(data.rglob("*")) == before


def test_the_index_of_a_directory_that_is_gone_is_removed(data: Path, project: Path) -> None:
    """It is removed at once, with its notes; the index of another directory still works."""
    other = make(project.parent / "other")
    index(other)
    kept = {*data.rglob("*")}
    collection = index(project).collection
    named = settings_of(project, config=str(write(project.parent / "one.toml", CONFIG)))
    index(project, named)
    shutil.rmtree(project)
    assert unused(data, time.time())[collection].size > 0
    assert clean(data) == {Kind.INDEX, Kind.NOTES}
    left = {path for path in {*data.rglob("*")} - kept if not path.name.endswith(".lock")}
    # Reviews are decisions of people and cannot be recreated.
    assert {path.parent for path in left} <= {data / "models" / "digests", data / "reviews"}
    assert_searches(other)


CONFIG = '[[sources]]\ntype = "skills"\npath = "project/skills"\nname = "mine"\n'


def test_the_vectors_of_skill_files_in_a_folder_that_is_gone_are_removed(
    data: Path, project: Path
) -> None:
    """Those of an existing folder stay."""
    other = make(project.parent / "other")
    for folder in (project, other):
        index(folder)
        with Repertory(settings_of(folder), folder) as repertory:
            repertory.update_vector("skills/baking/SKILL.md")
    shutil.rmtree(project)
    clean(data)
    sandboxes = {sandbox_of(name) for name in EdgeStore(data).collections()}
    assert sandboxes == {"", sandbox_key(other)}


def test_an_index_that_was_replaced_is_removed(data: Path, project: Path) -> None:
    """Its cached vectors stay, so returning to the old configuration embeds nothing."""
    old = index(project).collection
    write(project / "repertory.toml", CONFIG.replace("project/", ""))
    new = index(project).collection
    assert unused(data, time.time()) == {}, "a process may be about to use it"
    assert {*unused(data)} == {old}
    assert clean(data) == {Kind.INDEX}
    assert_searches(project)
    assert EdgeStore(data).collections() == [new]
    (project / "repertory.toml").unlink()
    with Repertory(settings_of(project), project) as repertory:
        assert repertory.index().embedded == 0


def test_several_indexes_of_one_directory_stay(data: Path, project: Path) -> None:
    """A directory has one index for each named configuration."""
    named = settings_of(project, config=str(write(project.parent / "one.toml", CONFIG)))
    index(project)
    index(project, named)
    assert clean(data) == set()
    assert_searches(project)
    assert_searches(project, named)


def test_parts_in_use_by_a_process_stay(data: Path, project: Path) -> None:
    """These are open collections, and all parts of a directory whose server runs."""
    collection = index(project).collection
    settings = settings_of(project)
    with the_only_server(settings, project):
        announce(settings, project, "http://127.0.0.1:1", "token")
        shutil.rmtree(project)
        assert find(data, later()) == []
    with EdgeStore(data).open(collection):
        assert unused(data)[collection].is_busy
        found = [one for one in find(data, later()) if one.kind is Kind.INDEX]
        assert remove(data, found) == []
        is_open_by_now = [Unused(kind=Kind.INDEX, paths=found[0].paths, size=0)]
        assert remove(data, is_open_by_now) == []
    assert clean(data) == {Kind.INDEX, Kind.NOTES}


def test_parts_that_a_process_uses_by_now_stay(data: Path) -> None:
    """A server may start, or a command make a collection, after the list was shown."""
    note = write(data / "servers" / "0123456789abcdef.json", "{}")
    (started,) = find(data, later())
    made = write(data / "collections" / ".new-x" / "segment", "of a new collection").parent
    with FileLock(lock_of(note)), FileLock(data / "collections" / "x.lock"):
        assert remove(data, [started]) == []
        (half,) = find(data, later())
        assert (half.paths, half.is_busy) == ((made,), True)
        assert remove(data, [half]) == []
    assert (note.exists(), made.exists()) == (True, True)
    assert clean(data) == {Kind.SERVER, Kind.LEFTOVER}


def test_an_index_of_an_unknown_directory_stays(data: Path, project: Path) -> None:
    """Older versions did not store which directory an index belongs to.

    This holds for an index that was replaced, too.
    """
    index(project)
    write(project / "repertory.toml", CONFIG.replace("project/", ""))
    index(project)
    for file in (data / "workspaces").glob("*.directory.json"):
        file.unlink()
    assert clean(data) == set()
    assert_searches(project)


def test_what_release_01_stored_is_removed(data: Path, project: Path) -> None:
    """Its indexes and records name no directory, and this release can only use chosen paths.

    Its servers stored aliases of the directory and of the build; both keep nothing.
    """
    index(project)
    old = "repertory_0123456789abcdef_all-minilm-l6-v2-r2_g1"
    store = EdgeStore(data)
    store.create(old, 2).close()
    for alias in ("0123456789abcdef", "fedcba9876543210", "0123456789abcdef_next"):
        store.set_alias(f"repertory_{alias}", old)
    record = write(data / "workspaces" / "0123456789abcdef.json", "{}")
    paths = write(data / "workspaces" / "0123456789abcdef.paths.json", "[]")
    assert clean(data) == {Kind.INDEX, Kind.LEFTOVER}
    assert [old in store.collections(), record.exists(), paths.exists()] == [False, False, True]
    assert not any(target == old for target in store.aliases().values())
    assert_searches(project)


def test_the_remains_of_killed_processes_are_removed(data: Path, project: Path) -> None:
    """They are old unfinished files, corrupt caches that were set aside, and notes of servers.

    The records of read files by release 0.2 are removed, too.
    """
    index(project)
    write_atomically(data / "keys" / "0123456789abcdef.json", b"[]")
    remains = {
        "keys/.0123456789abcdef.json.0123456789abcdef.tmp",
        "models/optimised/x-1-2-x86_64-1.0.ort.17-18.partial",
        "vectors.sqlite.corrupt-1",
        "vectors.sqlite.corrupt-1-wal",
        "collections/.new-x/segment",
        "collections/.old-y/segment",
        "collections/.copy-z/segment",
        "keywords/repertory_0123456789abcdef_x-r1_g1.keywords",
        "servers/0123456789abcdef.json",
        "workspaces/0123456789abcdef.seen",
    }
    for name in remains:
        write(data / name, "{}")
    for name in ("old", "runs"):
        write(data / f"{PREFIX}{name}" / "copy", "of a backup")
    runs = FileLock(data / f"{PREFIX}runs" / LOCK)
    runs.acquire()
    recent = (".tmp", ".partial", ".keywords")
    assert not any(path.endswith(recent) for path in unused(data, time.time()))
    assert clean(data) == {Kind.LEFTOVER, Kind.SERVER}
    assert not any((data / name).exists() for name in remains)
    runs.release()
    assert [path.name for path in data.glob(f"{PREFIX}*")] == [f"{PREFIX}runs"]
    assert (data / "keys" / "0123456789abcdef.json").exists()
    assert_searches(project)


def test_foreign_files_in_the_data_directory_stay(data: Path, project: Path) -> None:
    """The data directory may be a folder that also holds other files."""
    index(project)
    others = [
        "servers/prod.json",
        "Downloads/film.mkv.partial",
        "keywords/seo.txt",
        "keywords/thesis/chapter.md",
    ]
    for name in others:
        os.utime(write(data / name, "{}"), (0, 0))
    os.utime(data / "keywords" / "thesis", (0, 0))
    assert clean(data) == set()
    assert all((data / name).exists() for name in others)


@pytest.mark.usefixtures("own_engine")
def test_an_optimised_model_without_its_weights_is_removed(data: Path, project: Path) -> None:
    """The weights may have been in a virtual environment that was deleted or upgraded."""
    index(project)
    (used,) = (data / "models" / "optimised").glob("*.ort")
    weights = write(project.parent / "model.onnx", "weights")
    digest = "fedcba9876543210"
    old = write(used.with_name(f"{digest}-7-abc-x86_64-1.0.ort"), "graph")
    source = write(used.with_name(f"{digest}.source"), str(weights))
    assert {*unused(data)} == {old.name}, "the weights have changed"
    weights.unlink()
    assert clean(data) == {Kind.GRAPH}
    assert [old.exists(), source.exists(), used.exists()] == [False, False, True]


def test_an_optimised_model_stays_if_its_weights_cannot_be_checked(data: Path) -> None:
    """They may be in a folder that is only unreadable now. A damaged path names no weights."""
    graph = write(data / "models" / "optimised" / "fedcba9876543210-7-abc-x86_64-1.0.ort", "graph")
    source = graph.with_name("fedcba9876543210.source")
    write(source, str(data.parent / ("x" * 300)))  # the system refuses such a long name
    assert clean(data) == set()
    write(source, "\0")
    assert clean(data) == {Kind.GRAPH}


def test_an_optimised_model_of_downloaded_weights_stays(data: Path) -> None:
    """The data directory itself has the weights."""
    weights = write(data / "models" / "some" / WEIGHTS[Format.ONNX][0], "weights")
    graph = f"{state_name(weights)}-x86_64-1.0.ort"
    write(data / "models" / "optimised" / graph, "graph")
    assert clean(data) == set()
    weights.unlink()
    assert clean(data) == {Kind.GRAPH}

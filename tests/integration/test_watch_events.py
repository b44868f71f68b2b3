"""How the watch service reacts to changes of folders, files and servers."""

import ctypes
import errno
import json
import os
import shutil
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from watchdog.events import FileSystemEventHandler
from watchdog.observers import inotify, inotify_c
from watchdog.observers.api import EventQueue, ObservedWatch

from repertory.indexing.scan import ScanResult
from repertory.project.workspace import Workspace
from repertory.settings import load
from repertory.sources.folder import MAX_SCANS, FolderSource
from repertory.sources.source import Scan, WatchedFolder
from repertory_watch import events, filesystems, service, tasks
from repertory_watch.configuration import Configuration, reload
from repertory_watch.service import SCAN_CONCURRENCY
from tests.support.builders import write
from tests.support.bulletin_source import registered
from tests.support.mcp_servers import SERVERS
from tests.support.waiting import TIMEOUT_S
from tests.support.watching import Watching

SKILL = "---\nname: s\ndescription: Does something.\n---\n"

pytestmark = pytest.mark.usefixtures("own_home")


def save(path: Path, text: str = "Does it.") -> None:
    """Write a file in place, as most programs do."""
    write(path, f"{text}\n")


def save_atomically(path: Path, text: str) -> None:
    """Write a temporary file that replaces the file, as careful editors do."""
    half = path.with_name(f".{path.name}.tmp")
    half.write_text(f"{text}\n")
    half.replace(path)


def configure(project: Path, *sources: tuple[str, str]) -> None:
    """Write a configuration of Markdown skill folders, by name and path."""
    entries = (
        f'[[sources]]\ntype = "markdown-skills"\nname = "{name}"\npath = "{path}"\n'
        for name, path in sources
    )
    (project / "repertory.toml").write_text("\n".join(entries))


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with one skill folder, ``team``, that holds one skill."""
    root = tmp_path / "project"
    save(root / "skills" / "first.md")
    configure(root, ("team", "skills"))
    return root


@pytest.fixture
def skills(project: Path) -> Path:
    """The skill folder."""
    return project / "skills"


Watch = Callable[..., Watching]


@pytest.fixture
def watch(project: Path) -> Iterator[Watch]:
    """Start watching the project, and wait until its skill is indexed."""
    begun: list[Watching] = []

    def begin(*items: str, **flags: object) -> Watching:
        begun.append(Watching(project, **flags))
        begun[-1].__enter__()
        begun[-1].wait_for(*(items or ("team/first",)))
        begun[-1].wait_until_quiet()
        return begun[-1]

    yield begin
    for one in begun:
        one.__exit__(None, None, None)


def test_a_save_is_one_scan(skills: Path, watch: Watch) -> None:
    """A new, a changed and a deleted file each cause one scan, and the index follows."""
    watching = watch()
    scans = watching.scans()
    save(skills / "second.md")
    watching.wait_for("team/first", "team/second")
    assert watching.scans() == scans + 1
    (skills / "first.md").unlink()
    watching.wait_for("team/second")
    assert watching.scans() == scans + 2
    save_atomically(skills / "second.md", "Does something else.")
    watching.wait(lambda: watching.scans() == scans + 3)
    save(skills / "deep" / "er" / "third.md")
    watching.wait_for("team/deep/er/third", "team/second")


def test_shutdown_interrupts_scans(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Running scans end at their next pause, and waiting scans do not begin."""
    begun: list[str] = []

    def scan(source: FolderSource) -> dict[str, str]:
        begun.append(source.name)
        while True:
            source._pause()
            time.sleep(0.01)

    monkeypatch.setattr(FolderSource, "_scan", scan)
    configure(project, *((f"s{number}", f"skills/{number}") for number in range(6)))
    with Watching(project) as watching:
        watching.wait(lambda: len(begun) == SCAN_CONCURRENCY)
    assert len(begun) == SCAN_CONCURRENCY


@pytest.mark.parametrize("is_first", [False, True])
def test_changes_during_a_scan_are_not_lost(
    skills: Path, watch: Watch, monkeypatch: pytest.MonkeyPatch, is_first: bool
) -> None:
    """The scan reads them again, up to a limit; then the next scan does."""
    save(skills / "folder" / "a.md")
    (skills / "link").symlink_to(skills / "folder")
    saves = [f"Save {number}." for number in range(MAX_SCANS + 1)]
    scanned = FolderSource._scan

    def scan(source: FolderSource) -> dict[str, str]:
        passed = scanned(source)
        if saves:
            save(skills / "folder" / "a.md", saves.pop(0))
            for _ in range(100):
                source._pause()
                time.sleep(0.01)
                if source._noted:
                    break
        return passed

    if not is_first:
        watching = watch("team/first", "team/folder/a")
    monkeypatch.setattr(FolderSource, "_scan", scan)
    if is_first:
        watching = watch("team/first", "team/folder/a")
    else:
        save(skills / "folder" / "a.md", "Save.")

    def is_known() -> bool:
        last = watching.coordinator.scans[-1]
        read = last.scan if isinstance(last, ScanResult) else None
        return any(f"Save {MAX_SCANS}" in one.description for one in read.items) if read else False

    watching.wait(is_known)


def test_a_save_during_a_long_scan_is_indexed_before_the_scan_ends(
    skills: Path, watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The scan reads the saved file in its next pause."""
    save(skills / "folder" / "a.md")
    (skills / "link").symlink_to(skills / "folder")  # so that a change of the file needs a scan
    watching = watch("team/first", "team/folder/a")
    is_indexed, scanned = threading.Event(), FolderSource._scan

    def scan(source: FolderSource) -> dict[str, str]:
        passed = scanned(source)
        if not is_indexed.is_set():
            save(skills / "late.md")
        while not is_indexed.wait(0.01):
            source._pause()
        return passed

    monkeypatch.setattr(FolderSource, "_scan", scan)
    try:
        save(skills / "folder" / "a.md", "Save.")
        watching.wait_for("team/first", "team/folder/a", "team/late")
    finally:
        is_indexed.set()


def test_after_very_many_changes_a_folder_is_scanned(
    skills: Path, watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The system may have lost events, so reading only the reported paths is not enough."""
    monkeypatch.setattr(service, "MAX_PATHS", 3)
    watching = watch()
    before = len(watching.coordinator.scans)
    for number in range(9):
        save(skills / f"{number}.md")
    watching.wait_for("team/first", *(f"team/{number}" for number in range(9)))
    watching.wait(
        lambda: any(isinstance(one, ScanResult) for one in watching.coordinator.scans[before:])
    )


def test_a_change_while_the_configuration_is_read_is_not_lost(
    project: Path, watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is read once more when the running task has ended."""
    has_read, may_end = threading.Event(), threading.Event()

    def slow(before: Configuration) -> Configuration:
        found = reload(before)
        has_read.set()
        assert may_end.wait(TIMEOUT_S)
        return found

    watching = watch()
    monkeypatch.setattr(tasks, "reload", slow)
    save(project / "more" / "second.md")
    configure(project, ("team", "skills"), ("other", "skills/none"))
    assert has_read.wait(TIMEOUT_S)
    configure(project, ("team", "skills"), ("more", "more"))
    watching.wait(lambda: watching.service._loading.is_requested)
    may_end.set()
    watching.wait_for("team/first", "more/second")


def test_a_scan_of_a_replaced_source_is_ignored(
    project: Path, skills: Path, watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may end after the first scan of the new source, which has the same name."""
    has_read, may_end, has_ended = (threading.Event() for _ in range(3))
    scan = FolderSource.scan

    def slow(source: FolderSource) -> Scan:
        found = scan(source)
        if source.path == skills:
            has_read.set()
            assert may_end.wait(TIMEOUT_S)
            has_ended.set()
        return found

    watching = watch()
    monkeypatch.setattr(service, "MAX_PATHS", 0)  # each change causes a scan
    monkeypatch.setattr(FolderSource, "scan", slow)
    save(skills / "second.md")
    assert has_read.wait(TIMEOUT_S)
    save(project / "other" / "new.md")
    configure(project, ("team", "other"))
    watching.wait_for("team/new")
    may_end.set()
    assert has_ended.wait(TIMEOUT_S)
    save(project / "other" / "newer.md")
    watching.wait_for("team/new", "team/newer")
    replaced = [one.source.location == str(skills) for one in watching.coordinator.scans]
    assert replaced == sorted(replaced, reverse=True)  # none of the old source after the new one


def test_a_service_that_starts_with_a_broken_configuration_knows_the_last_sources(
    project: Path,
) -> None:
    """Otherwise it would not be known who may see the indexed items."""
    with Watching(project) as watching:
        watching.wait_for("team/first")
        watching.wait(lambda: bool(watching.status["sources"]))
        last = watching.status
    configure(project, ("team", "skills"), ("team", "other"))
    again = Watching(project)
    again.board.report("watch", last)
    with again:
        again.wait(lambda: bool(again.status["configurationError"]))
        status = again.status
    assert [one["name"] for one in status["sources"]] == ["team"]
    assert status["configuration"] == last["configuration"]


def test_temporary_files_of_editors_cause_no_scan(
    project: Path, skills: Path, watch: Watch
) -> None:
    """Swap files, locks, backups, probes and files of tools are ignored."""
    save(project / "others" / "other.md")
    configure(project, ("team", "skills"), ("others", "others"))
    watching = watch("team/first", "others/other")
    scans = watching.scans()
    for name in (".first.md.swp", "4913", "#first.md#", "first.md~", "._first.md", "notes.bin"):
        (skills / name).write_text("anything")
        (skills / name).unlink()
    (skills / ".#first.md").symlink_to("me@host.17:1")
    save(skills / ".git" / "refs.md")
    save(project / "others" / "second.md")  # the last event: earlier ones are handled by then
    watching.wait_for("team/first", "others/other", "others/second")
    assert watching.scans() == scans
    (skills / "first.md").rename(skills / "first.md~")  # as vim saves
    save(skills / "first.md", "Does it otherwise.")
    watching.wait(lambda: watching.scans() == scans + 1)
    assert watching.indexed == ["others/other", "others/second", "team/first"]


def test_a_checkout_of_a_thousand_files_causes_few_scans(skills: Path, watch: Watch) -> None:
    """Events within a short time are combined."""
    repository = ("git", "-C", str(skills), "-c", "user.name=me", "-c", "user.email=me@example.org")
    for number in range(1_000):
        save(skills / f"folder{number % 30}" / f"{number}.md", f"Does {number}.")
    for command in (
        ("init", "-q", "-b", "full"),
        ("add", "."),
        ("commit", "-q", "-m", "full"),
        ("checkout", "-q", "--orphan", "bare"),
        ("rm", "-rfq", "."),
    ):
        subprocess.run([*repository, *command], check=True)
    save(skills / "first.md")
    watching = watch()
    scans = watching.scans()
    (skills / "first.md").unlink()
    subprocess.run([*repository, "checkout", "-q", "full"], check=True)
    watching.wait(lambda: len(watching.indexed) == 1_001)
    assert watching.scans() <= scans + 5


def test_folders_can_be_moved_in_and_out(skills: Path, tmp_path: Path, watch: Watch) -> None:
    """A folder that is added, removed or renamed with its content is followed."""
    elsewhere = tmp_path / "elsewhere"
    save(elsewhere / "deep" / "moved.md")
    watching = watch()
    elsewhere.rename(skills / "came")
    watching.wait_for("team/came/deep/moved", "team/first")
    (skills / "came").rename(skills / "stays")
    watching.wait_for("team/first", "team/stays/deep/moved")
    save(skills / "stays" / "deep" / "later.md")
    watching.wait_for("team/first", "team/stays/deep/later", "team/stays/deep/moved")
    (skills / "stays").rename(elsewhere)
    watching.wait_for("team/first")


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_folder_can_be_moved_away_twice(skills: Path, tmp_path: Path, watch: Watch) -> None:
    """It is created again in between; later saves are followed after both copies are deleted."""
    save(skills / "one" / "first.md")
    trash = tmp_path / "trash"
    trash.mkdir()
    watching = watch("team/first", "team/one/first")
    (skills / "one").rename(trash / "1")
    save(skills / "one" / "second.md")
    watching.wait_for("team/first", "team/one/second")
    (skills / "one").rename(trash / "2")
    for name in ("2", "1"):
        shutil.rmtree(trash / name)
    watching.wait_for("team/first")
    save(skills / "third.md")
    watching.wait_for("team/first", "team/third")


def test_a_folder_can_be_moved_away_and_back(skills: Path, tmp_path: Path, watch: Watch) -> None:
    """It returns under another name, and its former parent is renamed."""
    save(skills / "a" / "deep" / "one.md")
    watching = watch("team/a/deep/one", "team/first")
    (skills / "a" / "deep").rename(tmp_path / "out")
    watching.wait_for("team/first")
    (tmp_path / "out").rename(skills / "in")
    watching.wait_for("team/first", "team/in/one")
    (skills / "a").rename(skills / "b")
    watching.wait_until_quiet()
    save(skills / "in" / "two.md")
    watching.wait_for("team/first", "team/in/one", "team/in/two")


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has inotify")
def test_watching_a_folder_twice_causes_no_warning(tmp_path: Path) -> None:
    """Python would keep each warning forever, and each lists all watched folders."""
    root, elsewhere = tmp_path / "skills", tmp_path / "elsewhere"
    (root / "inner").mkdir(parents=True)
    folder = WatchedFolder(root, lambda _: True)
    seen = threading.Event()
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        with events.FolderWatches(lambda *_: seen.set()) as watches:
            watches.follow({"team": folder})
            for _ in range(3):  # the folder that returns is still watched
                (root / "inner").rename(elsewhere)
                time.sleep(1)  # watchdog waits half a second for the target
                elsewhere.rename(root / "inner")
                time.sleep(1)
    assert seen.is_set()
    assert warned == []


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has inotify")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.parametrize("part", ["InotifyWatchGroup.on_event", "InotifyEmitter.queue_events"])
def test_a_crashed_watch_thread_is_replaced(
    skills: Path, watch: Watch, monkeypatch: pytest.MonkeyPatch, part: str
) -> None:
    """Changes during its absence are found."""
    watching = watch()
    failed = threading.Event()
    kind, method = part.split(".")
    works = getattr(getattr(inotify, kind), method)

    def fail_once(*arguments: object, **options: object) -> object:
        if failed.is_set():
            return works(*arguments, **options)
        failed.set()
        raise KeyError("a fault")

    monkeypatch.setattr(getattr(inotify, kind), method, fail_once)
    save(skills / "second.md")
    watching.wait_for("team/first", "team/second")
    save(skills / "third.md")
    watching.wait_for("team/first", "team/second", "team/third")
    assert failed.is_set()


def hold_reads(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Delay the events of the system until the returned event is set."""
    reads, read = threading.Event(), inotify_c.InotifyFD.read_events

    def read_later(reader: inotify_c.InotifyFD, **options: int) -> object:
        found = read(reader, **options)
        reads.wait()
        return found

    monkeypatch.setattr(inotify_c.InotifyFD, "read_events", read_later)
    return reads


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has inotify")
def test_saves_in_a_folder_that_replaced_another_are_followed(
    skills: Path, watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are followed even if the events are read only after the swap of the names."""
    save(skills / "kept" / "one.md")
    watching = watch("team/first", "team/kept/one")
    reads = hold_reads(monkeypatch)
    (skills / "beside.txt").touch()  # this event is read before the reader waits
    save(skills / "new" / "two.md")
    (skills / "kept").rename(skills / "aside")
    (skills / "new").rename(skills / "kept")
    (skills / "aside").rename(skills / "new")
    reads.set()
    watching.wait_for("team/first", "team/kept/two", "team/new/one")
    watching.wait_until_quiet()
    save(skills / "kept" / "three.md")
    watching.wait_for("team/first", "team/kept/two", "team/kept/three", "team/new/one")


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has inotify")
def test_saves_are_found_although_the_event_queue_overflows(
    skills: Path, watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The system drops events while too many are waiting."""
    watching = watch()
    reads = hold_reads(monkeypatch)
    others = [write(skills / name) for name in ("one.txt", "two.txt")]
    kept = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())
    for number in range(kept + 10_000):  # some events are read at once
        others[number % 2].touch()  # the system merges equal events in a row
    save(skills / "new" / "second.md")
    reads.set()
    watching.wait_for("team/first", "team/new/second")
    save(skills / "new" / "third.md")
    watching.wait_for("team/first", "team/new/second", "team/new/third")


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has inotify")
def test_a_watch_that_cannot_be_stopped_is_abandoned(
    project: Path, skills: Path, watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    """New threads watch the other folders."""
    save(project / "others" / "other.md")
    configure(project, ("team", "skills"), ("others", "others"))
    watching = watch("team/first", "others/other")

    def fail(_: object) -> None:
        monkeypatch.undo()
        raise KeyError("a fault")

    monkeypatch.setattr(inotify.InotifyWatchGroup, "deactivate", fail)
    configure(project, ("team", "skills"))
    watching.wait_for("team/first")
    save(skills / "second.md")
    watching.wait_for("team/first", "team/second")


def test_a_root_that_vanishes_keeps_its_items_until_it_is_back(skills: Path, watch: Watch) -> None:
    """Its items are stale while it is missing; when it is back, it is watched again."""
    watching = watch()
    shutil.rmtree(skills)
    watching.wait(lambda: "cannot be read" in watching.error())
    assert watching.indexed == ["team/first"]
    save(skills / "second.md")
    watching.wait_for("team/second")
    save(skills / "third.md")
    watching.wait_for("team/second", "team/third")
    watching.wait(lambda: watching.error() == "")  # reports come once a second


def test_a_root_that_is_created_later_is_watched(project: Path) -> None:
    """It is an error until then."""
    configure(project, ("team", "skills"), ("later", "deep/later"))
    with Watching(project) as watching:
        watching.wait(lambda: "cannot be read" in watching.error("later"))
        save(project / "deep" / "later" / "one.md")
        watching.wait_for("later/one", "team/first")
        save(project / "deep" / "later" / "two.md")
        watching.wait_for("later/one", "later/two", "team/first")


def test_a_root_that_is_replaced_is_watched_again(
    project: Path, skills: Path, watch: Watch
) -> None:
    """A moved folder or a link may replace it."""
    watching = watch()
    for number, place in enumerate(("moved", "linked")):
        save(project / place / f"{place}.md")
        skills.rename(project / f"old{number}")
        if place == "moved":
            (project / place).rename(skills)
        else:
            skills.symlink_to(project / place)
        watching.wait_for(f"team/{place}")
        save(skills / "more.md")
        watching.wait_for("team/more", f"team/{place}")
    save(project / "retargeted" / "other.md")
    link = skills.with_name("link")
    link.symlink_to(project / "retargeted")
    link.replace(skills)
    watching.wait_for("team/other")


@pytest.mark.parametrize("place", ["", "sub"])
def test_an_unreadable_folder_is_watched_when_it_becomes_readable(
    project: Path, place: str
) -> None:
    """Its files and later saves are found."""
    save(project / "skills" / "sub" / "second.md")
    folder = project / "skills" / place
    folder.chmod(0)
    try:
        if os.access(folder, os.R_OK):
            pytest.skip("root may read everywhere")
        with Watching(project) as watching:
            watching.wait(lambda: bool(watching.scans()))
            folder.chmod(0o700)
            found = ["team/first", "team/sub/second"]
            watching.wait_for(*found)
            time.sleep(1)  # until the folder is watched again
            save(folder / "third.md")
            watching.wait_for(*found, f"team/{place}/third".replace("//", "/"))
    finally:
        folder.chmod(0o700)


def test_links_in_a_folder_are_followed(skills: Path, watch: Watch) -> None:
    """New and changed links count, and links to files of any name."""
    for folder in ("node_modules/one/second.md", "node_modules/two/third.md", "text.txt"):
        save(skills / folder)
    (skills / "fourth.md").symlink_to("text.txt")
    watching = watch("team/first", "team/fourth")
    scans = watching.scans()
    save(skills / "text.txt", "Does something else.")
    watching.wait(lambda: watching.scans() == scans + 1)
    (skills / "linked").symlink_to("node_modules/one")
    watching.wait_for("team/first", "team/fourth", "team/linked/second")
    save(skills / "node_modules" / "one" / "fifth.md")
    watching.wait_for("team/first", "team/fourth", "team/linked/second", "team/linked/fifth")
    (skills / "new").symlink_to("node_modules/two")
    (skills / "new").replace(skills / "linked")
    watching.wait_for("team/first", "team/fourth", "team/linked/third")
    (skills / "linked").unlink()
    watching.wait_for("team/first", "team/fourth")


def test_a_single_file_of_tools_is_watched(project: Path, watch: Watch) -> None:
    """It is watched through its folder, whether it is written in place or replaced."""
    tools = project / "tools.json"
    tool = {"name": "one", "inputSchema": {"type": "object"}}
    tools.write_text(json.dumps({"server": "lab", "tools": [tool]}))
    with (project / "repertory.toml").open("a") as file:
        file.write('\n[[sources]]\ntype = "tools"\nname = "lab"\npath = "tools.json"\n')
    watching = watch("lab__one", "team/first")
    half = project / "tools.tmp"
    half.write_text(json.dumps({"server": "lab", "tools": [tool, {**tool, "name": "two"}]}))
    half.replace(tools)
    watching.wait_for("lab__one", "lab__two", "team/first")
    tools.write_text(json.dumps({"server": "lab", "tools": [{**tool, "name": "two"}]}))
    watching.wait_for("lab__two", "team/first")


def test_an_invalid_configuration_changes_nothing(project: Path, watch: Watch) -> None:
    """The last valid one stays active, the status has the error, and saves are followed."""
    watching = watch()
    good = (project / "repertory.toml").read_text()
    (project / "repertory.toml").write_text(good + "\n[[sources\n")
    watching.wait(lambda: "repertory.toml" in watching.status["configurationError"])
    assert "line" in watching.status["configurationError"]
    save(project / "skills" / "second.md")
    watching.wait_for("team/first", "team/second")
    (project / "repertory.toml").write_text(good + '\n[[sources]]\ntype = "skils"\n')
    watching.wait(lambda: "'skils' is not a type" in watching.status["configurationError"])
    assert str(project / "repertory.toml") in watching.status["configurationError"]
    assert len(watching.coordinator.adopted) == 1
    save(project / "more" / "more.md")
    scans = watching.scans()
    configure(project, ("team", "skills"), ("more", "more"))
    watching.wait_for("more/more", "team/first", "team/second")
    watching.wait(lambda: watching.status["configurationError"] == "")
    assert len(watching.coordinator.adopted) == 2
    assert watching.scans() == scans  # the unchanged source was not scanned again


def test_the_service_waits_for_a_valid_configuration(project: Path) -> None:
    """If the file is invalid at the start, the service removes nothing."""
    good = (project / "repertory.toml").read_text()
    watching = Watching(project)
    (project / "repertory.toml").write_text("[[")
    with watching:
        watching.wait(lambda: bool(watching.status.get("configurationError")))
        assert watching.coordinator.adopted == []
        (project / "repertory.toml").write_text(good)
        watching.wait_for("team/first")


@pytest.mark.skipif(sys.platform == "darwin", reason="macOS allows only Unicode names")
def test_a_path_that_is_not_unicode_can_be_reported(tmp_path: Path) -> None:
    """The report is JSON, which has no lone surrogates."""
    project = tmp_path / os.fsdecode(b"caf\xe9")
    project.mkdir()
    configure(project, ("team", "skills"))
    with Watching(project) as watching:
        watching.wait(lambda: "rename it" in watching.status.get("configurationError", ""))
        assert json.dumps(watching.status, ensure_ascii=False).encode()


def test_discovered_sources_follow_the_project(tmp_path: Path) -> None:
    """Without a configuration, a host's skill folder is discovered when it is created."""
    project = tmp_path / "project"
    save(project / "README.md", "# Read me")
    with Watching(project) as watching:
        watching.wait_for("documents/README.md")
        skill = "---\nname: a\ndescription: Does a.\n---\n"
        save(project / ".claude" / "skills" / "a" / "SKILL.md", skill)
        watching.wait_for("documents/README.md", "project-claude/a")


def test_a_removed_configuration_leaves_no_source(project: Path, watch: Watch) -> None:
    """A configured source with a missing folder is dropped too, unlike a discovered one."""
    save(project / "README.md", "# Read me")
    watching = watch("team/first")
    shutil.rmtree(project / "skills")
    watching.wait(lambda: any(one["error"] for one in watching.status["sources"]))
    (project / "repertory.toml").unlink()
    watching.wait_for("documents/README.md")
    assert [one.name for one in watching.coordinator.adopted[-1].sources] == ["documents"]


def test_a_half_saved_server_configuration_changes_nothing(project: Path, watch: Watch) -> None:
    """The servers of an unreadable MCP configuration stay active."""
    config = project / ".mcp.json"
    server = {"command": sys.executable, "args": [str(SERVERS / "raw.py"), "paginated"]}
    config.write_text(json.dumps({"mcpServers": {"raw": server}}))
    (project / "repertory.toml").unlink()
    tools = [f"raw__t{number}" for number in range(6)]
    first = "documents/skills/first.md"
    watching = watch(first, *tools, mcp_config=[str(config)])
    config.write_text('{"mcpServers": {\n"raw": ')
    watching.wait(lambda: f"{config}:2" in watching.status["configurationError"])
    assert len(watching.coordinator.adopted) == 1
    config.write_text(json.dumps({"mcpServers": {}}))
    watching.wait(lambda: len(watching.coordinator.adopted) == 2)
    assert "mcp" not in {source.type for source in watching.coordinator.adopted[1].sources}


def test_a_half_saved_server_configuration_at_the_start_changes_nothing(project: Path) -> None:
    """The servers that the previous watch knew replace those of an unreadable file."""
    config = write(project / ".mcp.json", json.dumps({"mcpServers": {"raw": {"command": "raw"}}}))
    (project / "repertory.toml").unlink()

    def adopted() -> list[str]:
        Workspace(load({"data_dir": str(project.parent / "kept")}, project), project).forget()
        with Watching(project) as watching:
            watching.wait(lambda: bool(watching.coordinator.adopted))
            return [one.hash for one in watching.coordinator.adopted]

    before = adopted()
    config.write_text('{"mcpServers": {"raw": {"comm')
    assert adopted() == before


def test_a_server_whose_tools_change_is_listed_again(
    project: Path, tmp_path: Path, watch: Watch
) -> None:
    """Its open session is used, and the server is not started again."""
    environment = {"TOOLS": str(tmp_path / "tools"), "STARTS": str(tmp_path / "starts")}
    (tmp_path / "tools").write_text("one")
    arguments = [str(SERVERS / "changing.py"), "stdio"]
    server = {"command": sys.executable, "args": arguments, "env": environment}
    (project / ".mcp.json").write_text(json.dumps({"mcpServers": {"lab": server}}))
    watching = watch("lab__one", "team/first", mcp_config=[".mcp.json"])
    (tmp_path / "tools").write_text("one two")
    watching.wait_for("lab__one", "lab__two", "team/first")
    assert len((tmp_path / "starts").read_text().split()) == 1


def test_a_new_kind_of_source_is_followed(
    project: Path, watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A new type needs only a module and a line in the registry; its signals start scans."""
    board = registered(monkeypatch, "board")
    board.post("one")
    with (project / "repertory.toml").open("a") as file:
        file.write('\n[[sources]]\ntype = "bulletins"\nname = "board"\n')
    watching = watch("board/one", "team/first")
    scans = watching.scans("board")
    board.post("one", "two")
    watching.wait_for("board/one", "board/two", "team/first")
    assert watching.scans("board") == scans + 1
    configure(project, ("team", "skills"))
    watching.wait_for("team/first")
    watching.wait(lambda: board.listeners == [])


def test_a_silent_server_delays_no_save(project: Path, skills: Path) -> None:
    """Files are scanned while servers do not answer; the servers end with the service."""
    stuck = {"command": sys.executable, "args": [str(SERVERS / "raw.py"), "stuck"]}
    servers = {f"stuck{number}": stuck for number in range(6)}
    (project / ".mcp.json").write_text(json.dumps({"mcpServers": servers}))
    with Watching(project, mcp_config=[".mcp.json"]) as watching:
        watching.wait(lambda: watching.scans() == 1)
        save(skills / "second.md")
        watching.wait(lambda: watching.scans() == 2)
        assert {one.source.name for one in watching.coordinator.scans} == {"team"}


def test_a_long_review_of_items_delays_no_save(
    project: Path, skills: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Items are examined in the thread of their scan, so other sources are followed."""
    save(project / "others" / "other.md")
    configure(project, ("team", "skills"), ("others", "others"))
    examined = threading.Event()
    watching = Watching(project)
    monkeypatch.setattr(
        watching.coordinator,
        "examine",
        lambda result, _: result.source.name == "team" or examined.wait(),
    )
    with watching:
        watching.wait_for("team/first")
        save(skills / "second.md")
        watching.wait_for("team/first", "team/second")
        examined.set()
        watching.wait_for("others/other", "team/first", "team/second")


def test_a_fault_in_the_review_of_items_stops_no_indexing(
    project: Path, skills: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The items are indexed as if they had not been examined."""
    watching = Watching(project)
    monkeypatch.setattr(watching.coordinator, "examine", lambda *_: 1 / 0)
    with watching:
        watching.wait_for("team/first")
        save(skills / "second.md")
        watching.wait_for("team/first", "team/second")


def test_folders_on_silent_file_systems_are_polled(
    skills: Path, watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Saves on a file system without events are found."""
    kind = filesystems.Mount("/", "nfs4")
    monkeypatch.setattr(events, "mounts", lambda: [kind])
    watching = watch()
    watching.wait(lambda: list(watching.status["polling"]) == ["team"])
    assert watching.status["watching"] == []
    save(skills / "second.md")
    watching.wait_for("team/first", "team/second")


@pytest.mark.skipif(sys.platform != "linux", reason="the test simulates FSEvents with inotify")
@pytest.mark.parametrize("error", [SystemError, RuntimeError])
def test_folders_without_a_stream_of_events_are_polled(
    skills: Path, watch: Watch, monkeypatch: pytest.MonkeyPatch, error: type[Exception]
) -> None:
    """FSEvents raises these errors, for instance in a sandbox."""

    def start(_: inotify.InotifyEmitter) -> None:
        raise error("Cannot start fsevents stream. Use a kqueue or polling observer instead.")

    monkeypatch.setattr(inotify.InotifyEmitter, "start", start)
    watching = watch()
    why = "the system starts no stream of file events"
    watching.wait(lambda: watching.status["polling"] == {"team": why})
    save(skills / "second.md")
    watching.wait_for("team/first", "team/second")


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has inotify")
@pytest.mark.parametrize("left", [0, 3])
def test_folders_beyond_the_limit_of_watches_are_polled(
    skills: Path, watch: Watch, monkeypatch: pytest.MonkeyPatch, left: int
) -> None:
    """A tree that needs more watches than granted is polled, even if part of it was watched."""
    granted = inotify_c.inotify_add_watch
    counted = iter(range(left))

    def add_watch(*arguments: object) -> int:
        if next(counted, None) is None:
            ctypes.set_errno(errno.ENOSPC)
            return -1
        return int(granted(*arguments))  # type: ignore[arg-type] # passed on as they are

    monkeypatch.setattr(inotify_c, "inotify_add_watch", add_watch)
    for number in range(5):
        save(skills / f"folder{number}" / "one.md")
    items = [f"team/folder{number}/one" for number in range(5)]
    watching = watch("team/first", *items)
    watching.wait(lambda: list(watching.status["polling"]) == ["team"])
    limit = int(Path("/proc/sys/fs/inotify/max_user_watches").read_text())
    assert watching.status["polling"]["team"] == (
        "the system grants no further file watches; "
        f"raise fs.inotify.max_user_watches above {limit:,} with sysctl"
    )
    save(skills / "folder4" / "two.md")
    watching.wait_for("team/first", *items, "team/folder4/two")


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has inotify")
def test_a_service_beyond_the_limit_of_instances_polls(
    skills: Path, watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The status names this limit instead of that of watches."""

    def init() -> int:
        ctypes.set_errno(errno.EMFILE)
        return -1

    monkeypatch.setattr(inotify_c, "inotify_init", init)
    watching = watch()
    watching.wait(lambda: list(watching.status["polling"]) == ["team"])
    assert "fs.inotify.max_user_instances" in watching.status["polling"]["team"]
    save(skills / "second.md")
    watching.wait_for("team/first", "team/second")


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has inotify")
def test_a_watch_that_ends_before_its_start_is_no_error(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A service that ends at once logs nothing."""
    with events.FolderWatches(lambda *_: None):
        emitter = inotify.InotifyEmitter(EventQueue(), ObservedWatch(tmp_path, recursive=True))
        emitter.queue_events(0)  # the next step of its thread after a stop
    assert not caplog.records


def test_sources_are_scanned_periodically(
    skills: Path, watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reconciliation finds changes without events."""
    monkeypatch.setattr(FileSystemEventHandler, "dispatch", lambda *_: None)
    watching = watch(reconcile=0.5)
    save(skills / "second.md")
    watching.wait_for("team/first", "team/second")


def test_a_source_that_takes_long_to_scan_is_scanned_less_often(
    skills: Path, watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The pause is a multiple of the duration of its scan; saves are still found."""
    monkeypatch.setattr(tasks, "REST", 1e9)
    watching = watch(reconcile=0.1)
    watching.wait(lambda: watching.scans() == 1)
    compared: list[None] = []
    monkeypatch.setattr(watching.coordinator, "reconcile", lambda: compared.append(None))
    watching.wait(lambda: len(compared) >= 3)
    assert watching.scans() == 1
    save(skills / "second.md")
    watching.wait_for("team/first", "team/second")


def test_a_configuration_that_takes_long_to_load_is_loaded_less_often(
    project: Path, watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Discovery reads the whole project, so it pauses like a scan; saved changes are still seen."""
    monkeypatch.setattr(tasks, "REST", 1e9)
    loads: list[None] = []

    def counting(before: Configuration) -> Configuration:
        loads.append(None)
        return reload(before)

    monkeypatch.setattr(tasks, "reload", counting)
    watching = watch(reconcile=0.1)
    compared: list[None] = []
    monkeypatch.setattr(watching.coordinator, "reconcile", lambda: compared.append(None))
    watching.wait(lambda: len(compared) >= 3)
    assert len(loads) == 1
    save(project / "more" / "second.md")
    configure(project, ("team", "skills"), ("more", "more"))
    watching.wait_for("more/second", "team/first")


def test_a_change_of_permissions_is_a_change(skills: Path, watch: Watch) -> None:
    """A file that was unreadable may be readable now."""
    watching = watch()
    scans = watching.scans()
    (skills / "first.md").chmod(0o600)
    watching.wait(lambda: watching.scans() == scans + 1)


def test_a_newly_discovered_folder_removes_no_items(tmp_path: Path) -> None:
    """Without a configuration, items found before stay indexed at every moment."""
    project = tmp_path / "project"
    write(project / "examples" / "skills" / "keys" / "SKILL.md", SKILL)
    write(project / "docs" / "guide.md", "# Guide\n\nHow to begin.\n")
    with Watching(project) as watching:
        watching.wait(lambda: len(watching.indexed) == 2)
        before = set(watching.indexed)
        missing: list[set[str]] = []

        def found(*items: str) -> bool:
            now = set(watching.indexed)
            missing.append(before - now)
            return now == before | set(items)

        write(project / "skills" / "new" / "SKILL.md", SKILL)
        watching.wait(lambda: found("project/new"))
        write(project / ".claude" / "skills" / "own" / "SKILL.md", SKILL)
        (project / ".claude-plugin").mkdir()
        watching.wait(lambda: found("project/new", "project-claude/own"))
        assert not any(missing)


def test_the_first_file_of_a_kind_is_found_where_it_is_saved(tmp_path: Path) -> None:
    """Without a configuration, such a file adds a source; a file of a known source does not."""
    project = tmp_path / "project"
    save(project / "README.md", "# Read me")
    (project / "sounds.json").write_text("[]")
    found = ["documents/README.md"]
    with Watching(project) as watching:
        watching.wait_for(*found)
        write(project / "lab" / "cook" / "SKILL.md", SKILL)
        watching.wait_for(*found, "other-skills/lab/cook")
        write(tmp_path / "moved" / "walk" / "SKILL.md", SKILL)
        shutil.move(tmp_path / "moved", project / "moved")
        watching.wait_for(*found, "other-skills/lab/cook", "other-skills/moved/walk")
        assert len(watching.coordinator.adopted) == 2
        tool = {"name": "play", "description": "Plays.", "inputSchema": {"type": "object"}}
        (project / "sounds.json").write_text(json.dumps([tool]))
        watching.wait(lambda: len(watching.indexed) == 4)
        write(project / "lab" / "run.ns.txt", "Goal: run\n")
        watching.wait(lambda: len(watching.coordinator.adopted) == 4)


def test_a_configuration_may_appear_while_an_event_is_debounced(tmp_path: Path) -> None:
    """The pending event of the former sources does no harm."""
    project = tmp_path / "project"
    save(project / "skills" / "first.md")
    with Watching(project, quiet=1.0) as watching:
        watching.wait_for("documents/skills/first.md")
        for number in range(20):
            write(project / "data" / "data.json", str(number))
            if number == 5:
                configure(project, ("team", "skills"))
            time.sleep(0.05)
        watching.wait_for("team/first")
        save(project / "skills" / "second.md")
        watching.wait_for("team/first", "team/second")

"""Indexing of changed files within a time budget, and the record that commands leave."""

import itertools
import json
import math
import os
import shutil
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from repertory.catalogue.policy import Policy
from repertory.compose import Parts
from repertory.embedding.engine import Vectors
from repertory.embedding.load import load_engine
from repertory.errors import ModelError, SourceError, UnknownItemError
from repertory.index.edge_files import ROOM
from repertory.index.vectors import Filter
from repertory.indexing import job, keyword_feed, pace
from repertory.indexing.in_process_queue import InProcessQueue
from repertory.indexing.scan import ScanResult, scan_source
from repertory.local import one_shot, update
from repertory.local.one_shot import Repertory
from repertory.local.update import BATCH_SIZE, Stopwatch, Update
from repertory.notices import about_first_index
from repertory.project.freshness import Freshness
from repertory.search.query import Query
from repertory.sources import folder_memory
from repertory.sources.folder import FolderSource
from repertory.sources.openapi.source import FetchedOpenApi
from repertory.sources.reading.files import Found
from repertory.sources.registry import build
from repertory.sources.source import Source
from repertory.watch_status import report_watch, watch_status
from repertory_embedded.server import running
from tests.support.builders import write, write_shop, write_skill
from tests.support.query_service import MODEL, settings_of
from tests.support.waiting import until

SKILLS = 12

pytestmark = pytest.mark.usefixtures("own_home")


@pytest.fixture(autouse=True)
def _old_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folder_memory, "GRANULARITY", -60_000_000_000)  # no file counts as recent


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """An indexed project with three skills and a document."""
    root = tmp_path / "project"
    write_shop(root)
    with Repertory(settings_of(root), root) as repertory:
        repertory.index()
    return root


def search(project: Path, text: str, budget_s: float = 600.0) -> tuple[list[str], tuple[str, ...]]:
    """The ids that a new process finds, and its notices."""
    with Repertory(settings_of(project), project, budget_s=budget_s) as repertory:
        repertory.ensure_indexed()
        answer = repertory.search(Query(text=text, limit=50, threshold=0.0))
    return [hit.id for hit in answer.hits], answer.notices


class Late(Stopwatch):
    """A stopwatch for reading or writing, whose time is over at once if `what` is `late`."""

    def __init__(self, what: str, late: str) -> None:
        self._is_late = what == late

    def seconds(self) -> float:
        """Infinity if the time is over, else 0."""
        return math.inf if self._is_late else 0.0


def counted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Record the places of the files that are parsed from now on."""
    parsed: list[str] = []
    read = FolderSource._read_file

    def noting(self: FolderSource, file: Found) -> object:
        parsed.append(file.place)
        return read(self, file)

    monkeypatch.setattr(FolderSource, "_read_file", noting)
    return parsed


def test_only_changed_files_are_read(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Unchanged files that an earlier process read are not parsed again."""
    parsed = counted(monkeypatch)
    write_skill(project, "knots", "Tie a bowline")
    write_skill(project, "postmortem", "Sail a dinghy")

    found, notices = search(project, "tie a bowline")

    assert found[0] == "project/knots"
    assert "project/key-rotation" in found
    assert sorted(parsed) == ["knots/SKILL.md", "postmortem/SKILL.md"]
    assert notices == ()


def test_an_unreadable_configuration_is_named_next_to_the_answer(project: Path) -> None:
    """The servers of a discovered file are missing, and the notice says why until it is valid."""
    config = write(project / ".mcp.json", '{"mcpServers": {"lab": {"command": "lab"}}')
    found, (notice,) = search(project, "tie a bowline")
    assert "project/key-rotation" in found
    assert notice.startswith(f"Some sources may be missing or outdated: {config}")

    write(config, '{"mcpServers": {}}')
    assert search(project, "tie a bowline")[1] == ()


def test_a_new_folder_behind_an_existing_link_is_found(project: Path) -> None:
    """The target of a link may be created later, in a folder that is otherwise skipped."""
    packages = project / "skills" / "node_modules"
    packages.mkdir()
    (project / "skills" / "pack").symlink_to("node_modules/pack")
    (project / "skills" / "file").symlink_to("node_modules/file")
    write(packages / "file", "Text.")
    assert "project/pack" not in search(project, "tie a bowline")[0]

    text = (project / "skills" / "postmortem" / "SKILL.md").read_text("utf-8")
    write(packages / "pack" / "SKILL.md", text)
    assert "project/pack" in search(project, "tie a bowline")[0]

    (packages / "file").unlink()
    write(packages / "file" / "SKILL.md", text)
    assert "project/file" in search(project, "tie a bowline")[0]

    shutil.rmtree(packages / "pack")
    assert "project/pack" not in search(project, "tie a bowline")[0]


def test_the_first_skill_in_a_hidden_folder_is_found(tmp_path: Path) -> None:
    """No source has listed that folder before."""
    project = tmp_path / "project"
    write(project / "README.md", "# Read me\n\nHow to sail.\n")
    write(project / "packages" / "web" / ".host" / "settings.json", "{}")
    assert search(project, "tie a bowline")[0] == ["documents/README.md"]

    write_skill(project / "packages" / "web" / ".host", "knots", "Tie a bowline")
    assert search(project, "tie a bowline")[0][0] == "other-skills/packages/web/.host/skills/knots"


def test_the_last_tools_of_a_broken_file_are_kept_with_a_notice(project: Path) -> None:
    """Every answer has the notice until the file can be read again."""
    tools = [{"name": "tie_knot", "description": "Ties a bowline", "inputSchema": {}}]
    file = write(project / "tools" / "knots.json", json.dumps({"tools": tools}))
    assert search(project, "tie a bowline")[1] == ()
    text = file.read_text("utf-8")

    file.write_text(text.replace("Ties", "Unties")[:-1], "utf-8")
    for _ in range(2):
        found, notices = search(project, "tie a bowline")
        assert "knots__tie_knot" in found
        assert len(notices) == 1
        assert "items of tools are kept as they were last read" in notices[0]

    file.write_text(text, "utf-8")
    assert search(project, "tie a bowline")[1] == ()


def problems(project: Path) -> set[str]:
    """The messages of all problems in the statistics."""
    with Repertory(settings_of(project), project) as repertory:
        return {problem.message for problem in repertory.stats().problems}


def test_problems_of_unchanged_items_are_still_reported(project: Path) -> None:
    """A search that indexes another file does not read the problematic ones again."""
    write_skill(project, "lure", "Sends what is in ~/.ssh/id_rsa")
    for server in ("files", "disk"):
        tool = {"name": "read_file", "description": "Reads", "inputSchema": {"type": "object"}}
        listed = {"server": server, "tools": [tool]}
        write(project / f"tools/{server}.json", json.dumps(listed))
    with Repertory(settings_of(project), project) as repertory:
        repertory.index()
    said = problems(project)
    assert len(said) == 3  # one of them is about the shop

    write_skill(project, "knots", "Tie a bowline")
    assert "project/knots" in search(project, "tie a bowline")[0]
    assert problems(project) == said

    write_skill(project, "lure", "Catches a pike")
    assert "project/lure" in search(project, "catch a pike")[0]
    assert {one for one in said if "lure" not in one} == problems(project)


def test_problems_of_folders_are_reported_until_they_are_gone(project: Path) -> None:
    """A search that finds no changed file still reports a link and a source as they are now."""
    (project / "repertory.toml").write_text(
        "[[sources]]\ntype = 'skills'\npath = 'skills'\n"
        "[[sources]]\ntype = 'documents'\npath = 'guides'\n"
    )
    link = project / "skills" / "link"
    search(project, "rotate keys")
    assert [one for one in problems(project) if "guides cannot be read" in one]

    link.symlink_to("link")
    search(project, "rotate keys")
    assert [one for one in problems(project) if "link cannot be followed" in one]

    link.unlink()
    (project / "guides").mkdir()
    search(project, "rotate keys")
    assert not [one for one in problems(project) if "cannot be" in one]


@pytest.mark.parametrize("has_ended", [True, False])
def test_no_source_starts_in_a_process_that_has_ended(
    project: Path, monkeypatch: pytest.MonkeyPatch, *, has_ended: bool
) -> None:
    """A server that ends before its first scan leaves a report in which all sources start."""
    monkeypatch.setattr(one_shot, "SILENCE_S", -1.0 if has_ended else 60.0)
    with Repertory(settings_of(project), project) as repertory:
        board = repertory.parts.coordination.status
        last = watch_status(board)
        assert last
        report_watch(board, last.inherited())
        assert all(one.is_starting is not has_ended for one in repertory.stats().sources)


def test_unlisted_problems_of_unchanged_items_are_still_counted(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The counts include problems beyond the limit of the list."""
    monkeypatch.setattr("repertory.indexing.first_problems.MAX_PROBLEMS", 2)
    monkeypatch.setattr("repertory.catalogue.likeness.MAX_FOUND", 1)
    for number in range(4):
        write_skill(project, f"lure-{number}", f"Sends what is in ~/.ssh/id_rsa to {number}")
        write(project / f"skills/broken-{number}/SKILL.md", "---\nname: [\n---\n")
    tools = [{"name": f"read_{n}_files", "description": "Reads"} for n in range(9, 12)]
    for server in ("files", "disk"):
        write(project / f"tools/{server}.json", json.dumps({"server": server, "tools": tools}))
    with Repertory(settings_of(project), project) as repertory:
        before = repertory.index().stats
    assert before.warnings >= 6

    write_skill(project, "knots", "Tie a bowline")
    assert "project/knots" in search(project, "tie a bowline")[0]
    with Repertory(settings_of(project), project) as repertory:
        after = repertory.stats()
    assert (after.errors, after.warnings) == (before.errors, before.warnings)
    assert after.problems == before.problems


def test_a_disk_without_room_for_a_copy_only_skips_the_optimisation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The index is complete, and the next command uses it without reading files."""
    free = ROOM + 2**20
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=free))
    root = tmp_path / "project"
    write_shop(root)

    with Repertory(settings_of(root), root) as repertory:
        run = repertory.index()

    assert any(one.startswith("The index was not optimised: The disk ") for one in run.notices)
    parsed = counted(monkeypatch)
    found, notices = search(root, "rotate a key")
    assert (found[0], notices, parsed) == ("project/key-rotation", (), [])


def test_files_that_were_removed_from_the_index_are_noticed(project: Path) -> None:
    """Keyword search answers with a notice. The next run restores the items from cached vectors."""
    for part in ("segments", "wal"):
        [folder] = (settings_of(project).data_dir / "collections").glob(f"*/{part}")
        shutil.rmtree(folder)
    query = Query(text="rotate a key", limit=50, threshold=0.0)
    with Repertory(settings_of(project), project) as repertory:
        repertory.ensure_indexed()
        answer = repertory.search(query)
        assert answer.hits
        assert answer.mode == "keyword"
        assert answer.degraded == (
            "The index has only 0 of its 4 items because some of its files were removed: run "
            "`repertory index`."
        )
        run = repertory.index()
        assert (run.added, run.embedded, run.stats.items) == (4, 0, 4)
    with Repertory(settings_of(project), project) as repertory:
        answer = repertory.search(query)
        assert (answer.mode, answer.degraded) == ("hybrid", "")


def test_without_time_the_changed_files_are_counted(project: Path) -> None:
    """One notice has their number, and the items indexed before are still found."""
    for number in range(SKILLS):
        write_skill(project, f"knots-{number}", f"Tie the knot of {number} loops")
    (project / "skills" / "postmortem" / "SKILL.md").unlink()

    found, notices = search(project, "tie a knot", budget_s=0.0)

    assert notices == (f"{SKILLS} changed files are not searchable yet; run `repertory index`.",)
    assert "project/key-rotation" in found
    assert not [item for item in found if "knots" in item]
    assert "project/postmortem" not in found


def test_the_first_files_of_a_directory_are_indexed_despite_the_budget(tmp_path: Path) -> None:
    """An empty index has nothing to search, even if the empty directory was searched before."""
    project = tmp_path / "project"
    write(project / "main.py", "print()")
    assert search(project, "tie a knot")[0] == []
    for number in range(SKILLS):
        write_skill(project, f"knots-{number}", f"Tie the knot of {number} loops")

    found, notices = search(project, "tie a knot", budget_s=0.0)

    assert (len(found), notices) == (SKILLS, ())


def test_a_large_first_index_is_searched_before_it_is_complete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each search continues the build for a while, and a notice counts the missing items."""
    project = tmp_path / "project"
    for number in range(SKILLS):
        write_skill(project, f"knots-{number}", f"Tie the knot of {number} loops")
    monkeypatch.setattr(one_shot, "FIRST_BUDGET_S", 0.0)
    monkeypatch.setattr(job, "MAX_ITEMS", 3)
    monkeypatch.setattr(pace, "MAX_TEXTS", 1)
    monkeypatch.setattr(pace, "MIN_TEXTS", 1)

    found, notices = search(project, "tie a knot")

    assert 0 < len(found) < SKILLS
    assert notices == (one_shot.UNFINISHED, about_first_index(SKILLS - len(found), SKILLS))

    def scan_slowly(source: Source, *, refresh: bool) -> ScanResult:
        time.sleep(0.3)  # during this time the queue has no jobs
        return scan_source(source, refresh=refresh)

    monkeypatch.setattr("repertory.indexing.run.scan_source", scan_slowly)
    with Repertory(settings_of(project), project) as repertory:
        assert repertory.stats().items == len(found)
        run = repertory.index_files()
        assert run.stats.items == run.added + run.unchanged == 2 * len(found)
    searches = [search(project, "tie a knot") for _ in range(3)]
    assert [len(hits) for hits, _ in searches][-1] == SKILLS
    assert searches[-1][1] == ()


def test_a_directory_whose_files_are_all_deleted_is_not_indexed_at_each_search(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its folders may not be mounted, so the index stays, with a notice."""
    for path in [*project.iterdir()]:
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    monkeypatch.setattr(Update, "whole", None)

    for _ in range(2):
        found, notices = search(project, "tie a knot")
        assert (found, len(notices)) == ([], 1)
        assert "offers no items at all" in notices[0]


def test_later_searches_index_the_remaining_files(project: Path) -> None:
    """Each search makes progress, however small its budget is."""
    for number in range(SKILLS):
        write_skill(project, f"knots-{number}", f"Tie the knot of {number} loops")

    left = [SKILLS]
    for _ in range(2 * SKILLS):
        found, notices = search(project, "tie a knot", budget_s=1e-9)
        left.append(SKILLS - sum("knots" in item for item in found))
        assert left[-1] <= left[-2]
        assert bool(left[-1]) == bool(notices)
        if not left[-1]:
            break
    assert left[-1] == 0


def test_a_changed_file_that_there_was_no_time_to_read_is_named(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each search names it until one has the time, although nothing that was read has changed."""
    write_skill(project, "postmortem", "Sail a dinghy")
    with monkeypatch.context() as patch:
        whats = itertools.cycle(("reading", "writing"))
        patch.setattr(update, "Stopwatch", lambda: Late(next(whats), "reading"))
        for _ in range(2):
            assert "1 changed file is not searchable yet" in search(project, "sail")[1][0]
    found, notices = search(project, "sail a dinghy")
    assert (found[0], notices) == ("project/postmortem", ())


def test_items_read_by_one_search_are_written_by_a_later_one(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even if the search in between had no time to read: unchanged files may be unindexed."""
    skills = 2 * BATCH_SIZE
    for number in range(skills):
        write_skill(project, f"knots-{number}", f"Tie the knot of {number} loops")
    found = []
    for late in ("writing", "reading", ""):
        whats = itertools.cycle(("reading", "writing"))
        monkeypatch.setattr(
            update, "Stopwatch", lambda whats=whats, late=late: Late(next(whats), late)
        )
        ids, notices = search(project, "tie a knot")
        found.append(sum("knots" in item for item in ids))
        assert bool(notices) == bool(late)

    assert 0 < found[0] == found[1] < skills == found[2]


def test_an_emptied_source_is_named_after_a_search_without_time_to_compare_it(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That search only switched to an index which existed already."""
    write_skill(project / ".claude", "knots", "Tie a bowline")
    search(project, "tie a bowline")
    shutil.rmtree(project / ".claude")
    for path in (project / "skills").iterdir():
        shutil.rmtree(path)
    write(project / "README.md", "# Read me\n\nHow to sail.\n")

    with monkeypatch.context() as patch:
        whats = itertools.cycle(("reading", "writing"))
        patch.setattr(update, "Stopwatch", lambda: Late(next(whats), "writing"))
        search(project, "sail")
    notices = search(project, "sail")[1]
    assert any("suddenly empty" in one for one in notices), notices


def test_later_searches_write_the_remaining_items(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first search read all files, but had time to write only some items."""
    for number in range(5 * BATCH_SIZE):
        write_skill(project, f"knots-{number}", f"Tie the knot of {number} loops")
    (project / "skills" / "postmortem" / "SKILL.md").unlink()
    seconds = Stopwatch.seconds
    watches: list[Stopwatch] = []

    def write_little(watch: Stopwatch) -> float:
        """Let only the first stopwatch, which measures reading, have time."""
        if watch not in watches:
            watches.append(watch)
        return 0.0 if watch is watches[0] else 1e12 * seconds(watch)

    left = [5 * BATCH_SIZE]
    notices: tuple[str, ...] = ()
    for _ in range(12):
        watches.clear()
        monkeypatch.setattr(Stopwatch, "seconds", write_little)
        found, notices = search(project, "tie a knot")
        left.append(5 * BATCH_SIZE - sum("knots" in item for item in found))
        assert left[-1] <= left[-2]
        assert notices or not left[-1]
    assert (left[-1], notices) == (0, ())
    assert len(set(left)) > 2


def test_a_new_source_delays_changes_for_a_few_searches_only(project: Path) -> None:
    """Items with cached vectors are written at once; before, the notice counts all of them."""
    for number in range(10 * BATCH_SIZE):
        write_skill(project, f"knots-{number}", f"Tie the knot of {number} loops")
    search(project, "tie a knot")
    (Path.home() / ".claude" / "skills").mkdir(parents=True)  # a new source without items
    write_skill(project, "sails", "Rig the sails")

    said: list[str] = []
    for _ in range(5):
        found, notices = search(project, "rig the sails", budget_s=1e-9)
        said += notices
        if found[0] == "project/sails" and not notices:
            break
    assert (found[0], notices) == ("project/sails", ())
    total = 10 * BATCH_SIZE + 5
    assert f"a new index, in which {total - 1} of {total} items are missing" in said[0]
    assert "The sources or the release have changed" in said[0]
    assert "the old index answers, without the latest changes" in said[0]


def test_a_source_of_one_file_is_followed(project: Path) -> None:
    """An edit is noticed even if it was saved while the file was indexed."""
    corpus = project / "corpus.jsonl"

    def save(name: str, description: str) -> None:
        item = {"id": name, "kind": "skill", "name": name, "description": description}
        corpus.write_bytes(msgspec.json.encode(item))

    save("sails", "Rig the sails.")
    (project / "repertory.toml").write_text(
        "[[sources]]\ntype = 'corpus'\nname = 'shop'\npath = 'corpus.jsonl'\n", "utf-8"
    )
    assert search(project, "rig the sails")[0] == ["sails"]
    save("nets", "Mend the nets.")
    assert search(project, "mend the nets") == (["nets"], ())
    with Repertory(settings_of(project), project) as repertory:
        workspace = repertory.parts.workspace
        record = Freshness(workspace)
        record.note_configuration()
        catalogue = workspace.catalogue()
        record.note_sources(catalogue)
        save("ropes", "Lay the ropes.")
        record.remember(catalogue)
    assert search(project, "lay the ropes")[0] == ["ropes"]


def test_a_deleted_item_is_neither_shown_nor_listed_nor_counted(project: Path) -> None:
    """The process had read the index before the deletion."""
    with Repertory(settings_of(project), project) as repertory:
        before = repertory.contents().kinds["skill"]["project"]
        shutil.rmtree(project / "skills" / "postmortem")
        page, total = repertory.page(Filter(kinds=("skill",)), 99)
        assert len(page) == total == repertory.contents().kinds["skill"]["project"] == before - 1
        assert repertory.items(["project/postmortem"]) == {}
        gone = "project/postmortem"
        for ask in (
            repertory.item,
            repertory.links,
            partial(repertory.explain, Query(text="write up an incident", limit=3, threshold=0.0)),
        ):
            with pytest.raises(UnknownItemError, match=rf"There is no item '{gone}'(?!.*{gone})"):
                ask(gone)


def test_a_file_that_begins_to_list_tools_is_found(project: Path) -> None:
    """The file is edited in place, which changes no folder."""
    file = project / "sounds.json"
    file.write_text("[]")
    assert "play" not in search(project, "play sounds")[0]
    tool = {"name": "play", "description": "Plays sounds.", "inputSchema": {"type": "object"}}
    file.write_bytes(msgspec.json.encode([tool]))
    assert search(project, "play sounds")[0][0].endswith("play")


def test_the_first_source_wins_for_items_of_one_id(project: Path) -> None:
    """It wins whichever file changes; here two files list a tool of one server."""
    (project / "tools").mkdir()
    first, second = project / "tools" / "sounds.json", project / "sounds.json"

    def save(file: Path, description: str) -> None:
        tool = {"name": "play", "description": description, "inputSchema": {"type": "object"}}
        file.write_bytes(msgspec.json.encode({"server": "sounds", "tools": [tool]}))

    def described() -> str:
        with Repertory(settings_of(project), project, budget_s=600.0) as repertory:
            repertory.ensure_indexed()
            return repertory.item("sounds__play").description

    save(second, "Plays in the file beside.")
    assert described() == "Plays in the file beside."
    save(first, "Plays in the folder.")
    assert described() == "Plays in the folder."
    save(second, "Plays in the changed file.")
    assert described() == "Plays in the folder."
    first.unlink()
    assert described() == "Plays in the changed file."
    save(first, "Plays in the folder again.")
    assert described() == "Plays in the folder again."


def test_a_change_of_permissions_makes_a_folder_changed(project: Path) -> None:
    """Its modification time is unchanged, but it may have become readable."""
    folder = project / "skills" / "postmortem"
    before = folder.stat()
    assert "project/postmortem" in search(project, "postmortem")[0]
    seen = folder_memory.settled_time(str(folder))
    folder.chmod(0o700 if before.st_mode & 0o077 else 0o750)
    assert folder_memory.changed_at(str(folder)) != seen
    os.utime(folder, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert folder_memory.changed_at(str(folder)) != seen


def test_times_in_the_future_are_no_changes(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files from an archive of another time zone have such times; later edits are noticed."""
    file = project / "skills" / "postmortem" / "SKILL.md"
    later = time.time() + 86_400
    for path in (file, file.parent):
        os.utime(path, (later, later))
    monkeypatch.setattr(folder_memory, "GRANULARITY", 0)
    assert folder_memory.settled_signature(str(file)) != folder_memory.CHANGING
    assert folder_memory.settled_time(str(file.parent)) != folder_memory.RECENT
    search(project, "postmortem")
    before = folder_memory.settled_signature(str(file))
    file.write_text("---\nname: postmortem\ndescription: Sail a dinghy.\n---\n", "utf-8")
    os.utime(file, (later, later))
    assert folder_memory.settled_signature(str(file)) != before
    assert search(project, "sail a dinghy")[0][0] == "project/postmortem"


@pytest.mark.parametrize("change", ["delete", "move"])
def test_a_deleted_item_is_never_found(project: Path, change: str) -> None:
    """It is not found even without time to index, and takes no place of another result."""
    folder = project / "skills" / "postmortem"
    if change == "delete":
        shutil.rmtree(folder)
    else:
        folder.rename(project / "elsewhere")
    with Repertory(
        settings_of(project), project
    ) as repertory:  # no ensure_indexed, so files are not compared
        [only] = repertory.search(Query(text="postmortem", limit=1, threshold=0.0)).hits

    assert only.id != "project/postmortem"
    assert "project/postmortem" not in search(project, "postmortem", budget_s=0.0)[0]


@pytest.mark.parametrize("is_indexed", [False, True])
def test_an_item_removed_from_a_large_index_is_not_found(
    project: Path, monkeypatch: pytest.MonkeyPatch, is_indexed: bool
) -> None:
    """The file of the removed tool still exists; only small indexes are compared completely."""
    monkeypatch.setattr(keyword_feed, "MAX_COMPARED", 0)
    file = project / "tools" / "dry.json"
    file.parent.mkdir()

    def save(*names: str) -> None:
        tools = [{"name": name, "description": "Dries", "inputSchema": {}} for name in names]
        file.write_bytes(msgspec.json.encode({"server": "dry", "tools": tools}))

    def found() -> set[str]:
        return {one for one in search(project, "dries")[0] if one.startswith("dry__")}

    save("apples", "pears")
    assert found() == {"dry__apples", "dry__pears"}
    save("apples")
    if is_indexed:
        with Repertory(settings_of(project), project) as repertory:
            repertory.index()
    assert found() == {"dry__apples"}


def test_an_outdated_keyword_index_is_not_searched(project: Path, tmp_path: Path) -> None:
    """The numbers of items differ, since an item was removed or added."""
    stored = settings_of(project).data_dir / "keywords"
    folder = project / "skills" / "postmortem"
    for change in (
        partial(shutil.move, folder, tmp_path),
        partial(shutil.move, tmp_path / folder.name, folder),
    ):
        shutil.copytree(stored, tmp_path / "stored", dirs_exist_ok=True)
        change()
        expected, _ = search(project, "postmortem")
        shutil.rmtree(stored)
        (tmp_path / "stored").rename(stored)
        assert search(project, "postmortem")[0] == expected


def test_items_of_a_missing_source_folder_are_kept(project: Path) -> None:
    """Its disk may not be mounted. The skill of a deleted folder below it is removed."""
    configuration = "[[sources]]\ntype = 'skills'\npath = 'skills'\nname = 'project'\n"
    (project / "repertory.toml").write_text(configuration, "utf-8")
    assert "project/postmortem" in search(project, "rotate keys")[0]
    (project / "skills").rename(project.parent / "away")

    found, notices = search(project, "rotate keys")

    assert "project/key-rotation" in found
    assert any(one.endswith("Its items are kept.") for one in notices)
    shutil.rmtree(project.parent / "away" / "postmortem")
    (project.parent / "away").rename(project / "skills")
    found, notices = search(project, "rotate keys")
    assert "project/key-rotation" in found
    assert "project/postmortem" not in found


def test_a_new_index_does_not_claim_to_keep_items(project: Path) -> None:
    """An index that is built while the folder is missing has no items of it."""
    configuration = "[[sources]]\ntype = 'skills'\npath = 'skills'\nname = 'project'\n"
    (project / "repertory.toml").write_text(configuration, "utf-8")
    (project / "skills").rename(project.parent / "away")

    with Repertory(settings_of(project, data_dir=str(project.parent / "other")), project) as other:
        other.ensure_indexed()
        answer = other.search(Query(text="rotate keys"))
    found, notices = answer.hits, answer.notices

    assert found == []
    assert any(one.endswith("This index has none of its items.") for one in notices)
    assert not any("are kept" in one for one in notices)


def test_an_index_that_another_command_switched_meanwhile_is_compared_again(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The new index may have the changes that this search could not write to the old one."""
    write_skill(project, "knots", "Tie a bowline.")
    with Repertory(settings_of(project), project) as repertory:
        store, active = repertory.parts.store, repertory.parts.active
        before, compared = store.alias(active), 0

        def changes(*_: object) -> str:
            nonlocal compared
            compared += 1
            if compared > 1:
                return ""
            store.create(f"{before}0", 4).close()
            store.set_alias(active, f"{before}0")
            return "1 changed file is not searchable yet (There is no collection)."

        monkeypatch.setattr(Update, "changes", changes)
        repertory.ensure_indexed()
        store.set_alias(active, str(before))
        answer = repertory.search(Query(text="rotate keys"))

    assert compared == 2
    assert not any("not searchable yet" in one for one in answer.notices)


def test_an_unchanged_project_is_not_compared_again(project: Path) -> None:
    """A search of a current index does not even import the code for it."""
    code = """
        import sys
        from pathlib import Path
        from repertory.local.one_shot import Repertory
        from repertory.search.query import Query
        from repertory.settings import load
        project = Path(sys.argv[1])
        given = {"data_dir": str(project.parent / "data"), "model": sys.argv[2]}
        with Repertory(load(given, project, {}), project) as repertory:
            repertory.ensure_indexed()
            repertory.search(Query(text="postmortem"))
        print(*sys.modules)
    """
    command = [sys.executable, "-c", textwrap.dedent(code), str(project), MODEL]
    done = subprocess.run(command, capture_output=True, check=True, text=True)
    loaded = set(done.stdout.split())

    assert "repertory.project.freshness" in loaded
    assert not loaded & {
        "repertory.local.update",
        "repertory.sources.folder",
        "repertory.indexing.run",
    }


def test_an_edit_before_an_upgrade_is_not_lost(project: Path) -> None:
    """Without a readable record of the last command, all files are read again."""
    for record in (project.parent / "data" / "workspaces").glob("*.seen"):
        record.write_bytes(b"of another release")
    write_skill(project, "postmortem", "Sail a dinghy upwind")

    assert search(project, "sail a dinghy")[0][0] == "project/postmortem"


@pytest.mark.skipif(sys.platform == "darwin", reason="its disks have only names in Unicode")
def test_a_folder_whose_name_is_no_unicode_is_compared(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It does not make every command read all files, and changes in it are noticed."""
    odd = Path(os.fsdecode(os.fsencode(project) + b"/caf\xe9"))
    write_skill(odd, "kites", "Fly a kite")
    search(project, "rotate keys")
    with Repertory(settings_of(project), project) as repertory:
        workspace, hash_ = repertory.workspace, repertory.workspace.catalogue().hash
        assert Freshness(workspace).is_current(hash_)
        parsed = counted(monkeypatch)
        write_skill(project, "knots", "Tie a bowline")
        assert not Freshness(workspace).is_current(hash_)
    assert search(project, "tie a bowline")[0][0] == "project/knots"
    assert parsed == ["knots/SKILL.md"]
    (odd / "sub").mkdir()
    assert not Freshness(workspace).is_current(hash_)


@pytest.mark.skipif(sys.platform == "darwin", reason="its disks have only names in Unicode")
def test_servers_below_a_path_that_is_no_unicode_are_named(tmp_path: Path) -> None:
    """They wait for trust like servers of other projects."""
    project = Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9"))
    write(project / ".mcp.json", '{"mcpServers": {"lab": {"command": "lab"}}}')
    for _ in range(2):
        assert search(project, "rotate keys")[0] == []
    with Repertory(settings_of(project), project) as repertory:
        [source] = repertory.stats().sources
    assert (source.name, source.awaits_trust) == ("lab", True)
    assert "was found but not run" in source.error


def test_a_document_fetched_by_another_directory_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A search fetches nothing, but reads the content that all directories share."""
    more = '[[sources]]\ntype = "openapi"\nname = "api"\nurl = "https://a.example/openapi.json"\n'
    project, _ = two_directories(tmp_path, monkeypatch, more)

    def fetched(*operations: str) -> None:
        paths = {f"/{one}": {"get": {"operationId": one, "responses": {}}} for one in operations}
        [source] = build({"store": str(tmp_path / "data" / "fetched"), **entry}, project)
        assert isinstance(source, FetchedOpenApi)
        into = source.content.folder / f"content-{len(operations)}"
        document = {"openapi": "3.0.0", "servers": [{"url": "https://a.example"}], "paths": paths}
        write(into / "document", json.dumps(document))
        source.content._switch(into)

    entry = {"type": "openapi", "name": "api", "url": "https://a.example/openapi.json"}
    for operations in (("north",), ("north", "south")):
        fetched(*operations)
        found = {one for one in search(project, "north south")[0] if "api" in one}
        assert found == {f"api__{one}" for one in operations}


def test_a_policy_that_changed_while_a_server_ran_can_be_reverted(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server leaves no record, so the older record must not count as current."""
    file, rule = project / "repertory.toml", '[[policy]]\nitem = "postmortem"\nboost = '

    def boost() -> float:
        with Repertory(settings_of(project), project, budget_s=600.0) as repertory:
            repertory.ensure_indexed()
            policy = repertory.item("project/postmortem").policy
        assert policy is not None
        return policy.boost

    file.write_text(f"{rule}-0.1\n")
    assert boost() == -0.1
    file.write_text(f"{rule}-0.9\n")
    with monkeypatch.context() as patch:
        patch.setattr(Freshness, "remember", lambda *_, **__: None)
        with Repertory(settings_of(project), project) as repertory:
            repertory.workspace.forget()
            repertory.index()
    file.write_text(f"{rule}-0.1\n")

    assert boost() == -0.1


@pytest.mark.parametrize("is_whole", [False, True])
@pytest.mark.parametrize("change", ["text", "place"])
def test_a_change_reverted_after_an_interrupted_command_is_indexed(
    project: Path, monkeypatch: pytest.MonkeyPatch, change: str, *, is_whole: bool
) -> None:
    """The files equal the last record again, but the index has the changed item."""
    folder, away = project / "skills" / "postmortem", project.parent / "away"
    text = (folder / "SKILL.md").read_text()
    with Repertory(settings_of(project), project) as repertory:
        before = repertory.item("project/postmortem")
    if change == "text":
        write_skill(project, "postmortem", "Sail a dinghy")
    else:
        folder.rename(away)
    do = InProcessQueue._do

    def ended(self: InProcessQueue, *args: Any) -> None:  # noqa: ANN401 - passed on
        do(self, *args)
        raise KeyboardInterrupt

    with (
        monkeypatch.context() as patch,
        Repertory(settings_of(project), project, budget_s=600.0) as repertory,
    ):
        patch.setattr(InProcessQueue, "_do", ended)
        with pytest.raises(KeyboardInterrupt):
            repertory.index() if is_whole else repertory.ensure_indexed()
    if change == "text":
        (folder / "SKILL.md").write_text(text)
    else:
        away.rename(folder)

    with Repertory(settings_of(project), project, budget_s=600.0) as repertory:
        repertory.ensure_indexed()
        assert repertory.item("project/postmortem") == before


def test_an_interrupted_rebuild_is_continued_by_searches(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A search without time reports the unfinished rebuild; a later one completes it."""
    monkeypatch.setattr(job, "MAX_ITEMS", 1)
    monkeypatch.setattr(pace, "MIN_TEXTS", 1)
    monkeypatch.setattr(update, "MAX_BATCH", 1)
    do = InProcessQueue._do

    def ended(self: InProcessQueue, *args: Any) -> None:  # noqa: ANN401 - passed on
        do(self, *args)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, Repertory(settings_of(project), project) as repertory:
        patch.setattr(InProcessQueue, "_do", ended)
        with pytest.raises(KeyboardInterrupt):
            repertory.rebuild()
    found, (notice,) = search(project, "postmortem", budget_s=0.0)
    assert found[0] == "project/postmortem"
    assert "A rebuild is not finished: 2 of 4 items are missing in the new index" in notice
    assert search(project, "postmortem")[1] == ()


def test_a_scan_ends_soon_with_its_command(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A long scan of many files stops when its command is interrupted."""
    begun, ended = threading.Event(), threading.Event()

    def scan(source: FolderSource) -> dict[str, str]:
        begun.set()
        try:
            while not ended.wait(0.01):
                source._pause()
        except SourceError:
            ended.set()
            raise
        return {}

    def interrupt(*_: object) -> None:
        if begun.is_set():
            raise KeyboardInterrupt

    monkeypatch.setattr(FolderSource, "_scan", scan)
    with Repertory(settings_of(project), project) as repertory:
        with pytest.raises(KeyboardInterrupt):
            repertory.index(interrupt)
        try:
            assert ended.wait(60)
        finally:
            ended.set()


def test_an_item_that_cannot_be_embedded_is_reported_and_retried(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its old version is found, so every search says that a change is missing."""
    engine = load_engine(MODEL, "cpu", project.parent / "data")
    embed = engine.embed_texts

    def failing(texts: Sequence[str]) -> Vectors:
        if any("dinghy" in text for text in texts):
            raise ModelError("This text is too much.")
        return embed(texts)

    monkeypatch.setattr("repertory.compose.load_engine", lambda *_, **__: engine)
    write_skill(project, "postmortem", "Sail a dinghy")
    with monkeypatch.context() as patch:
        patch.setattr(engine, "embed_texts", failing)
        with Repertory(settings_of(project), project) as repertory:
            run = repertory.index()
        assert "Not indexed: project/postmortem: This text is too much." in run.notices
        for _ in range(2):
            _, notices = search(project, "incident", budget_s=0.2)
            assert notices == ("1 changed file is not searchable yet; run `repertory index`.",)

    found, notices = search(project, "sail a dinghy")
    assert (found[0], notices) == ("project/postmortem", ())


def test_a_record_counts_only_for_the_named_model(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two names of one model share an index, so the record of one name may be outdated."""
    engine = load_engine(MODEL, "cpu", project.parent / "data")
    monkeypatch.setattr("repertory.compose.load_engine", lambda *_, **__: engine)
    text = (project / "skills" / "postmortem" / "SKILL.md").read_text("utf-8")
    write_skill(project, "postmortem", "Sail a dinghy")
    with Repertory(settings_of(project, model="of-the-same-weights"), project) as repertory:
        repertory.ensure_indexed()
        assert repertory.item("project/postmortem").description == "Sail a dinghy"

    write(project / "skills" / "postmortem" / "SKILL.md", text)
    with Repertory(settings_of(project), project) as repertory:
        repertory.ensure_indexed()
        assert repertory.item("project/postmortem").description != "Sail a dinghy"


def test_a_server_removes_a_record_written_after_its_start(
    project: Path,
) -> None:
    """A command that ends later describes the index before the server's writes."""
    parts = Parts(settings_of(project), project)
    file = parts.workspace.seen_file
    record = file.read_bytes()
    with running(parts, parts.settings.data_dir):
        assert not file.exists()
        file.write_bytes(record)
        write_skill(project, "postmortem", "Sail a dinghy")
        until(lambda: not file.exists())


def test_a_server_closes_its_vector_cache_when_it_ends(project: Path) -> None:
    """One process may serve many projects in turn."""
    parts = Parts(settings_of(project), project)
    log = project.parent / "data" / "vectors.sqlite-wal"  # there as long as a process has it open
    with running(parts, parts.settings.data_dir) as service:
        write_skill(project, "postmortem", "Sail a dinghy")
        until(log.exists)
    assert service
    assert not log.exists()


def two_directories(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: str = ""
) -> tuple[Path, Path]:
    """Two empty directories of a user whose own configuration has a source of skills."""
    write_skill(tmp_path / "team", "keys", "Rotate the keys")
    user = tmp_path / "config" / "repertory" / "config.toml"
    user.parent.mkdir(parents=True)
    source = f'type = "skills"\nname = "team"\npath = "{tmp_path / "team" / "skills"}"\n'
    user.write_text("[[sources]]\n" + source + more)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    one, other = tmp_path / "one", tmp_path / "other"
    one.mkdir()
    other.mkdir()
    return one, other


def policy_of(project: Path) -> Policy | None:
    """The policy of the only skill, after indexing."""
    with Repertory(settings_of(project), project, budget_s=600.0) as repertory:
        repertory.ensure_indexed()
        return repertory.item("keys").policy


def test_policies_of_a_directory_do_not_reach_another_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both directories have the same sources, and therefore share an index."""
    one, other = two_directories(tmp_path, monkeypatch)
    rules = '[[policy]]\nitem = "keys"\nboost = -0.9\n'
    (one / "repertory.toml").write_text(rules)
    named = other / "named.toml"
    named.write_text(rules.replace("0.9", "0.5"))
    with Repertory(settings_of(one), one) as repertory:
        repertory.workspace.trust.trust(one / "repertory.toml")

    for _ in range(2):
        assert policy_of(one) == Policy(boost=-0.9)
        assert policy_of(other) is None
    with Repertory(settings_of(other, config=str(named)), other) as repertory:
        repertory.index()
    assert policy_of(other) is None


def test_an_approval_counts_for_one_directory_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An item withheld in one directory remains searchable in one that has approved it."""
    one, other = two_directories(tmp_path, monkeypatch, 'trust = "quarantine"\n')
    with Repertory(settings_of(one), one) as repertory:
        repertory.index()
        assert repertory.parts.reviews.approve(None, "me") == ["team/keys"]
        repertory.index()
    assert search(one, "keys")[0] == ["team/keys"]
    with Repertory(settings_of(other), other) as repertory:
        repertory.index()

    assert search(other, "keys")[0] == []
    assert search(one, "keys")[0] == ["team/keys"]

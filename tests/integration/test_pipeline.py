"""The whole pipeline on real files, with the real engine and a real store."""

import base64
import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from repertory.catalogue.item import Item
from repertory.coordination.snapshots import FileSnapshots
from repertory.coordination.status import FileStatus
from repertory.embedding.engine import EmbeddingEngine, Vectors
from repertory.embedding.load import load_engine
from repertory.errors import (
    ConfigurationError,
    ModelError,
    StoreBusyError,
    StoreError,
    UnknownItemError,
    WeightsUnavailableError,
)
from repertory.index.edge import EdgeStore
from repertory.index.edge_collection import EdgeCollection
from repertory.index.keywords.index import KeywordIndex
from repertory.index.keywords.snapshot import unpack
from repertory.index.lock import StoreLock
from repertory.index.vectors import Filter
from repertory.indexing.ledgers import Ledgers
from repertory.indexing.writer import Writer
from repertory.local.one_shot import INDEX_LOCK_TIMEOUT_S, LOCK_TIMEOUT_S, Repertory
from repertory.local.update import TAKEN_TIMEOUT_S
from repertory.search.answer import Mode
from repertory.search.query import Query
from repertory.stats import Run
from repertory.system.progress import no_progress
from tests.support.builders import write, write_shop, write_skill
from tests.support.keyword_search import content
from tests.support.model_folders import write_model
from tests.support.query_service import MODEL, settings_of
from tests.support.waiting import until

# A compressed snapshot of another item, in the format of version 4.
COMPRESSED = base64.b64decode(
    "gjLgTSi1L/0gaR0DACLGFh+gpzk/eP9i5FPKtYqbePFLS/Jv1e1PwJaS/wcFiiUB5JFHBO9gHK0ZXLu7KzB2WOSPKmje"
    "ppSFUrPKVfyU552LuzR1ddC5eqQWk9cNIjM6Ke2b0LhTIBogkAgBAF4Gog=="
)
TOPICS = ["billing", "deploys", "backups", "alerts", "logins", "search", "exports", "imports"]

pytestmark = pytest.mark.usefixtures("own_home")


def index(project: Path, **flags: object) -> Run:
    """Index a project once."""
    with Repertory(settings_of(project, **flags), project) as repertory:
        return repertory.index(no_progress)


def contents(project: Path, **flags: object) -> dict[str, Item]:
    """Every indexed item of a project, complete, by id."""
    with Repertory(settings_of(project, **flags), project) as repertory:
        return {entry.id: repertory.item(entry.id) for entry in repertory.entries()}


def keyword_index(folder: Path) -> KeywordIndex:
    """The only keyword index in a folder."""
    (snapshot,) = folder.iterdir()
    stored = FileSnapshots(folder).load(snapshot.stem)
    assert stored
    return unpack(*stored).keywords


def first(project: Path, text: str) -> str:
    """The id of the best hit."""
    with Repertory(settings_of(project), project) as repertory:
        return repertory.search(Query(text=text)).hits[0].id


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with three skills and a document."""
    root = tmp_path / "project"
    write_shop(root)
    return root


def test_a_search_ends_before_its_index_is_closed(project: Path) -> None:
    """Another thread closes it while the keyword arm waits for its turn."""
    turn = threading.Event()
    repertory = Repertory(settings_of(project), project)
    repertory.index(no_progress)
    repertory._reader.submit(turn.wait)
    with ThreadPoolExecutor(2) as pool:
        found = pool.submit(repertory.search, Query(text="billing"))
        until(repertory._reader._work_queue.qsize)
        closing = pool.submit(repertory.close)
        until(lambda: repertory._reader._shutdown)
        turn.set()
        assert found.result().items
        closing.result()


def test_indexed_items_are_found_by_meaning_and_by_name(project: Path) -> None:
    """Queries may paraphrase an item or misspell its name."""
    report = index(project)
    assert (report.added, report.stats.items, report.embedded) == (4, 4, 4)
    assert first(project, "replace our API keys with no outage") == "project/key-rotation"
    assert first(project, "relaese-notes") == "project/release-notes"
    assert first(project, "web shop checkout") == "documents/README.md"


def test_indexing_again_embeds_nothing(project: Path) -> None:
    """Unchanged items are neither embedded nor written."""
    revision = index(project).stats.index_version
    again = index(project)
    assert (again.unchanged, again.added, again.changed, again.embedded) == (4, 0, 0, 0)
    assert again.stats.index_version == revision


def test_only_new_texts_are_embedded(project: Path) -> None:
    """Vectors are cached by text, so renamed and retagged items are not embedded again."""
    index(project)
    (project / "README.md").rename(project / "ABOUT.md")
    renamed = index(project)
    assert (renamed.added, renamed.removed, renamed.embedded) == (1, 1, 0)
    file = project / "skills" / "postmortem" / "SKILL.md"
    file.write_text(file.read_text().replace("---\n", "---\ntags: [ops]\n", 1))
    retagged = index(project)
    assert (retagged.changed, retagged.embedded) == (1, 0)
    assert contents(project)["project/postmortem"].tags == ("ops",)


def test_changed_annotations_are_written_without_embedding(tmp_path: Path) -> None:
    """Annotations are stored as tags, which filter searches."""
    project = tmp_path / "project"

    def stored(**annotations: bool) -> tuple[str, ...]:
        tool = {"name": "read", "description": "Read a file.", "annotations": annotations}
        write(project / "tools" / "disk.json", json.dumps({"server": "disk", "tools": [tool]}))
        report = index(project)
        assert (report.changed or report.added, report.embedded) == (1, report.added)
        return contents(project)["disk__read"].tags

    assert stored() == ()
    assert stored(readOnlyHint=True) == ("read-only",)
    with Repertory(settings_of(project), project) as repertory:
        for tag, count in (("read-only", 1), ("destructive", 0)):
            query = Query(text="read a file", where=Filter(tags=(tag,)))
            assert len(repertory.search(query).hits) == count
    assert stored(destructiveHint=True) == ("destructive",)
    write_skill(project, "postmortem", "Something else entirely")
    assert index(project).embedded == 1


def test_a_section_of_a_long_body_is_found_and_named(project: Path) -> None:
    """The hit names the matching section, until the section is removed."""
    filler = "".join(f"## Part {n}\n{'Plain words about nothing much. ' * 12}\n" for n in range(5))
    warm = "Blow warm air over the frozen pipe, slowly, from the tap towards the wall. " * 3
    write_skill(project, "household", "Looks after a house", f"{filler}## Thawing pipes\n{warm}\n")
    assert (index(project).stats.points or 0) > 8
    with Repertory(settings_of(project), project) as repertory:
        hit = repertory.search(Query(text="the water pipe is frozen, warm it up")).hits[0]
    assert hit.id == "project/household"
    assert hit.matched_in == "## Thawing pipes"
    write_skill(project, "household", "Looks after a house", "Short now.")
    index(project)
    with Repertory(settings_of(project), project) as repertory:
        assert not any(
            hit.matched_in for hit in repertory.search(Query(text="frozen water pipe")).hits
        )


def test_an_item_that_cannot_be_embedded_is_named(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other items are indexed, and the run gives the reason for the failure."""
    engine = load_engine(MODEL, "cpu", project.parent / "data")
    embed = engine.embed_texts

    def failing(texts: Sequence[str]) -> Vectors:
        if any("incident" in text for text in texts):
            raise ModelError("This text is too much.")
        return embed(texts)

    monkeypatch.setattr(engine, "embed_texts", failing)
    monkeypatch.setattr("repertory.compose.load_engine", lambda *_, **__: engine)
    run = index(project)
    assert (run.stats.items, run.stats.queue.failed) == (3, 1)
    assert "Not indexed: project/postmortem: This text is too much." in run.notices


def test_only_a_run_with_changes_optimizes_the_collection(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The search graph of the active collection is built after changes and rebuilds."""
    optimized: list[str] = []
    optimize = EdgeCollection.optimize

    def noting(self: EdgeCollection) -> None:
        optimized.append(self.name)
        optimize(self)

    monkeypatch.setattr(EdgeCollection, "optimize", noting)
    first = index(project).stats.collection
    assert optimized == [first]
    index(project)
    assert optimized == [first]
    with Repertory(settings_of(project), project) as repertory:
        rebuilt = repertory.rebuild().stats.collection
    assert optimized == [first, rebuilt]


def test_returning_to_a_configuration_embeds_nothing(project: Path) -> None:
    """Each configuration keeps its own collection."""
    config = project / "repertory.toml"
    one = '[[sources]]\ntype = "skills"\nname = "project"\npath = "skills"\n'
    two = one + '[[sources]]\ntype = "documents"\nname = "documents"\npath = "."\n'
    config.write_text(one)
    a = index(project)
    config.write_text(two)
    b = index(project)
    config.write_text(one)
    back = index(project)
    assert (a.embedded, b.embedded, back.embedded) == (3, 1, 0)
    assert a.stats.collection == back.stats.collection != b.stats.collection
    assert back.unchanged == 3


def test_a_broken_file_is_reported_and_keeps_its_item(project: Path) -> None:
    """The problem has file and line, and other items are indexed."""
    index(project)
    file = project / "skills" / "postmortem" / "SKILL.md"
    file.write_text("---\nname: [\n---\n")
    write_skill(project, "new-one", "A skill that is new")
    report = index(project)
    assert (report.added, report.removed) == (1, 0)
    assert any(problem.path == str(file) and problem.line for problem in report.stats.problems)
    assert [one.name for one in report.stats.sources if one.stale] == ["project"]
    assert "project/postmortem" in contents(project)


def test_a_source_that_vanishes_keeps_its_items_until_a_rebuild(project: Path) -> None:
    """A missing folder survives even a rebuild; a rebuild accepts an empty one."""
    index(project)
    hidden = project.parent / "hidden"
    (project / "skills").rename(hidden)
    config = project / "repertory.toml"
    config.write_text('[[sources]]\ntype = "skills"\nname = "project"\npath = "skills"\n')
    with Repertory(settings_of(project), project) as repertory:
        assert repertory.index(no_progress).stats.sources[0].error
    hidden.rename(project / "skills")
    assert index(project).stats.items == 3
    (project / "skills").rename(hidden)
    kept = index(project)
    assert (kept.stats.items, kept.stats.sources[0].stale) == (3, 3)
    with Repertory(settings_of(project), project) as repertory:
        assert repertory.rebuild(no_progress).stats.items == 3, "a missing folder is carried over"
        (project / "skills").mkdir()
        assert repertory.index(no_progress).stats.items == 3, "an empty one is not believed"
        assert repertory.rebuild(no_progress).stats.items == 0, "but by a rebuild"


def test_a_rebuild_makes_a_new_generation_and_drops_the_old(project: Path) -> None:
    """The new collection has the same items, and nothing is embedded."""
    before = index(project)
    with Repertory(settings_of(project), project) as repertory:
        after = repertory.rebuild(no_progress)
        assert repertory.search(Query(text="postmortem")).hits[0].id == "project/postmortem"
    assert after.stats.collection.endswith("_g2")
    assert (after.stats.items, after.embedded) == (before.stats.items, 0)
    kept = [path.name for path in (project.parent / "data" / "collections").iterdir()]
    assert before.stats.collection not in kept


def test_any_sequence_of_edits_ends_in_the_same_index_as_a_fresh_one(project: Path) -> None:
    """Convergence: items are created, changed and deleted at random, with runs in between."""
    choice = random.Random(7)
    for step in range(24):
        name = f"skill-{choice.randrange(5)}"
        file = project / "skills" / name / "SKILL.md"
        if file.exists() and choice.random() < 0.4:
            file.unlink()
        else:
            write_skill(project, name, f"All about {choice.choice(TOPICS)}", choice.choice(TOPICS))
        if step % 4 == 3:
            index(project)
    index(project)
    other = {"data_dir": str(project.parent / "fresh")}
    index(project, **other)
    assert contents(project) == contents(project, **other)
    kept, built = (
        keyword_index(project.parent / folder / "keywords") for folder in ("data", "fresh")
    )
    assert content(kept) == content(built)


@pytest.mark.usefixtures("own_engine")
def test_no_cache_keeps_nothing(project: Path) -> None:
    """With no_cache, everything is computed again, and nothing is stored."""
    with Repertory(settings_of(project, no_cache=True), project) as repertory:
        assert repertory.index(no_progress).embedded == 4
        assert repertory.search(Query(text="postmortem")).hits
    kept = {path.suffix for path in (project.parent / "data").rglob("*") if path.is_file()}
    assert kept <= {".unavailable"}, "only that the hub was asked for the model in vain"


def test_a_corrupt_collection_is_built_again_without_embedding(project: Path) -> None:
    """The damage is reported, and repaired from the sources and the vector cache."""
    collection = index(project).stats.collection
    folder = project.parent / "data" / "collections" / collection
    for file in folder.rglob("*"):
        if file.is_file() and file.suffix != ".lock":
            file.write_bytes(b"garbage")
    report = index(project)
    assert (report.stats.items, report.embedded) == (4, 0)
    assert report.notices


def test_a_corrupt_or_missing_keyword_snapshot_is_built_again(project: Path) -> None:
    """It is built from the collection; so is a snapshot in the format of an older version."""
    index(project)
    (folder,) = (project.parent / "data" / "keywords").iterdir()
    stored = {path.name: path.read_bytes() for path in folder.glob("[!.]*")}
    assert len(stored) == 2
    for name, damage in product(stored, (None, b"garbage", COMPRESSED)):
        file = folder / name
        file.unlink() if damage is None else file.write_bytes(damage)
        assert first(project, "relaese-notes") == "project/release-notes"
        again = {path.name: path.read_bytes() for path in folder.glob("[!.]*")}
        assert {**again, "head": b""} == {**stored, "head": b""}  # the head has the position


def test_a_corrupt_vector_cache_is_replaced(project: Path) -> None:
    """The index stays complete; only vectors are lost."""
    index(project)
    (project.parent / "data" / "vectors.sqlite").write_bytes(b"garbage" * 2_000)
    write_skill(project, "one-more", "Another skill")
    assert index(project).stats.items == 5
    with sqlite3.connect(project.parent / "data" / "vectors.sqlite") as connection:
        assert connection.execute("SELECT count(*) FROM vectors").fetchone()[0] >= 1
    connection.close()


def test_an_unknown_item_is_an_error_with_a_suggestion(project: Path) -> None:
    """The error suggests the id that the user probably meant."""
    index(project)
    with (
        Repertory(settings_of(project), project) as repertory,
        pytest.raises(UnknownItemError, match="project/postmortem"),
    ):
        repertory.item("postmortm")


def test_searching_without_an_index_is_an_error(project: Path) -> None:
    """A search through the library never creates an index."""
    with (
        Repertory(settings_of(project), project) as repertory,
        pytest.raises(StoreError, match="repertory index"),
    ):
        repertory.search(Query(text="anything"))


def test_without_a_model_keywords_are_indexed_and_searched(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answer says why it is degraded."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    unknown = {"model": "unknown/has-this-model"}
    with Repertory(settings_of(project, **unknown), project) as repertory:
        with pytest.raises(WeightsUnavailableError):
            repertory.index(no_progress)
        report = repertory.index(no_progress, words_suffice=True)
        assert (report.stats.items, report.embedded, report.stats.model) == (4, 0, "")
        assert any("unknown/has-this-model" in notice for notice in report.notices)
        answer = repertory.search(Query(text="relaese-notes"))
    assert answer.mode is Mode.KEYWORD
    assert "repertory index" in answer.degraded
    assert answer.hits[0].id == "project/release-notes"


def test_an_index_with_vectors_is_not_replaced_when_the_model_is_gone(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Indexing is an error, and searches answer from keywords."""
    index(project)

    def gone(*_args: object, **_options: object) -> EmbeddingEngine:
        raise WeightsUnavailableError("The model is gone.")

    monkeypatch.setattr("repertory.compose.load_engine", gone)
    with Repertory(settings_of(project), project) as repertory:
        with pytest.raises(WeightsUnavailableError):
            repertory.index(no_progress)
        answer = repertory.search(Query(text="postmortem"))
    assert answer.degraded == "The model is gone."
    assert answer.hits[0].id == "project/postmortem"


HOLD = """
    import sys, time
    from pathlib import Path
    from repertory.index.edge import EdgeStore
    collection = EdgeStore(Path(sys.argv[1])).open(sys.argv[2])
    print("held", flush=True)
    time.sleep(60)
"""


def test_searches_use_keywords_while_another_process_holds_the_store(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answer names that process; indexing is an error after its timeout."""
    monkeypatch.setattr("repertory.local.one_shot.INDEX_LOCK_TIMEOUT_S", 0.1)
    collection = index(project).stats.collection
    holder = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(HOLD), str(project.parent / "data"), collection],
        stdout=subprocess.PIPE,
    )
    try:
        assert holder.stdout
        assert holder.stdout.readline() == b"held\n"
        with Repertory(settings_of(project), project) as repertory:
            answer = repertory.search(Query(text="relaese-notes"))
            assert answer.mode is Mode.KEYWORD
            assert str(holder.pid) in answer.degraded
            assert answer.hits[0].id == "project/release-notes"
            with pytest.raises(StoreBusyError, match=str(holder.pid)):
                repertory.index(no_progress)
    finally:
        holder.kill()
        holder.communicate()
    assert index(project).unchanged == 4


def test_indexing_waits_longer_for_the_store_than_a_search(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A search in another process therefore does not make indexing fail."""
    holder = EdgeStore(project.parent / "data").open(index(project).stats.collection)
    write_skill(project, "knots", "Tie a bowline")
    take = StoreLock.__init__
    wanted = threading.Event()

    def taking(lock: StoreLock, path: Path, timeout: float) -> None:
        wanted.set()
        take(lock, path, timeout)

    def release() -> None:
        wanted.wait()
        time.sleep(0.2)
        holder.close()

    monkeypatch.setattr(StoreLock, "__init__", taking)
    monkeypatch.setattr("repertory.local.one_shot.LOCK_TIMEOUT_S", 0.0)
    searching = threading.Thread(target=release)
    searching.start()
    try:
        assert index(project).added == 1
    finally:
        wanted.set()
        searching.join()


def test_a_server_that_took_the_new_index_is_awaited_once_and_briefly(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that has just started keeps the index, so later steps of a run do not wait again."""
    take, close = StoreLock.__init__, Writer.close
    is_written = threading.Event()
    waits: list[float] = []

    def closing(writer: Writer) -> None:
        close(writer)
        is_written.set()

    def taking(lock: StoreLock, path: Path, timeout: float) -> None:
        if is_written.is_set():
            waits.append(timeout)
            raise StoreBusyError("A server has it.")
        take(lock, path, timeout)

    monkeypatch.setattr(Writer, "close", closing)
    monkeypatch.setattr(StoreLock, "__init__", taking)
    run = index(project)
    assert run.added == 4
    assert waits[0] == TAKEN_TIMEOUT_S < INDEX_LOCK_TIMEOUT_S
    assert sum(waits) < 2 * TAKEN_TIMEOUT_S + LOCK_TIMEOUT_S
    assert not [notice for notice in run.notices if "optimised" in notice]


def test_an_index_that_another_process_took_during_a_run_is_busy(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command can then ask the server that took it."""

    def taken(*_: object) -> None:
        raise StoreBusyError("A server has it.")

    monkeypatch.setattr(Ledgers, "keep", taken)
    with pytest.raises(StoreBusyError, match="A server has it"):
        index(project)


def test_the_state_of_the_sources_is_reported_while_the_index_is_held(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise a concurrent command could overwrite the report."""
    report, others = FileStatus.report, EdgeStore(project.parent / "data", timeout=0.0)
    reported = []

    def reporting(status: FileStatus, who: str, told: Mapping[str, Any]) -> None:
        (name,) = others.collections()
        with pytest.raises(StoreBusyError):
            others.open(name)
        reported.append(who)
        report(status, who, told)

    monkeypatch.setattr(FileStatus, "report", reporting)
    index(project)
    assert reported == ["watch"]


def test_a_search_recovers_when_the_store_is_free_again(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No restart is needed: only answers during the lock are degraded."""
    monkeypatch.setattr("repertory.local.one_shot.REFRESH_INTERVAL_S", 0.0)
    monkeypatch.setattr("repertory.local.one_shot.LOCK_TIMEOUT_S", 0.0)
    name = index(project).stats.collection
    holder = EdgeStore(project.parent / "data").open(name)
    with Repertory(settings_of(project), project) as repertory:
        assert repertory.search(Query(text="postmortem")).mode is Mode.KEYWORD
        holder.close()
        answer = repertory.search(Query(text="postmortem"))
    assert (answer.mode, answer.degraded) == (Mode.HYBRID, "")


def test_threads_may_search_concurrently(project: Path) -> None:
    """Concurrent first searches get the same complete answer."""
    index(project)
    with (
        Repertory(settings_of(project), project) as repertory,
        ThreadPoolExecutor(8) as pool,
    ):
        answers = list(pool.map(repertory.search, [Query(text="web shop checkout")] * 24))
    assert {answer.mode for answer in answers} == {Mode.HYBRID}
    assert all(answer == answers[0] for answer in answers)


def test_an_unreadable_snapshot_does_not_stop_a_search(project: Path) -> None:
    """The keyword index is built from the collection instead."""
    name = index(project).stats.collection
    snapshot = project.parent / "data" / "keywords" / f"{name}.keywords"
    shutil.rmtree(snapshot)
    (snapshot / "head").mkdir(parents=True)
    assert first(project, "relaese-notes") == "project/release-notes"


def test_a_directory_with_an_invalid_name_is_reported(tmp_path: Path) -> None:
    """A name that is not valid UTF-8 is a problem instead of a crash."""
    project = tmp_path / os.fsdecode(b"dir\xff")
    write_skill(project, "postmortem", "Write up an incident")
    assert any("path" in problem.message for problem in index(project).stats.problems)
    with Repertory(settings_of(project), project) as repertory:
        assert repertory.search(Query(text="postmortem")).hits == []
    write(project / "repertory.toml", '[[sources]]\ntype = "skills"\npath = "."\n')
    with pytest.raises(ConfigurationError, match="cannot be shown; rename it"):
        index(project)


LOADED = """
    import sys
    from pathlib import Path
    from repertory.local.one_shot import Repertory
    from repertory.search.query import Query
    from repertory.settings import load
    project = Path(sys.argv[1])
    given = {"data_dir": str(project.parent / "data"), "model": sys.argv[2]}
    with Repertory(load(given, project, {}), project) as repertory:
        assert repertory.search(Query(text="postmortem")).hits
    print(*sorted({name.partition(".")[0] for name in sys.modules}))
"""


@pytest.mark.usefixtures("own_engine")
def test_a_search_imports_only_what_it_needs(project: Path) -> None:
    """It loads no torch, hub client, MCP, YAML or database."""
    index(project)
    command = [sys.executable, "-c", textwrap.dedent(LOADED), str(project), MODEL]
    loaded = set(subprocess.run(command, capture_output=True, check=True, text=True).stdout.split())
    heavy = {
        "torch",
        "sentence_transformers",
        "huggingface_hub",
        "mcp",
        "pydantic",
    }
    assert not loaded & (heavy | {"yaml", "sqlite3", "jsonschema", "scipy", "rich"})


RUN = """
    import sys
    from pathlib import Path
    from repertory.local.one_shot import Repertory
    from repertory.settings import load
    project = Path(sys.argv[1])
    given = {"data_dir": str(project.parent / "data"), "model": sys.argv[2]}
    with Repertory(load(given, project, {}), project) as repertory:
        print("go", flush=True)
        repertory.index(lambda *args: None)
"""


def test_a_run_succeeds_after_kill_9(project: Path) -> None:
    """A kill during indexing leaves nothing that blocks the next run."""
    for number in range(60):
        write_skill(project, f"bulk-{number}", f"Number {number} about {TOPICS[number % 8]} " * 8)
    for delay in (0.25, 0.5, 0.8, 1.1, 1.5):
        process = subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(RUN), str(project), MODEL],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        assert process.stdout
        process.stdout.readline()
        time.sleep(delay)
        process.send_signal(signal.SIGKILL)
        process.communicate()
    index(project)
    assert len(contents(project)) == 64
    assert index(project).unchanged == 64
    assert first(project, "bulk-17") == "project/bulk-17"


def test_models_are_never_mixed(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each model has its own collection, whose vectors never answer queries of another model."""
    first = index(project)
    other = write_model(tmp_path / "other-model", dimension=8)
    second = index(project, model=str(other))
    assert second.stats.collection != first.stats.collection
    assert (second.embedded, second.stats.points) == (4, 4)
    assert index(project).embedded == 0, "the first is intact"

    monkeypatch.setattr(
        "repertory.compose.load_engine",
        lambda *_, **__: load_engine(str(other), "cpu", tmp_path / "data"),
    )
    with Repertory(settings_of(project), project) as repertory:
        answer = repertory.search(Query(text="postmortem"))
    assert answer.mode is Mode.KEYWORD
    assert "other-model" in answer.degraded
    assert "repertory index" in answer.degraded


PART = "## Part {0}\n" + "Words about part {0} and nothing else. " * 12 + "\n"
LONG = "".join(PART.format(number) for number in range(6))
SHORTER = LONG[: LONG.index("## Part 4")]


@pytest.mark.parametrize("write", range(3))
def test_a_run_succeeds_after_an_interruption_between_any_two_writes(
    project: Path, monkeypatch: pytest.MonkeyPatch, write: int
) -> None:
    """An item with only some of its sections written or deleted counts as unfinished."""
    write_skill(project, "long-one", "A skill with many parts", LONG)
    index(project)
    write_skill(project, "long-one", "A skill with fewer parts", SHORTER)
    write_skill(project, "long-two", "Another skill with many parts", LONG)
    writes = iter(range(10))

    def interrupting(name: str) -> None:
        real = getattr(EdgeCollection, name)

        def method(self: EdgeCollection, *args: object, **options: object) -> None:
            if next(writes) == write:
                raise KeyboardInterrupt
            real(self, *args, **options)

        monkeypatch.setattr(EdgeCollection, name, method)

    for name in ("upsert", "delete_sections", "delete_items"):
        interrupting(name)
    with pytest.raises(KeyboardInterrupt):
        index(project)
    monkeypatch.undo()
    monkeypatch.setenv("HOME", str(project.parent / "home"))
    mended = index(project)
    fresh = index(project, data_dir=str(project.parent / "fresh"))
    assert (mended.stats.items, mended.stats.points) == (fresh.stats.items, fresh.stats.points)
    assert contents(project) == contents(project, data_dir=str(project.parent / "fresh"))

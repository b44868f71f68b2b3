"""The vectors of skill files, with a real engine on both stores."""

import errno
import itertools
import os
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from repertory.compose import Parts
from repertory.embedding.engine import EmbeddingEngine, Vectors
from repertory.embedding.load import load_engine
from repertory.errors import UsageError
from repertory.functions.vector import vector_update
from repertory.index.edge import EdgeStore
from repertory.index.qdrant import QdrantStore
from repertory.index.vectors import VectorStore
from repertory.indexing.collection_names import configuration_of, model_slug
from repertory.local.one_shot import Repertory
from repertory.skill_vectors import vectors
from repertory.skill_vectors.vectors import SkillVectors
from repertory.system.progress import no_progress
from tests.support.query_service import MODEL, RunningService, settings_of
from tests.support.skill_files import ADD, AREA, AREA_FILE, VOLUME, VOLUME_FILE, make_library, write
from tests.support.waiting import until

RECTANGLE = "calculate rectangle area"
FILE = "one.ns.txt"
SEARCH = "/functions/Vector.SearchSkills"
UPDATE = "/functions/Vector.VectorUpdate"


class Counting:
    """An engine that counts the texts it embeds."""

    def __init__(self, engine: EmbeddingEngine) -> None:
        self._engine = engine
        self.model, self.device, self.batch = engine.model, engine.device, engine.batch
        self.files, self.free_memory = engine.files, engine.free_memory
        self.embed_query, self.embed_queries = engine.embed_query, engine.embed_queries
        self.texts = 0

    def embed_texts(self, texts: Sequence[str]) -> Vectors:
        """Count the texts and embed them."""
        self.texts += len(texts)
        return self._engine.embed_texts(texts)


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> EmbeddingEngine:
    """A real model, loaded once."""
    return load_engine(MODEL, "cpu", tmp_path_factory.mktemp("models"))


@pytest.fixture
def engine(loaded: EmbeddingEngine) -> Counting:
    """The model, wrapped to count its texts."""
    return Counting(loaded)


@pytest.fixture(params=["edge", "qdrant"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[VectorStore]:
    """Each kind of store; collections that a test leaves on the server are deleted."""
    if request.param == "edge":
        yield EdgeStore(tmp_path / "data")
        return
    server = QdrantStore(request.getfixturevalue("qdrant_url"))
    before = set(server.collections())
    yield server
    for name in set(server.collections()) - before:
        server.drop(name)


@pytest.fixture
def skills(tmp_path: Path, store: VectorStore, engine: Counting) -> SkillVectors:
    """Skill vectors whose sandbox is the test's folder."""
    return SkillVectors(tmp_path, lambda: store, lambda: engine)


def paths(skills: SkillVectors, query: str) -> list[str]:
    """The paths of the found files."""
    return [match.path for match in skills.search(query, None)]


def test_unchanged_files_are_not_embedded_again(
    skills: SkillVectors, engine: Counting, tmp_path: Path
) -> None:
    """A changed file is embedded with its parts."""
    write(tmp_path, FILE, ADD + AREA)
    skills.update(FILE)
    skills.update(FILE)
    assert engine.texts == 3
    write(tmp_path, FILE, VOLUME)
    skills.update(FILE)
    assert engine.texts == 4


def test_a_replaced_text_is_not_found(skills: SkillVectors, tmp_path: Path) -> None:
    """Its parts are removed, and a restored text is found again."""
    for text, area in ((ADD + AREA, [FILE]), (ADD, []), (VOLUME + AREA + ADD, [FILE])):
        write(tmp_path, FILE, text)
        skills.update(FILE)
        assert paths(skills, "area of a rectangle") == area


def test_an_older_update_never_replaces_a_newer_one(
    store: VectorStore, engine: Counting, tmp_path: Path
) -> None:
    """A file changes and is updated while another update still embeds its old text."""
    write(tmp_path, FILE, ADD + AREA)
    newer = SkillVectors(tmp_path, lambda: store, lambda: engine)

    def interrupted() -> EmbeddingEngine:
        write(tmp_path, FILE, VOLUME)
        newer.update(FILE)
        return engine

    SkillVectors(tmp_path, lambda: store, interrupted).update(FILE)

    assert paths(newer, "volume of a box") == [FILE]
    assert paths(newer, "add two numbers") == []


def test_updates_work_after_the_clock_was_set_back(
    skills: SkillVectors, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A later update replaces vectors with a later time."""
    write(tmp_path, FILE, AREA)
    skills.update(FILE)
    earlier = itertools.count(time.time_ns() - 10**15, 10**9)
    monkeypatch.setattr(time, "time_ns", lambda: next(earlier))
    for text, query in ((ADD, "add two numbers"), (VOLUME, "volume of a box")):
        write(tmp_path, FILE, text)
        skills.update(FILE)
        assert paths(skills, query) == [FILE]
    (tmp_path / FILE).unlink()
    with pytest.raises(UsageError):
        skills.update(FILE)
    assert paths(skills, "volume of a box") == []


def test_an_unreachable_file_keeps_its_vectors(
    skills: SkillVectors, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A failure is never a deletion."""
    place = f"folder/{FILE}"
    write(tmp_path, place, AREA)
    skills.update(place)
    (tmp_path / "folder").rename(tmp_path / "away")
    lstat = os.lstat

    def fail(path: str | Path, **more: Any) -> os.stat_result:  # noqa: ANN401 - passed on
        if str(path).endswith(FILE):
            raise PermissionError(errno.EACCES, "Permission denied")
        return lstat(path, **more)

    with monkeypatch.context() as patch:
        patch.setattr(os, "lstat", fail)
        with pytest.raises(UsageError):
            skills.update(place)
    assert paths(skills, "area of a rectangle") == [place]


def test_first_updates_may_run_concurrently(skills: SkillVectors, tmp_path: Path) -> None:
    """One of them creates the collection, and all files are found."""
    files = [write(tmp_path, f"{number}.ns.txt", ADD) for number in range(6)]
    with ThreadPoolExecutor(len(files)) as pool:
        list(pool.map(skills.update, files))

    assert paths(skills, "add two numbers") == files


def test_all_similar_files_are_found(
    skills: SkillVectors, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The search raises its limit until it has all of them."""
    monkeypatch.setattr(vectors, "FIRST_LIMIT", 2)
    files = [write(tmp_path, f"{number}.ns.txt", ADD) for number in range(9)]
    for file in files:
        skills.update(file)

    assert paths(skills, "add two numbers") == files


def test_each_sandbox_has_its_own_vectors(
    store: VectorStore, engine: Counting, tmp_path: Path
) -> None:
    """Vectors of one sandbox are not found in another, even if one contains the other."""
    write(tmp_path, "inner/a.ns.txt", ADD)
    outer = SkillVectors(tmp_path, lambda: store, lambda: engine)
    inner = SkillVectors(tmp_path / "inner", lambda: store, lambda: engine)
    inner.update("a.ns.txt")

    assert paths(inner, "add two numbers") == ["a.ns.txt"]
    assert paths(outer, "add two numbers") == []


def test_a_corrupt_collection_is_created_again(
    engine: Counting, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The next update drops it, with a log entry."""
    skills = SkillVectors(tmp_path, lambda: EdgeStore(tmp_path / "data"), lambda: engine)
    write(tmp_path, FILE, ADD)
    skills.update(FILE)
    (collection,) = (tmp_path / "data" / "collections").glob("repertory_sandbox_*_g1")
    (collection / "edge_config.json").write_bytes(b"")

    skills.update(FILE)
    assert [record.message for record in caplog.records] == ["sandbox_corrupt"]
    assert paths(skills, "add two numbers") == [FILE]


def test_rebuilds_keep_the_collection_of_skill_vectors(tmp_path: Path) -> None:
    """Indexing and rebuilding the catalogue do not mistake it for an index."""
    project = make_library(tmp_path / "project")
    settings = settings_of(project)
    write(project, "notes.md", "How to catch a trout with a fly.\n")
    with Repertory(settings, project) as repertory:
        assert vector_update(repertory, "notes.md") == "OK"
        repertory.index(no_progress)
        repertory.rebuild(no_progress)
        found = [match.path for match in repertory.similar_skills("catch a trout")]
        both = [match.path for match in repertory.similar_skills(RECTANGLE)]
        (name,) = (name for name in repertory.parts.store.collections() if "_sandbox_" in name)

    assert found == ["notes.md"]
    assert both == [AREA_FILE, VOLUME_FILE]
    assert configuration_of(name) == model_slug(name) == ""


def test_the_newer_of_written_and_catalogued_vectors_counts(tmp_path: Path) -> None:
    """An edit counts once the catalogue is indexed, and a later update counts again."""
    project = make_library(tmp_path / "project")
    settings = settings_of(project)
    with Repertory(settings, project) as repertory:

        def found(query: str) -> bool:
            return AREA_FILE in [match.path for match in repertory.similar_skills(query)]

        repertory.index(no_progress)
        write(project, AREA_FILE, ADD)
        assert vector_update(repertory, AREA_FILE) == "OK"
        assert found("add two numbers")
        assert not found("area of a rectangle")

        write(project, AREA_FILE, VOLUME)
        repertory.index(no_progress)
        assert found("volume of a box")
        assert not found("add two numbers")

        write(project, AREA_FILE, ADD)
        assert vector_update(repertory, AREA_FILE) == "OK"
        assert found("add two numbers")
        assert not found("volume of a box")


def test_processes_on_one_qdrant_server_share_vectors(qdrant_url: str, tmp_path: Path) -> None:
    """One process immediately finds vectors that another one wrote."""
    project = make_library(tmp_path / "project")
    settings = settings_of(project, qdrant_url=qdrant_url)
    with Repertory(settings, project) as one, Repertory(settings, project) as other:
        assert vector_update(one, AREA_FILE) == "OK"
        assert [match.path for match in other.similar_skills(RECTANGLE)] == [AREA_FILE]
        for name in one.parts.store.collections():
            if "_sandbox_" in name:
                one.parts.store.drop(name)


def test_without_a_cache_vectors_last_as_long_as_the_process(tmp_path: Path) -> None:
    """With no_cache nothing is stored, so the next process starts empty."""
    project = make_library(tmp_path / "project")
    settings = settings_of(project, no_cache=True)
    with Repertory(settings, project) as repertory:
        assert vector_update(repertory, AREA_FILE) == "OK"
        assert [match.path for match in repertory.similar_skills(RECTANGLE)] == [AREA_FILE]
    with Repertory(settings, project) as repertory:
        assert repertory.similar_skills(RECTANGLE) == []


def test_both_functions_work_over_http(tmp_path: Path) -> None:
    """Answers are JSON in the form of the contract; failures are problems with a message."""
    project = make_library(tmp_path / "project")
    with RunningService(project) as running:
        client = running.client()
        done = client.post(UPDATE, json={"filepath": AREA_FILE})
        found = client.post(SEARCH, json={"query": RECTANGLE})
        outside = client.post(UPDATE, json={"filepath": "../secret.md"})
        wrong = [
            client.post(SEARCH, json=arguments)
            for arguments in (
                {},
                {"query": 7},
                {"query": "add", "limit": 1},
                {"query": "x" * 33_000},
            )
        ]

    assert (done.status_code, done.json()) == (200, "OK")
    assert found.json().startswith('[{"path":"library/geometry/area.ns.txt","score":0.')
    assert (outside.status_code, outside.json()["error"]) == (422, "UsageError")
    assert outside.json()["detail"].startswith("The path '../secret.md' holds '..'")
    for answer in wrong:
        assert (answer.status_code, answer.json()["error"]) == (422, "UsageError")


def test_writing_needs_the_scope_call(tmp_path: Path) -> None:
    """Searching needs only the scope `read`."""
    project = make_library(tmp_path / "project")
    with RunningService(project) as running:
        running.tick()
        until(lambda: running.live.sources.is_reported)
        reader = running.client(address="10.0.0.9")
        refused = reader.post(UPDATE, json={"filepath": AREA_FILE})
        found = reader.post(SEARCH, json={"query": RECTANGLE})

    assert refused.status_code == 403
    assert (found.status_code, found.json()) == (200, "[]")


def test_without_a_model_both_functions_answer_503(tmp_path: Path) -> None:
    """The problem has the message of the contract."""
    project = make_library(tmp_path / "project")
    running = RunningService(project)
    running.parts = Parts(settings_of(project, model=str(tmp_path / "none")), project)
    with running:
        client = running.client()
        found = client.post(SEARCH, json={"query": RECTANGLE})
        done = client.post(UPDATE, json={"filepath": AREA_FILE})

    assert found.status_code == done.status_code == 503
    assert found.json()["error"] == done.json()["error"] == "ModelError"
    assert found.json()["detail"].startswith("SearchSkills embedding generation failed: ")
    assert done.json()["detail"].startswith("VectorUpdate embedding generation failed: ")

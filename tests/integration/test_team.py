"""A team of processes (Redis, Qdrant, watch, workers and queries) that are killed at random."""

import itertools
import json
import random
import re
import shutil
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.request import urlopen
from uuid import uuid4

import pytest
import redis

from repertory.coordination.redis_server import RedisServer
from repertory.coordination.snapshots import RedisSnapshots
from repertory.index.keywords.snapshot import unpack
from repertory.index.qdrant import QdrantStore
from repertory.indexing.celery_queue import QUEUES, redis_key
from repertory.indexing.scan import scan_source
from repertory.project.workspace import Workspace
from repertory.settings import load
from tests.support.mcp_sessions import called, text_of
from tests.support.model_folders import write_model
from tests.support.team import Team

SEED = 20261122


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    """A fast model, for tests that need no meaning."""
    return write_model(tmp_path / "model")


def collections(team: Team) -> list[str]:
    """The collections of items, without the collection of the vector cache."""
    store = QdrantStore(team.qdrant_url)
    return [name for name in store.collections() if re.match("repertory_(?!vectors)", name)]


def folder(team: Team) -> dict[str, str]:
    """The hash of each item in the folder, from a new scan."""
    settings = load({"data_dir": str(team.folder / "own")}, team.project, {})
    sources = Workspace(settings, team.project).catalogue().sources
    scans = [scan for source in sources if (scan := scan_source(source).scan)]
    return {item.id: item.metadata_hash() for scan in scans for item in scan.items}


def indexed(team: Team) -> dict[str, str]:
    """The hash of each item in the active collection."""
    with QdrantStore(team.qdrant_url).open(team.active) as collection:
        return {state.item: state.metadata_hash for state in collection.states()}


def settled(team: Team) -> bool:
    """Whether the index equals the folder and nothing is pending."""
    watch = team.get("/stats")["watch"]
    return bool(watch) and not watch["pending"] and indexed(team) == folder(team)


@contextmanager
def searching(team: Team, *texts: str) -> Iterator[list[tuple[int, str]]]:
    """Search continuously, and collect the statuses and best hits."""
    answers: list[tuple[int, str]] = []
    stop = threading.Event()

    def search() -> None:
        while not stop.is_set():
            for text in texts:
                status, answer = team.request("GET", f"/search?q={text}")
                found = answer["results"][0]["toolId"] if answer.get("results") else ""
                answers.append((status, found))

    thread = threading.Thread(target=search)
    thread.start()
    try:
        yield answers
    finally:
        stop.set()
        thread.join()


@pytest.mark.timeout(240)
def test_a_save_is_found_without_a_command(qdrant_url: str) -> None:
    """Searches follow created, changed, renamed and deleted items."""
    with Team(qdrant_url) as team:
        team.skill("bread", "Bake sourdough bread, from starter to loaf")
        team.skill("notes", "Write release notes out of merged pull requests")
        team.ready()
        team.wait(lambda: team.first("how do I make a loaf of bread") == "project/bread")
        team.skill("keys", "Rotate API keys without downtime")
        team.wait(lambda: team.first("replace our API keys with no outage") == "project/keys")
        team.skill("keys", "Water the plants on the roof")
        team.wait(lambda: team.first("plants need watering") == "project/keys")
        (team.project / "skills" / "keys").rename(team.project / "skills" / "garden")
        team.wait(lambda: team.item("project/garden") and not team.item("project/keys"))
        team.wait(lambda: team.first("plants need watering") == "project/garden")
        shutil.rmtree(team.project / "skills" / "garden")
        team.wait(lambda: team.item("project/garden") is None)
        assert team.texts_embedded() == 4
        assert team.first("braed") == "project/bread"
        for service in team.services:
            assert service.terminate() == 0, service.log.read_text()


@pytest.mark.timeout(300)
def test_after_any_disaster_the_index_equals_the_folder(tiny: Path, qdrant_url: str) -> None:
    """Edit a thousand times while workers die, jobs are repeated and reordered, and Redis is lost.

    Two watch services share the store. At the end, while one skill is still being saved, all other
    items of the index equal the folder.
    """
    chance = random.Random(SEED)
    with Team(qdrant_url, workers=2, settings={"REPERTORY_SEARCH_MODEL": str(tiny)}) as team:
        team.others.append(team.service("watch-2", "watch"))
        team.others[0].start()
        for number in range(40):
            team.skill(f"skill-{number}", f"w{number % 60} in the beginning")
        team.ready()
        queues = redis.Redis.from_url(team.redis.url)
        disasters = iter(
            [
                *("worker", "shuffle", "flush", "shuffle", "worker", "shuffle"),
                *("restart", "watch", "evict", "shuffle", "flush", "worker", "shuffle"),
            ]
        )
        repeated = 0
        for count in range(800):
            _edit(team, chance)
            time.sleep(0.02)
            if count % 61 == 60:
                repeated += _disaster(next(disasters), team, queues, chance)
        assert repeated, "no job was delivered twice"
        with _saving(team, "busy"):
            team.wait(lambda: _all_equals_the_folder(team, but="project/busy"), 120)
        team.wait(lambda: settled(team))
        team.wait(lambda: _all_equals_the_folder(team))
        assert set(collections(team)) == {team.active}
        assert team.get("/stats")["queue"]["failed"] == 0
        # Killed workers lose vectors that are not stored yet, and claims may be lost, so a few
        # texts may be embedded twice.
        store = QdrantStore(team.qdrant_url)
        (cache,) = [name for name in store.collections() if name.startswith("repertory_vectors")]
        with store.open(cache) as vectors:
            different = vectors.count()
        assert team.texts_embedded() <= different + 20
        queues.close()


def _edit(team: Team, chance: random.Random) -> None:
    """Create, change, rename, delete or recreate a skill, or save it without a change."""
    root = team.project / "skills"
    names = sorted(path.name for path in root.iterdir())
    name = chance.choice(names)
    match chance.choice(["change", "change", "same", "rename", "delete", "create", "create"]):
        case "create":
            team.skill(f"skill-{chance.randrange(200)}", f"w{chance.randrange(60)} made")
        case "change":
            team.skill(name, f"w{chance.randrange(60)} w{chance.randrange(60)} changed")
        case "same":
            file = root / name / "SKILL.md"
            file.write_bytes(file.read_bytes())
        case "rename":
            target = root / f"skill-{chance.randrange(200)}"
            if not target.exists():
                (root / name).rename(target)
        case "delete" if len(names) > 10:
            shutil.rmtree(root / name)


def _disaster(kind: str, team: Team, queues: redis.Redis, chance: random.Random) -> int:
    """Do some damage, and return the number of jobs that were repeated."""
    if kind == "worker":
        chance.choice(team.workers).restart()
    elif kind == "watch":
        team.watch.restart()
    elif kind == "flush":
        team.redis.flush()
    elif kind == "restart":
        team.redis.restart()
    elif kind == "evict":
        keys = sorted(key for key in queues.scan_iter() if b":claim:" not in key)
        queues.delete(*chance.sample(keys, len(keys) // 2))
    else:
        for worker in team.workers:
            worker.kill()
        for _ in range(40):
            _edit(team, chance)
            time.sleep(0.02)
        repeated = sum(_shuffle(queues, redis_key(queue), chance) for queue in QUEUES)
        for worker in team.workers:
            worker.start()
        return repeated
    return 0


def _shuffle(queues: redis.Redis, queue: str, chance: random.Random) -> int:
    """Duplicate the waiting messages and shuffle them, and return their original number."""
    with queues.pipeline() as together:
        together.lrange(queue, 0, -1)
        together.delete(queue)
        messages = together.execute()[0]
    again = []
    for message in messages:
        data = json.loads(message)
        data["properties"]["delivery_tag"] = str(uuid4())
        again.append(json.dumps(data).encode())
    both = [*messages, *again]
    chance.shuffle(both)
    if both:
        queues.rpush(queue, *both)
    return len(messages)


@contextmanager
def _saving(team: Team, name: str) -> Iterator[None]:
    """Save one skill repeatedly."""
    stop = threading.Event()

    def save() -> None:
        for number in itertools.count():
            team.skill(name, f"w{number % 60} version {number}")
            if stop.wait(0.3):
                return

    thread = threading.Thread(target=save)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def _all_equals_the_folder(team: Team, but: str = "") -> bool:
    """Whether the collection and the query service equal the folder, except for one item.

    Items of the query service are compared by their ids and descriptions.
    """
    wanted, stored = folder(team), indexed(team)
    for hashes in (wanted, stored):
        hashes.pop(but, None)
    items = team.get("/items?limit=1000")["items"]
    served = {item["id"]: item["description"] for item in items if item["id"] != but}
    descriptions = _descriptions(team)
    return (
        stored == wanted
        and served.keys() == wanted.keys()
        and all(descriptions.get(item, text) == text for item, text in served.items())
    )


def _descriptions(team: Team) -> dict[str, str]:
    """The description of each skill of the source ``project``, by id."""
    files = (team.project / "skills").glob("*/SKILL.md")
    texts = {f"project/{file.parent.name}": file.read_text("utf-8") for file in files}
    line = "description: "
    return {item: text.partition(line)[2].partition("\n")[0] for item, text in texts.items()}


@pytest.mark.timeout(240)
def test_no_search_fails_during_a_rebuild(tiny: Path, qdrant_url: str) -> None:
    """The new generation becomes active when it is complete; then the old one is deleted."""
    with Team(qdrant_url, settings={"REPERTORY_SEARCH_MODEL": str(tiny)}) as team:
        for number in range(150):
            team.skill(f"skill-{number}", f"w{number % 60} number {number}")
        team.ready()
        team.wait(lambda: _all_equals_the_folder(team))
        before = team.active
        embedded = team.texts_embedded()
        with searching(team, "skill-7", "skill-149") as answers:
            status, answer = team.request("POST", "/rebuild", {})
            assert status == 202, answer
            team.wait(lambda: team.active != before)
            team.wait(lambda: team.get("/stats")["collection"] == team.active)
            team.wait(lambda: collections(team) == [team.active], 90)
        assert set(answers) == {(200, "project/skill-7"), (200, "project/skill-149")}
        assert team.texts_embedded() == embedded
        assert len(indexed(team)) == 150
        team.wait(lambda: _all_equals_the_folder(team))


@pytest.mark.timeout(300)
def test_searches_continue_during_any_outage(tmp_path: Path) -> None:
    """Without Qdrant, Redis or the model, keywords answer, or a 503 gives the reason."""
    model = write_model(tmp_path / "model")
    with Team(settings={"REPERTORY_SEARCH_MODEL": str(model)}) as team:
        team.skill("bread", "Bake bread w1 w2")
        team.skill("notes", "Write notes w3 w4")
        team.ready()
        team.wait(lambda: team.search("bread")["mode"] == "hybrid")

        team.qdrant.kill()
        team.wait(lambda: team.search("bread")["mode"] == "keyword")
        degraded = team.search("bread")
        assert degraded["results"][0]["toolId"] == "project/bread"
        assert "cannot be reached" in degraded["degraded"]
        team.wait(lambda: "vectors" in team.request("GET", "/readyz")[1]["missing"])
        team.skill("late", "Saved while the store was away w5")
        time.sleep(1.0)
        team.qdrant.start()
        team.wait(lambda: team.search("bread")["mode"] == "hybrid")
        team.wait(lambda: team.first("late") == "project/late")

        team.redis.kill()
        assert team.search("bread")["mode"] == "hybrid"
        team.skill("later", "Saved while the queue was away w6")
        time.sleep(1.0)
        team.redis.restart()
        team.wait(lambda: team.first("later") == "project/later")

        shutil.move(model, tmp_path / "away")
        team.api.restart()
        team.wait(lambda: team.request("GET", "/search?q=bread")[0] == 200)
        answer = team.search("bread")
        assert (answer["mode"], answer["results"][0]["toolId"]) == ("keyword", "project/bread")
        assert str(model) in answer["degraded"]
        team.qdrant.kill()
        team.redis.kill()
        assert team.search("notes")["results"][0]["toolId"] == "project/notes"

        team.api.restart()  # the new process has no index in memory
        team.wait(lambda: team.request("GET", "/healthz")[0] == 200)
        status, problem = team.request("GET", "/search?q=bread")
        assert status == 503
        assert "cannot be reached" in problem["detail"]

        shutil.move(tmp_path / "away", model)
        team.qdrant.start()
        team.redis.restart()
        team.wait(lambda: team.request("GET", "/search?q=bread")[0] == 200)
        team.wait(lambda: team.search("bread")["mode"] == "hybrid")
        team.skill("last", "Saved when all was back w7")
        team.wait(lambda: team.first("last") == "project/last")
        team.wait(lambda: _all_equals_the_folder(team))


@pytest.mark.timeout(300)
def test_a_save_overtakes_a_rebuild(tiny: Path, qdrant_url: str) -> None:
    """An item that is saved during a rebuild of thousands is found before its end."""
    with Team(qdrant_url, settings={"REPERTORY_SEARCH_MODEL": str(tiny)}) as team:
        for number in range(7_500):
            team.skill(f"skill-{number}", f"w{number % 60} number {number}")
        team.ready(150)
        team.wait(lambda: team.get("/stats")["items"] == 7_500, 150)
        before = team.active
        assert team.request("POST", "/rebuild", {})[0] == 202
        team.wait(lambda: (team.get("/stats")["building"] or {}).get("done", 0) > 100)
        team.skill("urgent", "Saved in the middle of it")
        team.wait(lambda: team.first("urgent") == "project/urgent")
        assert team.active == before, "the rebuild was over before the save was found"
        team.wait(lambda: team.active != before, 150)
        team.wait(lambda: team.first("urgent") == "project/urgent")
        team.wait(lambda: indexed(team) == folder(team))
        team.wait(lambda: team.get("/stats")["items"] == 7_501)


@pytest.mark.timeout(240)
def test_returning_to_a_configuration_embeds_nothing_in_a_team(tiny: Path, qdrant_url: str) -> None:
    """Each configuration has a collection; while the file is invalid, the last one stays active."""
    with Team(qdrant_url, settings={"REPERTORY_SEARCH_MODEL": str(tiny)}) as team:
        team.skill("bread", "Bake bread w1")
        (team.project / "guide.md").write_text("# Guide\n\nHow to w2 w3.\n")
        config = team.project / "repertory.toml"
        one = '[[sources]]\ntype = "skills"\npath = "skills"\nname = "team"\n'
        two = one + '[[sources]]\ntype = "documents"\npath = "."\nname = "docs"\n'
        config.write_text(one)
        team.ready()
        team.wait(lambda: team.first("bread") == "team/bread")
        first = team.active

        config.write_text(two)
        team.wait(lambda: team.first("guide") == "docs/guide.md")
        second = team.active
        embedded = team.texts_embedded()
        assert second != first

        config.write_text(two + "[[sources]\n")
        team.wait(lambda: team.get("/stats")["watch"].get("configurationError"))
        assert any("repertory.toml" in one["message"] for one in team.get("/stats")["problems"])
        assert "repertory_configuration_broken 1.0" in team.metrics()
        assert (team.active, team.first("guide")) == (second, "docs/guide.md")

        config.write_text(one)
        team.wait(lambda: team.active == first)
        team.wait(lambda: team.item("docs/guide.md") is None)
        team.wait(lambda: not team.get("/stats")["watch"].get("configurationError"))
        config.write_text(two)
        team.wait(lambda: team.first("guide") == "docs/guide.md")
        assert (team.active, team.texts_embedded()) == (second, embedded)
        assert sorted(collections(team)) == sorted([first, second])
        team.wait(lambda: _all_equals_the_folder(team))


@pytest.mark.timeout(240)
def test_unreadable_items_are_kept_and_reported(tiny: Path, qdrant_url: str) -> None:
    """This covers a missing folder, an unreadable file and a damaged snapshot."""
    with Team(qdrant_url, settings={"REPERTORY_SEARCH_MODEL": str(tiny)}) as team:
        team.skill("bread", "Bake bread w1")
        team.skill("notes", "Write notes w2")
        team.ready()
        team.wait(lambda: team.first("bread") and team.first("notes"))

        root = team.project / "skills"
        root.rename(team.folder / "elsewhere")
        team.wait(lambda: team.search("bread")["staleSources"] == ["project"])
        assert team.first("bread") == "project/bread"
        (source,) = [s for s in team.get("/stats")["sources"] if s["name"] == "project"]
        assert "cannot be read" in source["error"]
        (team.folder / "elsewhere").rename(root)
        team.wait(lambda: team.search("bread")["staleSources"] == [])
        team.skill("plants", "Water plants w3")
        team.wait(lambda: team.first("plants") == "project/plants")

        file = root / "notes" / "SKILL.md"
        file.write_bytes(b"---\nname: notes\ndescription: [broken\n\x00\xff")
        team.wait(lambda: any("notes" in p["path"] for p in team.get("/stats")["problems"]))
        assert team.first("notes") == "project/notes"
        read = text_of(called(f"http://127.0.0.1:{team.port}", "auto", "get", id="project/notes"))
        assert "cannot be read now, so this is its last readable text: The file is " in read
        assert "Write notes w2" in read
        with urlopen(f"http://127.0.0.1:{team.port}/view/project/notes") as page:
            assert b"cannot be read now, so this is its last readable text" in page.read()

        snapshots = RedisSnapshots(RedisServer(team.redis.url))
        whole = snapshots.load(team.active)
        assert whole
        snapshots.save(team.active, whole.head[:-9], {})
        team.api.restart()
        team.ready()
        assert team.first("plants") == "project/plants"
        assert len(unpack(*(snapshots.load(team.active) or ())).keywords)

"""Catalogues in different namespaces of one Redis, Qdrant and data directory are isolated."""

from pathlib import Path

import pytest
import redis

import repertory
from repertory.compose import Parts
from repertory.coordination.failures import Failure
from repertory.coordination.ports import on_redis
from repertory.coordination.redis_server import RedisServer
from repertory.index.qdrant import QdrantStore
from repertory.indexing.celery_queue import CeleryQueue
from repertory.indexing.collection_names import configuration_of, generation_of, model_slug
from repertory.settings import load
from tests.support.builders import indexed_ids, write_skill
from tests.support.command_line import user_environment
from tests.support.logged_process import LoggedProcess
from tests.support.model_folders import write_model
from tests.support.redis_server import RedisProcess
from tests.support.waiting import until


class _Team:
    """The watch and the worker of a namespace, and the items of its collection."""

    def __init__(self, root: Path, namespace: str, settings: dict[str, str]) -> None:
        self.project = root / namespace
        self.project.mkdir(parents=True)
        self.namespace = namespace
        self.store = QdrantStore(settings["REPERTORY_QDRANT_URL"])
        environment = user_environment(root / "home", root / "data") | settings
        environment["REPERTORY_NAMESPACE"] = namespace
        self.processes = [
            LoggedProcess([name], self.project, root / f"{namespace}-{name}", environment)
            for name in ("watch", "worker")
        ]

    def wait_for(self, *items: str) -> None:
        """Wait until the active collection holds these items and no others."""
        until(lambda: self.items() == list(items))

    def items(self) -> list[str]:
        """The ids of the items in the active collection."""
        return indexed_ids(self.store, self.namespace)


@pytest.mark.timeout(240)
def test_two_teams_on_the_same_servers_do_not_see_each_other(
    tmp_path: Path, redis_server: RedisProcess, qdrant_url: str
) -> None:
    """Aliases, collections, keys and queues of each team are named after its namespace."""
    store = QdrantStore(qdrant_url)
    for name in store.collections():
        if name.startswith("bread"):
            store.drop(name)
    others = set(store.collections())
    settings = {
        "REPERTORY_REDIS_URL": redis_server.url,
        "REPERTORY_QDRANT_URL": qdrant_url,
        "REPERTORY_SEARCH_MODEL": str(write_model(tmp_path / "model")),
        "REPERTORY_WATCH_RECONCILE": "1",
    }
    teams = [_Team(tmp_path, name, settings) for name in ("bread", "bread-2")]
    processes = [process for team in teams for process in team.processes]
    try:
        for team in teams:
            write_skill(team.project, f"only-{team.namespace}", "Nothing else")
        for process in processes:
            process.start()
        for team in teams:
            team.wait_for(f"project/only-{team.namespace}")
        write_skill(teams[0].project, "late", "Nothing else")
        teams[0].wait_for("project/late", "project/only-bread")
        assert teams[1].items() == ["project/only-bread-2"]
        published = [team.processes[0].events("collection_published") for team in teams]
        assert [len(events) for events in published] == [1, 1]
        assert all(process.events("jobs_done") for process in (team.processes[1] for team in teams))
    finally:
        for process in processes:
            process.kill()
    owners = {name.partition("_")[0] for name in set(store.collections()) - others}
    assert owners == {"bread", "bread-2"}
    with redis.Redis.from_url(redis_server.url, decode_responses=True) as client:
        keys = client.keys("*")
    assert {str(key).partition(":")[0] for key in keys} == {"bread", "bread-2"}


def test_the_redis_adapters_of_two_namespaces_are_isolated(redis_server: RedisProcess) -> None:
    """Deltas, deletions, reports, failures, claims and queues are not shared."""
    one, other = (on_redis(RedisServer(redis_server.url, name)) for name in ("one", "other"))
    one.deltas.announce("c", {"a": "1"})
    one.tombstones.record_deletions("c", {"a": 7})
    one.snapshots.save("c", b"head", {"segment": lambda: b"data"})
    one.status.report("watch", {"a": 1})
    one.status.count({"texts": 1})
    one.failures.attempt("job")
    one.failures.add(
        Failure(id="f", collection="c", items={"a": "1"}, error="No.", at=1.0, attempts=3)
    )
    one.unused.update(["c"], 1.0)
    assert one.claims.take(["text"], 60) == other.claims.take(["text"], 60) == {"text"}
    assert other.deltas.length("c") == other.tombstones.newest("c") == 0
    assert other.snapshots.load("c") is None
    assert not other.status.reports()
    assert not other.status.counters()
    assert other.failures.attempt("job") == 1
    assert (other.failures.list(), other.failures.failed_items()) == ([], {})
    assert other.failures.version() == ""
    assert other.unused.update(["c"], 2.0) == {"c": 2.0}
    CeleryQueue(redis_server.url, "one").keep_keywords("c")
    client = RedisServer(redis_server.url).client
    assert (client.llen("one:snapshots"), client.llen("other:snapshots")) == (1, 0)


def test_a_directory_has_an_index_for_each_namespace(tmp_path: Path) -> None:
    """The embedded index is separated too; the default namespace keeps its usual names."""
    project, data = tmp_path / "project", str(tmp_path / "data")
    model = str(write_model(tmp_path / "model"))
    write_skill(project, "bread", "Bakes bread")
    with repertory.open(project, data_dir=data, model=model, namespace="mine") as session:
        session.index()
    aliases = [path.name for path in (tmp_path / "data" / "aliases").iterdir()]
    assert {name.partition("_")[0] for name in aliases} == {"mine"}
    default, mine = (
        Parts(load({"data_dir": data, "model": model, "namespace": name}, project, {}), project)
        for name in (None, "mine")
    )
    assert default.active == f"repertory_{default.workspace.key}"
    assert default.store.alias(default.active) is None
    collection = mine.store.alias(mine.active) or ""
    assert collection.startswith("mine_")
    assert (len(configuration_of(collection)), generation_of(collection)) == (16, 1)
    assert model_slug(collection)
    assert mine.workspace.key != default.workspace.key

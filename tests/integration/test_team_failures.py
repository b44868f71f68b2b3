"""Parts of a team fail during a rebuild; docs/failures.md describes the effects."""

import os
import shutil
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import urlencode
from urllib.request import urlopen

import msgspec
import pytest

from repertory.errors import StoreError
from repertory.index.qdrant import QdrantStore
from repertory.indexing.collection_names import generation_of
from tests.support.model_folders import write_model
from tests.support.ports import free_port
from tests.support.qdrant import QdrantProcess, cluster_of_programs
from tests.support.qdrant_server import QdrantStandIn
from tests.support.team import Team

ITEMS = 400  # enough to observe a rebuild before its end

pytestmark = pytest.mark.timeout(300)


class Replicated(Team):
    """A team with a second query service, which is never killed."""

    def __init__(
        self, model: Path, qdrant_url: str | None = None, settings: dict[str, str] | None = None
    ) -> None:
        chosen = {"REPERTORY_SEARCH_MODEL": str(model)} | (settings or {})
        super().__init__(qdrant_url, settings=chosen)
        self._second = free_port()
        self.others.append(self.service("second-api", "api", "--port", str(self._second)))

    def fill(self, items: int) -> None:
        """Save this number of skills, and wait until all of them are indexed."""
        for number in range(items):
            self.skill(f"skill-{number}", f"w{number % 60} number {number}")
        self.ready()
        self.wait(lambda: self.get("/stats")["items"] == items)
        self.wait(lambda: self.finds("skill-7"))

    def rebuild(self) -> str:
        """Start a rebuild, wait for its first items, and return the collection that it replaces."""
        before = self.active
        new = f"{before.rpartition('_g')[0]}_g{generation_of(before) + 1}"
        store = QdrantStore(self.qdrant_url)

        def has_begun() -> bool:
            with suppress(StoreError), store.open(new) as collection:
                return collection.count() > 0
            return False  # the collection does not exist yet on every node

        assert self.request("POST", "/rebuild", {})[0] == 202
        self.wait(has_begun)
        return before

    def second(self, text: str) -> tuple[str, str]:
        """The mode and the best hit of the second query service, which must answer."""
        url = f"http://127.0.0.1:{self._second}/search?{urlencode({'q': text})}"
        with urlopen(url, timeout=30) as response:
            answer = msgspec.json.decode(response.read())
        return answer["mode"], answer["results"][0]["toolId"] if answer["results"] else ""

    def finds(self, name: str) -> bool:
        """Whether both query services find a skill by name, the second one with both arms."""
        item = f"project/{name}"
        return self.first(name) == item and self.second(name) == ("hybrid", item)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fast model, because these tests need no meaning."""
    return write_model(tmp_path_factory.mktemp("model") / "tiny")


@pytest.fixture(scope="module")
def team(model: Path) -> Iterator[Replicated]:
    """A team that has indexed all items."""
    with Replicated(model) as running:
        running.fill(ITEMS)
        yield running


@pytest.mark.parametrize("part", ["query", "watch", "worker", "redis", "qdrant"])
def test_a_rebuild_survives_any_outage(team: Replicated, part: str) -> None:
    """Searches are answered during the outage, and the rebuild ends after it.

    An item that was saved meanwhile is found at the latest when the part is back.
    """
    kill, start = {
        "query": (team.api.kill, team.api.start),
        "watch": (team.watch.kill, team.watch.start),
        "worker": (team.workers[0].kill, team.workers[0].start),
        "redis": (team.redis.kill, team.redis.restart),
        "qdrant": (team.qdrant.kill, team.qdrant.start),
    }[part]
    before = team.rebuild()
    kill()
    saved = f"during-{part}"
    team.skill(saved, "Saved in the middle of it")
    mode = "keyword" if part == "qdrant" else "hybrid"
    team.wait(lambda: team.second("skill-8") == (mode, "project/skill-8"))
    match part:
        case "query":
            team.wait(lambda: team.second(saved) == ("hybrid", f"project/{saved}"))
        case "watch" | "worker" | "redis":
            assert team.active == before, "the rebuild was over too early"
    start()
    team.wait(lambda: team.active not in ("", before))
    team.wait(lambda: team.finds(saved))
    assert team.finds("skill-7")
    assert team.get("/stats")["queue"]["failed"] == 0


def test_a_rebuild_is_refused_without_redis(team: Replicated) -> None:
    """No process would learn of the rebuild; the error names the missing part."""
    team.redis.kill()
    try:
        status, problem = team.request("POST", "/rebuild", {})
        assert status == 503
        assert "cannot be reached" in problem["detail"]
    finally:
        team.redis.restart()


def test_a_query_process_starts_without_redis(team: Replicated) -> None:
    """It reads the items from Qdrant."""
    team.redis.kill()
    try:
        team.api.restart()
        team.ready()
        assert team.search("skill-7")["mode"] == "hybrid"
        assert team.first("skill-7") == "project/skill-7"
    finally:
        team.redis.restart()


def test_an_empty_qdrant_is_filled_again(team: Replicated) -> None:
    """Meanwhile a new query process answers 503, and an old one searches by keywords."""
    embedded = team.texts_embedded()
    team.qdrant.kill()
    shutil.rmtree(team.folder / "qdrant")
    team.api.restart()
    team.wait(lambda: team.request("GET", "/healthz")[0] == 200)
    status, problem = team.request("GET", "/search?q=skill-7")
    assert status == 503
    assert "cannot be reached" in problem["detail"]
    # No other test has this query: the process caches answers until the index changes.
    assert team.second("skill-9") == ("keyword", "project/skill-9")
    team.qdrant.start()
    team.wait(lambda: team.get("/stats")["items"] == len([*team.project.glob("skills/*")]))
    team.wait(lambda: team.finds("skill-7"))
    assert team.texts_embedded() >= embedded + ITEMS


def test_nothing_depends_on_one_node_of_qdrant(model: Path) -> None:
    """All processes use one node; when it stops, searches, saves and rebuilds go on."""
    with QdrantStandIn() as cluster:
        node = cluster.another_node()
        with Replicated(model, f"{node.url},{cluster.url}") as team:
            team.fill(40)
            assert not any(one.headers["host"] in cluster.url for one in cluster.requests)
            before = team.rebuild()
            node.stop()
            team.skill("during-node", "Saved in the middle of it")
            for _ in range(20):
                assert team.second("skill-8") == ("hybrid", "project/skill-8")
            team.wait(lambda: team.finds("during-node"))
            team.wait(lambda: team.active != before)
            assert team.finds("skill-7")
            assert team.get("/stats")["queue"]["failed"] == 0


def test_each_node_of_a_cluster_may_be_lost(model: Path) -> None:
    """With two copies of each shard, searches, saves and rebuilds go on."""
    with on_three_nodes(model) as (nodes, team):
        for number, node in enumerate(nodes):
            lose(node, team, f"during-{number}")
        assert team.get("/stats")["queue"]["failed"] == 0


def test_a_silent_node_of_a_cluster_is_replaced_by_others(model: Path) -> None:
    """The processes are connected to it, and it has some of the data, but it does not answer."""
    with on_three_nodes(model) as (nodes, team):
        os.kill(nodes[0].pid, signal.SIGSTOP)
        team.wait(lambda: team.second("skill-8") == ("hybrid", "project/skill-8"))
        team.skill("silent", "Saved while a node was silent")
        team.wait(lambda: team.finds("silent"))
        assert team.second("skill-7") == ("hybrid", "project/skill-7")
        os.kill(nodes[0].pid, signal.SIGCONT)
        team.wait(nodes[0].is_whole)
        team.wait(lambda: team.finds("skill-7"))


@contextmanager
def on_three_nodes(model: Path) -> Iterator[tuple[list[QdrantProcess], Replicated]]:
    """The nodes of a real cluster, and a team that keeps two copies of each shard on them."""
    with cluster_of_programs(3) as nodes:
        urls = ",".join(node.url for node in nodes)
        with Replicated(model, urls, {"REPERTORY_QDRANT_REPLICATION_FACTOR": "2"}) as team:
            team.fill(40)
            yield nodes, team


def lose(node: QdrantProcess, team: Replicated, saved: str) -> None:
    """Kill a node in the middle of a rebuild, save a skill, and start the node again."""
    before = team.rebuild()
    node.kill()
    team.skill(saved, "Saved while a node was away")
    for _ in range(20):
        assert team.second("skill-8") == ("hybrid", "project/skill-8")
    team.wait(lambda: team.finds(saved))
    team.wait(lambda: team.active != before)
    node.start()
    team.wait(node.is_whole)
    team.wait(lambda: team.finds(saved))

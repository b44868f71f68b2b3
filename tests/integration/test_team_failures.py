"""What dies in the middle of a rebuild; docs/failures.md says what then happens."""

from collections.abc import Callable, Iterator
from urllib.parse import urlencode
from urllib.request import urlopen

import msgspec
import pytest

from repertory.index.qdrant import QdrantStore
from tests.support.logged_process import LoggedProcess
from tests.support.model_folders import write_model
from tests.support.ports import free_port
from tests.support.team import Team

ITEMS = 1_500  # enough that a rebuild of them is seen before it ends

pytestmark = pytest.mark.timeout(400)


class Replicated:
    """A team with its own Qdrant and a second query service, which nothing kills."""

    def __init__(self, team: Team) -> None:
        self.team = team
        self.port = free_port()
        self.query = team.service("second-api", "api", "--port", str(self.port))

    @property
    def active(self) -> str:
        """The active collection."""
        return QdrantStore(self.team.qdrant_url).alias("repertory") or ""

    def parts(self) -> dict[str, tuple[Callable[[], object], Callable[[], object]]]:
        """How each part is killed, and how it is started again."""

        def process(one: LoggedProcess) -> tuple[Callable[[], object], Callable[[], object]]:
            return one.kill, one.start

        return {
            "watch": process(self.team.watch),
            "query": process(self.team.api),
            "worker": process(self.team.workers[0]),
            "redis": (self.team.redis.kill, self.team.redis.restart),
            "qdrant": (self.team.qdrant.kill, self.team.qdrant.start),
        }

    def search(self, text: str) -> tuple[str, str]:
        """The mode and the best hit of the second query service, which must answer."""
        url = f"http://127.0.0.1:{self.port}/search?{urlencode({'q': text})}"
        with urlopen(url, timeout=30) as response:
            answer = msgspec.json.decode(response.read())
        return answer["mode"], answer["results"][0]["toolId"] if answer["results"] else ""

    def finds(self, name: str) -> bool:
        """Whether both query services find a skill by its name, with both arms."""
        item = f"project/{name}"
        return self.team.first(name) == item and self.search(name) == ("hybrid", item)


@pytest.fixture(scope="module")
def replicated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Replicated]:
    """A team that has indexed all items."""
    model = write_model(tmp_path_factory.mktemp("model") / "tiny")
    with Team(settings={"REPERTORY_SEARCH_MODEL": str(model)}) as team:
        for number in range(ITEMS):
            team.skill(f"skill-{number}", f"w{number % 60} number {number}")
        running = Replicated(team)
        running.query.start()
        try:
            team.ready(200)
            team.wait(lambda: team.get("/stats")["items"] == ITEMS, 200)
            team.wait(lambda: running.finds("skill-7"))
            yield running
        finally:
            running.query.kill()


@pytest.mark.parametrize("part", ["query", "watch", "worker", "redis", "qdrant"])
def test_a_rebuild_outlives_each_part(replicated: Replicated, part: str) -> None:
    """Until it is back, searches are answered; then the rebuild ends, and a save is found.

    The save was made meanwhile.
    """
    team = replicated.team
    kill, start = replicated.parts()[part]
    before = replicated.active
    assert team.request("POST", "/rebuild", {})[0] == 202
    team.wait(lambda: (team.get("/stats")["building"] or {}).get("done", 0) > 0)
    kill()
    team.skill(f"during-{part}", "Saved in the middle of it")
    team.wait(lambda: replicated.search("skill-7")[1] == "project/skill-7")
    mode = "keyword" if part == "qdrant" else "hybrid"
    team.wait(lambda: replicated.search("skill-8") == (mode, "project/skill-8"))
    if part in {"watch", "worker", "redis"}:
        assert replicated.active == before, "the rebuild was over too early"
    start()
    team.wait(lambda: replicated.active not in ("", before), 150)
    team.wait(lambda: replicated.finds(f"during-{part}"), 150)
    assert replicated.finds("skill-7")
    assert team.get("/stats")["queue"]["failed"] == 0


def test_a_rebuild_is_refused_without_redis(replicated: Replicated) -> None:
    """Nobody could be told of it; the error says what is away."""
    replicated.team.redis.kill()
    try:
        status, problem = replicated.team.request("POST", "/rebuild", {})
        assert status == 503
        assert "cannot be reached" in problem["detail"]
    finally:
        replicated.team.redis.restart()


@pytest.mark.parametrize("part", ["watch", "worker"])
def test_a_save_waits_for_the_process_that_indexes_it(replicated: Replicated, part: str) -> None:
    """Searches do not notice that the process is away; the save is found when it is back."""
    kill, start = replicated.parts()[part]
    kill()
    replicated.team.skill(f"without-{part}", "Saved while it was away")
    assert replicated.search("skill-7") == ("hybrid", "project/skill-7")
    start()
    replicated.team.wait(lambda: replicated.finds(f"without-{part}"), 150)


def test_a_save_needs_no_query_process(replicated: Replicated) -> None:
    """One that starts later finds the save at its first answer."""
    team = replicated.team
    team.api.kill()
    team.skill("without-query", "Saved while it was away")
    team.wait(lambda: replicated.search("without-query") == ("hybrid", "project/without-query"))
    team.api.start()
    team.wait(lambda: team.request("GET", "/search?q=without-query")[0] == 200)
    assert team.first("without-query") == "project/without-query"

"""Several watch services of one team: one leads, the others wait and take over."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from repertory.coordination.lease import LEASE_S, Holder, RedisLease
from repertory.coordination.redis_server import RedisServer
from repertory.coordination.team import on_redis
from repertory.index.qdrant import QdrantStore
from repertory.stats import WatchStatus
from tests.support.command_line import COMMAND
from tests.support.logged_process import LoggedProcess
from tests.support.model_folders import write_model
from tests.support.qdrant import QdrantProcess
from tests.support.redis_server import RedisProcess
from tests.support.waiting import until

ELSE = Holder(host="elsewhere", process=1, directory="/srv/other")


class _Watches:
    """A Redis, a Qdrant, a worker, and watch services that a test starts."""

    def __init__(self, root: Path, redis: RedisProcess, qdrant: QdrantProcess) -> None:
        self._root = root
        self.redis = redis
        self.store = QdrantStore(qdrant.url)
        self.server = RedisServer(redis.url)
        self.lease = RedisLease(self.server)
        kept = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}
        self._environment = kept | {
            "HOME": str(root / "home"),
            "REPERTORY_DATA_DIR": str(root / "data"),
            "REPERTORY_REDIS_URL": redis.url,
            "REPERTORY_QDRANT_URL": qdrant.url,
            "REPERTORY_SEARCH_MODEL": str(write_model(root / "model")),
            "REPERTORY_WATCH_RECONCILE": "1",
        }
        self.processes: list[LoggedProcess] = []
        self.start("worker", "worker")

    def start(self, folder: str, command: str = "watch") -> LoggedProcess:
        """Start a process in a folder; a watch's holds a skill of the same name."""
        directory = self._root / folder
        directory.mkdir(exist_ok=True)
        if command == "watch":
            skill = directory / "skills" / folder / "SKILL.md"
            skill.parent.mkdir(parents=True, exist_ok=True)
            skill.write_text(f"---\nname: {folder}\ndescription: {folder} and nothing else\n---\n")
        log = self._root / f"{folder}-{len(self.processes)}.log"
        process = LoggedProcess([*COMMAND, command], directory, log, self._environment)
        process.start()
        self.processes.append(process)
        return process

    def items(self) -> list[str]:
        """The ids of the active collection."""
        name = self.store.alias("repertory")
        if name is None:
            return []
        with self.store.open(name) as collection:
            return sorted(state.item for state in collection.states())

    def published(self) -> list[int]:
        """How often each watch service published."""
        return [len(one.events("collection_published")) for one in self.processes[1:]]


@pytest.fixture
def watches(tmp_path: Path) -> Iterator[_Watches]:
    """What the watch services need."""
    with RedisProcess() as redis, QdrantProcess() as qdrant:
        made = _Watches(tmp_path, redis, qdrant)
        try:
            yield made
        finally:
            for process in made.processes:
                process.kill()


def killed(process: LoggedProcess) -> None:
    """End it with kill -9."""
    process.kill()


def ended(process: LoggedProcess) -> None:
    """End it with SIGTERM."""
    assert process.terminate() == 0


@pytest.mark.timeout(240)
@pytest.mark.parametrize("end", [killed, ended])
def test_a_second_watch_waits_and_takes_over(
    watches: _Watches, end: Callable[[LoggedProcess], None]
) -> None:
    """It says for whom it waits, publishes nothing until then, and is listed as waiting."""
    first = watches.start("bread")
    until(lambda: watches.items() == ["project/bread"])
    second = watches.start("plants")
    [waits] = second.wait_for("watch_waits")
    held = watches.lease.holders()
    assert held.holder
    assert held.holder.directory.endswith("/bread")
    assert held.holder.configuration
    assert [Path(one.directory).name for one in held.waiting] == ["plants"]
    assert f"process {held.holder.process} on {held.holder.host}" in waits["reason"]
    assert watches.published() == [1, 0]
    end(first)
    until(lambda: watches.items() == ["project/plants"])
    held = watches.lease.holders()
    assert held.holder
    assert held.holder.directory.endswith("/plants")
    assert held.waiting == []
    assert watches.published() == [1, 1]


@pytest.mark.timeout(240)
def test_two_catalogues_do_not_take_turns(watches: _Watches) -> None:
    """Through many reconciliations the index is that of the first; saves of the other wait."""
    watches.start("bread")
    until(lambda: watches.items() == ["project/bread"])
    second = watches.start("plants")
    second.wait_for("watch_waits")
    reconciled = watches.store.alias("repertory")
    seen = set()
    deadline = time.monotonic() + 5  # reconciliations are a second apart
    while time.monotonic() < deadline:
        seen.add(watches.store.alias("repertory"))
    assert seen == {reconciled}
    assert watches.published() == [1, 0]
    assert len(second.events("watch_waits")) == 1
    assert second.terminate() == 0
    until(lambda: watches.lease.holders().waiting == [])


@contextmanager
def stopped(process: LoggedProcess) -> Iterator[None]:
    """Stop a process as a machine that hangs does; it goes on at the end."""
    assert process._process
    os.killpg(process._process.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.killpg(process._process.pid, signal.SIGCONT)


@pytest.mark.timeout(240)
def test_a_watch_that_hung_does_not_publish_again(watches: _Watches) -> None:
    """After another one took over it waits, without ending."""
    first = watches.start("bread")
    until(lambda: watches.items() == ["project/bread"])
    second = watches.start("plants")
    second.wait_for("watch_waits")
    with stopped(first):
        until(lambda: watches.items() == ["project/plants"])
    first.wait_for("watch_waits")
    first.wait_for("lease_lost")
    assert watches.items() == ["project/plants"]
    assert watches.published() == [1, 1]
    second.kill()
    until(lambda: watches.items() == ["project/bread"])


@pytest.mark.timeout(240)
def test_a_lost_redis_costs_nobody_the_lease(watches: _Watches) -> None:
    """A Redis that restarts empty has one holder again, and the index stays."""
    watches.start("bread")
    until(lambda: watches.items() == ["project/bread"])
    watches.start("plants").wait_for("watch_waits")
    watches.redis.restart()
    until(lambda: len(watches.lease.holders().waiting) == 1)
    held = watches.lease.holders()
    assert held.holder
    leading = Path(held.holder.directory).name
    until(lambda: watches.items() == [f"project/{leading}"])
    until(lambda: WatchStatus.read(on_redis(watches.server).status.reports()))


@pytest.mark.timeout(120)
def test_a_watch_without_the_lease_writes_nothing(watches: _Watches) -> None:
    """Whoever has it, also on a machine that nobody can see from here."""
    assert watches.lease.take(ELSE)
    waiting = watches.start("bread")
    [waits] = waiting.wait_for("watch_waits")
    assert waits["reason"] == "process 1 on elsewhere, in /srv/other watches already"
    assert watches.store.alias("repertory") is None
    watches.server.client.pexpire("repertory:lease", int(LEASE_S * 1_000))
    watches.lease.release()
    until(lambda: watches.items() == ["project/bread"])

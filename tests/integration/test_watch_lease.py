"""Several watch services of one team: one holds the lease, the others wait and take over."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from threading import Event
from types import SimpleNamespace
from unittest.mock import Mock

import msgspec
import pytest

from repertory.coordination.lease import LEASE_S, Holder, RedisLease, SoleLease
from repertory.coordination.ports import on_redis
from repertory.coordination.redis_server import RedisServer
from repertory.index.cache import SqliteVectorCache
from repertory.index.edge import EdgeStore
from repertory.index.edge_collection import EdgeCollection
from repertory.index.vectors import Collection
from repertory.indexing.coordinator import Coordinator
from repertory.indexing.scan import scan_source
from repertory.sources.configured import Catalogue
from repertory.watch_status import WatchStatus
from repertory_watch import leading
from repertory_watch.run import _end
from tests.support.builders import Folder, coordination, words_writer
from tests.support.logged_process import LoggedProcess
from tests.support.lossy_queue import LossyQueue
from tests.support.redis_server import RedisProcess
from tests.support.waiting import until
from tests.support.watches import Watches

ELSE = Holder(host="elsewhere", process=1, directory="/srv/other")


def test_a_signal_ends_the_service_at_any_moment() -> None:
    """The signal may arrive while its thread is just beginning to wait."""
    stop = Event()
    with vars(stop)["_cond"]:
        _end(stop, signal.SIGTERM, None)
    assert stop.wait(5)


def killed(process: LoggedProcess) -> None:
    """End the process with kill -9."""
    process.kill()


def ended(process: LoggedProcess) -> None:
    """End the process with SIGTERM."""
    assert process.terminate() == 0


def test_an_error_during_a_renewal_ends_the_watch(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is then restarted, instead of running forever without the lease."""
    monkeypatch.setattr(leading, "RENEWAL_INTERVAL_S", 0.01)
    about = Mock(side_effect=ValueError("odd"))
    with leading.leading(SoleLease(), about, Event()) as is_ended:
        assert is_ended.wait(60)


@pytest.mark.timeout(240)
@pytest.mark.parametrize("end", [killed, ended])
def test_a_second_watch_waits_and_takes_over(
    watches: Watches, end: Callable[[LoggedProcess], None]
) -> None:
    """It logs the holder, publishes nothing until then, and is listed as waiting."""
    first = watches.start("bread")
    until(lambda: watches.items() == ["project/bread"])
    second = watches.start("plants")
    [waits] = second.wait_for("watch_waits")
    # The configuration is known only after the first renewal.
    until(lambda: (holder := watches.lease.holders().holder) and holder.configuration)
    held = watches.lease.holders()
    assert held.holder
    assert held.holder.directory.endswith("/bread")
    assert [Path(one.directory).name for one in held.waiting] == ["plants"]
    assert f"process {held.holder.process} on {held.holder.host}" in waits["reason"]
    shown = watches.stats().watch
    assert shown
    assert shown.holder
    assert shown.holder.since == pytest.approx(held.holder.since, abs=5)
    assert msgspec.structs.replace(shown.holder, since=held.holder.since) == held.holder
    assert [one.process for one in shown.waiting] == [held.waiting[0].process]
    assert watches.published() == [1, 0]
    end(first)
    until(lambda: watches.items() == ["project/plants"])
    held = watches.lease.holders()
    assert held.holder
    assert held.holder.directory.endswith("/plants")
    assert held.waiting == []
    until(lambda: watches.published() == [1, 1])  # the log follows the switch


@pytest.mark.timeout(240)
def test_a_watch_that_cannot_read_the_last_report_waits(watches: Watches) -> None:
    """Redis may fail just after it gave the lease."""
    reports = watches.server.key("reports")
    watches.server.client.set(reports, "of another type")
    watch = watches.start("bread")
    [waits] = watch.wait_for("watch_waits")
    assert "wrong kind of value" in waits["reason"]
    watches.server.client.delete(reports)
    until(lambda: watches.items() == ["project/bread"])


@pytest.mark.timeout(240)
def test_two_catalogues_do_not_take_turns(watches: Watches) -> None:
    """Through many reconciliations, the first index stays active, and the second watch waits."""
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
    """Stop a process temporarily, like a machine that hangs."""
    assert process._process
    os.killpg(process._process.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.killpg(process._process.pid, signal.SIGCONT)


@pytest.mark.timeout(240)
def test_a_watch_that_hung_does_not_publish_again(watches: Watches) -> None:
    """After another one took over, it waits without ending."""
    first = watches.start("bread")
    until(lambda: watches.items() == ["project/bread"])
    second = watches.start("plants")
    second.wait_for("watch_waits")
    with stopped(first):
        until(lambda: watches.items() == ["project/plants"])
    first.wait_for("watch_waits")
    first.wait_for("lease_lost")
    assert watches.items() == ["project/plants"]
    until(lambda: watches.published() == [1, 1])  # the log follows the switch
    second.kill()
    until(lambda: watches.items() == ["project/bread"])


@pytest.mark.timeout(240)
def test_a_restart_of_redis_leaves_one_holder_of_the_lease(watches: Watches) -> None:
    """A Redis that restarts empty has one holder again, and the index stays."""
    watches.start("bread")
    until(lambda: watches.items() == ["project/bread"])
    watches.start("plants").wait_for("watch_waits")
    watches.redis.restart()
    until(lambda: len(watches.lease.holders().waiting) == 1)
    held = watches.lease.holders()
    assert held.holder
    leader = Path(held.holder.directory).name
    until(lambda: watches.items() == [f"project/{leader}"])
    until(lambda: WatchStatus.read(on_redis(watches.server).status.reports()))


@pytest.mark.timeout(120)
def test_a_watch_without_the_lease_writes_nothing(watches: Watches) -> None:
    """This applies also if the holder is on a machine that cannot be reached."""
    assert watches.lease.take(ELSE)
    waiting = watches.start("bread")
    [waits] = waiting.wait_for("watch_waits")
    assert waits["reason"] == "process 1 on elsewhere, in /srv/other watches already"
    assert watches.store.alias("repertory") is None
    watches.server.client.pexpire("repertory:lease", int(LEASE_S * 1_000))
    watches.lease.release()
    until(lambda: watches.items() == ["project/bread"])


def test_a_coordinator_without_the_lease_sends_and_publishes_nothing(
    tmp_path: Path, redis_server: RedisProcess
) -> None:
    """It may lose the lease between two steps, while it sleeps or while it compares a build."""
    clock = SimpleNamespace(time=0.0)
    lease = RedisLease(RedisServer(redis_server.url), clock=lambda: clock.time)
    ports = coordination(tmp_path, lease=lease)
    store = _SlowStore(tmp_path, clock)
    with closing(SqliteVectorCache(tmp_path / "vectors.sqlite", 1)) as cache:
        queue = LossyQueue(words_writer(store, cache, ports))
        coordinator = Coordinator(store=store, queue=queue, coordination=ports, active="repertory")
        folder, other = Folder("team", "a"), Folder("other", "b")
        coordinator.adopt(Catalogue((folder,)))
        coordinator.observe(scan_source(folder))

        def steps(count: int = 5) -> None:
            for _ in range(count):
                coordinator.tick()
                while queue.jobs:
                    queue.deliver(0)

        steps()
        assert store.collections() == []
        lease.take(ELSE)
        steps()
        first = store.alias("repertory")
        assert first
        coordinator.adopt(Catalogue((folder, other)))
        coordinator.observe(scan_source(folder))
        coordinator.observe(scan_source(other))
        clock.time += 100.0
        steps()
        assert store.collections() == [first]
        lease.take(ELSE)
        until_written = iter(range(100))
        while max(map(_count, map(store.open, store.collections()))) < 2:
            assert next(until_written) < 99
            steps(1)
        assert store.alias("repertory") == first
        store.is_slow = True
        steps()
        assert store.alias("repertory") == first
        store.is_slow = False
        lease.take(ELSE)
        steps()
        assert store.alias("repertory") not in (None, first)


class _SlowStore(EdgeStore):
    """A store that, while slow, takes longer to open a collection than a lease lasts."""

    is_slow = False

    def __init__(self, folder: Path, clock: SimpleNamespace) -> None:
        super().__init__(folder)
        self._clock = clock

    def open(self, name: str) -> EdgeCollection:
        """Open a collection, and let time pass."""
        self._clock.time += 100.0 * self.is_slow
        return super().open(name)


def _count(collection: Collection) -> int:
    with collection:
        return collection.count()

"""The contract of ``StatusBoard``, tested in memory, on a file and on a real Redis."""

import threading
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from repertory.coordination.redis_server import RedisServer
from repertory.coordination.status import (
    WRITE_INTERVAL_S,
    FileStatus,
    MemoryStatus,
    RedisStatus,
    StatusBoard,
)
from repertory.errors import StoreError
from repertory.live_search.watch_reports import WatchReports
from repertory.watch_status import SILENCE_S, WatchStatus, report_watch
from tests.support.builders import DEEP_JSON
from tests.support.redis_server import RedisProcess

CLOSE_S = 30.0  # how long a test may take between two steps


@pytest.fixture
def now() -> SimpleNamespace:
    """The wall clock, which tests set."""
    return SimpleNamespace(time=1_760_000_000.5)


@pytest.fixture(params=["memory", "file", "redis"])
def status(request: pytest.FixtureRequest, now: SimpleNamespace, tmp_path: Path) -> StatusBoard:
    """Each adapter in turn, empty."""
    if request.param == "memory":
        return MemoryStatus(lambda: now.time)
    if request.param == "file":
        return FileStatus(tmp_path / "data" / "status.json", lambda: now.time)
    server = RedisServer(request.getfixturevalue("redis_server").url)
    return RedisStatus(server, lambda: now.time)


def advance(status: StatusBoard, now: SimpleNamespace, seconds: float) -> None:
    """Let time pass. The clock of Redis cannot be set, so its reports are made older."""
    now.time += seconds
    if isinstance(status, RedisStatus):
        client, key = status._server.client, "repertory:reports"
        for who, stored in cast("dict[bytes, bytes]", client.hgetall(key)).items():
            at, _, report = stored.partition(b" ")
            client.hset(key, who, b"%.6f %s" % (float(at) - seconds, report))


def test_a_report_replaces_the_previous_one(status: StatusBoard, now: SimpleNamespace) -> None:
    """A report replaces the previous report of its process and has the time of writing."""
    assert status.reports() == {}
    status.report("watch", {"sources": [{"name": "docs", "seen": 1.5}], "old": None})
    status.report("worker:host:1", {})
    advance(status, now, 100)
    status.report("watch", {"sources": [], "„": "ü"})
    found = status.reports()
    times = {who: report.pop("at") for who, report in found.items()}
    assert found == {"watch": {"sources": [], "„": "ü"}, "worker:host:1": {}}
    expected = {"watch": now.time, "worker:host:1": now.time - 100}
    assert times == pytest.approx(expected, abs=CLOSE_S)


def test_a_watch_service_that_stopped_is_missed(status: StatusBoard, now: SimpleNamespace) -> None:
    """Reading its last report again is no sign of life; the next report is one."""
    reports = WatchReports(status, is_shared=True, clock=lambda: now.time)

    def is_missed_after(seconds: float) -> bool:
        advance(status, now, seconds)
        reports.read("", is_served=True)
        return reports.known.is_silent

    for _ in range(2):
        report_watch(status, WatchStatus())
        assert not is_missed_after(0)
        assert not is_missed_after(SILENCE_S / 2)
        assert is_missed_after(SILENCE_S)


def test_old_reports_are_forgotten(status: StatusBoard, now: SimpleNamespace) -> None:
    """A report is forgotten after ten minutes; its process may report again."""
    status.report("worker:host:1", {"a": 1})
    advance(status, now, 300)
    status.report("worker:host:2", {})
    advance(status, now, 301)
    assert set(status.reports()) == {"worker:host:2"}
    status.report("worker:host:1", {"a": 2})
    assert status.reports()["worker:host:1"]["a"] == 2


def test_the_report_of_the_watch_service_stays(status: StatusBoard, now: SimpleNamespace) -> None:
    """The report has the access rights, which a query process that starts later needs."""
    status.report("watch", {"a": 1})
    advance(status, now, 1e6)
    assert status.reports()["watch"]["a"] == 1


def test_callers_get_copies_of_reports(status: StatusBoard) -> None:
    """Changing a report that was read changes nothing on the board."""
    status.report("watch", {"a": 1})
    status.reports()["watch"]["a"] = 2
    assert status.reports()["watch"]["a"] == 1


def test_counters_add_up(status: StatusBoard) -> None:
    """Counters may be integers or fractions, and are missing before their first count."""
    assert status.counters() == {}
    status.count({})
    status.count({"texts": 3, "seconds": 0.25})
    status.count({"texts": 4, "ошибки": 1})
    assert status.counters() == pytest.approx({"texts": 7, "seconds": 0.25, "ошибки": 1})


def test_threads_count_together(status: StatusBoard) -> None:
    """No count is lost when several threads count at once."""

    def count() -> None:
        for _ in range(50):
            status.count({"texts": 1})

    threads = [threading.Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert status.counters() == {"texts": 200}


@pytest.mark.parametrize(
    "data",
    [
        *(b"", b"[]", b"1.5 {}", b"x {}", b"\xff"),
        *(b"9999999999.5 []", b"9999999999.5 " + DEEP_JSON),
    ],
)
def test_damaged_reports_are_skipped(redis_server: RedisProcess, data: bytes) -> None:
    """An unreadable report does not hide others; without a valid time it is deleted."""
    server = RedisServer(redis_server.url)
    status = RedisStatus(server)
    status.report("watch", {"a": 1})
    server.client.hset("repertory:reports", "worker:host:1", data)
    assert set(status.reports()) == {"watch"}
    assert server.client.hlen("repertory:reports") == 1 + data.startswith(b"9")


@pytest.mark.parametrize("hours", [-24.0, -0.2, 0.2, 24.0])
def test_clocks_may_differ(redis_server: RedisProcess, hours: float) -> None:
    """A report's age does not depend on the clock of the process that wrote it."""
    mine = SimpleNamespace(time=1_760_000_000.5)
    reader = RedisStatus(RedisServer(redis_server.url), lambda: mine.time)
    writer = RedisStatus(RedisServer(redis_server.url), lambda: mine.time + hours * 3_600)
    writer.report("watch", {"a": 1})
    assert reader.reports()["watch"] == {"a": 1, "at": pytest.approx(mine.time, abs=CLOSE_S)}
    assert writer.reports()["watch"]["a"] == 1
    assert reader.reports()["watch"]["a"] == 1  # neither deletes it as too old


def test_a_clock_that_was_set_back_writes_the_file(tmp_path: Path, now: SimpleNamespace) -> None:
    """A stored report with a time in the future is replaced."""
    path = tmp_path / "status.json"
    board(path, now).report("watch", {"sources": []})
    now.time -= 3_600
    board(path, now).report("watch", {"sources": []})
    assert board(path, now).reports()["watch"]["at"] == now.time


def board(path: Path, now: SimpleNamespace) -> FileStatus:
    """The board as a new process opens it."""
    return FileStatus(path, lambda: now.time)


def test_the_watch_report_outlives_the_process(tmp_path: Path, now: SimpleNamespace) -> None:
    """A new process reads the last report of ``watch`` at any age, but no other report."""
    path = tmp_path / "data" / "status.json"
    status = board(path, now)
    status.report("watch", {"sources": [{"name": "„docs“", "seen": 1.5}], "error": None})
    status.report("worker:host:1", {"jobs": 1})
    status.count({"texts": 3})
    now.time += 5_000
    again = board(path, now)
    expected = {"sources": [{"name": "„docs“", "seen": 1.5}], "error": None}
    assert again.reports() == {"watch": {**expected, "at": now.time - 5_000}}
    assert again.counters() == {}
    again.report("watch", {"sources": []})
    assert again.reports() == {"watch": {"sources": [], "at": now.time}}
    assert board(path, now).reports() == again.reports()
    now.time += 5_000
    assert again.reports()["watch"]["at"] == now.time - 5_000


def test_an_unchanged_report_is_rarely_written(tmp_path: Path, now: SimpleNamespace) -> None:
    """An unchanged report is written once per interval, a changed report at once."""
    path = tmp_path / "status.json"
    status = board(path, now)
    status.report("watch", {"sources": []})
    path.unlink()
    now.time += 1
    status.report("watch", {"sources": []})
    assert not path.exists()
    now.time += WRITE_INTERVAL_S
    status.report("watch", {"sources": []})
    assert board(path, now).reports() == {"watch": {"sources": [], "at": now.time}}
    again = board(path, now)
    path.unlink()
    again.report("watch", {"sources": []})
    assert not path.exists()
    again.report("watch", {"sources": [1]})
    assert board(path, now).reports()["watch"]["sources"] == [1]


@pytest.mark.parametrize(
    "data", [b"", b"[]", b'{"at": "x", "status": {}}', b"\xff", b"\0", b"{}", DEEP_JSON]
)
def test_a_damaged_file_is_an_empty_board(
    tmp_path: Path, now: SimpleNamespace, data: bytes
) -> None:
    """A damaged file is replaced by the next report."""
    path = tmp_path / "status.json"
    path.write_bytes(data)
    status = board(path, now)
    assert status.reports() == {}
    status.report("watch", {})
    assert set(board(path, now).reports()) == {"watch"}


def test_a_file_that_cannot_be_written_is_a_store_error(tmp_path: Path) -> None:
    """The write raises, but the process itself still reads the report."""
    (tmp_path / "file").write_bytes(b"")
    status = FileStatus(tmp_path / "file" / "status.json")
    with pytest.raises(StoreError, match=r"Cannot write .*status\.json"):
        status.report("watch", {"a": 1})
    assert status.reports()["watch"]["a"] == 1


def test_a_damaged_counter_in_redis_is_skipped(redis_server: RedisProcess) -> None:
    """The other counters are still read."""
    server = RedisServer(redis_server.url)
    server.client.flushall()
    status = RedisStatus(server)
    status.count({"jobs": 1.0})
    server.client.hset("repertory:counters", "other", "x")
    assert status.counters() == {"jobs": 1.0}

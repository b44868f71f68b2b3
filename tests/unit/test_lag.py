"""The durations of saves, and the waiting time of the oldest pending save, are measured."""

import pytest

from repertory.indexing.lag import Lag
from repertory.indexing.ledger import NEVER, Ledger, SentItem
from repertory.live_search.known_sources import KnownSources
from repertory.notices import LATE
from repertory.watch_status import LATE_S, SAVE_BOUNDS, SaveTimes, WatchStatus
from tests.support.builders import skill


def sent(at: float, queue: str = "saves") -> SentItem:
    """An item that was sent at a time."""
    return SentItem(hash="", revision=1, queue=queue, at=at, change="added", since=at)


def test_saves_are_counted_by_duration() -> None:
    """Each save is in one bucket, even the slowest; builds are not counted."""
    lag = Lag()
    lag.note([sent(10.0), sent(9.75), sent(8.0, "builds"), sent(NEVER)], 10.2)
    lag.note([sent(0.0)], 1_000.0)
    times = lag.times([], 1_000.0)
    placed = dict(zip((*SAVE_BOUNDS, "more"), times.durations, strict=True))
    assert {bound: count for bound, count in placed.items() if count} == {
        0.25: 1,
        0.5: 1,
        "more": 1,
    }
    assert times.seconds == pytest.approx(0.2 + 0.45 + 1_000)


def test_the_waiting_time_is_that_of_the_oldest_pending_save() -> None:
    """Builds and items that could not be queued are ignored."""
    pending = [sent(90.0), sent(70.0), sent(1.0, "builds"), sent(NEVER, "")]
    assert Lag().times(pending, 100.0).waiting == 30.0
    assert Lag().times([], 100.0) == SaveTimes()


def test_a_lost_save_has_waited_since_it_was_first_sent() -> None:
    """Retries do not reset its waiting time; different content is a new save."""
    ledger, lag, item = Ledger("c"), Lag(), skill("a", "Saved")

    def waiting(now: float) -> float:
        return lag.times(ledger.pending.values(), now).waiting

    for now in (100.0, 120.0, 140.0):
        ledger.send([item], [], queue="saves", milliseconds=0, now=now)
        assert waiting(now + 1.0) == now + 1.0 - 100.0
        ledger.correct([item.id], [])
    ledger.send([skill("a", "Saved again")], [], queue="saves", milliseconds=0, now=160.0)
    assert waiting(161.0) == 1.0


@pytest.mark.parametrize(("waiting", "has_notice"), [(LATE_S - 1, False), (LATE_S, True)])
def test_searches_have_a_notice_if_saves_wait_too_long(waiting: float, *, has_notice: bool) -> None:
    """Answers are never outdated without a notice."""
    status = WatchStatus(at=1.0, saves=SaveTimes(waiting=waiting))
    notices = KnownSources().after(status, "").every_notice(0)
    assert (LATE in notices) is has_notice
    assert LATE not in KnownSources().after(status.inherited(), "").every_notice(0)


def test_a_confirmed_item_is_returned_once() -> None:
    """Each save is counted once, when the last version that was sent is announced."""
    ledger, older, newer = Ledger("c"), skill("a", "Older"), skill("a", "Newer")
    for at, item in ((1.0, older), (2.0, newer)):
        ledger.send([item], [], queue="saves", milliseconds=0, now=at)
    assert ledger.confirm({older.id: older.metadata_hash()}) == []
    assert [one.at for one in ledger.confirm({newer.id: newer.metadata_hash()})] == [2.0]
    assert ledger.confirm({newer.id: newer.metadata_hash()}) == []

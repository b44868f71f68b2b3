"""How long saves took, and how long the oldest pending one has waited."""

import pytest

from repertory.indexing.lag import Lag
from repertory.indexing.ledger import NEVER, Ledger, Sent
from repertory.notices import LATE
from repertory.search.known_sources import KnownSources
from repertory.stats import LATE_S, SAVE_BOUNDS, SaveTimes, WatchStatus
from tests.support.builders import skill


def sent(at: float, queue: str = "saves") -> Sent:
    """An item that was sent at a time."""
    return Sent(hash="", revision=1, queue=queue, at=at, change="added", since=at)


def test_saves_are_counted_by_their_duration() -> None:
    """Each has one place, also the slowest; builds have none."""
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


def test_the_oldest_pending_save_has_waited_longest() -> None:
    """A build and what could not be queued have no part in it."""
    pending = [sent(90.0), sent(70.0), sent(1.0, "builds"), sent(NEVER, "")]
    assert Lag().times(pending, 100.0).waiting == 30.0
    assert Lag().times([], 100.0) == SaveTimes()


def test_what_is_lost_has_waited_since_it_was_sent_first() -> None:
    """However often it is sent again; another content is another save."""
    ledger, lag, item = Ledger("c"), Lag(), skill("a", "Saved")

    def waiting(now: float) -> float:
        return lag.times(ledger.pending.values(), now).waiting

    for now in (100.0, 120.0, 140.0):
        ledger.send([item], [], queue="saves", milliseconds=0, now=now)
        assert waiting(now + 1.0) == now + 1.0 - 100.0
        ledger.correct([item.id], [])
    ledger.send([skill("a", "Saved again")], [], queue="saves", milliseconds=0, now=160.0)
    assert waiting(161.0) == 1.0


@pytest.mark.parametrize(("waiting", "is_said"), [(LATE_S - 1, False), (LATE_S, True)])
def test_searches_say_that_saves_wait(waiting: float, *, is_said: bool) -> None:
    """Nothing is silently outdated, whatever the workers wait for."""
    status = WatchStatus(at=1.0, saves=SaveTimes(waiting=waiting))
    notices = KnownSources().after(status, "").every_notice(0)
    assert (LATE in notices) is is_said
    assert LATE not in KnownSources().after(status.inherited(), "").every_notice(0)


def test_a_confirmed_item_is_returned_once() -> None:
    """So each save is counted once, when the version that was sent last is announced."""
    ledger, older, newer = Ledger("c"), skill("a", "Older"), skill("a", "Newer")
    for at, item in ((1.0, older), (2.0, newer)):
        ledger.send([item], [], queue="saves", milliseconds=0, now=at)
    assert ledger.confirm({older.id: older.metadata_hash()}) == []
    assert [one.at for one in ledger.confirm({newer.id: newer.metadata_hash()})] == [2.0]
    assert ledger.confirm({newer.id: newer.metadata_hash()}) == []

"""Searches follow the reports of the watch service and notice when they stop."""

from collections.abc import Mapping
from typing import Any

import pytest
from typing_extensions import override

from repertory.coordination.status import MemoryStatus
from repertory.errors import StoreError
from repertory.live_search.watch_reports import WatchReports
from repertory.notices import SILENT
from repertory.watch_status import SILENCE_S, WatchStatus, report_watch


class Board(MemoryStatus):
    """A status board that can be unavailable, on a machine whose clock is an hour late."""

    now = 1_700_000_000.0 - 3_600
    is_away = False

    def __init__(self) -> None:
        super().__init__(lambda: self.now)

    @override
    def reports(self) -> dict[str, dict[str, Any]]:
        if self.is_away:
            raise StoreError("Away.")
        return super().reports()


class Clock:
    """A monotonic clock."""

    time = 1_000.0

    def __call__(self) -> float:
        """The time."""
        return self.time


def notices(reports: WatchReports, **how: bool) -> tuple[str, ...]:
    """The notices of searches after the next read of the reports."""
    reports.read("", **{"is_served": True, **how})
    return reports.known.every_notice(1)


@pytest.mark.parametrize("loses", ["a report", "the board"])
def test_searches_say_that_the_watch_service_is_silent(loses: str) -> None:
    """The notice appears if reports stop or the board is away, until the next report."""
    board, clock = Board(), Clock()
    reports = WatchReports(board, is_shared=True, clock=clock)
    report_watch(board, WatchStatus())
    assert notices(reports) == ()
    board.is_away = loses == "the board"
    clock.time += SILENCE_S - 1
    assert notices(reports) == ()
    clock.time += 2
    assert notices(reports) == (SILENT,)
    assert not reports.read("", is_served=True)  # nothing is new
    board.now, board.is_away = board.now + SILENCE_S, False
    report_watch(board, WatchStatus())
    assert notices(reports) == ()


def test_a_watch_service_that_never_reported_is_missed_after_a_while() -> None:
    """At first there is no notice, because the service may be starting."""
    clock = Clock()
    reports = WatchReports(Board(), is_shared=True, clock=clock)
    assert notices(reports) == ()
    clock.time += SILENCE_S + 1
    assert notices(reports) == (SILENT,)


@pytest.mark.parametrize(("shared", "how"), [(True, {"is_served": False}), (False, {})])
def test_without_a_separate_watch_service_none_is_missed(
    shared: bool,
    how: Mapping[str, bool],
) -> None:
    """A command reads the files itself; in a server of one process, the watch is part of it."""
    clock = Clock()
    reports = WatchReports(Board(), is_shared=shared, clock=clock)
    clock.time += SILENCE_S + 1
    assert notices(reports, **how) == ()

"""When a source becomes due after its changes, on a simulated clock."""

from collections.abc import Hashable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from repertory_watch.debounce import MAX_QUIET_PERIODS, Debounce

QUIET = 1.0
STEP = 0.1

gaps = st.lists(st.floats(0, 3 * QUIET), max_size=60)


class Files:
    """Files whose signatures a test sets."""

    def __init__(self) -> None:
        self.signatures: dict[str, Hashable] = {}

    def __call__(self, path: str) -> Hashable:
        """The signature of a file."""
        return self.signatures.get(path)


def play(gaps: list[float], files: int = 3) -> list[list[float]]:
    """Change one file after the other, polling for due sources all the time.

    Returns:
        For each time that the source was due: the times of the changes since the previous time,
        then the time when it was due.
    """
    debounce = Debounce(QUIET, Files())
    scans: list[list[float]] = []
    changes: list[float] = []
    now = 0.0
    for number, gap in enumerate([*gaps, (MAX_QUIET_PERIODS + 1) * QUIET]):
        until = now + gap
        while now < until:
            now = min(now + STEP, until)
            if debounce.due(now):
                scans.append([*changes, now])
                changes = []
        if number < len(gaps):
            debounce.add("source", f"file{number % files}", now)
            changes.append(now)
    assert not changes
    assert not debounce.is_pending
    return scans


@given(gaps)
def test_every_change_becomes_due_within_the_limit(gaps: list[float]) -> None:
    """No change is missed, and constant changes do not delay a scan forever."""
    scans = play(gaps)
    assert sum(len(scan) - 1 for scan in scans) == len(gaps)
    for first, *_, due in scans:
        assert due <= first + MAX_QUIET_PERIODS * QUIET + 2 * STEP


@given(gaps)
def test_a_source_is_due_only_after_quiet_or_at_the_limit(gaps: list[float]) -> None:
    """It is due after a quiet period, or when the limit has passed."""
    for scan in play(gaps):
        rested = scan[-1] - scan[-2] >= QUIET - 1e-9
        assert rested or scan[-1] - scan[0] >= MAX_QUIET_PERIODS * QUIET - 1e-9


@given(st.lists(st.floats(0, QUIET / 2), min_size=1, max_size=15), st.integers(1, 5))
def test_a_burst_is_due_once(gaps: list[float], files: int) -> None:
    """A burst of changes causes one scan, regardless of the number of files."""
    assert len(play(gaps, files)) == 1


@pytest.mark.parametrize("quiet", [0.25, 1.0, 4.0])
def test_a_file_that_changes_constantly_is_due_at_the_limit(quiet: float) -> None:
    """A log that is written all the time never delays other changes beyond the limit."""
    debounce = Debounce(quiet, Files())
    due = []
    for number in range(100):
        now = number * quiet / 4
        due += [now] * len(debounce.due(now))
        debounce.add("source", "log", now)
    assert due == [MAX_QUIET_PERIODS * quiet, 2 * MAX_QUIET_PERIODS * quiet]


def test_unchanged_files_are_due_after_one_quiet_period() -> None:
    """Each file is compared with its own earlier signature."""
    files = Files()
    files.signatures |= {"a": 1, "b": 2}
    debounce = Debounce(QUIET, files)
    debounce.add("source", "a", 0.0)
    debounce.add("source", "b", 0.0)
    assert debounce.due(QUIET) == {"source": ["a", "b"]}


def test_a_file_that_changes_without_an_event_is_waited_for() -> None:
    """Its changed signature restarts the quiet period."""
    files = Files()
    debounce = Debounce(QUIET, files)
    files.signatures["a"] = 1
    debounce.add("source", "a", 0.0)
    files.signatures["a"] = 2
    assert debounce.due(1.0) == {}
    assert debounce.due(1.9) == {}
    assert [*debounce.due(2.0)] == ["source"]
    assert debounce.due(9.0) == {}


def test_sources_do_not_wait_for_each_other() -> None:
    """A source is due when its own files are quiet; a removed source is forgotten."""
    debounce = Debounce(QUIET, Files())
    debounce.add("quiet", "a", 0.0)
    debounce.add("gone", "b", 0.0)
    debounce.add("busy", "c", 0.5)
    debounce.forget("gone")
    debounce.forget("gone")
    assert [*debounce.due(1.0)] == ["quiet"]
    assert debounce.is_pending
    assert [*debounce.due(1.5)] == ["busy"]
    assert not debounce.is_pending

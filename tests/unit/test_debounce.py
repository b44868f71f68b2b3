"""When a source is due after what was noticed of it, on a simulated clock."""

from collections.abc import Hashable

from hypothesis import given
from hypothesis import strategies as st

from repertory_watch.debounce import MOST_QUIETS, Debounce

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
    """Notice one file after the other, asking all the time what is due.

    Returns:
        For each time that the source was due, when something was noticed since the time before,
        and at the end when it was due.
    """
    debounce = Debounce(QUIET, Files())
    looks: list[list[float]] = []
    told: list[float] = []
    now = 0.0
    for number, gap in enumerate([*gaps, (MOST_QUIETS + 1) * QUIET]):
        until = now + gap
        while now < until:
            now = min(now + STEP, until)
            if debounce.due(now):
                looks.append([*told, now])
                told = []
        if number < len(gaps):
            debounce.noticed("source", f"file{number % files}", now)
            told.append(now)
    assert not told
    assert not debounce.is_waiting
    return looks


@given(gaps)
def test_nothing_is_missed_and_nothing_starved(gaps: list[float]) -> None:
    """After whatever is noticed the source is due, not later than the bound."""
    looks = play(gaps)
    assert sum(len(look) - 1 for look in looks) == len(gaps)
    for first, *_, due in looks:
        assert due <= first + MOST_QUIETS * QUIET + 2 * STEP


@given(gaps)
def test_nothing_is_due_without_quiet_or_the_bound(gaps: list[float]) -> None:
    """Between the last thing noticed and being due lies the quiet period, else the bound passed."""
    for look in play(gaps):
        rested = look[-1] - look[-2] >= QUIET - 1e-9
        assert rested or look[-1] - look[0] >= MOST_QUIETS * QUIET - 1e-9


@given(st.lists(st.floats(0, QUIET / 2), min_size=1, max_size=15), st.integers(1, 5))
def test_a_burst_is_due_once(gaps: list[float], files: int) -> None:
    """However many files change in one go, there is one look."""
    assert len(play(gaps, files)) == 1


def test_a_file_that_grows_untold_is_waited_for() -> None:
    """A file whose signature changed since it was noticed is quiet only when that has rested."""
    files = Files()
    debounce = Debounce(QUIET, files)
    files.signatures["a"] = 1
    debounce.noticed("source", "a", 0.0)
    files.signatures["a"] = 2
    assert debounce.due(1.0) == []
    assert debounce.due(1.9) == []
    assert debounce.due(2.0) == ["source"]
    assert debounce.due(9.0) == []


def test_sources_do_not_wait_for_each_other() -> None:
    """A source is due when its own files are quiet, and forgotten when it is no longer there."""
    debounce = Debounce(QUIET, Files())
    debounce.noticed("quiet", "a", 0.0)
    debounce.noticed("gone", "b", 0.0)
    debounce.noticed("busy", "c", 0.5)
    debounce.forget("gone")
    assert debounce.due(1.0) == ["quiet"]
    assert debounce.is_waiting
    assert debounce.due(1.5) == ["busy"]
    assert not debounce.is_waiting

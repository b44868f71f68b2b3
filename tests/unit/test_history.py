"""The history of a server: samples, spans, and the charts of them."""

import anyio
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from repertory.search.answer import Answer, Mode
from repertory.watch_status import SAVE_BOUNDS
from repertory_query import background
from repertory_query.background import sampling
from repertory_query.pages.charts import HEIGHT, charts_of
from repertory_query.records.history import INTERVAL_S, RETENTION_S, History, merged
from repertory_query.records.recent import BOUNDS, Counts, RecentSearches


def answer_with(hits: int) -> Answer:
    """An answer with a number of hits."""
    answer = Answer(query="keys", hits=[], threshold=0.0, mode=Mode.HYBRID)
    msgspec.structs.force_setattr(answer, "total_results", hits)
    return answer


def searched(*searches: tuple[float, int]) -> RecentSearches:
    """The record of some searches, each with its duration in seconds and its number of hits."""
    recent = RecentSearches()
    for seconds, hits in searches:
        recent.note(answer_with(hits), seconds)
    return recent


def test_searches_are_counted_by_duration() -> None:
    """Each search is in one class, even above all bounds. Searches without results count, too."""
    counts = searched((0.0025, 1), (0.0026, 0), (99.0, 0)).counts()
    assert (counts.searches, counts.empty) == (3, 2)
    assert counts.seconds == pytest.approx(99.0051)
    assert (counts.durations[0], counts.durations[1], counts.durations[-1]) == (1, 1, 1)


def test_a_sample_counts_the_events_since_the_last_sample() -> None:
    """The counters only grow; a sample has the difference."""
    past = History()
    recent = searched((0.1, 1), (0.1, 0))
    past.note(10, recent.counts(), 3, 0)
    past.note(25, recent.counts(), 0, 1)
    first, second = past.spans(0, 40, 2)
    assert (first.searches, first.empty, first.pending, first.failed) == (2, 1, 3, 0)
    assert (second.searches, second.empty, second.pending, second.failed) == (0, 0, 0, 1)
    assert past.latest is not None
    assert past.latest.pending == 0


@given(st.lists(st.floats(0.1, 99.9), max_size=30), st.integers(1, 12))
def test_every_sample_is_in_one_span(moments: list[float], number: int) -> None:
    """For any number of spans, no search is lost or counted twice."""
    past, recent = History(), searched()
    for moment in sorted(moments):
        recent.note(answer_with(0), 0.1)
        past.note(moment, recent.counts(), None, None)
    spans = past.spans(0, 100, number)
    assert len(spans) == number
    assert sum(one.searches for one in spans) == len(moments)
    assert merged(spans).searches == len(moments)
    assert all(one.start < one.end for one in spans)
    assert sum(one.is_known for one in spans) <= len(moments)


def test_the_history_is_bounded() -> None:
    """It keeps one day, however long the process runs."""
    past = History()
    for number in range(int(RETENTION_S / INTERVAL_S) + 100):
        past.note(number * INTERVAL_S, Counts(), 0, 0)
    assert len(past._samples) == RETENTION_S / INTERVAL_S


@given(st.lists(st.floats(0.0001, 9.9), min_size=1, max_size=40))
def test_quantiles_lie_in_their_class(durations: list[float]) -> None:
    """The interpolated median is between the bounds around the true median."""
    past = History()
    past.note(1, searched(*((one, 1) for one in durations)).counts(), 0, 0)
    [span] = past.spans(0, 2, 1)
    true = sorted(durations)[(len(durations) - 1) // 2]
    above = next(bound for bound in BOUNDS if bound >= true)
    below = max((bound for bound in BOUNDS if bound < true), default=0.0)
    assert span.median_ms is not None
    assert span.slow_ms is not None
    assert 1_000 * below <= span.median_ms <= 1_000 * above + 1e-6
    assert span.median_ms <= span.slow_ms + 1e-6


def saves(**counts: int) -> tuple[int, ...]:
    """The counts of a watch: saves up to 0.1 s, saves up to 0.5 s, and the slowest saves."""
    places = {"short": 0, "usual": 2, "slowest": -1}
    found = [0] * (len(SAVE_BOUNDS) + 1)
    for name, count in counts.items():
        found[places[name]] = count
    return tuple(found)


def test_the_lag_includes_only_saves_since_the_last_sample() -> None:
    """Saves before this process do not count, and a restart of the watch is handled."""
    past = History()
    steps = (saves(short=90), (), saves(short=90, usual=2), saves(), saves(short=1, slowest=1))
    for number, counted in enumerate(steps):
        past.note(10 * number + 5, Counts(), 0, 0, counted)
    spans = past.spans(0, 50, 5)
    assert [sum(one.saves) for one in spans] == [0, 0, 2, 0, 2]
    assert spans[2].lag_ms == pytest.approx(375)  # halfway between 0.25 and 0.5 s
    assert (spans[3].lag_ms, spans[4].slow_lag_ms) == (None, 300_000)
    charts = {one.title: one for one in charts_of(spans, past.latest)}
    assert charts["Lag of a save"].note.endswith("95 % within 300.0 s")
    assert len(charts["Lag of a save"].lines) == 4  # two durations, with a gap


def test_charts_describe_their_content() -> None:
    """The text alternative has the numbers. The highest bar reaches the top, a gap stays empty."""
    past = History()
    past.note(30, searched((0.02, 1), (0.04, 0)).counts(), 7, 2)
    spans = past.spans(0, 180, 3)
    charts = {one.title: one for one in charts_of(spans, past.latest)}
    searches = charts["Searches"]
    assert [(bar.x, bar.height) for bar in searches.bars] == [(0, HEIGHT)]
    assert searches.text == "Searches: 2. Answered by this process. At most 2 a minute."
    assert charts["Without results"].value == "50 %"
    assert "1 of 2 searches" in charts["Without results"].text
    assert charts["Pending items"].value == "7"
    assert (charts["Failed jobs"].value, charts["Failed jobs"].is_bad) == ("2", True)
    assert [one.is_faint for one in charts["Time to answer"].lines] == [False, True]


def test_a_server_without_searches_has_charts() -> None:
    """Nothing is divided by zero, and unknown values are called unknown."""
    past = History()
    assert charts_of(past.spans(0, 60, 4), past.latest) == []
    past.note(30, Counts(), None, None)
    charts = charts_of(past.spans(0, 60, 4), past.latest)
    assert [one.value for one in charts] == ["0", "none", "none", "none", "unknown", "unknown"]
    assert not any(one.bars or one.lines for one in charts)


def test_a_failed_sample_does_not_end_the_sampling(monkeypatch: pytest.MonkeyPatch) -> None:
    """The next sample is taken, and the server goes on and ends as usual."""
    monkeypatch.setattr(background, "INTERVAL_S", 0.001)
    taken = anyio.Event()
    calls: list[int] = []

    def sample() -> None:
        calls.append(1)
        if len(calls) == 1:
            raise ZeroDivisionError
        anyio.from_thread.run_sync(taken.set)

    async def run() -> None:
        async with sampling(sample):
            with anyio.fail_after(30):
                await taken.wait()

    anyio.run(run)
    assert len(calls) >= 2

"""Charts of the history: the numbers for plain SVG, and an equivalent text."""

from collections.abc import Callable, Iterator, Sequence

import msgspec

from repertory_query.records.history import Span, merged

HEIGHT = 100.0  # of a chart, in its own units; a span is one unit wide


class Bar(msgspec.Struct, frozen=True):
    """One bar, from the bottom of the chart."""

    x: int
    height: float


class Line(msgspec.Struct, frozen=True):
    """A connected part of a line, as SVG points; a faint line is less important."""

    points: str
    is_faint: bool


class Chart(msgspec.Struct, frozen=True, kw_only=True):
    """One chart.

    Attributes:
        title: What it shows.
        value: The main number.
        note: A remark.
        peak: The largest value, which reaches the top.
        width: The number of spans.
        bars: Its bars.
        lines: Its lines.
        is_bad: Whether to highlight the number as a problem.
    """

    title: str
    value: str
    note: str
    peak: str
    width: int
    bars: Sequence[Bar] = ()
    lines: Sequence[Line] = ()
    is_bad: bool = False

    @property
    def text(self) -> str:
        """The chart in words."""
        return f"{self.title}: {self.value}. {self.note}. At most {self.peak}."


def charts_of(spans: Sequence[Span], last: Span | None) -> list[Chart]:
    """All charts for some spans and the latest sample; empty before the first sample."""
    if last is None:
        return []
    whole = merged(spans)
    return [
        _searches(spans, whole),
        _durations(
            "Time to answer", "searches", spans, whole, lambda one: (one.median_ms, one.slow_ms)
        ),
        _empty(spans, whole),
        _durations(
            "Lag of a save", "saves", spans, whole, lambda one: (one.lag_ms, one.slow_lag_ms)
        ),
        _load(spans, "Pending items", lambda one: one.pending, last.pending),
        _load(spans, "Failed jobs", lambda one: one.failed, last.failed, is_bad=bool(last.failed)),
    ]


def _searches(spans: Sequence[Span], whole: Span) -> Chart:
    minutes = (spans[0].end - spans[0].start) / 60
    peak = max(one.searches for one in spans)
    per = "a minute" if minutes == 1 else f"in {minutes:g} minutes"
    return Chart(
        title="Searches",
        value=f"{whole.searches:,}",
        note="Answered by this process",
        peak=f"{peak:,} {per}",
        width=len(spans),
        bars=_bars([one.searches for one in spans], peak),
    )


def _durations(
    title: str,
    what: str,
    spans: Sequence[Span],
    whole: Span,
    of: Callable[[Span], tuple[float | None, float | None]],
) -> Chart:
    """A chart of the median and the 95th percentile of durations in milliseconds."""
    medians, slow = zip(*map(of, spans), strict=True)
    peak = max((one for one in slow if one is not None), default=0.0)
    median, most = of(whole)
    return Chart(
        title=title,
        value="none" if median is None else duration(median),
        note=f"No {what} yet" if most is None else f"The median; 95 % within {duration(most)}",
        peak=duration(peak),
        width=len(spans),
        lines=[*_lines(medians, peak), *_lines(slow, peak, is_faint=True)],
    )


def _empty(spans: Sequence[Span], whole: Span) -> Chart:
    shares = [one.empty_share or 0.0 for one in spans]
    peak = max(shares)
    share = whole.empty_share
    return Chart(
        title="Without results",
        value="none" if share is None else _percent(share),
        note=f"{whole.empty:,} of {whole.searches:,} searches",
        peak=_percent(peak),
        width=len(spans),
        bars=_bars(shares, peak),
    )


def _load(
    spans: Sequence[Span],
    title: str,
    of: Callable[[Span], int | None],
    now: int | None,
    *,
    is_bad: bool = False,
) -> Chart:
    values = [of(one) for one in spans]
    peak = max((value for value in values if value is not None), default=0)
    return Chart(
        title=title,
        value="unknown" if now is None else f"{now:,}",
        note="The last sample",
        peak=f"{peak:,}",
        width=len(spans),
        bars=_bars([value or 0 for value in values], peak),
        is_bad=is_bad,
    )


def _bars(values: Sequence[float], peak: float) -> list[Bar]:
    return [Bar(at, round(HEIGHT * one / peak, 1)) for at, one in enumerate(values) if one > 0]


def _lines(
    values: Sequence[float | None], peak: float, *, is_faint: bool = False
) -> Iterator[Line]:
    """The connected parts of a line; a single value becomes a short line."""
    part: list[str] = []
    for at, value in enumerate((*values, None)):
        if value is not None:
            y = round(HEIGHT * (1 - value / peak), 1)
            part.append(f"{at},{y} {at + 1},{y}" if not part else f"{at + 0.5},{y} {at + 1},{y}")
        elif part:
            yield Line(" ".join(part), is_faint)
            part = []


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %" if 0 < share < 0.1 else f"{100 * share:.0f} %"


def duration(ms: float) -> str:
    """A duration in milliseconds, formatted for people."""
    if ms >= 1_000:
        return f"{ms / 1_000:,.1f} s"
    return f"{ms:.1f} ms" if ms < 10 else f"{ms:,.0f} ms"

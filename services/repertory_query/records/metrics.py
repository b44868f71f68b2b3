"""Metrics for Prometheus: the counters of this process, and the state of the whole server.

If there are several processes behind one port, any of them may answer. Then requests and searches
are summed over all processes, including those that have ended. The metrics that each process counts
separately have its number as a label.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import accumulate, chain

from prometheus_client import CollectorRegistry, Counter, Histogram, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import Metric
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector
from typing_extensions import override

from repertory.stats import Stats, Watch
from repertory.watch_status import SAVE_BOUNDS, SaveTimes, SourceState
from repertory_query.records.query_process import QueryProcess
from repertory_query.records.recent import BOUNDS, Counts

REQUESTS = ("repertory_request_duration_seconds", "Time to answer a request.")
_METHODS = frozenset({"GET", "HEAD", "OPTIONS", "POST"})

# The metrics that differ between processes behind one port.
_OF_PROCESS = frozenset(
    ("index_version", "items", "missing", "repaired_items", "verification_age_seconds", "calls")
)


class Metrics:
    """The metrics of one application, in their own registry.

    Attributes:
        on_request: If set, called with the seconds and the labels of each request.

    Args:
        member: Which of several processes this is; None if it is the only one.
        is_team: Whether watch services need a lease.
    """

    def __init__(self, member: QueryProcess | None = None, *, is_team: bool) -> None:
        self._is_team = is_team
        self.on_request: Callable[[float, Mapping[str, str]], None] | None = None
        self._registry = CollectorRegistry()
        self._member = member
        self._requests = Histogram(
            *REQUESTS,
            ("method", "route", "status"),
            buckets=BOUNDS,
            registry=self._registry,
        )
        self._searches = Counter(
            "repertory_searches",
            "Searches by the arms that answered.",
            ("mode",),
            registry=self._registry,
        )
        self._cached = Counter(
            "repertory_cached_answers",
            "Searches that were answered from the cache.",
            registry=self._registry,
        )
        if member is None:
            ProcessCollector(registry=self._registry)

    def request(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count a request."""
        labels = {"method": known_method(method), "route": route, "status": str(status)}
        self._requests.labels(**labels).observe(seconds)
        if self.on_request:
            self.on_request(seconds, labels)

    def search(self, mode: str) -> None:
        """Count a search that was not cached."""
        self._searches.labels(mode).inc()

    def cached(self) -> None:
        """Count a search that was answered from the cache."""
        self._cached.inc()

    def families(self, stats: Stats, calls: Mapping[str, int], counts: Counts) -> Iterator[Metric]:
        """The metrics of ``text`` except those by caller, for OpenTelemetry."""
        yield from self._registry.collect()
        yield from _of_searches(counts, {})
        yield from _of_server(stats, calls, is_team=self._is_team)

    def text(
        self,
        accept: str,
        stats: Stats,
        calls: Mapping[str, int],
        counts: Counts,
        callers: Mapping[str, int],
    ) -> tuple[bytes, str]:
        """All metrics in the format for an Accept header, and its media type.

        Args:
            accept: The header.
            stats: The statistics, as the caller sees them.
            calls: The number of tool calls by outcome, as the caller sees it.
            counts: The searches of this process.
            callers: The number of searches by caller; empty if this caller may not see it.
        """
        counted: Iterable[Metric] = self._registry.collect()
        searches = _of_searches(counts, callers)
        if member := self._member:
            counted = _of_all(member.ids)
            searches = (_labelled(family, member.shown) for family in searches)
        server = _of_server(stats, calls, is_team=self._is_team)
        encode, media_type = choose_encoder(accept)
        return encode(_Families(chain(counted, searches, server))), media_type


def known_method(method: str) -> str:
    """The method of a request, or ``other``, because callers may send anything there."""
    return method if method in _METHODS else "other"


class _Families(Collector):
    """A collector of given metric families, as encoders need it."""

    def __init__(self, families: Iterable[Metric]) -> None:
        self._families = families

    @override
    def collect(self) -> Iterable[Metric]:
        return self._families


def _of_all(pids: Sequence[int]) -> Iterator[Metric]:
    """The summed counters of all processes behind one port, and the memory and CPU of each."""
    yield from MultiProcessCollector(None).collect()  # type: ignore[no-untyped-call]  # theirs
    families: dict[str, Metric] = {}
    for number, pid in enumerate(pids, start=1):
        for family in ProcessCollector(pid=partial(int, pid), registry=None).collect():
            one = _labelled(family, number)
            if one.name in families:
                families[one.name].samples += one.samples
            else:
                families[one.name] = one
    yield from families.values()


def _labelled(family: Metric, process: int) -> Metric:
    """A metric family with the process number as a label."""
    labels = {"process": str(process)}
    family.samples = [one._replace(labels={**one.labels, **labels}) for one in family.samples]
    return family


def _of_searches(counts: Counts, callers: Mapping[str, int]) -> Iterator[Metric]:
    """The answered searches of all faces, cached or not."""
    text = "Time to answer a search, from any interface, cached or not."
    yield _histogram("search_duration_seconds", text, BOUNDS, counts.durations, counts.seconds)
    text = "Searches without results."
    yield CounterMetricFamily("repertory_empty_searches", text, value=counts.empty)
    text = "Searches by the key that asked; for the scope admin."
    yield _counters("caller_searches", text, "caller", callers)


def _of_server(stats: Stats, calls: Mapping[str, int], *, is_team: bool) -> Iterator[Metric]:
    """The state of the server."""
    for family in _of_stats(stats, calls, is_team=is_team):
        is_own = family.name.removeprefix("repertory_") in _OF_PROCESS
        yield _labelled(family, stats.process.number) if stats.process and is_own else family


def _of_stats(stats: Stats, calls: Mapping[str, int], *, is_team: bool) -> Iterator[Metric]:
    now = time.time()
    yield _gauge("index_version", "The revision of the index.", stats.index_version)
    yield _gauge("items", "Items in the index.", stats.items)
    yield _gauges("missing", "Unavailable parts.", "part", dict.fromkeys(stats.missing, 1))
    if verification := stats.verification:
        text = "Items that this process had missed and repaired."
        yield CounterMetricFamily("repertory_repaired_items", text, value=verification.repaired)
        if verification.at:
            text = "Seconds since the index was last compared with the whole collection."
            yield _gauge("verification_age_seconds", text, now - verification.at)
    queue = stats.queue
    waiting = {"saves": queue.saves, "builds": queue.builds}
    lengths = {name: length for name, length in waiting.items() if length is not None}
    yield _gauges("queue_waiting", "Pending jobs, by queue.", "queue", lengths)
    if queue.taken is not None:
        yield _gauge("queue_taken", "Jobs that workers are doing or retrying.", queue.taken)
    if queue.failed is not None:
        yield _gauge("failed_jobs", "Failed jobs.", queue.failed)
    if stats.watch:
        yield from _of_watch(stats.watch, now, is_team=is_team)
        counts = {"error": stats.errors, "warning": stats.warnings}
        yield _gauges("problems", "Problems of indexed files and items.", "severity", counts)
    yield _gauges(
        "worker_age_seconds",
        "Seconds since the last report of a worker.",
        "worker",
        {worker.worker: now - worker.at for worker in stats.workers},
    )
    waits = {worker.worker: int(bool(worker.error)) for worker in stats.workers}
    yield _gauges("worker_waits", "1 if the worker cannot work now; see stats.", "worker", waits)
    sources = {source.name: source for source in stats.sources}
    for name, text, value in _OF_SOURCES:
        values = {key: value(one, now) for key, one in sources.items()}
        yield _gauges(f"source_{name}", text, "source", values)
    if stats.building:
        yield _gauge("build_done", "Finished items of the build.", stats.building.done)
        yield _gauge("build_total", "All items of the build.", stats.building.total)
    yield _counters("events", "Events of workers.", "event", stats.counters)
    text = "Calls of tools: ok, or the side that failed."
    yield _counters("calls", text, "outcome", calls)


def _of_watch(watch: Watch, now: float, *, is_team: bool) -> Iterator[Metric]:
    text = "Seconds since the last report of the watch service."
    yield _gauge("watch_age_seconds", text, now - watch.at)
    if watch.pending is not None:
        yield _gauge(
            "pending_items",
            "Items that are not confirmed yet, sent or not.",
            watch.pending,
        )
    if watch.saves is not None:
        yield from _of_saves(watch.saves)
    if is_team:
        held = int(watch.holder is not None)
        yield _gauge("lease_held", "1 if a watch service has the lease.", held)
        yield _gauge("watch_waiting", "Watch services that would take over.", len(watch.waiting))
    broken = int(bool(watch.configuration_error))
    text = "1 if the configuration cannot be read; see stats."
    yield _gauge("configuration_broken", text, broken)


def _of_saves(saves: SaveTimes) -> Iterator[Metric]:
    text = "Seconds that the oldest pending save has waited."
    yield _gauge("save_waiting_seconds", text, saves.waiting)
    text = "Time from sending the job of a saved item until it was done."
    yield _histogram("save_duration_seconds", text, SAVE_BOUNDS, saves.durations, saves.seconds)


_OF_SOURCES: tuple[tuple[str, str, Callable[[SourceState, float], float]], ...] = (
    ("items", "Items of a source.", lambda one, _: one.items),
    ("stale_items", "Items of a source that may be outdated.", lambda one, _: one.stale),
    ("failing", "1 if the source cannot be read.", lambda one, _: int(one.is_failing)),
    ("age_seconds", "Seconds since the source was last scanned.", lambda one, now: now - one.seen),
)


def _gauge(name: str, text: str, value: float) -> Metric:
    return GaugeMetricFamily(f"repertory_{name}", text, value=value)


def _histogram(
    name: str, text: str, bounds: Sequence[float], durations: Sequence[int], seconds: float
) -> Metric:
    limits = [*map(str, bounds), "+Inf"]
    buckets = list(zip(limits, accumulate(durations), strict=True))
    return HistogramMetricFamily(f"repertory_{name}", text, buckets=buckets, sum_value=seconds)


def _family(
    kind: type[GaugeMetricFamily] | type[CounterMetricFamily],
    name: str,
    text: str,
    label: str,
    values: Mapping[str, float],
) -> Metric:
    family = kind(f"repertory_{name}", text, labels=(label,))
    for key, value in values.items():
        family.add_metric((key,), value)
    return family


_gauges = partial(_family, GaugeMetricFamily)
_counters = partial(_family, CounterMetricFamily)

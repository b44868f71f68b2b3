"""What Prometheus is told: what this process counts, and what the whole server is like now."""

import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Histogram, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

BUCKETS = (0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)  # seconds
_METHODS = frozenset({"GET", "HEAD", "OPTIONS", "POST"})


class Metrics:
    """The metrics of one application, in a registry of their own.

    Args:
        stats: Gives what ``GET /stats`` answers.
        calls: Gives how many tools were called, by how that went.
    """

    def __init__(
        self, stats: Callable[[], dict[str, Any]], calls: Callable[[], Mapping[str, int]]
    ) -> None:
        self._registry = CollectorRegistry()
        self._requests = Histogram(
            "repertory_request_duration_seconds",
            "Time to answer a request.",
            ("method", "route", "status"),
            buckets=BUCKETS,
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
        ProcessCollector(registry=self._registry)
        self._registry.register(_ServerCollector(stats, calls))

    def request(self, method: str, route: str, status: int, seconds: float) -> None:
        """Note a request."""
        method = method if method in _METHODS else "other"
        self._requests.labels(method, route, str(status)).observe(seconds)

    def search(self, mode: str) -> None:
        """Note a search that was made."""
        self._searches.labels(mode).inc()

    def cached(self) -> None:
        """Note a search that was answered from the cache."""
        self._cached.inc()

    def text(self, accept: str) -> tuple[bytes, str]:
        """All metrics in the format that suits an Accept header, and its media type."""
        encode, media_type = choose_encoder(accept)
        return encode(self._registry), media_type


class _ServerCollector(Collector):
    """The state of the server, read when it is asked for."""

    def __init__(
        self, stats: Callable[[], dict[str, Any]], calls: Callable[[], Mapping[str, int]]
    ) -> None:
        self._stats = stats
        self._calls = calls

    def describe(self) -> list[Metric]:
        """Nothing: else it would be read to find out the names."""
        return []

    def collect(self) -> Iterator[Metric]:
        """The metrics."""
        stats, now = self._stats(), time.time()
        yield _gauge("index_version", "The revision of the index.", stats["indexVersion"])
        yield _gauge("items", "Items in the index.", stats["items"])
        yield _gauges(
            "missing", "What is missing, by part.", "part", dict.fromkeys(stats["missing"], 1)
        )
        queue = stats["queue"]
        queues = {name: queue[name] for name in ("saves", "builds") if queue[name] is not None}
        yield _gauges("queue_waiting", "Jobs that wait, by queue.", "queue", queues)
        if queue["failed"] is not None:
            yield _gauge("failed_jobs", "Jobs that failed.", queue["failed"])
        if stats["watch"]:
            watch = stats["watch"]
            age = now - watch["at"]
            yield _gauge("watch_age_seconds", "Since the watch service was heard of.", age)
            pending = watch.get("pending", 0)
            yield _gauge("pending_items", "Items on their way to the index.", pending)
            broken = int(bool(watch.get("configuration_error")))
            yield _gauge("configuration_broken", "1 if it cannot be read; see stats.", broken)
            counts = {one: watch.get(f"{one}s", 0) for one in ("error", "warning")}
            yield _gauges("problems", "Wrong with what is indexed.", "severity", counts)
        yield _gauges(
            "worker_age_seconds",
            "Since a worker was heard of.",
            "worker",
            {worker["worker"]: now - worker["at"] for worker in stats["workers"]},
        )
        sources = {source["name"]: source for source in stats["sources"]}
        for name, text, value in (
            ("items", "Items of a source.", lambda one: one["items"]),
            ("stale_items", "Items of a source that may be old.", lambda one: one["stale"]),
            ("failing", "1 if it cannot be read.", lambda one: int(bool(one["error"]))),
            ("age_seconds", "Since it was last read whole.", lambda one: now - one["seen"]),
        ):
            values = {key: value(one) for key, one in sources.items()}
            yield _gauges(f"source_{name}", text, "source", values)
        if stats["building"]:
            yield _gauge("build_done", "Items of the build.", stats["building"]["done"])
            yield _gauge("build_total", "Items it will have.", stats["building"]["total"])
        yield _counters("events", "What workers did, by event.", "event", stats["counters"])
        text = "Tools that were called: ok, or the side that failed."
        yield _counters("calls", text, "outcome", self._calls())


def _gauge(name: str, text: str, value: float) -> Metric:
    return GaugeMetricFamily(f"repertory_{name}", text, value=value)


def _counters(name: str, text: str, label: str, counts: Mapping[str, float]) -> Metric:
    family = CounterMetricFamily(f"repertory_{name}", text, labels=(label,))
    for key, count in counts.items():
        family.add_metric((key,), count)
    return family


def _gauges(name: str, text: str, label: str, values: dict[str, Any]) -> Metric:
    family = GaugeMetricFamily(f"repertory_{name}", text, labels=(label,))
    for key, value in values.items():
        family.add_metric((key,), value)
    return family

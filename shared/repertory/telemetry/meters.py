"""Metrics for the collector: the same families, under the same names, as for Prometheus."""

import logging
import math
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.metrics import CallbackOptions, Histogram, Observation
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource

from repertory.errors import ConfigurationError

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric
    from prometheus_client.samples import Sample

INTERVAL = "OTEL_METRIC_EXPORT_INTERVAL"  # milliseconds
DEFAULT_INTERVAL_MS = "60000"
CLOSE_S = 3.0  # timeout of the last export, in case the collector hangs

_log = logging.getLogger(__name__)


class Meters:
    """Sends families of metrics every ``OTEL_METRIC_EXPORT_INTERVAL`` milliseconds until closed.

    Args:
        of: The attributes of the program; see ``export.resource``.
        families: Returns the current gauges and counters; called on a thread before each export.
            Histograms are left out.

    Raises:
        ConfigurationError: The interval is invalid.
    """

    def __init__(self, of: Resource, families: "Callable[[], Iterable[Metric]]") -> None:
        self._families = families
        self._samples: dict[str, list[Sample]] = {}
        # The reader's own interval is off, so that the families are read before its callbacks run.
        self._interval = _interval()
        self._reader = PeriodicExportingMetricReader(OTLPMetricExporter(), math.inf)
        self._provider = MeterProvider([self._reader], of, shutdown_on_exit=False)
        self._meter = self._provider.get_meter("repertory")
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="metrics", daemon=True)
        self._thread.start()

    def histogram(self, name: str, text: str, bounds: Iterable[float]) -> Histogram:
        """A histogram of seconds; the caller records its values."""
        return self._meter.create_histogram(
            name, "s", text, explicit_bucket_boundaries_advisory=list(bounds)
        )

    def close(self) -> None:
        """Export a last time, within ``CLOSE_S`` if the collector hangs, and stop."""
        self._closing.set()
        self._thread.join(CLOSE_S)
        self._provider.shutdown(CLOSE_S * 1_000)

    def _run(self) -> None:
        is_last = False
        while not is_last:
            is_last = self._closing.wait(self._interval)
            try:
                self._read()
                self._reader.collect()
            # A boundary: the next export is another try.
            except Exception:
                _log.warning("metrics_unsent", exc_info=True)

    def _read(self) -> None:
        """Read the families, and register new ones."""
        found = {}
        for family in self._families():
            if family.type not in {"gauge", "counter"}:
                continue
            name = family.name
            suffixes = (name, f"{name}_total")  # not ``_created``
            found[name] = [sample for sample in family.samples if sample.name in suffixes]
            if name not in self._samples:
                callbacks, text = [self._observer(name)], family.documentation
                if family.type == "counter":
                    self._meter.create_observable_counter(name, callbacks, description=text)
                else:
                    self._meter.create_observable_gauge(name, callbacks, description=text)
        self._samples = {name: [] for name in self._samples} | found

    def _observer(self, name: str) -> "Callable[[CallbackOptions], Iterator[Observation]]":
        def observe(_: CallbackOptions) -> Iterator[Observation]:
            for sample in self._samples.get(name, ()):
                yield Observation(sample.value, sample.labels)

        return observe


def _interval() -> float:
    """Seconds between two exports."""
    text = os.environ.get(INTERVAL) or DEFAULT_INTERVAL_MS
    try:
        seconds = float(text) / 1_000
    except ValueError:
        seconds = 0.0
    if not 0.0 < seconds < threading.TIMEOUT_MAX:
        raise ConfigurationError(
            f"{INTERVAL} is {text[:80]!r}; set it to milliseconds, or unset it."
        )
    return seconds

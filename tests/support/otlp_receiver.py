"""A local OpenTelemetry collector that keeps the received spans and metrics."""

import gzip
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from typing import Any, NamedTuple

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.support.http_stub import serving


class Seen(NamedTuple):
    """A received span; ids are hexadecimal, and times are in seconds since the epoch."""

    service: str
    name: str
    kind: int
    trace: str
    id: str
    parent: str
    links: list[str]
    attributes: dict[str, Any]
    failed: bool
    began: float
    ended: float


class Receiver:
    """The received spans and metrics.

    Attributes:
        url: The URL of the collector.
        bodies: The uncompressed bodies of all requests.
    """

    def __init__(self) -> None:
        self.url = ""
        self.bodies: list[bytes] = []
        self._spans: list[Seen] = []
        self._metrics: dict[str, dict[tuple[tuple[str, str], ...], float]] = {}
        self._lock = threading.Lock()

    @property
    def settings(self) -> dict[str, str]:
        """The environment variables that make a program export to this collector without delay."""
        return {
            "REPERTORY_TELEMETRY_ON": "true",
            "OTEL_EXPORTER_OTLP_ENDPOINT": self.url,
            "OTEL_BSP_SCHEDULE_DELAY": "100",
            "OTEL_METRIC_EXPORT_INTERVAL": "500",
        }

    def spans(self, name: str = "", **wanted: str) -> list[Seen]:
        """The received spans, optionally only those with a name and given field values."""
        with self._lock:
            found = [one for one in self._spans if name in ("", one.name)]
        return [one for one in found if all(getattr(one, key) == it for key, it in wanted.items())]

    def metric(self, name: str) -> dict[tuple[tuple[str, str], ...], float]:
        """The last values of a metric by labels; for a histogram, its counts."""
        with self._lock:
            return dict(self._metrics.get(name, {}))

    def take(self, request: BaseHTTPRequestHandler) -> None:
        """Store the content of one request, and answer with status 200."""
        body = request.rfile.read(int(request.headers["Content-Length"]))
        if request.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        with self._lock:
            self.bodies.append(body)
            if request.path == "/v1/traces":
                self._spans += _spans(ExportTraceServiceRequest.FromString(body))
            elif request.path == "/v1/metrics":
                self._metrics |= _metrics(ExportMetricsServiceRequest.FromString(body))
        request.send_response(200)
        request.send_header("Content-Length", "0")
        request.end_headers()


@contextmanager
def receiving() -> Iterator[Receiver]:
    """Run a collector."""
    receiver = Receiver()
    # Only a plain function becomes a method of the handler class; a bound method would not.
    with serving(lambda request: receiver.take(request)) as receiver.url:  # noqa: PLW0108
        yield receiver


def _spans(request: Any) -> Iterator[Seen]:  # noqa: ANN401 - generated classes
    for group in request.resource_spans:
        service = _attributes(group.resource.attributes)["service.name"]
        for scope in group.scope_spans:
            for one in scope.spans:
                yield Seen(
                    service=service,
                    name=one.name,
                    kind=one.kind,
                    trace=one.trace_id.hex(),
                    id=one.span_id.hex(),
                    parent=one.parent_span_id.hex(),
                    links=[link.span_id.hex() for link in one.links],
                    attributes=_attributes(one.attributes),
                    failed=one.status.code == 2,
                    began=one.start_time_unix_nano / 1e9,
                    ended=one.end_time_unix_nano / 1e9,
                )


def _metrics(request: Any) -> dict[str, dict[tuple[tuple[str, str], ...], float]]:  # noqa: ANN401 - generated classes
    found = {}
    for group in request.resource_metrics:
        for scope in group.scope_metrics:
            for one in scope.metrics:
                data = getattr(one, one.WhichOneof("data"))
                found[one.name] = {
                    tuple(sorted(_attributes(point.attributes).items())): _value(point)
                    for point in data.data_points
                }
    return found


def _value(point: Any) -> float:  # noqa: ANN401 - generated classes
    kind = hasattr(point, "as_double") and point.WhichOneof("value")
    return float(getattr(point, kind) if kind else point.count)


def _attributes(found: Any) -> dict[str, Any]:  # noqa: ANN401 - generated classes
    return {one.key: getattr(one.value, one.value.WhichOneof("value")) for one in found}

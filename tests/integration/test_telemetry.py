"""Traces and metrics that a team's server sends to an OpenTelemetry collector."""

import http.client
import socket
from collections.abc import Iterator
from urllib.parse import quote

import pytest
from prometheus_client.core import GaugeMetricFamily

from repertory.telemetry import export, meters
from tests.support.model_folders import write_model
from tests.support.otlp_receiver import Receiver, Seen, receiving
from tests.support.team import Team
from tests.support.waiting import until

INTERNAL, SERVER, PRODUCER, CONSUMER = 1, 2, 4, 5
ITEM = "/items/{item_id:path}"
TRACE, CALLER = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


@pytest.fixture(scope="module")
def receiver() -> Iterator[Receiver]:
    """A collector for all tests of this file."""
    with receiving() as found:
        yield found


@pytest.fixture(scope="module")
def team(receiver: Receiver, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Team]:
    """A team that sends all telemetry to the collector."""
    model = write_model(tmp_path_factory.mktemp("model"))
    settings = {"REPERTORY_SEARCH_MODEL": str(model), **receiver.settings}
    with Team(settings=settings) as found:
        found.skill("bread", "w1 w2 of the oven")
        found.ready()
        yield found


def one(receiver: Receiver, name: str, **wanted: str) -> Seen:
    """The first span with this name and these fields, when it has arrived."""
    return until(lambda: receiver.spans(name, **wanted))[0]


def asked(team: Team, method: str, path: str) -> int:
    """Send a request that continues a trace, and return the status."""
    connection = http.client.HTTPConnection("127.0.0.1", team.port, timeout=30)
    connection.request(method, path, headers={"traceparent": f"00-{TRACE}-{CALLER}-01"})
    status = connection.getresponse().status
    connection.close()
    return status


@pytest.mark.usefixtures("team")
def test_a_save_is_one_trace_from_the_scan_to_the_store(receiver: Receiver) -> None:
    """Message headers carry the trace from the watch service to the worker."""
    saved = until(
        lambda: [
            span
            for span in receiver.spans("process jobs", service="repertory-worker")
            if span.attributes["repertory.items"]
        ]
    )[0]
    sent = one(receiver, "send repertory.write", id=saved.parent)
    root = one(receiver, "save", id=sent.parent)
    scan = one(receiver, "scan", parent=root.id)
    stored = one(receiver, "write to the store", parent=saved.id)
    texts = one(receiver, "embed texts", parent=saved.id)
    assert {one.trace for one in (saved, sent, root, scan, stored, texts)} == {root.trace}
    assert (root.parent, root.service) == ("", "repertory-watch")
    assert (sent.kind, saved.kind, scan.kind) == (PRODUCER, CONSUMER, INTERNAL)
    assert sent.id in saved.links
    assert root.began <= scan.began <= scan.ended <= sent.ended
    assert stored.service == texts.service == "repertory-worker"


def test_the_trace_of_a_request_continues_in_the_worker(team: Team, receiver: Receiver) -> None:
    """A rebuild over HTTP continues the caller's trace, and the queue carries it to the worker."""
    assert asked(team, "POST", "/v1/rebuild") == 202
    request = one(receiver, "POST /rebuild", trace=TRACE)
    sent = one(receiver, "send repertory.begin", trace=TRACE)
    begun = one(receiver, "begin a collection", trace=TRACE)
    assert (request.parent, sent.parent, begun.parent) == (CALLER, request.id, sent.id)
    assert (request.kind, request.service) == (SERVER, "repertory-api")
    assert (begun.kind, begun.service) == (CONSUMER, "repertory-worker")


def test_a_search_has_a_span_for_each_arm(team: Team, receiver: Receiver) -> None:
    """The keyword arm runs on another thread, but in the same trace."""
    assert asked(team, "GET", f"/v1/search?q={quote('w1 very-secret')}&limit=2") == 200
    search = one(receiver, "search", trace=TRACE)
    request = one(receiver, "GET /search", trace=TRACE)
    assert search.parent == request.id
    for name in ("embed the query", "search vectors", "search keywords"):
        assert one(receiver, name, trace=TRACE).parent == search.id
    expected = {"http.request.method": "GET", "http.route": "/search"}
    assert request.attributes == {**expected, "http.response.status_code": 200}


def test_a_failed_request_is_traced_without_its_text(team: Team, receiver: Receiver) -> None:
    """An invalid traceparent begins a new trace, probes have none, and no text is sent."""
    connection = http.client.HTTPConnection("127.0.0.1", team.port, timeout=30)
    connection.request("GET", "/v1/items/very-secret", headers={"traceparent": "very-secret"})
    assert connection.getresponse().status == 404
    connection.close()
    (found,) = until(
        lambda: [one for one in receiver.spans() if one.attributes.get("http.route") == ITEM]
    )
    assert (found.parent, found.failed) == ("", False)
    assert not [span for span in receiver.spans() if "healthz" in span.name]
    assert not [body for body in receiver.bodies if b"very-secret" in body]
    assert not [body for body in receiver.bodies if str(team.folder).encode() in body]


def test_the_collector_has_the_numbers_of_the_metrics(team: Team, receiver: Receiver) -> None:
    """Gauges, counters and the histogram have the names and labels of `/metrics`."""
    team.search("w1")
    until(lambda: receiver.metric("repertory_items").get(()) == 1.0)
    until(lambda: receiver.metric("repertory_searches"))
    labels = (("method", "GET"), ("route", "/search"), ("status", "200"))
    until(lambda: receiver.metric("repertory_request_duration_seconds").get(labels, 0) >= 1)
    shown = team.metrics()
    names = ("repertory_queue_waiting", "repertory_source_items", "repertory_pending_items")
    assert [name for name in names if name not in shown] == []
    until(lambda: all(map(receiver.metric, names)))


def test_shutdown_does_not_wait_for_a_hanging_collector(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise a server could be killed before it has stored its index."""
    monkeypatch.setattr(meters, "CLOSE_S", 0.1)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "600")
    monkeypatch.setenv(meters.INTERVAL, "1")
    family = GaugeMetricFamily("repertory_items", "Items.", 1.0)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{port}")
        sending = meters.Meters(export.resource("test"), lambda: [family])
        connection, _ = silent.accept()  # a request is pending
        sending.close()
        connection.close()

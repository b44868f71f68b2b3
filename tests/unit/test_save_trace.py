"""The spans of a save, and of jobs that a worker processes together."""

import time
from collections.abc import Iterator

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from repertory.indexing.job import Job
from repertory.indexing.save_trace import SaveTrace, processing
from repertory.indexing.scan import ScanResult
from repertory.sources.source import Scan, Source
from repertory.telemetry import spans
from repertory.telemetry.export import Tracing
from tests.support.bulletin_source import Bulletins

HEADER = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b{}-01"


@pytest.fixture
def ended() -> Iterator[InMemorySpanExporter]:
    """The spans that have ended."""
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    spans.turn_on(Tracing(provider))
    yield exporter
    spans.end()


def named(exporter: InMemorySpanExporter, name: str) -> list[ReadableSpan]:
    """The ended spans of a name."""
    return [one for one in exporter.get_finished_spans() if one.name == name]


def test_jobs_are_linked_to_every_message(ended: InMemorySpanExporter) -> None:
    """The span belongs to the first valid trace; invalid headers are ignored."""
    jobs = [Job(id=str(number), collection="c", revision=1, removed=("a",)) for number in range(4)]
    parents = ["", HEADER.format(1), "00-hostile", HEADER.format(2)]
    with processing(jobs, parents):
        pass
    (span,) = named(ended, "process jobs")
    assert span.parent is not None
    assert f"{span.parent.span_id:016x}" == HEADER.format(1).split("-")[2]
    assert [f"{one.context.span_id:x}"[-1] for one in span.links] == ["1", "2"]
    assert dict(span.attributes or {}) == {"repertory.jobs": 4, "repertory.items": 4}


def test_a_span_records_only_the_class_of_an_error(ended: InMemorySpanExporter) -> None:
    """The message is left out because it may contain a text or a secret."""
    with pytest.raises(ValueError, match="secret"), spans.span("step"):
        raise ValueError("a secret")
    (span,) = named(ended, "step")
    assert (span.events, span.status.is_ok, span.status.description) == ((), False, None)
    assert dict(span.attributes or {}) == {"error.type": "ValueError"}


def test_a_scan_span_belongs_only_to_the_jobs_it_caused(
    ended: InMemorySpanExporter,
) -> None:
    """A scan without changes leaves no span; further jobs of a scan join the same trace."""
    trace, result = SaveTrace(), scanned(Bulletins("board"))
    trace.scanned(result)
    trace.compared()
    assert ended.get_finished_spans() == ()
    trace.scanned(result)
    for _ in range(2):
        with trace.sending(1, 0):
            pass
    first, second = named(ended, "save")
    (scan,) = named(ended, "scan")
    assert first.context is not None
    assert scan.parent is not None
    assert second.parent is not None
    assert scan.parent.span_id == second.parent.span_id == first.context.span_id
    assert (first.start_time or 0) <= (scan.start_time or 0) <= (scan.end_time or 0)


def scanned(source: Source) -> ScanResult:
    """A scan without items."""
    return ScanResult(source=source, scan=Scan(items=[]), error="", at=time.time() - 1)

"""Sends spans and metrics to a collector over OTLP, with OpenTelemetry's own SDK.

OpenTelemetry's own variables (``OTEL_EXPORTER_OTLP_ENDPOINT``, ``OTEL_TRACES_SAMPLER`` …) set the
endpoint and the sampling. Only servers call this; short-lived commands are not traced.
"""

import os
import re
import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from time import time_ns
from typing import TYPE_CHECKING

from typing_extensions import override

from repertory.errors import ConfigurationError
from repertory.telemetry import spans
from repertory.telemetry.spans import PARENT, Attributes, Kind

if TYPE_CHECKING:  # the extra `telemetry`
    from opentelemetry.context import Context
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.trace import Link, Span, SpanContext

_TRACEPARENT = re.compile(r"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}")
_MAX_STATE = 512  # characters of a ``tracestate`` that the W3C requires programs to propagate
_PROTOCOL = "http/protobuf"
_SIGNALS = ("TRACES", "METRICS")


def begin(service: str) -> None:
    """Start sending the spans of this process. Those still pending are sent at its end.

    Args:
        service: The name of the program; ``OTEL_SERVICE_NAME`` overrides it.

    Raises:
        ConfigurationError: The extra is not installed, or a variable has an unsupported value.
    """
    check()
    if not is_wanted("TRACES"):
        return
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import (  # noqa: PLC0415 - optional
        OTLPSpanExporter,
    )
    from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415 - as above
    from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415 - as above

    # Not as the global provider: spans of other libraries may hold data that must not be sent.
    provider = TracerProvider(resource=resource(service))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    spans.turn_on(Tracing(provider))


def check() -> None:
    """Check that telemetry can be sent.

    Raises:
        ConfigurationError: As ``begin``.
    """
    try:
        import opentelemetry.exporter.otlp.proto.http  # noqa: PLC0415 - optional
        import opentelemetry.sdk.trace  # noqa: F401, PLC0415 - optional
    except ModuleNotFoundError as error:
        raise ConfigurationError(
            f"telemetry.on needs {error.name}, which is not installed; run: "
            "pip install 'repertory[telemetry]', or unset REPERTORY_TELEMETRY_ON."
        ) from error
    for name in ("", *(f"{signal}_" for signal in _SIGNALS)):
        _check_variable(f"OTEL_EXPORTER_OTLP_{name}PROTOCOL", (_PROTOCOL,))
    for signal in _SIGNALS:
        _check_variable(f"OTEL_{signal}_EXPORTER", ("otlp", "none"))


def resource(service: str, part: str = "") -> "Resource":
    """The attributes of all spans and metrics of this process, or of one part of it."""
    from opentelemetry.sdk.resources import Resource  # noqa: PLC0415 - optional

    own = {
        "service.name": os.environ.get("OTEL_SERVICE_NAME") or service,
        "service.version": version("repertory"),
        "service.instance.id": f"{socket.gethostname()}:{os.getpid()}" + (part and f":{part}"),
    }
    return Resource.create(own)


def is_wanted(signal: str) -> bool:
    """Whether OpenTelemetry's variables ask for a signal, ``TRACES`` or ``METRICS``."""
    is_off = os.environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true"
    return not is_off and os.environ.get(f"OTEL_{signal}_EXPORTER", "").strip() != "none"


def _check_variable(name: str, allowed: Sequence[str]) -> None:
    value = os.environ.get(name, "").strip()
    if value and value not in allowed:
        raise ConfigurationError(
            f"{name} is {value[:80]!r}, and Repertory sends {_PROTOCOL} alone; set it to "
            f"{' or '.join(allowed)}, or unset it."
        )


class _Live(spans.Span):
    def __init__(self, own: "Span") -> None:
        self._own = own

    def note(self, attributes: Attributes, name: str = "", *, failed: bool = False) -> None:
        from opentelemetry.trace import StatusCode  # noqa: PLC0415 - optional

        self._own.set_attributes({**attributes})
        if name:
            self._own.update_name(name)
        if failed:
            self._own.set_status(StatusCode.ERROR)


class Tracing(spans.Tracing):
    """Makes spans with the SDK, through a provider of its own."""

    def __init__(self, provider: "TracerProvider") -> None:
        self._provider = provider
        self._tracer = provider.get_tracer("repertory", version("repertory"))

    @override
    @contextmanager
    def span(
        self,
        name: str,
        attributes: Attributes,
        kind: Kind,
        parent: Mapping[str, str],
        links: Sequence[str],
        began: float | None,
    ) -> Iterator[_Live]:
        from opentelemetry.trace import SpanKind  # noqa: PLC0415 - optional

        with self._tracer.start_as_current_span(
            name,
            context=_continued(parent) if parent else None,
            kind=SpanKind[kind.name],
            attributes={**attributes},
            links=_links(links),
            start_time=time_ns() if began is None else int(began * 1e9),
            record_exception=False,  # its text may hold private data
            set_status_on_exception=False,
        ) as own:
            live = _Live(own)
            try:
                yield live
            except BaseException as error:
                live.note({"error.type": type(error).__name__}, failed=True)
                raise

    @override
    def past(self, name: str, attributes: Attributes, began: float, ended: float) -> None:
        own = self._tracer.start_span(name, attributes={**attributes}, start_time=int(began * 1e9))
        own.end(int(ended * 1e9))

    @override
    def current(self) -> str:
        from opentelemetry.trace import get_current_span  # noqa: PLC0415 - optional

        found = get_current_span().get_span_context()
        if not found.is_valid:
            return ""
        return f"00-{found.trace_id:032x}-{found.span_id:016x}-{int(found.trace_flags):02x}"

    @override
    def end(self) -> None:
        self._provider.shutdown()


def _continued(parent: Mapping[str, str]) -> "Context":
    """The context that headers continue; empty if they are invalid."""
    from opentelemetry.context import Context  # noqa: PLC0415 - optional
    from opentelemetry.trace.propagation.tracecontext import (  # noqa: PLC0415 - optional
        TraceContextTextMapPropagator,
    )

    text, state = parent.get(PARENT, ""), parent.get("tracestate", "")
    if not _TRACEPARENT.fullmatch(text):
        return Context()
    carrier = {PARENT: text} | ({"tracestate": state} if len(state) <= _MAX_STATE else {})
    return TraceContextTextMapPropagator().extract(carrier, Context())


def _links(parents: Sequence[str]) -> "list[Link]":
    from opentelemetry.trace import Link  # noqa: PLC0415 - optional

    found = map(_span_context, dict.fromkeys(parents))
    return [Link(one) for one in found if one.is_valid]


def _span_context(parent: str) -> "SpanContext":
    from opentelemetry.trace import get_current_span  # noqa: PLC0415 - optional

    return get_current_span(_continued({PARENT: parent})).get_span_context()

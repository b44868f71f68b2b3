"""Spans: how long each step of a request or a save took. While they are off, they cost nothing.

This module does not import OpenTelemetry; ``export`` does, and turns the spans on. Attributes are
numbers or names from our code, never a caller's text, a path or a secret.
"""

import functools
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from contextvars import copy_context
from enum import Enum
from typing import ParamSpec, Protocol, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

PARENT = "traceparent"  # the header of requests and messages that continues a trace (W3C)
Attributes = Mapping[str, str | int]


class Kind(Enum):
    """The kind of a span; the names are OpenTelemetry's."""

    INTERNAL = "a step"
    SERVER = "an answered request"
    PRODUCER = "a message that was sent"
    CONSUMER = "messages that were received"


class Span(Protocol):
    """A span in progress."""

    def note(self, attributes: Attributes, name: str = "", *, failed: bool = False) -> None:
        """Add attributes, and optionally rename the span or mark it as failed."""
        ...


class Tracing(Protocol):
    """Makes spans; see the functions of this module."""

    def span(
        self,
        name: str,
        attributes: Attributes,
        kind: Kind,
        parent: Mapping[str, str],
        links: Sequence[str],
        began: float | None,
    ) -> AbstractContextManager[Span]:
        """See ``span``."""
        ...

    def past(self, name: str, attributes: Attributes, began: float, ended: float) -> None:
        """See ``past``."""
        ...

    def current(self) -> str:
        """See ``current``."""
        ...

    def end(self) -> None:
        """See ``end``."""
        ...


class _NoSpan(Span):
    def note(self, attributes: Attributes, name: str = "", *, failed: bool = False) -> None:
        """Do nothing."""


_NOTHING = nullcontext(_NoSpan())
_tracing: Tracing | None = None  # of this process


def turn_on(tracing: Tracing | None) -> None:
    """Turn on the spans of this process; None turns them off."""
    global _tracing  # noqa: PLW0603 - one for each process, like the log
    _tracing = tracing


def are_on() -> bool:
    """Whether spans are made."""
    return _tracing is not None


def end() -> None:
    """Send the pending spans, for a process that ends without Python's exit handlers."""
    if _tracing is not None:
        _tracing.end()
    turn_on(None)


def span(
    name: str,
    attributes: Attributes | None = None,
    *,
    kind: Kind = Kind.INTERNAL,
    parent: Mapping[str, str] | None = None,
    links: Sequence[str] = (),
    began: float | None = None,
) -> AbstractContextManager[Span]:
    """A span around a block. If the block raises, the span gets the class of the error.

    Args:
        name: A few words.
        attributes: The attributes known at the start.
        kind: The kind of span.
        parent: Untrusted headers that continue a trace. Without headers, the parent is the current
            span; invalid headers begin a new trace.
        links: The ``traceparent`` of other spans that it follows; invalid ones are ignored.
        began: Its start in seconds since the epoch; None for now.
    """
    if _tracing is None:
        return _NOTHING
    return _tracing.span(name, attributes or {}, kind, parent or {}, links, began)


def past(name: str, attributes: Attributes, began: float, ended: float) -> None:
    """Add a finished span below the current one; times are in seconds since the epoch."""
    if _tracing is not None:
        _tracing.past(name, attributes, began, ended)


def current() -> str:
    """The ``traceparent`` of the current span; empty if there is no span."""
    return _tracing.current() if _tracing else ""


def traced(name: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Decorate a function with a span around each call."""

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @functools.wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            if _tracing is None:
                return function(*args, **kwargs)
            with span(name):
                return function(*args, **kwargs)

        return call

    return decorate


def carried(function: Callable[P, R]) -> Callable[P, R]:
    """Wrap a function so that it runs under the current span, also on another thread."""
    if _tracing is None:
        return function
    known = copy_context()

    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        return known.run(function, *args, **kwargs)

    return call

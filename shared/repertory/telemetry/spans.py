"""Spans: how long each step of a request or a save took. Until they are on, they cost nothing.

This module imports nothing of OpenTelemetry; ``export`` does, and turns the spans on. An attribute
holds a number or a name that we chose, never a text of a caller, a path or a secret.
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
    """What a span stands for; the names are those of OpenTelemetry."""

    INTERNAL = "a step"
    SERVER = "an answered request"
    PRODUCER = "a message that was sent"
    CONSUMER = "messages that were received"


class Span(Protocol):
    """A span that has begun."""

    def note(self, attributes: Attributes, name: str = "", *, failed: bool = False) -> None:
        """Add attributes; rename it, or mark it as failed."""
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
    """From now on, spans of this process are made; None ends that."""
    global _tracing  # noqa: PLW0603 - one for each process, as the log
    _tracing = tracing


def are_on() -> bool:
    """Whether spans are made."""
    return _tracing is not None


def end() -> None:
    """Send what is not sent yet, for a process that does not end as Python's usually do."""
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
    """A span around a block. An error that leaves the block marks it with the error's class.

    Args:
        name: A few words.
        attributes: What is known at its beginning.
        kind: What it stands for.
        parent: Headers that continue a trace, from anywhere; without any it is below the current
            span. Unusable ones begin a trace.
        links: The ``traceparent`` of spans that it follows as well; unusable ones are ignored.
        began: When it began, in seconds since the epoch; None is now.
    """
    if _tracing is None:
        return _NOTHING
    return _tracing.span(name, attributes or {}, kind, parent or {}, links, began)


def past(name: str, attributes: Attributes, began: float, ended: float) -> None:
    """Add a span of the past, below the current one; times are in seconds since the epoch."""
    if _tracing is not None:
        _tracing.past(name, attributes, began, ended)


def current() -> str:
    """The ``traceparent`` of the current span; empty without one."""
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
    """The function, with the current span on whichever thread it is called."""
    if _tracing is None:
        return function
    known = copy_context()

    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        return known.run(function, *args, **kwargs)

    return call

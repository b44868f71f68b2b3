"""Collects the searches and uses of one request, for the interface that knows the caller."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import msgspec

from repertory.search.answer import Answer
from repertory.usage.recorder import UsageRecorder

MAX_NOTED = 200  # searches and items of one request


class RequestUsage(msgspec.Struct):
    """The searches and uses of a request in this process; empty if another server did the work.

    Attributes:
        searches: The answers, each with its duration in seconds.
        used: The ids of the items that were individually read or called.
    """

    searches: list[tuple[Answer, float]] = []
    used: list[str] = []

    def record(self, recorder: UsageRecorder, caller: str, *, is_typed: bool = False) -> None:
        """Record this as the usage of a caller; see ``UsageRecorder``."""
        for answer, seconds in self.searches:
            recorder.searched(caller, answer, seconds, is_typed=is_typed)
        if self.used:
            recorder.used(caller, self.used)


_CURRENT: ContextVar[RequestUsage | None] = ContextVar("request_usage", default=None)


@contextmanager
def collecting() -> Iterator[RequestUsage]:
    """Collect the searches and uses noted in the block, including those on its pool threads."""
    usage = RequestUsage()
    token = _CURRENT.set(usage)
    try:
        yield usage
    finally:
        _CURRENT.reset(token)


def note_search(answer: Answer, seconds: float) -> None:
    """Note a search."""
    usage = _CURRENT.get()
    if usage is not None and len(usage.searches) < MAX_NOTED:
        usage.searches.append((answer, seconds))


def note_use(item: str) -> None:
    """Note an item that was read or called."""
    usage = _CURRENT.get()
    if usage is not None and len(usage.used) < MAX_NOTED:
        usage.used.append(item)
